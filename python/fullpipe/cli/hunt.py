"""`fullpipe hunt`: the path on which a congestion control does worst."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from fullpipe.base.errors import UserError
from fullpipe.base.units import parse_time
from fullpipe.cli.options import CcName, Json, parsed
from fullpipe.cli.output import console, message
from fullpipe.cli.progress import progress
from fullpipe.hunt.space import Worst

if TYPE_CHECKING:
    from fullpipe.hunt.hunting import Finding

_OTHERS = ("cubic", "reno", "bbr1", "bbr3")
_INGREDIENTS = {
    "trace": "the trace",
    "loss_percent": "loss",
    "jitter_ms": "jitter",
    "jitter_of_one_ms": "jitter of one",
    "rtt_ratio": "the ratio of RTTs",
}


def hunt(
    cc: CcName,
    worst: Annotated[Worst, typer.Option(help="What to make as bad as possible.")],
    budget: Annotated[
        str, typer.Option(help="Time on two cores; counted in packets, so that results repeat.")
    ] = "5min",
    seed: Annotated[int, typer.Option(min=0, help="Random seed of the search.")] = 1,
    out: Annotated[
        Path, typer.Option("--out", "-o", metavar="DIR", help="Folder for the scenarios.")
    ] = Path("hunts"),
    json_: Json = False,
    jobs: Annotated[int | None, typer.Option(min=1, help="Threads; default: all cores.")] = None,
) -> None:
    """Searches for the path on which an algorithm does worst.

    Varies rates, traces, delays, buffers, loss and jitter, simplifies what it finds, and writes a
    scenario for `fullpipe run`. It then goes on without the ingredients that mattered, and so may
    find several causes. The same seed and budget find the same."""
    from fullpipe.congestion import stacks
    from fullpipe.congestion.registry import cc_set
    from fullpipe.hunt.finding_file import write_finding
    from fullpipe.hunt.hunting import PACKETS_A_SECOND, Hunt
    from fullpipe.hunt.space import SHOWN

    budget_s = parsed("--budget", parse_time, budget) / 1e9
    if budget_s <= 0:
        raise UserError(f"--budget {budget!r}: must be above 0, such as 5min")
    if not stacks.is_stack(cc):
        cc_set(cc.partition("[")[0])
    with progress(f"hunt {worst}", 0.0) as update:
        hunting = Hunt(cc, worst, seed, budget_s * PACKETS_A_SECOND, jobs, update)
        findings = hunting.run(_OTHERS)
    files = [
        write_finding(
            out, _stem(cc, worst, index), cc, hunting.worst, finding, _origin(cc, worst, finding)
        )
        for index, finding in enumerate(findings)
    ]
    if json_:
        document = {
            "cc": cc,
            "worst": worst,
            "seed": seed,
            "trials": hunting.count,
            "packets": round(hunting.spent),
            "findings": [_document(f, path) for f, path in zip(findings, files, strict=True)],
        }
        print(json.dumps(document))
        return
    console.print(f"{hunting.count} trials, {hunting.spent / 1e6:.0f} million packets")
    for finding, path in zip(findings, files, strict=True):
        _print(SHOWN[hunting.worst], finding, path)
    if not findings:
        console.print(f"nothing notable: {SHOWN[hunting.worst]} is fine on all paths that it tried")


def _stem(cc: str, worst: str, index: int) -> str:
    name = "".join(
        letter if letter.isalnum() or letter in "-_" else "-" for letter in Path(cc).name
    )
    return f"{name}-{worst}" + (f"-{index + 1}" if index else "")


def _origin(cc: str, worst: str, finding: Finding) -> str:
    return (
        f"Found by `fullpipe hunt {cc} --worst {worst}`: {_needs(finding)}; measured "
        f"{finding.value:.3g}."
    )


def _needs(finding: Finding) -> str:
    return (
        ", ".join(f"{_INGREDIENTS[name]} matters" for name in finding.needs)
        or "the plain path suffices"
    )


def _print(shown: str, finding: Finding, path: Path) -> None:
    from fullpipe.hunt.space import described

    numbers = ", ".join(f"{name} {_text(value)}" for name, value in described(finding.path).items())
    console.print(f"\n{shown}: {finding.value:.3g} ({_needs(finding)})", style="bold")
    console.print(f"  path: {numbers}")
    for name, profile in finding.profile.items():
        texts = [f"{_text(value)}: {measured:.3g}" for value, measured in _profile(name, profile)]
        console.print(f"  by {name}: {', '.join(texts)}")
    if finding.others:
        beside = [f"{name} {value:.3g}" for name, value in finding.others.items()]
        console.print(f"  others there: {', '.join(beside)}")
    message(f"  fullpipe run {path}")


def _profile(name: str, profile: dict[float, float]) -> list[tuple[float | str, float]]:
    from fullpipe.hunt.space import TRACE

    return [
        (TRACE.described(value) if name == TRACE.name else value, measured)
        for value, measured in profile.items()
    ]


def _text(value: float | str) -> str:
    return value if isinstance(value, str) else f"{value:g}"


def _document(finding: Finding, path: Path) -> dict[str, Any]:
    from fullpipe.hunt.space import described

    return {
        "value": _plain(finding.value),
        "found": _plain(finding.found),
        "needs": list(finding.needs),
        "path": described(finding.path),
        "scenario": str(path),
        "profile": {
            name: [[value, _plain(measured)] for value, measured in _profile(name, profile)]
            for name, profile in finding.profile.items()
        },
        "others": {name: _plain(value) for name, value in finding.others.items()},
    }


def _plain(value: float) -> float | None:
    return float(f"{value:.6g}") if math.isfinite(value) else None
