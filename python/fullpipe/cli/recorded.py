"""`fullpipe compare` of recordings that there are already, of any engine or imported."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from fullpipe.base.errors import UserError
from fullpipe.cli.output import console, message, print_comparison, warn, without_test
from fullpipe.cli.report import open_all

if TYPE_CHECKING:
    from fullpipe.recording.recording import Recording


def are_recordings(names: Sequence[str]) -> bool:
    """Whether all names are folders. Raises UserError where only some are."""
    folders = [Path(name).is_dir() for name in names]
    if any(folders) and not all(folders):
        name = names[folders.index(False)]
        raise UserError(f"{name}: is no folder; compare recordings, or congestion controls")
    return any(folders)


def compare_recorded(
    names: Sequence[str], page: Path | None, light: bool, as_json: bool
) -> list[Recording]:
    """Prints the comparison of folders, each of which holds the runs of a group; writes its report
    into the folder `page`. Gives the recordings."""
    from fullpipe.metrics import summarise
    from fullpipe.report.comparison import compare_runs
    from fullpipe.report.page import write_report

    groups = {name: open_all(Path(name)) for name in names}
    every = [recording for recordings in groups.values() for recording in recordings]
    summaries = {name: [summarise(run) for run in runs] for name, runs in groups.items()}
    rows = compare_runs(summaries)
    if not rows:
        raise UserError("compare: these recordings have no metric in common")
    if as_json:
        metrics = [row.to_dict() for row in rows]
        document = {"metrics": metrics, "runs": summaries}
        print(json.dumps(document, allow_nan=False))
    else:
        print_comparison(rows, groups)
        if missing := without_test(rows):
            console.print(f"no test: {missing}", soft_wrap=True)
    for recording in every:
        warn(str(recording.path), recording.warnings)
    if page is not None:
        message(f"report: {write_report(every, page / 'report.html', light=light)}")
    return every
