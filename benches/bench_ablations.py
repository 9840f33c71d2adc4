"""Tarn without each of its mechanisms: what gets worse.

tarn_ablations.toml names the mechanisms, how each is left out, and the figures that show it: rows
of bench_targets.py, cells of this file, items of the scorecard, and figures of the drawn paths of
bench_paths.py (the draw "training" and its continuation). Prints a Markdown row a mechanism. With
--out the figures are kept, and only missing ones are run again.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import shutil
import tempfile
import tomllib
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from bench_paths import SEEDS, DrawnPath, Outcome, draw, measure
from bench_targets import FULL, NEVER, ROWS, RTT, Cell, Figures, interval, run_cell

from fullpipe.metrics import View, goodput_bps
from fullpipe.scorecard.card import run_card
from fullpipe.scorecard.items import Item, items
from fullpipe.sweep.store import Store

HERE = Path(__file__).parent
SOURCES = HERE.parent / "cc"
MECHANISMS = HERE / "tarn_ablations.toml"
#: Below so much of the link a run counts as low.
LOW = 0.8


@dataclass(frozen=True)
class Mechanism:
    """One of Tarn's mechanisms: how it is left out, and what should show that it is."""

    name: str
    params: str = ""
    edits: tuple[tuple[str, str, str], ...] = ()
    figures: tuple[tuple[str, str, str], ...] = ()
    paths: tuple[str, ...] = ()


def mechanisms() -> list[Mechanism]:
    """All of them, in the order of the file."""
    entries = tomllib.loads(MECHANISMS.read_text())["mechanism"]
    tuples = [{key: _frozen(value) for key, value in entry.items()} for entry in entries]
    return [Mechanism(**entry) for entry in tuples]


def _frozen(value: Any) -> Any:
    return tuple(map(_frozen, value)) if isinstance(value, list) else value


def left_out(mechanism: Mechanism, folder: Path) -> str:
    """Tarn without it, as a scenario's `cc`. Its edited files are written to `folder`. Raises
    ValueError if an edit does not fit the sources exactly once."""
    if not mechanism.edits:
        return f"tarn[{mechanism.params}]" if mechanism.params else "tarn"
    name = hashlib.sha256(repr(mechanism.edits).encode()).hexdigest()[:12]
    own = folder / name
    own.mkdir(exist_ok=True)
    for path in SOURCES.glob("tarn*.h"):
        shutil.copy(path, own)
    for file, old, new in mechanism.edits:
        text = (own / file).read_text()
        if text.count(old) != 1:
            raise ValueError(f"{mechanism.name}: {text.count(old)} times in {file}: {old}")
        (own / file).write_text(text.replace(old, new))
    return str(own / "tarn.h")


def overtaking(cc: str) -> Iterator[Cell]:
    """20 Mbit/s and 40 ms; a packet that overtakes arrives 20 ms early."""

    def use(recording: Any) -> Figures:
        found = float(goodput_bps(View(recording, 10, 40)).sum() / (20e6 * FULL))
        return {"use": found, "low": float(found < LOW)}

    for percent in (0.1, 1, 3, 10, 50):
        link = {"name": "l", "rate": "20mbit", "delay": "20ms", "buffer": "2bdp",
                "reorder": f"{percent}%"}  # fmt: skip
        scenario = {"duration": "40s", "link": [link], "flow": [{"cc": cc}]}
        yield Cell("overtaking", f"{percent} %", scenario, use)


def lasting(cc: str) -> Iterator[Cell]:
    """Longer beside CUBIC than a least RTT is kept in CRUISE."""

    def share(recording: Any) -> Figures:
        mine, theirs = goodput_bps(View(recording, 150, 400))
        return {"share": float(2 * mine / (mine + theirs))}

    for buffer in (4, 16):
        path = {"rate": "100mbit", "rtt": RTT, "buffer": f"{buffer}bdp"}
        scenario = {"duration": "400s", "path": path, "flow": [{"cc": cc}, {"cc": "cubic"}]}
        yield Cell("beside cubic for 400 s", f"{buffer} BDP", scenario, share)


def cells(cc: str) -> Iterator[Cell]:
    """All cells of which a figure may be named."""
    for row in (*ROWS, overtaking, lasting):
        yield from row(cc)


def of_cell(cc: str, row: str, name: str, seeds: int) -> dict[str, list[float]]:
    """The figures of one cell. Raises StopIteration if there is none of that name."""
    if item := scorecard_item(row):
        return of_scorecard(cc, item, name, seeds)
    cell = next(cell for cell in cells(cc) if (cell.row, cell.name) == (row, name))
    return run_cell(cell, seeds, "sim", {})


def scorecard_item(row: str) -> Item | None:
    """The item that a row such as `scorecard c4-suspension` names."""
    kind, _, name = row.partition(" ")
    if kind != "scorecard":
        return None
    return next(item for item in items() if item.id == name)


def of_scorecard(cc: str, item: Item, label: str, seeds: int) -> dict[str, list[float]]:
    """What the scorecard measures in the cell of an item that has this label."""
    with tempfile.TemporaryDirectory() as folder:
        store = Store(Path(folder) / "store", create=True)
        card = run_card(cc, [], [item], store, jobs=1, seeds=seeds)
    [measured] = card["items"]
    at = measured["cells"].index(label)
    found = {}
    for one in measured["measures"]:
        values = one["subjects"][card["scorecard"]]["values"][at]
        found[one["id"]] = [NEVER if value == "never" else value for value in values]
    return found


SELECTIONS: dict[str, Callable[[DrawnPath], bool]] = {
    "short": lambda path: path.rtt_ms < 15,
    "long": lambda path: path.rtt_ms > 90,
}
TITLES = {
    "all": "all three", "use": "use", "queue": "queue", "competing": "competing",
    "short": "below 15 ms", "long": "above 90 ms",
}  # fmt: skip


def of_paths(name: str, paths: list[DrawnPath], found: list[Outcome]) -> float:
    """A figure of the drawn paths: the part that meets something, or the share of competition."""
    if name == "competing":
        return float(np.mean([one.competing for one in found]))
    met = np.array([one.meets(path) for one, path in zip(found, paths, strict=True)])
    if name in ("queue", "use"):
        return float(met[:, ("queue", "use").index(name) + 1].mean())
    chosen = [SELECTIONS.get(name, lambda _: True)(path) for path in paths]
    return float(met.all(axis=1)[chosen].mean())


def main() -> None:
    """Runs the selected mechanisms and prints their rows."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", default="", help="mechanisms whose names begin so")
    parser.add_argument("--seeds", type=int, default=10, help="of a cell")
    parser.add_argument("--paths", type=int, default=150, help="drawn paths")
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--out", type=Path, help="a JSON file of figures")
    asked = parser.parse_args()
    kept: dict[str, Any] = {}
    if asked.out and asked.out.exists():
        kept = json.loads(asked.out.read_text())
    wanted = [one for one in mechanisms() if one.name.startswith(asked.only)]
    paths = draw(asked.paths, SEEDS["training"])

    def remembered(key: str, run: Callable[[], Any]) -> Any:
        if key not in kept:
            kept[key] = run()
            if asked.out:
                asked.out.write_text(json.dumps(kept))
        return kept[key]

    def figures_of(subject: Mechanism, shown: Mechanism, folder: Path) -> str:
        """The figures of `shown`, measured of `subject`."""
        cc = left_out(subject, folder)
        head, figures = f"{subject.name}|{asked.seeds}|{asked.paths}", []
        for row, name, figure in shown.figures:
            run = partial(of_cell, cc, row, name, asked.seeds)
            figures.append(interval(remembered(f"{head}|{row}|{name}", run)[figure]))
        if shown.paths:
            outcomes = remembered(f"{head}|paths", partial(_outcomes, pool, cc, paths))
            found = [Outcome(**each) for each in outcomes]
            figures += [f"{of_paths(name, paths, found):.3f}" for name in shown.paths]
        return "; ".join(figures)

    print("| left out | what gets worse | with | without |\n|---|---|---|---|")
    with tempfile.TemporaryDirectory() as text, ProcessPoolExecutor(asked.jobs) as pool:
        folder = Path(text)
        for one in wanted:
            titles = [" ".join(parts) for parts in one.figures]
            titles += [TITLES[name] for name in one.paths]
            both = (figures_of(subject, one, folder) for subject in (Mechanism("nothing"), one))
            print(f"| {one.name} | {'; '.join(titles)} | {' | '.join(both)} |", flush=True)


def _outcomes(pool: ProcessPoolExecutor, cc: str, paths: list[DrawnPath]) -> list[dict[str, float]]:
    return [asdict(found) for found in pool.map(partial(measure, cc, None), paths)]


if __name__ == "__main__":
    main()
