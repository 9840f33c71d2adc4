"""Runs scenarios into recordings: seeds, parallel processes, metadata, interruptions."""

from __future__ import annotations

import functools
import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import fullpipe
from fullpipe.base.commit import git_commit
from fullpipe.base.errors import AlgorithmError, RunError, UserError
from fullpipe.base.writing import claimed
from fullpipe.congestion import registry, userfiles
from fullpipe.engines.base import RunResult, engine, refuse_foreign
from fullpipe.plan.senders import cc_choices

if TYPE_CHECKING:
    from concurrent.futures import Future

    from fullpipe.recording.recording import Recording
    from fullpipe.scenario.model import Scenario

#: Engine options that affect the recording; to repeat a run needs them as well as the plan.
_DECIDING = ("machine", "cc_form", "kernel", "modules", "background_processes", "peer", "web")


#: The algorithm of flows that an external agent controls (crates/fullpipe-sim, stepper.rs).
AGENT = "agent"


@dataclass
class Outcome:
    """The outcome of a request to run: recordings in the order of their seeds."""

    recordings: list[Recording] = field(default_factory=list)
    interrupted: bool = False
    failures: list[str] = field(default_factory=list)


def seeds_of(scenario: Scenario, repeat: int) -> list[int]:
    """The seeds of `repeat` runs: the scenario's and those after it. Every random number of a run
    is drawn from a hash of its seed, so consecutive seeds give independent runs."""
    return [scenario.seed + index for index in range(repeat)]


def run_scenario(
    scenario: Scenario,
    scenario_toml: str,
    out: Sequence[Path],
    engine_name: str = "sim",
    options: Mapping[str, Any] | None = None,
    on_progress: Callable[[float], None] = lambda _share: None,
    jobs: int | None = None,
    seeds: Sequence[int] | None = None,
) -> Outcome:
    """Runs the scenario once for every folder of `out`, with these seeds (by default the scenario's
    and those after it). Several runs have a spread of starts (`Scenario.repeated()`), which each
    recording's scenario records. Classes that this program passed run sequentially in this process,
    as do all runs if `jobs` is 1.

    `on_progress` is called with the share done, 0 to 1. Ctrl-C, and SIGTERM if it has the same
    handler, keep what was recorded: the current run ends early and is marked as interrupted.
    Raises UserError before anything runs if the engine cannot run the scenario or does not have
    these options, a folder exists, or another process has claimed it."""
    from fullpipe.plan.resolve import resolve

    if len(out) > 1 and scenario.start_spread is None:
        scenario = scenario.repeated()
        scenario_toml = _with_first_key(
            scenario_toml, f'start_spread = "{scenario.start_spread}ns"'
        )
    seeds = seeds_of(scenario, len(out)) if seeds is None else seeds
    plans = [resolve(scenario, seed) for seed in seeds]
    options = dict(options or {})
    refuse_foreign(engine_name, options)
    engine(engine_name).check(plans[0], options)
    # Several runs share a parent folder, which is claimed for all of them.
    with claimed(out if len(out) == 1 else {folder.parent for folder in out}):
        for folder in out:
            if folder.exists():
                raise UserError(f"{folder}: exists already; name another folder with --out")
        if len(plans) == 1:
            return _run_here(plans[0], scenario_toml, out[0], engine_name, options, on_progress)
        is_handed = any(userfiles.is_handed(one["algorithm"]) for _, one in cc_choices(plans[0]))
        if is_handed or jobs == 1:
            return _run_series(
                plans, scenario_toml, out, engine_name, options, on_progress, raises=is_handed
            )
        return _run_pool(plans, scenario_toml, out, engine_name, options, on_progress, jobs)


def _with_first_key(toml: str, line: str) -> str:
    """The file with one more key. The comments at its head, which name its schema, stay there."""
    lines = toml.splitlines(keepends=True)
    head = next((i for i, text in enumerate(lines) if not text.startswith("#")), len(lines))
    return "".join([*lines[:head], line, "\n", *lines[head:]])


def warmup_ns(scenario_toml: str) -> int:
    """The warm-up of a recorded scenario in ns; 0 if it has none."""
    from fullpipe.base.toml import parse_toml
    from fullpipe.base.units import parse_time

    return parse_time(parse_toml(scenario_toml).get("warmup", 0))


def _run_here(
    plan: Mapping[str, Any],
    scenario_toml: str,
    out: Path,
    engine_name: str,
    options: Mapping[str, Any],
    on_progress: Callable[[float], None],
) -> Outcome:
    with _interrupts_noted() as interrupted:

        def progress(done_ns: int) -> bool:
            on_progress(done_ns / plan["duration_ns"])
            return not interrupted()

        try:
            result = engine(engine_name).run(plan, progress, options)
        except AlgorithmError:
            if interrupted():  # its code did not stop when it was asked to
                raise KeyboardInterrupt from None
            raise
    recording = record_result(plan, scenario_toml, out, engine_name, options, result)
    failures = [result.failure] if result.failure else []
    return Outcome([recording], result.interrupted, failures)


def _run_series(
    plans: Sequence[Mapping[str, Any]],
    scenario_toml: str,
    out: Sequence[Path],
    engine_name: str,
    options: Mapping[str, Any],
    on_progress: Callable[[float], None],
    raises: bool,
) -> Outcome:
    """Runs one plan after another in this process. `raises`: the first failure ends them all."""
    from fullpipe.recording.recording import Recording

    outcome = Outcome()
    for index, (plan, folder) in enumerate(zip(plans, out, strict=True)):
        try:
            one = _run_here(
                plan, scenario_toml, folder, engine_name, options,
                lambda share, done=index: on_progress((done + share) / len(plans)),  # type: ignore[misc]
            )  # fmt: skip
        except (RunError, UserError) as error:
            if raises:
                raise
            outcome.failures.append(f"{folder}: {error}")
            continue
        outcome.recordings += [Recording.open(folder) for _ in one.recordings]
        outcome.failures += one.failures
        if one.interrupted:
            outcome.interrupted = True
            break
    return outcome


def _run_pool(
    plans: Sequence[Mapping[str, Any]],
    scenario_toml: str,
    out: Sequence[Path],
    engine_name: str,
    options: Mapping[str, Any],
    on_progress: Callable[[float], None],
    jobs: int | None,
) -> Outcome:
    import multiprocessing  # slow to import, and a single run does not need it
    from concurrent.futures import FIRST_COMPLETED, ProcessPoolExecutor, wait

    from fullpipe.base.scratch import scratch
    from fullpipe.engines.child import die_with_parent, without_main

    outcome = Outcome()
    workers = min(len(plans), jobs or os.cpu_count() or 1)
    context = multiprocessing.get_context("spawn")
    with scratch("fullpipe-pool-") as signals, _interrupts_noted() as interrupted:
        stop = signals / "stop"
        work = functools.partial(_work, scenario_toml, engine_name, options, stop)
        pool = ProcessPoolExecutor(workers, mp_context=context, initializer=die_with_parent)
        # Workers inherit the blocked signal: Ctrl-C reaches this process alone.
        with _interrupts_blocked(), without_main():
            pending: dict[Future[str | None], int] = {
                pool.submit(work, plan, folder): index
                for index, (plan, folder) in enumerate(zip(plans, out, strict=True))
            }
        try:
            while pending:
                finished, _ = wait(pending, timeout=0.2, return_when=FIRST_COMPLETED)
                for future in finished:
                    outcome.failures += _failures(future, out[pending[future]])
                    del pending[future]
                on_progress(1 - len(pending) / len(plans))
                if interrupted() and not outcome.interrupted:
                    outcome.interrupted = True
                    stop.touch()
                    pending = {future: i for future, i in pending.items() if not future.cancel()}
        finally:
            pool.shutdown(wait=True, cancel_futures=True)
    from fullpipe.recording.recording import Recording

    outcome.recordings = [Recording.open(folder) for folder in out if folder.is_dir()]
    return outcome


def _failures(future: Future[str | None], out: Path) -> list[str]:
    try:
        failure = future.result()
    except (RunError, UserError) as error:
        failure = f"{out}: {error}"
    return [failure] if failure else []


@contextmanager
def _interrupts_noted() -> Iterator[Callable[[], bool]]:
    """Records the first signal that would raise KeyboardInterrupt, so that a run can end in order;
    the second one raises. Yields a function that returns whether a signal arrived."""
    noted = False

    def note(_number: int, _frame: Any) -> None:
        nonlocal noted
        if noted:
            raise KeyboardInterrupt
        noted = True

    raising = [
        number
        for number in (signal.SIGINT, signal.SIGTERM)
        if signal.getsignal(number) is signal.default_int_handler
        and threading.current_thread() is threading.main_thread()
    ]
    for number in raising:
        signal.signal(number, note)
    try:
        yield lambda: noted
    finally:
        for number in raising:
            signal.signal(number, signal.default_int_handler)


@contextmanager
def _interrupts_blocked() -> Iterator[None]:
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _work(
    scenario_toml: str,
    engine_name: str,
    options: Mapping[str, Any],
    stop: Path,
    plan: Mapping[str, Any],
    out: Path,
) -> str | None:
    """Runs and records one plan. Does nothing if the file `stop` exists already."""
    if stop.exists():
        return None
    result = engine(engine_name).run(plan, lambda _done: not stop.exists(), options)
    record_result(plan, scenario_toml, out, engine_name, options, result)
    return result.failure


def record_result(
    plan: Mapping[str, Any],
    scenario_toml: str,
    out: Path,
    engine_name: str,
    options: Mapping[str, Any],
    result: RunResult,
) -> Recording:
    """Writes an engine's result as a recording, with everything needed to repeat the run: its
    scenario has the run's own seed."""
    from fullpipe.base.toml import parse_toml, with_value
    from fullpipe.metrics.silence import silence
    from fullpipe.recording.recording import write_recording
    from fullpipe.scenario.model import Scenario

    default = Scenario.model_fields["seed"].default
    if parse_toml(scenario_toml).get("seed", default) != plan["seed"]:
        scenario_toml = with_value(scenario_toml, "seed", plan["seed"])
    given = {name: str(options[name]) for name in _DECIDING if name in options}
    if "machine" in given:  # `auto` may find another one elsewhere
        given["machine"] = result.metadata["machine"]
    counted_ns = warmup_ns(scenario_toml)
    problems = [*result.health.get("problems", []), *silence(plan, result.tables, counted_ns)]
    metadata = {
        "engine": engine_name,
        "options": given,
        "fullpipe_version": fullpipe.__version__,
        "git_commit": git_commit(),
        "python": sys.version.split()[0],
        "plan": dict(plan),
        "seed": plan["seed"],
        "warmup_ns": counted_ns,
        "constants": _constants(plan),
        **_variables(plan),
        **_sources(plan),
        "health": {**result.health, "problems": problems},
        "interrupted": result.interrupted,
        "failure": result.failure,
        **result.metadata,
    }
    return write_recording(out, metadata, scenario_toml, result.tables)


def _constants(plan: Mapping[str, Any]) -> dict[str, dict[str, float]]:
    """Constants of every algorithm of the plan, by name, each in its own unit."""
    found: dict[str, dict[str, float]] = {}
    for _, choice in cc_choices(plan):
        if choice["algorithm"] not in (None, AGENT) and choice["name"] not in found:
            params = registry.params_of(choice["algorithm"])
            found[choice["name"]] = {
                param.name: value / param.scale
                for param, value in zip(params, choice["params"], strict=True)
            }
    return found


def _variables(plan: Mapping[str, Any]) -> dict[str, Any]:
    """Unit and meaning of the variables that only some algorithms have, by the names of these and
    of their columns in `cc_samples`; empty where no algorithm has any."""
    return registry.own_variables(
        {
            choice["name"]: choice["algorithm"]
            for _, choice in cc_choices(plan)
            if choice["algorithm"] not in (None, AGENT)
        }
    )


def _sources(plan: Mapping[str, Any]) -> dict[str, Any]:
    """Source text of the plan's external algorithms, so that the recording can be repeated."""
    found = {}
    for name in sorted({choice["algorithm"] or "" for _, choice in cc_choices(plan)}):
        if userfiles.is_external(name):
            source = userfiles.source_of(name)
            found[name] = {"main": source.main, "sha256": source.sha256, "files": source.files}
    return {"sources": found} if found else {}
