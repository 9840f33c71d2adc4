"""The measures of the cases for window-based congestion controls (RFC 5681, RFC 9438), from a
flow's window over time: one function for each kind of case.

Each returns named numbers; the case's file has the conditions on them. NaN means that the event did
not happen. Must never judge.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from fullpipe.conformance.windows import Windows
from fullpipe.expr.language import Scalar

Measured = dict[str, Scalar]
#: CUBIC's constant C in packets/s^3 and its beta (RFC 9438 sections 5 and 4.6).
_C, _BETA = 0.4, 0.7
#: Base RTTs that K must last, so that a round trip more or less says little.
_LEAST_ROUNDS = 20
#: Base RTTs at the end of a run over which reductions are counted.
_LATE_ROUNDS = 25


def decrease(t: Windows) -> Measured:
    """What reductions leave of the window, without the first, which ends slow start: the median,
    the extremes and their number."""
    shares = [reduction.after / reduction.before for reduction in t.reductions[1:]]
    if not shares:
        return {"reductions": 0.0, "share": math.nan}
    return {
        "reductions": float(len(shares)),
        "share": float(np.median(shares)),
        "least": min(shares),
        "most": max(shares),
    }


def growth(t: Windows) -> Measured:
    """Packets by which the window grows a round trip between two reductions, in the second half
    of each interval: the median over intervals. `early`: the same in the first half."""
    early, late = [], []
    for reduction, following in zip(t.reductions[1:], t.reductions[2:], strict=False):
        middle = (reduction.settled + following.at) // 2
        early.append(_per_round(t, reduction.settled, middle))
        late.append(_per_round(t, middle, following.at - 1))
    return {
        "intervals": float(len(late)),
        "early": float(np.median(early)) if early else math.nan,
        "per_round": float(np.median(late)) if late else math.nan,
    }


def cubic(t: Windows) -> Measured:
    """The window after reductions beside W_cubic (RFC 9438 section 4.2), as medians over those
    that the flow outlives by so much. `quarter`, `half`: after these shares of K, by how many
    smoothed RTTs the window is later than W_cubic; `plateau`: the window over W_max after K.

    W_max is the window before, or less by fast convergence (section 4.7) where that was below the
    one before it. Time counts from the end of recovery, a round trip after the reduction."""
    shares = {"quarter": 0.25, "half": 0.5, "plateau": 1.0}
    measured: dict[str, list[float]] = {name: [] for name in shares}
    last_max = 0.0
    for reduction, following in zip(t.reductions, [*t.reductions[1:], None], strict=False):
        w_max = (
            reduction.before * (1 + _BETA) / 2 if reduction.before < last_max else reduction.before
        )
        last_max = reduction.before
        start_s = float(t.t_s[reduction.at] + t.srtt_s[reduction.at])
        end_s = float(t.t_s[following.at - 1] if following is not None else t.t_s[-1])
        k_s = math.cbrt(max(w_max - _BETA * reduction.before, 0) / _C)
        if k_s < _LEAST_ROUNDS * t.rtt_s:
            continue
        for name, share in shares.items():
            after_s = share * k_s
            if start_s + after_s > end_s:
                continue
            window = t.window_at(start_s + after_s)
            if share == 1:
                measured[name].append(window / w_max)
            else:
                reached_s = k_s - math.cbrt((w_max - window) / _C)
                srtt_s = float(t.srtt_s[t.at(start_s + after_s)])
                measured[name].append((after_s - reached_s) / srtt_s)
    medians = {name: float(np.median(v)) if v else math.nan for name, v in measured.items()}
    return {**medians, "epochs": float(len(measured["half"]))}


def slow_start(t: Windows) -> Measured:
    """Growth of the window a round trip before the first reduction: the largest factor, and the
    initial window."""
    end = t.reductions[0].at if t.reductions else t.t_s.size
    first = int(np.argmax(t.delivered > 0))
    factors = []
    for index in range(first, end - 1):
        later = t.at(float(t.t_s[index]) + t.rtt_s)
        if later < end:
            factors.append(float(t.cwnd[later] / t.cwnd[index]))
    return {
        "initial": float(t.cwnd[0]),
        "factor": max(factors) if factors else math.nan,
        "reached": float(t.cwnd[:end].max()),
    }


def timeout(t: Windows) -> Measured:
    """A retransmission timeout: the least window after it, and whether the window grows again."""
    if not t.timeouts:
        return {"timeouts": 0.0}
    low = int(np.argmin(t.cwnd[1:])) + 1
    return {
        "timeouts": t.timeouts,
        "window": float(t.cwnd[low]),
        "grows": float((np.diff(t.cwnd[low:]) > 0).any()),
    }


def one_reduction(t: Windows) -> Measured:
    """Losses of one window late in a run: the reductions and timeouts of its last round trips, and
    what the first of these reductions leaves."""
    begin = t.at(float(t.t_s[-1]) - _LATE_ROUNDS * t.rtt_s)
    late = [reduction for reduction in t.reductions if reduction.at >= begin]
    return {
        "lost": float(t.lost[-1] - t.lost[begin]),
        "reductions": float(len(late)),
        "timeouts": t.timeouts,
        "share": late[0].after / late[0].before if late else math.nan,
    }


def response(t: Windows) -> Measured:
    """The mean window under random loss over that of the response functions: AIMD(1, 1/2), and
    CUBIC (RFC 9438 section 5.1), at the loss rate that the flow had."""
    skip = t.t_s.size // 4
    delivered = float(t.delivered[-1] - t.delivered[skip])
    lost = float(t.lost[-1] - t.lost[skip])
    if not lost or not delivered:
        return {"lost": lost}
    p = lost / (delivered + lost)
    rtt_s = float(np.median(t.srtt_s[skip:]))
    mean = float(t.cwnd[skip:].mean())
    cubic_window = (_C * (3 + _BETA) / (4 * (1 - _BETA))) ** 0.25 * rtt_s**0.75 / p**0.75
    return {
        "lost": lost,
        "loss": p,
        "window": mean,
        "over_aimd": mean / math.sqrt(1.5 / p),
        "over_cubic": mean / cubic_window,
    }


def _per_round(t: Windows, first: int, last: int) -> float:
    if last <= first:
        return math.nan
    seconds = float(t.t_s[last] - t.t_s[first])
    rounds = seconds / float(t.srtt_s[first : last + 1].mean())
    return float(t.cwnd[last] - t.cwnd[first]) / rounds


#: Name in an item's file -> function.
WINDOW_MEASURES: dict[str, Callable[..., Measured]] = {
    function.__name__: function
    for function in (decrease, growth, cubic, slow_start, timeout, one_reduction, response)
}
