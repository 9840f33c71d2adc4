"""What holds of a congestion control in a file before anybody relies on it: it compiles for both
hosts without a warning, the kernels at hand accept it, it survives hostile paths, and the kernel
and the simulator decide and carry the same.

Steps are functions that return a sentence, or raise UserError with what is wrong.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fullpipe import kernel, outside
from fullpipe.cc_sets import cc_set
from fullpipe.engines import engine
from fullpipe.engines.base import RunResult
from fullpipe.engines.scratch import scratch
from fullpipe.errors import RunError, UserError
from fullpipe.plan import resolve
from fullpipe.scenario import make_scenario

#: Small paths on which hosts could differ: each asks something else of an algorithm.
PATHS: dict[str, dict[str, Any]] = {
    "bulk": {},
    "application-limited": {"flow": {"app_rate": "1mbit"}},
    "random loss": {"path": {"loss": "1%"}},
    "ECN": {"path": {"ecn": True, "qdisc": "codel"}},
    "tiny windows": {"path": {"rate": "1mbit", "rtt": "10ms", "buffer": "4p"}},
    "timeouts": {"path": {"loss": "20%"}},
}
_DURATION = "5s"
#: Bytes of simulator and kernel may differ so much where chance decides little.
_AGREES = 0.15
_BY_CHANCE = ("random loss", "timeouts", "tiny windows")


@dataclass(frozen=True)
class Step:
    """One thing that was checked."""

    name: str
    #: None: it could not be asked here, for the reason in `words`.
    holds: bool | None
    words: str


def check(path: str, kernels: list[str], seeds: int = 3) -> Iterator[Step]:
    """Checks a file step by step; `kernels` are those of `--engine vm`, none to leave it out. Ends
    at the first step without which no later one makes sense."""
    first = _step("compiles natively", lambda: _native(path))
    yield first
    if not first.holds:
        return
    source = outside.read(path)
    yield _step("strict warnings", lambda: outside.warnings(source))
    yield _step("hostile paths", lambda: _survives(path, seeds))
    compiled = _step("compiles for eBPF", lambda: outside.compile_bpf(source).name)
    yield compiled
    if not compiled.holds:
        return
    if os.geteuid() == 0:
        yield _step(f"this kernel ({os.uname().release})", lambda: _loads(path))
    else:
        yield Step("this kernel", None, "needs root")
    for release in kernels:
        for name in PATHS:
            yield _step(f"vm {release}, {name}", lambda n=name, r=release: _agrees(path, n, r))  # type: ignore[misc]


def _step(name: str, ask: Callable[[], str]) -> Step:
    try:
        return Step(name, True, ask())
    except (UserError, RunError) as error:
        return Step(name, False, str(error))


def _native(path: str) -> str:
    found = cc_set(path)
    return f"{found.algorithm}, {len(found.params)} constants"


def _survives(path: str, seeds: int) -> str:
    for name in PATHS:
        for seed in range(1, seeds + 1):
            try:
                _run("sim", _plan(path, name, seed), {})
            except UserError as error:
                raise UserError(f"{name}, seed {seed}: {error}") from None
    return f"{len(PATHS)} paths, {seeds} seeds"


def _loads(path: str) -> str:
    name = f"fpcheck_{os.getpid() % 10**6}"
    kernel.load(kernel.request(path, {}, name))
    kernel.unload(name)
    return "its verifier accepts it"


def _agrees(path: str, name: str, release: str) -> str:
    plan = _plan(path, name, 1)
    with scratch("fullpipe-check-") as folder:
        options = {"kernel": release, "cc_trace": str(folder / "trace")}
        theirs = _run("vm", plan, options)
        (replayed,) = kernel.replay(folder / "trace").algorithms
    at = replayed.difference
    if at is not None:
        raise UserError(
            f"call {at.sequence} ({at.call}): {at.field} is {at.kernel} in the kernel, {at.native} "
            "natively"
        )
    ours = _run("sim", plan, {})
    there, here = (_delivered(result) for result in (theirs, ours))
    words = f"{replayed.calls} calls replay; {here / 1e6:.2f} MB in sim, {there / 1e6:.2f} in vm"
    if name not in _BY_CHANCE and abs(here - there) > _AGREES * max(here, there):
        raise UserError(f"{words}: they differ by more than {_AGREES:.0%}")
    return words


def _plan(path: str, name: str, seed: int) -> dict[str, Any]:
    changes = PATHS[name]
    document = {
        "duration": _DURATION,
        "seed": seed,
        "path": {"rate": "5mbit", "rtt": "20ms", "buffer": "1bdp"} | changes.get("path", {}),
        "flow": [{"cc": path} | changes.get("flow", {})],
    }
    return resolve(make_scenario(document, Path(path).name))


def _run(engine_name: str, plan: dict[str, Any], options: dict[str, Any]) -> RunResult:
    return engine(engine_name).run(plan, lambda _done: True, options)


def _delivered(result: RunResult) -> int:
    return int(sum(result.tables["flows"]["bytes_delivered"].to_pylist()))
