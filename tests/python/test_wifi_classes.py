"""Two classes on one channel against EDCA counted slot by slot: 10.23.2 of IEEE 802.11-2020 for two
saturated stations, written anew, with what ns-3 3.44 does beyond it (a BlockAckReq after a
collision, a NAV over the whole TXOP)."""

from __future__ import annotations

import json
import math
import random
from functools import cache

import pytest

from fullpipe import _native
from fullpipe.scenario.wifi import WifiOptions, resolve_wifi

SECONDS = 300
#: Of 802.11n at 5 GHz, us.
SLOT, SIFS, DETECTION, BEACON, BEACONS = 9, 16, 4, 208, 102_400
ANSWER, REQUEST, CF_END = 32, 32, 52
AGGREGATE = 28  # MPDUs of 1542 bytes in the 5.484 ms and 65,535 bytes
#: AIFSN, least and largest window, TXOP in us (802.11-2020, table 9-155).
CLASSES = {"BE": (3, 15, 1023, 0), "VI": (2, 7, 15, 4096), "VO": (2, 3, 7, 2080)}


def airtime_us(mpdus: int) -> int:
    """HT-mixed, 20 MHz, MCS 7: 260 bits a symbol of 4 us."""
    return 36 + 4 * math.ceil((16 + 8 * (1544 * (mpdus - 1) + 1542) + 6) / 260)


@cache
def most_mpdus(room_us: int) -> int:
    """That fit into a time with their BlockAck."""
    fits = (n for n in range(AGGREGATE, 0, -1) if airtime_us(n) + SIFS + ANSWER <= room_us)
    return next(fits, 0)


def counted(categories: tuple[str, str], txops: bool, requests: bool) -> tuple[list[float], float]:
    """Goodput of both in Mbit/s, and the part of the first one's PPDUs that nobody answered."""
    rng = random.Random(1)
    aifsn, least, largest, txop = zip(*(CLASSES[name] for name in categories), strict=True)
    limits = txop if txops else (0, 0)
    windows, slots = list(least), [rng.randint(0, window) for window in least]
    requesting, idle = [False, False], [0, 0]
    delivered, sent, lost = [0, 0], [0, 0], [0, 0]
    beacon = BEACONS
    while max(idle) < SECONDS * 1e6:
        if max(idle) >= beacon:
            idle = [max(idle[0] + SIFS + SLOT, beacon) + BEACON] * 2
            beacon += BEACONS
            continue
        ready = [idle[i] + SIFS + aifsn[i] * SLOT for i in (0, 1)]
        at = [ready[i] + slots[i] * SLOT for i in (0, 1)]
        first = min(at)
        senders = [i for i in (0, 1) if at[i] <= first + DETECTION]
        for i in {0, 1} - set(senders):
            if first + DETECTION >= ready[i]:
                slots[i] = max(0, slots[i] - (first + DETECTION - ready[i]) // SLOT - 1)
        if len(senders) == 1:
            (i,) = senders
            now, room = first, limits[i] or 10**6
            if requesting[i]:
                now += REQUEST + SIFS + ANSWER + (SIFS if limits[i] else 0)
            if not requesting[i] or limits[i]:
                mpdus = most_mpdus(room - (now - first))
                now += airtime_us(mpdus) + SIFS + ANSWER
                sent[i] += 1
                delivered[i] += mpdus
            requesting[i] = False
            windows[i] = least[i]
            idle = [now, now]
            left = first + limits[i] - now
            if left >= SIFS + CF_END:
                idle = [now + SIFS + CF_END] * 2
            elif left > 0:
                idle[1 - i] += left
        else:
            ends = []
            for i in senders:
                air = REQUEST if requesting[i] else airtime_us(most_mpdus(limits[i] or 10**6))
                sent[i] += not requesting[i]
                lost[i] += not requesting[i]
                requesting[i] = requests
                windows[i] = min(2 * windows[i] + 1, largest[i])
                ends.append(at[i] + air)
            idle = [max(ends)] * 2
        for i in senders:
            slots[i] = rng.randint(0, windows[i])
    return [count * 1472 * 8 / SECONDS / 1e6 for count in delivered], lost[0] / sent[0]


@pytest.mark.parametrize(
    ("categories", "txops", "requests"),
    [
        (("BE", "VI"), True, True),
        (("BE", "VO"), True, True),
        (("BE", "VI"), False, False),
        (("BE", "VO"), False, False),
    ],
)
def test_a_class_beside_a_higher_one_has_what_counting_slots_gives(
    categories: tuple[str, str], txops: bool, requests: bool
) -> None:
    options = WifiOptions.model_validate({
        "standard": "n", "width": 20, "mcs": 7, "rules": "ns3",
        "block_ack_request": requests, "block_ack_retry_limit": None,
        "txop": {} if txops else {"VI": 0, "VO": 0},
        "ampdu": dict.fromkeys(("BE", "BK", "VI", "VO"), 65535),
        "queue": {"kind": "driver", "packets": 500},
        "station": [{"name": name, "background": [{"category": name}]} for name in categories],
    })  # fmt: skip
    rows = _native.wifi.saturation(json.dumps(resolve_wifi(options)), 1, 0, SECONDS * 10**9)
    ours = [row["delivered_packets"] * 1472 * 8 / SECONDS / 1e6 for row in rows]
    told, unanswered = counted(categories, txops, requests)
    # In 20 s the lower class's goodput has a standard deviation of 6 to 14 % beside VI and of 19 to
    # 44 % beside VO: the difference of two runs of 300 s one of 2 to 5 and of 7 to 16 %.
    assert ours[0] == pytest.approx(told[0], rel=0.15 if "VI" in categories else 0.35)
    assert ours[1] == pytest.approx(told[1], rel=0.02)
    assert rows[0]["unanswered_ppdus"] / rows[0]["ppdus"] == pytest.approx(unanswered, abs=0.03)
