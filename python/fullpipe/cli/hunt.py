"""`fullpipe hunt`: the path on which a congestion control does worst."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, get_args

import typer

from fullpipe.base.errors import UserError
from fullpipe.cli.output import console
from fullpipe.cli.saying import say

if TYPE_CHECKING:
    from fullpipe.hunt.hunting import Finding

_OTHERS = ("cubic", "reno", "bbr1", "bbr3")
_INGREDIENTS = {
    "trace": "the trace", "loss_percent": "loss", "jitter_ms": "jitter",
    "jitter_of_one_ms": "jitter of one", "rtt_ratio": "the ratio of RTTs",
}  # fmt: skip


def hunt(
    cc: Annotated[str, typer.Argument(metavar="NAME", help="a congestion control, or ./mine.h")],
    worst: Annotated[str, typer.Option(help="utilisation, starvation, delay or loss")],
    budget: Annotated[
        str, typer.Option(help="time on two cores; counted in packets, so results repeat")
    ] = "5min",
    seed: Annotated[int, typer.Option(min=0, help="of the search")] = 1,
    out: Annotated[
        Path, typer.Option(metavar="DIR", help="where the scenarios of what is found go")
    ] = Path("hunts"),
    json_: Annotated[bool, typer.Option("--json", help="print as JSON")] = False,
    jobs: Annotated[int | None, typer.Option(min=1, help="threads; all cores")] = None,
) -> int:
    """Searches rates, traces, delays, buffers, loss and jitter for the path on which it does worst,
    makes it simple, and leaves a scenario for `fullpipe run`.

    A hunt goes on without the ingredients that it found to matter, and so may find several
    causes. The same seed and budget find the same."""
    from fullpipe.cli.bars import progress
    from fullpipe.congestion.registry import cc_set
    from fullpipe.hunt.hunting import PACKETS_A_SECOND, Hunt
    from fullpipe.hunt.leaving import leave
    from fullpipe.hunt.space import SHOWN, Worst

    known = get_args(Worst)
    if worst not in known:
        raise UserError(f"--worst {worst}: unknown; known are {', '.join(known)}")
    packets = _seconds(budget) * PACKETS_A_SECOND
    cc_set(cc.partition("[")[0])
    with progress(f"hunt {worst}", 0.0) as update:
        hunting = Hunt(cc, worst, seed, packets, jobs, update)  # type: ignore[arg-type]
        findings = hunting.run(_OTHERS)
    files = [
        leave(out, _stem(cc, worst, index), cc, hunting.worst, found, _origin(cc, worst, found))
        for index, found in enumerate(findings)
    ]
    if json_:
        print(json.dumps({
            "cc": cc, "worst": worst, "seed": seed, "trials": hunting.count,
            "packets": round(hunting.spent),
            "findings": [_document(f, path) for f, path in zip(findings, files, strict=True)],
        }))  # fmt: skip
        return 0
    console.print(f"{hunting.count} trials, {hunting.spent / 1e6:.0f} million packets")
    for found, path in zip(findings, files, strict=True):
        _print(cc, SHOWN[hunting.worst], found, path)
    if not findings:
        console.print(f"nothing notable: {SHOWN[hunting.worst]} is fine wherever it looked")
    return 0


def _seconds(text: str) -> float:
    from fullpipe.base import units

    try:
        seconds = units.parse_time(text) / 1e9
    except units.UnitError as error:
        raise UserError(f"--budget {error}") from None
    if seconds <= 0:
        raise UserError(f"--budget {text!r}: must be above 0, such as 5min")
    return seconds


def _stem(cc: str, worst: str, index: int) -> str:
    name = "".join(
        letter if letter.isalnum() or letter in "-_" else "-" for letter in Path(cc).name
    )
    return f"{name}-{worst}" + (f"-{index + 1}" if index else "")


def _origin(cc: str, worst: str, found: Finding) -> str:
    return (
        f"Found by `fullpipe hunt {cc} --worst {worst}`: {_needs(found)}; measured "
        f"{found.value:.3g}."
    )


def _needs(found: Finding) -> str:
    return (
        ", ".join(f"{_INGREDIENTS[name]} matters" for name in found.needs)
        or "the plain path suffices"
    )


def _print(cc: str, shown: str, found: Finding, path: Path) -> None:
    from fullpipe.hunt.space import said

    numbers = ", ".join(f"{name} {_text(value)}" for name, value in said(found.path).items())
    console.print(f"\n{shown}: {found.value:.3g} ({_needs(found)})", style="bold")
    console.print(f"  path: {numbers}")
    for name, profile in found.profile.items():
        texts = [f"{_text(value)}: {measured:.3g}" for value, measured in _profile(name, profile)]
        console.print(f"  by {name}: {', '.join(texts)}")
    if found.others:
        beside = [f"{name} {value:.3g}" for name, value in found.others.items()]
        console.print(f"  others there: {', '.join(beside)}")
    say(f"  fullpipe run {path}")


def _profile(name: str, profile: dict[float, float]) -> list[tuple[float | str, float]]:
    from fullpipe.hunt.space import TRACE

    return [
        (TRACE.said(value) if name == TRACE.name else value, measured)
        for value, measured in profile.items()
    ]


def _text(value: float | str) -> str:
    return value if isinstance(value, str) else f"{value:g}"


def _document(found: Finding, path: Path) -> dict[str, Any]:
    from fullpipe.hunt.space import said

    return {
        "value": _plain(found.value), "found": _plain(found.found), "needs": list(found.needs),
        "path": said(found.path), "scenario": str(path),
        "profile": {
            name: [[value, _plain(measured)] for value, measured in _profile(name, profile)]
            for name, profile in found.profile.items()
        },
        "others": {name: _plain(value) for name, value in found.others.items()},
    }  # fmt: skip


def _plain(value: float) -> float | None:
    return float(f"{value:.6g}") if math.isfinite(value) else None
