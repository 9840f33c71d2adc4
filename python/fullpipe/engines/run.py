"""A run, made once: the plan that an engine gets, and what the recording says of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from fullpipe.base.errors import UserError
from fullpipe.base.toml import with_value
from fullpipe.engines.base import engine, refuse_foreign
from fullpipe.plan.plan import Plan
from fullpipe.plan.resolve import resolve

if TYPE_CHECKING:
    from fullpipe.scenario.model import Scenario


@dataclass(frozen=True)
class Run:
    """One run of a scenario on an engine."""

    plan: Plan
    #: The scenario's TOML with the seed of this run: what repeats it.
    text: str
    warmup_ns: int = 0
    engine: str = "sim"
    options: Mapping[str, Any] = field(default_factory=dict)

    @property
    def seed(self) -> int:
        """The seed of its random numbers."""
        seed: int = self.plan["seed"]
        return seed

    @property
    def duration_ns(self) -> int:
        """The simulated time until its end."""
        duration_ns: int = self.plan["duration_ns"]
        return duration_ns


def seeds_of(scenario: Scenario, repeat: int) -> list[int]:
    """The seeds of `repeat` runs: the scenario's and those after it. Every random number of a run
    is drawn from a hash of its seed, so consecutive seeds give independent runs."""
    return [scenario.seed + index for index in range(repeat)]


def runs_of(
    scenario: Scenario,
    text: str,
    seeds: Sequence[int],
    engine_name: str = "sim",
    options: Mapping[str, Any] | None = None,
    source: str = "",
) -> list[Run]:
    """A run for each seed. Several have a spread of starts (`Scenario.repeated()`). `text`: the
    scenario's TOML; each run's has its own seed, and the spread.

    Raises UserError, which names the file `source`, where keys contradict each other or the engine
    cannot run the scenario; and where it does not have these options, or this host cannot run
    them."""
    options = dict(options or {})
    if len(seeds) > 1 and scenario.start_spread is None:
        scenario = scenario.repeated()
        text = with_value(text, "start_spread", f"{scenario.start_spread}ns")
    refuse_foreign(engine_name, options)
    runner = engine(engine_name)
    try:
        plans = [resolve(scenario, seed) for seed in seeds]
        runner.check(plans[0])
    except UserError as error:
        if not source:
            raise
        raise UserError(f"{source}: {error}") from None
    runner.check(plans[0], options)
    return [
        Run(plan, _with_seed(text, scenario, plan["seed"]), scenario.warmup, engine_name, options)
        for plan in plans
    ]


def _with_seed(text: str, scenario: Scenario, seed: int) -> str:
    return text if seed == scenario.seed else with_value(text, "seed", seed)
