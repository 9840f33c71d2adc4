"""Whether a result is a knife edge: repetitions agree, and a little jitter makes others of them.

A simulator repeats a moment exactly, such as a packet that just does not overtake another; a real
path does not. Must never run anything.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from statistics import fmean
from typing import Any

#: The jitter that is tried: what hosts add of themselves.
JITTER = "100us"
#: On paths with a shorter base RTT it is not little.
LEAST_RTT_S = 0.005
#: Runs agree within this part of their mean.
AGREES = 0.01
#: What jitter changes by this part of the mean was a knife edge.
FLIPS = 0.05
LEAST_RUNS = 3

Summary = Mapping[str, Any]


def flips(values: Sequence[float], changed: Sequence[float], least: float = 0.0) -> bool:
    """Whether jitter, with which they are `changed`, makes others of values that agree: by more
    than `least`, too."""
    mean = fmean(values)
    return any(abs(value - mean) > max(FLIPS * mean, least) for value in changed)


def agree(runs: Sequence[Summary]) -> bool:
    """Whether these runs agree in a figure, so that they could be on a knife edge."""
    return len(runs) >= LEAST_RUNS and any(is_narrow(values) for *_, values in _figures(runs))


def sentence(runs: Sequence[Summary], with_jitter: Sequence[Summary]) -> str:
    """What to say of these runs and of the same with jitter; empty where they are no knife edge."""
    jittered = {name: values for name, _, _, values in _figures(with_jitter)}
    for name, unit, digits, values in _figures(runs):
        changed = jittered.get(name, [])
        if not changed or not is_narrow(values):
            continue
        if flips(values, changed):
            return (
                f"knife edge: the {name} is {fmean(values):.{digits}f}{unit} in all "
                f"{len(values)} runs, and {min(changed):.{digits}f} to "
                f"{max(changed):.{digits}f}{unit} with a jitter of 100 us"
            )
    return ""


def _figures(runs: Sequence[Summary]) -> Iterator[tuple[str, str, int, list[float]]]:
    """Name, unit, digits and values of what is compared: completion times where all flows have an
    end, else goodput; shares of congestion controls, where there are two or more."""
    if all(run["completion"] and run["completion"]["is_all"] for run in runs):
        times = [run["completion"]["completion_s"]["mean"] for run in runs]
        yield "completion time", " s", 2, [time for time in times if time is not None]
    else:
        rates = [run["goodput_bps"] for run in runs]
        yield "goodput", " Mbit/s", 1, [rate / 1e6 for rate in rates if rate is not None]
    ends = dict.fromkeys((flow["cc"], flow["direction"]) for run in runs for flow in run["flows"])
    for cc, direction in ends:
        if sum(way == direction for _, way in ends) < 2:
            continue
        shares = [
            sum(
                flow["share"] or 0.0
                for flow in run["flows"]
                if (flow["cc"], flow["direction"]) == (cc, direction)
            )
            for run in runs
        ]
        yield f"share of {cc}", "", 3, shares


def is_narrow(values: Sequence[float]) -> bool:
    """Whether these values of runs, all above 0, agree."""
    is_enough = len(values) >= LEAST_RUNS and all(0 < value < math.inf for value in values)
    return is_enough and max(values) - min(values) <= AGREES * fmean(values)
