"""The real kernel as the judge of a kernel's file. Its module is built from the file alone and runs
in the virtual machine beside the two forms that fullpipe makes of the file: in the simulator, and
in the kernel behind this project's glue. Must never know how any of them works.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fullpipe.base.errors import RunError, UserError
from fullpipe.congestion import module
from fullpipe.congestion.userfiles.kernel_files import KernelFile, read_kernel_file
from fullpipe.congestion.userfiles.source import blanked
from fullpipe.engines import engine
from fullpipe.engines.base import RunResult
from fullpipe.engines.vm import headers
from fullpipe.engines.vm.kernels import find as find_kernel
from fullpipe.plan.plan import Plan
from fullpipe.plan.resolve import resolve
from fullpipe.scenario.model import make_scenario

#: Paths on which the three are compared. On the first nothing is random; on the second packets
#: are, and every engine draws others.
PATHS: dict[str, dict[str, Any]] = {
    "bulk": {"rate": "5mbit", "rtt": "20ms", "buffer": "1bdp"},
    "random loss": {"rate": "5mbit", "rtt": "20ms", "buffer": "2bdp", "loss": "0.5%"},
    "ECN": {"rate": "5mbit", "rtt": "20ms", "buffer": "4bdp", "ecn": True, "qdisc": "codel"},
}
#: Besides, for what the kernel runs with ECN only (TCP_CONG_NEEDS_ECN): every packet behind a queue
#: is marked, as data centres' switches do it.
PATHS_OF_ECN: dict[str, dict[str, Any]] = {
    "step marks": {
        "rate": "5mbit",
        "rtt": "20ms",
        "buffer": "4bdp",
        "ecn": True,
        "qdisc": "codel",
        "qdisc_options": {"ce_threshold": "5ms"},
    },
}
_RANDOM = "random loss"
#: Files that draw random numbers differ by chance on every path.
_DRAWS = re.compile(r"\b(?:get_random|prandom)_\w+")
_DURATION = "5s"
#: Figures agree within this share, or within so many packets: both run in instructions of a
#: processor that the other does not have. Behind random loss the simulator's must be among those of
#: its own seeds, widened by that share.
_SHARE, _PACKETS = 0.02, 3.0
_SEEDS = 10
_RANDOM_SHARE = 0.15


@dataclass(frozen=True)
class Figures:
    """What is compared of a run."""

    cwnd: float  # packets, mean of the samples
    ssthresh: float | None  # packets, mean of the samples that have one
    sent: float  # packets
    again: float  # packets, of those

    def words(self) -> str:
        """In one line."""
        threshold = "none" if self.ssthresh is None else f"{self.ssthresh:.1f}"
        return (
            f"cwnd {self.cwnd:.1f}, ssthresh {threshold}, {self.sent:,.0f} packets, "
            f"{self.again:.0f} again"
        )


@dataclass(frozen=True)
class RealModule:
    """The module of a kernel's file, built from the file alone for one kernel."""

    release: str
    file: Path
    #: What it registers.
    name: str


@dataclass(frozen=True)
class Verdict:
    """What the three judges say of a path."""

    real: Figures
    glue: Figures
    #: Of each seed.
    simulator: list[Figures]
    #: Where simulator and glue differ from the real module, in words.
    differences: list[str]


def build(path: str, release: str) -> RealModule:
    """Builds the module that a kernel's own build makes of the file. Raises UserError if no module
    can be built for that kernel here, RunError with the compiler's words."""
    parsed = _read(path)
    file, name = module.build_alone(parsed, headers.tree(find_kernel(release, None)))
    return RealModule(release, file, name)


def paths_of(path: str) -> list[str]:
    """The paths on which a file is judged."""
    needs_ecn = "TCP_CONG_NEEDS_ECN" in _read(path).members.get("flags", "")
    return [*PATHS, *(PATHS_OF_ECN if needs_ecn else ())]


def judged(path: str, name: str, real: RealModule) -> Verdict:
    """What the three did on a path. Raises UserError if the kernel dies of the module, or another
    run fails."""
    judge = _judge(path, real, name)
    glue = _run("vm", path, name, 1, kernel=real.release, cc_form="module")
    draws = any(_DRAWS.search(blanked(text)) for text in _read(path).files.values())
    is_random = draws or name == _RANDOM
    seeds = range(1, (_SEEDS if is_random else 1) + 1)
    ours = [_run("sim", path, name, seed) for seed in seeds]
    # The kernel's losses are those of the glue's run; what a module draws is its own.
    problems = [
        f"module of fullpipe: {difference}"
        for difference in _outside([glue], judge, _RANDOM_SHARE if draws else 0.0)
    ]
    share = _RANDOM_SHARE if is_random else 0.0
    problems += [f"simulator: {difference}" for difference in _outside(ours, judge, share)]
    return Verdict(judge, glue, ours, problems)


def _judge(path: str, real: RealModule, name: str) -> Figures:
    options = {"kernel": real.release, "module": str(real.file)}
    plan = _plan(f"kernel:{real.name}", name, 1)
    try:
        return _figures(engine("vm").run(plan, lambda _done: True, options))
    except (UserError, RunError) as error:
        raise UserError(
            f"the kernel with the real module: {error}{_simulator_says(path, name)}"
        ) from None


def _simulator_says(path: str, name: str) -> str:
    """What the simulator says where a kernel dies or hangs: it knows the line."""
    try:
        _run("sim", path, name, 1)
    except (UserError, RunError) as error:
        return f"\nthe simulator: {error}"
    return "\nthe simulator finds nothing"


def _outside(ours: list[Figures], real: Figures, more: float) -> Iterator[str]:
    """The figures of the real module that are not among ours."""
    for label, field in (
        ("cwnd", "cwnd"),
        ("ssthresh", "ssthresh"),
        ("packets sent", "sent"),
        ("packets sent again", "again"),
    ):
        listed = [getattr(figures, field) for figures in ours]
        there = getattr(real, field)
        values = [value for value in listed if value is not None]
        if there is None or not values:
            if (there is None) != (not values):
                yield f"{label} {_range(values)} against {_range([] if there is None else [there])}"
            continue
        spare = max((_SHARE + more) * there, _PACKETS)
        if not min(values) - spare <= there <= max(values) + spare:
            yield f"{label} {_range(values)} against {_range([there])}"


def _range(values: list[float]) -> str:
    if not values:
        return "none"
    low, high = min(values), max(values)
    return f"{low:,.1f}" if low == high else f"{low:,.1f} to {high:,.1f}"


def _read(path: str) -> KernelFile:
    file, _, operations = Path(path).name.partition(":")
    return read_kernel_file(Path(path).with_name(file), operations or None)


def _run(engine_name: str, cc: str, name: str, seed: int, **options: Any) -> Figures:
    return _figures(engine(engine_name).run(_plan(cc, name, seed), lambda _done: True, options))


def _plan(cc: str, name: str, seed: int) -> Plan:
    document = {
        "duration": _DURATION,
        "seed": seed,
        "path": (PATHS | PATHS_OF_ECN)[name],
        "flow": [{"cc": cc}],
    }
    return resolve(make_scenario(document, name))


def _figures(result: RunResult) -> Figures:
    if result.failure:
        raise UserError(result.failure)
    samples, flows = result.tables["flow_samples"], result.tables["flows"]
    thresholds = [
        threshold for threshold in samples["ssthresh_packets"].to_pylist() if threshold is not None
    ]
    windows = samples["cwnd_packets"].to_pylist()
    return Figures(
        sum(windows) / max(len(windows), 1),
        sum(thresholds) / len(thresholds) if thresholds else None,
        sum(flows["packets_sent"].to_pylist()),
        sum(flows["packets_retransmitted"].to_pylist()),
    )
