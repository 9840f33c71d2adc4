"""Nothing disappears on any path: rows of links drawn at random, with every kind of impairment,
change, queue discipline and Wi-Fi, are run in the simulator and their packets counted."""

from __future__ import annotations

import random
from typing import Any

import pytest

from fullpipe.scenario.qdiscs.registry import DISCIPLINES
from helpers import column, simulate

QDISCS: tuple[dict[str, Any], ...] = (
    {},
    *({"qdisc": name} for name in DISCIPLINES if name != "fifo"),
    {"qdisc": "cake", "qdisc_options": {"ack_filter": "aggressive", "ingress": True}},
    {"qdisc": "cake", "qdisc_options": {"tins": "diffserv8", "framing": "atm", "wash": True}},
)
IMPAIRMENTS: tuple[dict[str, Any], ...] = (
    {"loss": "5%", "loss_correlation": "25%"},
    {"loss": "20%", "loss_marks": True},
    {"gemodel": {"p": "1%", "r": "30%", "loss_good": "1%"}},
    {"duplicate": "10%"},
    {"policer": {"rate": "2mbit", "burst": "10KB"}},
    {"hold": {"time": "15ms", "packets": 8}},
    {"wifi_jitter": "7ms"},
    {"reorder": "10%", "reorder_gap": 3},
    {"delay_steps": [["800ms", "1ms"], ["2s", "60ms"]]},
)


def direction(draw: random.Random) -> dict[str, Any]:
    """One direction of a wire."""
    keys: dict[str, Any] = {
        "rate": f"{draw.choice((1, 3, 10, 40))}mbit",
        "delay": f"{draw.choice((1, 10, 40))}ms",
        **draw.choice(QDISCS),
    }
    if "qdisc" not in keys:
        keys["buffer"] = f"{draw.choice((2, 10, 100))}pkt"
    for impairment in draw.sample(IMPAIRMENTS, draw.randint(0, 4)):
        keys |= impairment
    if "gemodel" in keys:
        keys = {key: value for key, value in keys.items() if not key.startswith("loss")}
    if "qdisc" in keys and DISCIPLINES[keys["qdisc"]].options().keeps_rate:
        return keys
    if draw.random() < 0.2:
        keys["outage"] = [["1s", "1500ms"]]
    elif draw.random() < 0.3:
        keys["rate_steps"] = [["700ms", "10mbit"], ["1900ms", "500kbit"]]
    return keys


def link(draw: random.Random, index: int) -> dict[str, Any]:
    """A wire, or a channel."""
    if draw.random() < 0.25:
        queue = draw.choice((
            {"kind": "mac80211"},
            {"kind": "driver", "packets": draw.choice((4, 100))},
        ))  # fmt: skip
        options = {"width": 20, "mcs": draw.choice((0, 5)), "error_rate": "20%", "queue": queue}
        return {"name": f"link{index}", "kind": "wifi", "wifi": options}
    return {"name": f"link{index}", **direction(draw), "reverse": direction(draw)}


def document(seed: int) -> dict[str, Any]:
    """A row of one to three links, and flows over parts of it that end."""
    draw = random.Random(seed)
    links = [link(draw, index) for index in range(draw.randint(1, 3))]
    if all("wifi" in one for one in links):
        links.append({"name": "wire", **direction(draw), "reverse": direction(draw)})
    names = [one["name"] for one in links]
    flows = []
    for index in range(draw.randint(1, 4)):
        first = 0 if index == 0 else draw.randrange(len(names))
        last = len(names) - 1 if index == 0 else draw.randrange(first, len(names))
        flows.append({
            "cc": draw.choice(("cubic", "reno", "bbr1", "bbr3", "prague")),
            "amount": f"{draw.choice((1, 30, 200))}KB",
            "direction": draw.choice(("up", "down")),
            "start": f"{draw.randrange(1500)}ms",
            "ecn": draw.random() < 0.5,
            "enter": names[first],
            "leave": names[last],
        })  # fmt: skip
    return {
        "seed": seed,
        "duration": "120s",
        "sample_interval": "10s",
        "link": links,
        "flow": flows,
        "probe": [{"interval": "500ms"}],
    }


@pytest.mark.parametrize("block", range(4))
def test_every_packet_that_was_sent_or_copied_arrived_was_lost_or_is_on_its_way(block: int) -> None:
    ended = copies = 0
    for seed in range(50 * block, 50 * (block + 1)):
        made = document(seed)
        raw = simulate(**made)
        health = raw["health"]
        counted = health["packets_delivered"] + health["packets_lost"]
        in_flight = health["packets_in_flight"]
        # What is on its way fits into queues and delays: a difference below zero would be 2^64.
        assert in_flight < 100_000, seed
        sent = int(column(raw, "flows", "packets_sent").sum())
        more = counted + in_flight - sent
        has_copies = any(
            "duplicate" in one or "duplicate" in one.get("reverse", {}) for one in made["link"]
        )
        assert (more >= 0) if has_copies else (more == 0), seed
        copies += more
        finished = {
            flow
            for flow, event in zip(
                column(raw, "events", "flow_id"), column(raw, "events", "event"), strict=True
            )
            if event == "finish"
        }
        if len(finished) == len(made["flow"]):
            ended += 1
            assert in_flight == 0, seed
    # The draws are such that most runs end, and some copy.
    assert ended > 20
    assert copies > 10
