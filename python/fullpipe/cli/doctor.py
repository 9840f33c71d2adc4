"""`fullpipe doctor`: what this machine can run."""

from __future__ import annotations

import importlib
from dataclasses import dataclass

from rich.table import Table

from fullpipe import __version__, cc_sets
from fullpipe.cli.output import console


@dataclass(frozen=True)
class Check:
    """One thing that an engine needs."""

    name: str
    ok: bool
    detail: str
    mend: str = ""


def doctor() -> int:
    """Says what this machine can run, and the one command that mends what it cannot."""
    checks = [Check("sim", True, f"{len(cc_sets.cc_sets())} congestion controls compiled in")]
    try:
        requirements = importlib.import_module("fullpipe.engines.requirements")
    except ModuleNotFoundError:
        checks.append(Check("vm, live", False, "the kernel engines are not in this build"))
    else:
        checks += [
            Check(item.name, item.ok, item.detail, item.mend) for item in requirements.checks()
        ]
    console.print(f"fullpipe {__version__}")
    table = Table(box=None, padding=(0, 1), header_style="bold")
    for title in ("", "what", "found", "what mends it"):
        table.add_column(title, overflow="fold")
    for check in checks:
        mark = "ok" if check.ok else "[bold]no[/bold]"
        table.add_row(mark, check.name, check.detail, "" if check.ok else check.mend)
    console.print(table)
    return 0
