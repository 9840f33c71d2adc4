"""How much longer the next round of runs is that had not settled: `--until-settled`."""

from __future__ import annotations

#: Runs become at most this many times as long.
MOST_TIMES = 16


def longer(duration_ns: int, first_ns: int) -> dict[str, str] | None:
    """Duration and warm-up of the round after one of this duration; None where that is longer than
    the bound. `first_ns`: duration of the first round."""
    doubled_ns = 2 * duration_ns
    if doubled_ns > MOST_TIMES * first_ns:
        return None
    return {"duration": f"{doubled_ns / 1e9:g}s", "warmup": f"{doubled_ns / 2e9:g}s"}
