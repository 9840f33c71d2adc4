"""The paths of a draft's case: a rate and a base RTT, and the sizes and times derived from them."""

from __future__ import annotations

import math
from typing import Any

from fullpipe.base import units
from fullpipe.base.errors import UserError
from fullpipe.base.packets import FULL_FRAME_BYTES

_FRAME_BITS = 8 * FULL_FRAME_BYTES
#: Initial window in packets; on a slow path it determines a round's length, not the RTT.
_INITIAL_CWND = 10
#: Three bursts of 64 KB, which BBR allows in flight on the shortest path, plus a margin.
_BURSTS = 200
#: Rounds of Startup and Drain in addition to those that double the rate: plateau, Drain, losses.
_STARTUP_ROUNDS = 16
#: A cycle of ProbeBW: 2 to 3 s, or 63 rounds, and the rounds of probing.
_CYCLE_S, _CYCLE_ROUNDS, _PROBE_ROUNDS = 3.2, 66, 16


def path_fields(text: str, where: str) -> dict[str, Any]:
    """The fields of a path, written as rate and base RTT: `10mbit 40ms`. Templates name them
    `{path.rate}` and so on.

    `label`; `rate`, `rtt`, `rate_mbit`, `rtt_ms`; `sample_ms` between samples, about 40 a round;
    `bdp` in packets; `deep`, `short`: queues in packets, one in which nothing is lost and a fifth
    of a BDP; `startup_s`: when Startup and Drain are over; `long_s`: two cycles of ProbeBW later;
    `down_s`: four, at a tenth of the rate behind its queue; `probe_rtt_s`: after the first
    ProbeRTT; `seldom`: percent of packets, one in 40 rounds or rarer. Raises UserError if it is
    no such pair."""
    rate, _, rtt = text.partition(" ")
    try:
        rate_bps, rtt_s = units.parse_rate(rate), units.parse_time(rtt) / 1e9
    except units.UnitError as error:
        raise UserError(f"{where}: {text!r}: {error}; write rate and RTT: 10mbit 40ms") from None
    packet_s = _FRAME_BITS / rate_bps
    bdp = rate_bps * rtt_s / _FRAME_BITS
    round_s = 2 * max(rtt_s, _INITIAL_CWND * packet_s)
    doublings = math.log2(max(bdp, _INITIAL_CWND) / _INITIAL_CWND) + 1
    cycle_s = min(_CYCLE_S, _CYCLE_ROUNDS * round_s) + _PROBE_ROUNDS * round_s
    return {
        "label": text,
        "rate": rate,
        "rtt": rtt,
        "rate_mbit": rate_bps / 1e6,
        "rtt_ms": rtt_s * 1e3,
        "half_ms": rtt_s * 500,
        "sample_ms": max(1, round(rtt_s * 1e3 / 40)),
        "bdp": round(bdp, 3),
        "deep": math.ceil(5 * bdp) + _BURSTS,
        "seldom": round(100 * min(1 / (40 * max(bdp, 10)), 0.001), 6),
        "short": max(math.ceil(0.2 * bdp), 4),
        "startup_s": round((doublings + _STARTUP_ROUNDS) * round_s, 3),
        "probe_rtt_s": round(max(7.0, 5.5 + 8 * rtt_s), 3),
        "down_s": round((doublings + _STARTUP_ROUNDS) * round_s + 4 * (_CYCLE_S + 90 * rtt_s), 3),
        "long_s": round((doublings + _STARTUP_ROUNDS) * round_s + 2 * cycle_s, 3),
    }
