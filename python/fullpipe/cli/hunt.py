"""`fullpipe hunt`: the path on which a congestion control does worst."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, get_args

import typer

from fullpipe.cli.output import console, say
from fullpipe.errors import UserError

if TYPE_CHECKING:
    from fullpipe.hunt.hunting import Finding

_OTHERS = ("cubic", "reno", "bbr1", "bbr3")


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
    """Searches rates, delays, buffers, loss and jitter for the path on which it does worst, makes
    it simple, and leaves a scenario for `fullpipe run`.

    A hunt goes on without the ingredients that it found to matter, and so may find several
    causes. The same seed and budget find the same."""
    from fullpipe.cc_sets import cc_set
    from fullpipe.cli.output import progress
    from fullpipe.hunt.hunting import PACKETS_A_SECOND, Hunt
    from fullpipe.hunt.space import SHOWN, Worst

    known = get_args(Worst)
    if worst not in known:
        raise UserError(f"--worst {worst}: unknown; known are {', '.join(known)}")
    packets = _seconds(budget) * PACKETS_A_SECOND
    cc_set(cc.partition("[")[0])
    with progress(f"hunt {worst}", 0.0) as update:
        hunting = Hunt(cc, worst, seed, packets, jobs, update)  # type: ignore[arg-type]
        findings = hunting.run(_OTHERS)
    files = [_written(out, cc, worst, index, found) for index, found in enumerate(findings)]
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
    from fullpipe import units

    try:
        seconds = units.parse_time(text) / 1e9
    except units.UnitError as error:
        raise UserError(f"--budget {error}") from None
    if seconds <= 0:
        raise UserError(f"--budget {text!r}: must be above 0, such as 5min")
    return seconds


def _written(out: Path, cc: str, worst: str, index: int, found: Finding) -> Path:
    name = "".join(
        letter if letter.isalnum() or letter in "-_" else "-" for letter in Path(cc).name
    )
    number = f"-{index + 1}" if index else ""
    path = out / f"{name}-{worst}{number}.toml"
    try:
        out.mkdir(parents=True, exist_ok=True)
        path.write_text(
            f"# Found by `fullpipe hunt {cc} --worst {worst}`: {_needs(found)}; measured "
            f"{found.value:.3g}.\n{found.toml}",
            encoding="utf-8",
        )
    except OSError as error:
        raise UserError(f"--out {out}: cannot be written: {error.strerror}") from None
    return path


def _needs(found: Finding) -> str:
    return (
        ", ".join(f"{name.rpartition('_')[0].replace('_', ' ')} matters" for name in found.needs)
        or "the plain path suffices"
    )


def _print(cc: str, shown: str, found: Finding, path: Path) -> None:
    numbers = ", ".join(f"{name} {value:g}" for name, value in found.path.items())
    console.print(f"\n{shown}: {found.value:.3g} ({_needs(found)})", style="bold")
    console.print(f"  path: {numbers}")
    for name, profile in found.profile.items():
        texts = [f"{value:g}: {measured:.3g}" for value, measured in profile.items()]
        console.print(f"  by {name}: {', '.join(texts)}")
    if found.others:
        beside = [f"{name} {value:.3g}" for name, value in found.others.items()]
        console.print(f"  others there: {', '.join(beside)}")
    say(f"  fullpipe run {path}")


def _document(found: Finding, path: Path) -> dict[str, Any]:
    return {
        "value": _plain(found.value), "found": _plain(found.found), "needs": list(found.needs),
        "path": found.path, "scenario": str(path),
        "profile": {
            name: [[value, _plain(measured)] for value, measured in profile.items()]
            for name, profile in found.profile.items()
        },
        "others": {name: _plain(value) for name, value in found.others.items()},
    }  # fmt: skip


def _plain(value: float) -> float | None:
    return float(f"{value:.6g}") if math.isfinite(value) else None
