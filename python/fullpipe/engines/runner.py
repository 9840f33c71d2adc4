"""Does runs and records them: in this process or in several, with interruptions."""

from __future__ import annotations

import functools
import os
import signal
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fullpipe.base.errors import AlgorithmError, RunError, UserError
from fullpipe.base.interrupts import interrupts_taken
from fullpipe.base.writing import claimed
from fullpipe.congestion import userfiles
from fullpipe.engines.base import engine
from fullpipe.engines.record import record_result
from fullpipe.engines.run import Run, runs_of, seeds_of
from fullpipe.plan.senders import cc_choices

if TYPE_CHECKING:
    from concurrent.futures import Future

    from fullpipe.recording.recording import Recording
    from fullpipe.scenario.model import Scenario


@dataclass
class Outcome:
    """The outcome of a request to run: recordings in the order of their seeds."""

    recordings: list[Recording] = field(default_factory=list)
    interrupted: bool = False
    failures: list[str] = field(default_factory=list)


def execute(
    runs: Sequence[Run],
    out: Sequence[Path],
    on_progress: Callable[[float], None] = lambda _share: None,
    jobs: int | None = None,
) -> Outcome:
    """Does each run and records it in its folder of `out`. Classes that this program passed run
    sequentially in this process, as do all runs if `jobs` is 1.

    `on_progress` is called with the share done, 0 to 1. Ctrl-C, and SIGTERM if it has the same
    handler, keep what was recorded: the current run ends early and is marked as interrupted.
    Raises UserError before anything runs if a folder exists, or another process has claimed it."""
    # Several runs share a parent folder, which is claimed for all of them.
    with claimed(out if len(out) == 1 else {folder.parent for folder in out}):
        for folder in out:
            if folder.exists():
                raise UserError(f"{folder}: exists already; name another folder with --out")
        if len(runs) == 1:
            return _run_here(runs[0], out[0], on_progress)
        is_handed = any(
            userfiles.is_handed(choice["algorithm"])
            for run in runs
            for _, choice in cc_choices(run.plan)
        )
        if is_handed or jobs == 1:
            return _run_series(runs, out, on_progress, raises=is_handed)
        return _run_pool(runs, out, on_progress, jobs)


def run_scenario(
    scenario: Scenario,
    text: str,
    out: Sequence[Path],
    engine_name: str = "sim",
    options: Mapping[str, Any] | None = None,
    jobs: int | None = None,
) -> Outcome:
    """Runs the scenario once for every folder of `out`, with its seed and those after it: see
    `runs_of` and `execute`."""
    seeds = seeds_of(scenario, len(out))
    return execute(runs_of(scenario, text, seeds, engine_name, options), out, jobs=jobs)


def _run_here(run: Run, out: Path, on_progress: Callable[[float], None]) -> Outcome:
    with _interrupts_noted() as interrupted:

        def progress(done_ns: int) -> bool:
            on_progress(done_ns / run.duration_ns)
            return not interrupted()

        try:
            result = engine(run.engine).run(run.plan, progress, run.options)
        except AlgorithmError:
            if interrupted():  # its code did not stop when it was asked to
                raise KeyboardInterrupt from None
            raise
    recording = record_result(run, out, result)
    failures = [result.failure] if result.failure else []
    return Outcome([recording], result.interrupted, failures)


def _run_series(
    runs: Sequence[Run],
    out: Sequence[Path],
    on_progress: Callable[[float], None],
    raises: bool,
) -> Outcome:
    """Runs one after another in this process. `raises`: the first failure ends them all."""
    from fullpipe.recording.recording import Recording

    outcome = Outcome()
    for index, (run, folder) in enumerate(zip(runs, out, strict=True)):

        def update(share: float, done: int = index) -> None:
            on_progress((done + share) / len(runs))

        try:
            ended = _run_here(run, folder, update)
        except (RunError, UserError) as error:
            if raises:
                raise
            outcome.failures.append(f"{folder}: {error}")
            continue
        outcome.recordings += [Recording.open(folder) for _ in ended.recordings]
        outcome.failures += ended.failures
        if ended.interrupted:
            outcome.interrupted = True
            break
    return outcome


def _run_pool(
    runs: Sequence[Run],
    out: Sequence[Path],
    on_progress: Callable[[float], None],
    jobs: int | None,
) -> Outcome:
    from concurrent.futures import FIRST_COMPLETED, wait

    from fullpipe.base.scratch import scratch
    from fullpipe.engines.child import without_main
    from fullpipe.engines.workers import worker_processes  # slow to load

    outcome = Outcome()
    workers = min(len(runs), jobs or os.cpu_count() or 1)
    with scratch("fullpipe-pool-") as signals, _interrupts_noted() as interrupted:
        stop = signals / "stop"
        work = functools.partial(_work, stop)
        pool = worker_processes(workers, __name__, served=False)
        # Workers begin with the signal blocked: Ctrl-C reaches this process alone.
        with _interrupts_blocked(), without_main():
            pending: dict[Future[str | None], int] = {
                pool.submit(work, run, folder): index
                for index, (run, folder) in enumerate(zip(runs, out, strict=True))
            }
        try:
            while pending:
                finished, _ = wait(pending, timeout=0.2, return_when=FIRST_COMPLETED)
                for future in finished:
                    outcome.failures += _failures(future, out[pending[future]])
                    del pending[future]
                on_progress(1 - len(pending) / len(runs))
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
    from concurrent.futures.process import BrokenProcessPool

    try:
        failure = future.result()
    except (RunError, UserError) as error:
        failure = f"{out}: {error}"
    except BrokenProcessPool:  # killed, for instance where memory was short
        failure = f"{out}: a process that ran it ended"
    return [failure] if failure else []


@contextmanager
def _interrupts_noted() -> Iterator[Callable[[], bool]]:
    """Records the first signal that would raise KeyboardInterrupt, so that a run can end in order;
    the second one raises. Yields a function that returns whether a signal arrived."""
    noted = False

    def note(_number: int) -> None:
        nonlocal noted
        if noted:
            raise KeyboardInterrupt
        noted = True

    with interrupts_taken(note):
        yield lambda: noted


@contextmanager
def _interrupts_blocked() -> Iterator[None]:
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _work(stop: Path, run: Run, out: Path) -> str | None:
    """Does and records one run. Does nothing if the file `stop` exists already."""
    if stop.exists():
        return None
    result = engine(run.engine).run(run.plan, lambda _done: not stop.exists(), run.options)
    record_result(run, out, result)
    return result.failure
