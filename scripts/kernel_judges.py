"""Writes docs/evidence/cells/kernel_judges.csv: files of the Linux kernel and of public
repositories before the three judges of `fullpipe cc check`: the module that a kernel's own build
makes of the file, fullpipe's module, and the simulator.

python scripts/kernel_judges.py FILE... [--path NAME]...

FILE is a tcp_NAME.c with what it includes beside it: net/ipv4/tcp_*.c of the kernel (`fullpipe
doctor --linux-source 6.12` keeps them in the cache), or a file of SOURCES in a folder of its
repository's name. Only cells that the table lacks are measured: to measure one again, remove it.
"""

from __future__ import annotations

import argparse
import csv
import statistics
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path

from fullpipe.authoring import judges
from fullpipe.authoring.judges import Figures
from fullpipe.base.errors import RunError, UserError
from fullpipe.congestion.registry import cc_set

TABLE = Path(__file__).parent.parent / "docs" / "evidence" / "cells" / "kernel_judges.csv"
#: The first for which the module can be built is the judge.
KERNELS = ("6.12", "6.1")
#: Repositories at GitHub and their commits.
SOURCES = {
    "tcp_bbr_modules": "hrimfaxi/tcp_bbr_modules@ee4319e",
    "tcp-brutal": "apernet/tcp-brutal@204aeea",
    "powertcp-linux": "inet-tub/powertcp-linux@c96ea9d",
    "tcp-elastic": "cybertxt/tcp-elastic@57d4f0c",
    "copa-kernel": "Aruuni/copa-kernel@15653f0",
    "rocc_kernel": "108anup/rocc_kernel@389510c",
    "lbetcp": "Kovalian/lbetcp@c79e253",
    "tcp_ledbat": "skyformat99/tcp_ledbat@9211faf",
}
COLUMNS = (
    "file", "of", "kernel", "path", "judge", "cwnd_packets", "ssthresh_packets", "packets",
    "retransmitted", "verdict",
)  # fmt: skip
_WORDS = 160
Row = dict[str, str]


def main() -> None:
    """Measures what the table lacks, cell by cell."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("files", type=Path, nargs="+")
    names = [*judges.PATHS, *judges.PATHS_OF_ECN]
    parser.add_argument("--path", action="append", choices=names)
    given = parser.parse_args()
    rows = _read()
    for name in given.path or names:
        for file in given.files:
            cell = (_origin(file), file.name)
            if any((row["of"], row["file"]) == cell and row["path"] in (name, "") for row in rows):
                continue
            if name not in judges.PATHS and name not in judges.paths_of(str(file.resolve())):
                continue
            rows += [dict(zip(COLUMNS, row, strict=True)) for row in _cell(file, name)]
            _write(rows)
            print(*cell, name, rows[-1]["verdict"], flush=True)


def _read() -> list[Row]:
    if not TABLE.is_file():
        return []
    with TABLE.open(encoding="utf-8", newline="") as text:
        return list(csv.DictReader(text))


def _write(rows: Iterable[Row]) -> None:
    with TABLE.open("w", encoding="utf-8", newline="") as text:
        writer = csv.DictWriter(text, COLUMNS, lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)


def _origin(file: Path) -> str:
    return SOURCES.get(file.resolve().parent.name, "Linux 6.12")


def _cell(file: Path, name: str) -> Iterator[tuple[str, ...]]:
    """The rows of a path, or the one that says what keeps the file from running."""
    path, origin = str(file.resolve()), _origin(file)
    try:
        cc_set(path)
        real = _built(path)
    except (UserError, RunError) as error:
        yield (file.name, origin, "", "", "", "", "", "", "", _short(error, path))
        return
    cell = (file.name, origin, real.release, name)
    try:
        verdict = judges.judged(path, name, real)
    except (UserError, RunError) as error:
        yield (*cell, "", "", "", "", "", _short(error, path))
        return
    words = "; ".join(verdict.differences) or "agree"
    for judge, figures in (
        ("simulator", verdict.simulator),
        ("module of fullpipe", [verdict.glue]),
        ("real module", [verdict.real]),
    ):
        yield (*cell, judge, *_means(figures), words)


@cache
def _built(path: str) -> judges.RealModule:
    """Raises UserError with what each kernel's build refuses."""
    refusals = []
    for release in KERNELS:
        try:
            return judges.build(path, release)
        except (UserError, RunError) as error:
            refusals.append(f"{release}: {_short(error, path)}")
    raise UserError("no module: " + "; ".join(refusals))


def _means(figures: list[Figures]) -> Iterator[str]:
    """Over the seeds."""
    thresholds = [one.ssthresh for one in figures if one.ssthresh is not None]
    yield f"{statistics.fmean(one.cwnd for one in figures):.2f}"
    yield f"{statistics.fmean(thresholds):.2f}" if thresholds else ""
    yield f"{statistics.fmean(one.sent for one in figures):.1f}"
    yield f"{statistics.fmean(one.again for one in figures):.1f}"


def _short(error: Exception, path: str) -> str:
    """The first line that says what is wrong, without folders."""
    lines = [line.strip() for line in str(error).splitlines()]
    line = next((line for line in lines if "error:" in line), lines[0])
    return line.replace(f"{Path(path).parent}/", "")[:_WORDS]


if __name__ == "__main__":
    main()
