"""Draws the figures of docs/results.md: runs the simulator, and reads the cells of the agreement.

python scripts/results_figures.py [NAME...]
"""

from __future__ import annotations

import argparse
import csv
import dataclasses
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

ROOT = Path(__file__).parent.parent
PICTURES = ROOT / "docs" / "images" / "results"
CELLS = ROOT / "docs" / "evidence" / "agreement_cells.csv"
ALGORITHMS = ("reno", "cubic", "bbr1", "bbr3", "bbrnplus", "prague", "tarn")
SEEDS = 3
PATHS: dict[str, dict[str, Any]] = {
    "20 Mbit/s, 40 ms, 2 BDP": {"rate": "20mbit", "rtt": "40ms", "buffer": "2bdp"},
    "20 Mbit/s, 40 ms, FQ-CoDel": {"rate": "20mbit", "rtt": "40ms", "qdisc": "fq_codel"},
    "10 Mbit/s, 30 ms, 16 BDP": {"rate": "10mbit", "rtt": "30ms", "buffer": "16bdp"},
    "50 Mbit/s, 80 ms, 1 BDP, 0.01 % lost": {
        "rate": "50mbit", "rtt": "80ms", "buffer": "1bdp", "loss": 0.0001,
    },
}  # fmt: skip
BUFFERS = (0.5, 1, 2, 4, 8, 16)
#: BBR and CUBIC change sides for a minute (docs/evidence/settling.md).
ALONE = {"duration": "60s", "warmup": "20s", "start_spread": "1s"}
TOGETHER = {"duration": "180s", "warmup": "90s", "start_spread": "1s"}


def delay() -> Any:
    """Throughput against delay of each algorithm alone, a panel a path."""
    import fullpipe
    from fullpipe.plots.model import Grid
    from fullpipe.report.runs import grouped, read_run
    from fullpipe.report.tradeoff import tradeoff

    panels = []
    for title, path in PATHS.items():
        runs = []
        for cc in ALGORITHMS:
            document = {"name": "alone", **ALONE, "path": path, "flow": [{"cc": cc}]}
            runs += fullpipe.run(document, seeds=SEEDS)
        plot = tradeoff(grouped([read_run(run) for run in runs]))
        panels.append(dataclasses.replace(plot, title=title, note=""))
    return Grid("", panels, share_x=False, share_y=False)


def share() -> Any:
    """The share of each algorithm beside one flow of CUBIC, over the buffer."""
    import fullpipe
    from fullpipe.plots import style
    from fullpipe.plots.model import Plot, Trace

    traces = []
    x = np.array(BUFFERS)
    for cc in [name for name in ALGORITHMS if name != "cubic"]:
        shares = []
        for buffer in BUFFERS:
            path = {"rate": "20mbit", "rtt": "40ms", "buffer": f"{buffer}bdp"}
            document = {**TOGETHER, "path": path, "flow": [{"cc": cc}, {"cc": "cubic"}]}
            runs = fullpipe.run(document, seeds=SEEDS)
            shares.append([summary["flows"][0]["share"] for summary in runs.summaries()])
        of_seeds = np.array(shares)
        band = of_seeds.min(axis=1), of_seeds.max(axis=1)
        mean = of_seeds.mean(axis=1)
        traces.append(
            Trace(cc, style.cc_colour(cc), x, mean, width=2, mark="dot", joined=True, band=band)
        )
    fair = Trace("fair share", style.REFERENCE, x, np.full(x.size, 0.5), "dash", 1.0,
                 is_reference=True)  # fmt: skip
    ticks = tuple((size, f"{size:g}") for size in BUFFERS)
    return Plot("share", "", "buffer (BDP)", "share of goodput beside CUBIC", [*traces, fair],
                x_ticks=ticks, log_x=2)  # fmt: skip


def agreement() -> Any:
    """The simulator against the kernel in every cell of the agreement: queue and share."""
    from fullpipe.plots import style
    from fullpipe.plots.model import Grid, Plot, Trace

    with CELLS.open(encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    panels = []
    titles = {"delay": ("Median queueing delay", " (RTTmin)"), "share": ("Share of goodput", "")}
    for column, (title, unit) in titles.items():
        traces = []
        top = 0.0
        for cc in dict.fromkeys(row["cc"] for row in rows):
            mine = [row for row in rows if (row["cc"] == cc and row["flows"] != "one")
                    or (row["cc"] == cc and column == "delay")]  # fmt: skip
            pairs = [(row[f"{column}_vm"], row[f"{column}_sim"]) for row in mine]
            points = np.array([pair for pair in pairs if all(pair)], dtype=np.float64)
            if points.size:
                x, y = points.T
                top = max(top, float(points.max()))
                traces.append(Trace(cc, style.cc_colour(cc), x, y, opacity=0.7, mark="dot"))
        ends = np.array([0.0, top])
        same = Trace("equal", style.REFERENCE, ends, ends, "dash", 1.0, is_reference=True)
        panels.append(
            Plot(column, title, f"Linux{unit}", f"simulator{unit}", [same, *traces])
        )  # fmt: skip
    return Grid("", panels, share_x=False, share_y=False)


FIGURES: dict[str, Callable[[], Any]] = {"delay": delay, "share": share, "agreement": agreement}


def main() -> int:
    """Writes the pictures."""
    from fullpipe.plots.look import Look
    from fullpipe.plots.matplotlib_renderer import write_file

    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", help=f"figures to draw: {', '.join(FIGURES)}")
    PICTURES.mkdir(parents=True, exist_ok=True)
    for name in parser.parse_args().names or FIGURES:
        path = PICTURES / f"{name}.png"
        write_file(FIGURES[name](), path, Look(width_in=7.0, title=False))
        print(path.relative_to(ROOT), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
