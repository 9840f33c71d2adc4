"""What a sweep's store keeps of runs: the measures of many runs at once.

The measures are those that `fullpipe.metrics` defines, computed where the simulator is
(crates/fullpipe-metrics): a run of two simulated seconds takes a millisecond, and one metric of
one run in Python as long as that. `tests/python/test_sweep_measures.py` holds every column against
`fullpipe.metrics`. Must never know an engine.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from fullpipe import _native
from fullpipe.plan.bottleneck import main_queue, of_path_alone

if TYPE_CHECKING:
    import pyarrow as pa

#: Columns as whoever writes tables takes them: a kind (crates/fullpipe-py/src/store.rs) and values.
Columns = Mapping[str, tuple[str, Sequence[Any]]]


class Facts(NamedTuple):
    """What is known of a run beside its tables. `queue`: the one that the data goes through, of
    this rate (None: not limited)."""

    key: str
    seed: int
    engine: str
    warmup_ns: int
    duration_ns: int
    queue: str
    rate_bps: float | None
    rtt_ns: int
    sample_interval_ns: int
    problems: str = ""
    interrupted: bool = False


def facts_of(key: str, plan: Mapping[str, Any], seed: int, engine: str, warmup_ns: int) -> Facts:
    """The facts of a plan with this seed."""
    path = plan["path"]
    queue, rate_bps, _ = main_queue(plan, [flow["direction"] for flow in plan["flows"]])
    rtt_ns = path["forward_delay_ns"] + path["reverse_delay_ns"]
    return Facts(
        key, seed, engine, warmup_ns, plan["duration_ns"], queue, rate_bps, rtt_ns,
        plan["sample_interval_ns"],
    )  # fmt: skip


def version_of(plan: Mapping[str, Any]) -> int:
    """Of what the stored columns mean for runs of this plan; part of their keys.

    1 but for runs without flows, whose goodput an early build stored as 0 and which is null (2),
    and for those whose data goes through another queue than builds took then: that of a row of
    links, or of pages and traffic alone (3), and of a row whose downloads have their bottleneck
    elsewhere than uploads would (4)."""
    ways = [flow["direction"] for flow in plan["flows"]]
    early = "reverse" if ways and set(ways) == {"down"} else "forward"
    main = main_queue(plan, ways)
    if main.queue == early:
        return 1 if ways else 2
    is_known = main in (of_path_alone(plan, "forward"), of_path_alone(plan, "reverse"))
    return 3 if is_known else 4


class Rows:
    """Measures runs, one after another."""

    def __init__(self) -> None:
        self._measures = _native.Measures()

    def __bool__(self) -> bool:
        return len(self._measures) > 0

    def add(self, facts: Facts, tables: Mapping[str, pa.Table]) -> None:
        """Adds a run by its tables."""
        from fullpipe.sweep.tables import read_by_measures  # short runs never ask for Arrow

        self._measures.add_recorded(read_by_measures(tables, facts.queue), facts)

    def simulate(self, runs: Sequence[tuple[Facts, bytes]]) -> list[tuple[int, Exception]]:
        """Runs plans (JSON, without traces of traffic) in the simulator and adds them; returns the
        places of those that failed, with the errors."""
        return self._measures.simulate(runs)

    @property
    def simulator_s(self) -> float:
        """CPU seconds of all `simulate` within the simulator."""
        return self._measures.simulator_s

    def take(self) -> dict[str, Columns]:
        """The rows of every table of a store for these runs, in their order. None is left."""
        return self._measures.take()

    def write(self, folder: Path) -> None:
        """Writes what `take` gives as tables of a store. Raises OSError."""
        self._measures.write(folder)
