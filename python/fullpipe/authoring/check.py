"""Checks a congestion control in a file. It must compile for simulator and kernel without warnings,
have no undefined behaviour, survive hostile paths, and pass the verifier of the kernels at hand.
Kernel and simulator must then make the same decisions and deliver as much. Last comes its cost. A
kernel's file is judged by the module that is built of it alone.

Steps are functions that return a sentence, or raise UserError with what is wrong.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

from fullpipe import kernel
from fullpipe.authoring import judges
from fullpipe.authoring.cost import Cost, costs, words_of
from fullpipe.base.errors import RunError, UserError
from fullpipe.base.scratch import scratch
from fullpipe.base.units import MIB
from fullpipe.congestion import userfiles
from fullpipe.congestion.registry import cc_set
from fullpipe.engines import engine
from fullpipe.engines.base import RunResult
from fullpipe.engines.vm import hardware, headers
from fullpipe.engines.vm.kernels import find as find_kernel
from fullpipe.plan.plan import Plan
from fullpipe.plan.resolve import resolve
from fullpipe.scenario.model import make_scenario

#: Small paths on which kernel and simulator could differ; each exercises another part.
PATHS: dict[str, dict[str, Any]] = {
    "bulk": {},
    "idle": {"flow": {"pattern": {"write": "250KB", "every": "700ms"}}},
    "application-limited": {"flow": {"app_rate": "1mbit"}},
    "random loss": {"path": {"loss": "1%"}},
    "ECN": {"path": {"ecn": True, "qdisc": "codel"}},
    "tiny windows": {"path": {"rate": "1mbit", "rtt": "10ms", "buffer": "4p"}},
    "timeouts": {"path": {"loss": "20%"}},
}
_DURATION = "5s"
#: On random paths the simulator's runs differ. The bytes that the kernel delivers must be within
#: the range of this many seeds, or outside it by no more than this share. If one run of the kernel
#: is not, the median of three counts.
SEEDS = 20
AGREES = 0.15
_BY_CHANCE = 1.005


@dataclass(frozen=True)
class Step:
    """One thing that was checked."""

    name: str
    #: None: it could not be checked here, for the reason in `words`.
    holds: bool | None
    words: str
    costs: tuple[Cost, ...] = ()


def check(
    path: str, kernels: list[str], seeds: int = 3, begins: Callable[[str], None] = lambda _: None
) -> Iterator[Step]:
    """Yields the steps of a check; `begins` is told the name of each before it is made. `kernels`
    are those of `--engine vm`; with none that engine is skipped. Ends at the first failure that
    makes the later steps meaningless: code that does not compile, or that a verifier refuses."""

    def step(name: str, ask: Callable[[], str]) -> Step:
        begins(name)
        return _step(name, ask)

    first = step("compiles natively", lambda: _native(path))
    yield first
    if not first.holds:
        return
    source = userfiles.read(path)
    if source.is_kernels:
        yield Step("strict warnings", None, "the kernel's own code has other rules")
    else:
        yield step("strict warnings", lambda: userfiles.warnings(source))
    yield step("undefined behaviour", lambda: userfiles.fuzz(source))
    if not source.is_kernels:
        yield step("uninitialised variables", lambda: userfiles.uninitialised(source))
        yield step("all inputs", lambda: userfiles.every_input(source))
    yield step("hostile paths", lambda: _survives(path, seeds))
    if source.is_kernels:
        yield from _judged(path, kernels, begins)
        return
    compiled = step("compiles for eBPF", lambda: userfiles.compile_bpf(source).name)
    yield compiled
    if not compiled.holds:
        return
    if os.geteuid() == 0:
        loaded = step(f"this kernel ({os.uname().release})", lambda: _loads(path))
        yield loaded
        if _is_refusal(loaded):
            return
    else:
        yield Step("this kernel", None, "needs root")
    carried: dict[str, list[int]] = {}
    for release in kernels:
        try:
            machine_for(release)
        except UserError as error:
            yield Step(f"vm {release}", None, str(error))
            continue
        for name in PATHS:
            agreed = step(f"vm {release}, {name}", partial(_agrees, path, name, release, carried))
            yield agreed
            if _is_refusal(agreed):
                break
        else:
            begins(f"vm {release}, cost")
            yield _costed(path, release)


def _judged(path: str, kernels: list[str], begins: Callable[[str], None]) -> Iterator[Step]:
    """A kernel's file against its own module: kernels have it without eBPF."""
    for release in kernels:
        built: list[judges.RealModule] = []

        def build(release: str = release, built: list[judges.RealModule] = built) -> str:
            built.append(judges.build(path, release))
            return "from the file alone, as the kernel's own build makes it"

        try:
            machine_for(release)
            headers.tree(find_kernel(release, None))
        except UserError as error:
            yield Step(f"vm {release}", None, str(error))
            continue
        name = f"vm {release}, real module"
        begins(name)
        yield _step(name, build)
        if not built:
            return
        for name in judges.paths_of(path):
            words = f"vm {release}, {name}, three judges"
            begins(words)
            yield _step(words, partial(_differs, path, name, built[0]))


def _differs(path: str, name: str, real: judges.RealModule) -> str:
    verdict = judges.judged(path, name, real)
    words = verdict.real.words()
    if verdict.differences:
        raise UserError(f"the real module: {words}. " + "; ".join(verdict.differences))
    return f"simulator, fullpipe's module and the real one agree: {words}"


def _is_refusal(step: Step) -> bool:
    """Whether a kernel would not load the programs (crates/fullpipe-agent, kernel_cc/load.rs)."""
    return step.holds is False and "the kernel refuses" in step.words


def machine_for(release: str) -> None:
    """Raises UserError if there is no virtual machine for a kernel, with what brings it."""
    find_kernel(release, None)
    if hardware.version() is None:
        raise UserError(
            f"--kernels {release}: needs {hardware.PROGRAM} (`fullpipe doctor --install`)"
        )


def _step(name: str, ask: Callable[[], str]) -> Step:
    try:
        return Step(name, True, ask())
    except (
        userfiles.NoSanitizersError,
        userfiles.NoAnalysisError,
        userfiles.NoClangError,
    ) as error:
        return Step(name, None, str(error))
    except (UserError, RunError) as error:
        return Step(name, False, str(error))


def _costed(path: str, release: str) -> Step:
    measured: list[Cost] = []

    def ask() -> str:
        measured.extend(costs(path, release))
        return words_of(measured)

    return replace(_step(f"vm {release}, cost", ask), costs=tuple(measured))


def _native(path: str) -> str:
    described = cc_set(path)
    return f"{described.algorithm}, {len(described.params)} constants"


def _survives(path: str, seeds: int) -> str:
    for name in PATHS:
        for seed in range(1, seeds + 1):
            try:
                _run("sim", _plan(path, name, seed), {})
            except UserError as error:
                raise UserError(f"{name}, seed {seed}: {error}") from None
    return f"{len(PATHS)} paths, {seeds} seeds"


def _loads(path: str) -> str:
    kernel.load_and_unload(path)
    return "its verifier accepts it"


def _agrees(path: str, name: str, release: str, carried: dict[str, list[int]]) -> str:
    """`carried`: bytes of the simulator's seeds by path, filled here."""
    if name not in carried:
        carried[name] = [
            _delivered(_run("sim", _plan(path, name, seed), {})) for seed in range(1, SEEDS + 1)
        ]
    low, high = min(carried[name]), max(carried[name])
    calls, first = _replayed(path, name, release, 1)
    theirs = [first]
    if high > _BY_CHANCE * low and not _among(first, low, high):
        theirs += [_replayed(path, name, release, seed)[1] for seed in (2, 3)]
    there = sorted(theirs)[len(theirs) // 2]
    here = f"{low / MIB:.2f}" + (f" to {high / MIB:.2f}" if high > _BY_CHANCE * low else "")
    of = " (median of three)" if len(theirs) > 1 else ""
    words = f"{calls} calls replay; {here} MiB in sim, {there / MIB:.2f} in vm{of}"
    if not _among(there, low, high):
        raise UserError(f"{words}: further apart than {AGREES:.0%}")
    return words


def _among(carried: int, low: int, high: int) -> bool:
    return low * (1 - AGREES) <= carried <= high * (1 + AGREES)


def _replayed(path: str, name: str, release: str, seed: int) -> tuple[int, int]:
    """(calls, bytes delivered) of a run on a kernel, of which every call replays natively."""
    with scratch("fullpipe-check-") as folder:
        options = {"kernel": release, "cc_trace": str(folder / "trace")}
        result = _run("vm", _plan(path, name, seed), options)
        (replayed,) = kernel.replay(folder / "trace").algorithms
    at = replayed.difference
    if at is not None:
        raise UserError(
            f"call {at.sequence} ({at.call}): {at.field} is {at.kernel} in the kernel, {at.native} "
            "natively"
        )
    return replayed.calls, _delivered(result)


def _plan(path: str, name: str, seed: int) -> Plan:
    changes = PATHS[name]
    document = {
        "duration": _DURATION,
        "seed": seed,
        "path": {"rate": "5mbit", "rtt": "20ms", "buffer": "1bdp"} | changes.get("path", {}),
        "flow": [{"cc": path} | changes.get("flow", {})],
    }
    return resolve(make_scenario(document, Path(path).name))


def _run(engine_name: str, plan: Plan, options: dict[str, Any]) -> RunResult:
    return engine(engine_name).run(plan, lambda _done: True, options)


def _delivered(result: RunResult) -> int:
    return int(sum(result.tables["flows"]["bytes_delivered"].to_pylist()))
