"""`fullpipe plot` and `fullpipe effects`: the results of a sweep as pictures and as a table of what
matters."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from rich.markup import escape
from rich.table import Table

from fullpipe.base.errors import UserError
from fullpipe.cli.output import console
from fullpipe.cli.saying import say

StoreFolder = Annotated[Path, typer.Argument(metavar="DIR", help="a store that a sweep filled")]


def plot(
    store: StoreFolder,
    y: Annotated[str, typer.Option(help="metric, such as share or queue_delay_p95_rttmin")],
    x: Annotated[str | None, typer.Option(help="axis to the right; pareto: a metric")] = None,
    by: Annotated[str | None, typer.Option(help="column of which each value is a line")] = None,
    facet: Annotated[str | None, typer.Option(help="column of which each value is a plot")] = None,
    kind: Annotated[str, typer.Option(help="line, heat, box, cdf or pareto")] = "line",
    where: Annotated[str | None, typer.Option(help="SQL condition, such as cc = 'bbr3'")] = None,
    out: Annotated[Path | None, typer.Option(help="FILE.png, FILE.svg or FILE.html")] = None,
) -> int:
    """Draws a metric of a store: lines with intervals, heat maps, boxes, CDFs, Pareto fronts."""
    from fullpipe.sweep.chart import Request, make_chart
    from fullpipe.sweep.store import Store

    path = out or store / "plots" / f"{'-'.join(filter(None, [kind, y, x, by, facet]))}.png"
    if path.suffix not in (".png", ".svg", ".html"):
        raise UserError(f"--out {path}: must end in .png, .svg or .html")
    chart = make_chart(Store(store), Request(y, x, by, facet, kind, where))
    if path.suffix == ".html":
        from fullpipe.plots.plotly_renderer import write_page

        write_page(chart, path)
    else:
        from fullpipe.plots.matplotlib_renderer import write_file

        write_file(chart, path)
    say(f"wrote {path}")
    return 0


def effects(
    store: StoreFolder,
    y: Annotated[str, typer.Option(help="metric, such as share")],
    of: Annotated[str, typer.Option(help="axes, separated by commas")],
    where: Annotated[str | None, typer.Option(help="SQL condition, such as cc = 'bbr3'")] = None,
) -> int:
    """Which axes matter for a metric: analysis of variance over runs, with pairs of axes."""
    from fullpipe.statistics.factorial import factorial_anova
    from fullpipe.sweep.chart import run_values
    from fullpipe.sweep.store import Store

    names = [name.strip() for name in of.split(",") if name.strip()]
    values, factors = run_values(Store(store), y, names, where)
    table = Table(box=None, padding=(0, 1), header_style="bold")
    table.add_column("effect")
    for title in ("sum of squares", "df", "F", "p", "eta2", "partial eta2"):
        table.add_column(title, justify="right")
    for effect in factorial_anova(values, factors):
        table.add_row(
            escape(effect.source), f"{effect.sum_of_squares:.4g}", f"{effect.df:g}",
            *("" if value is None else f"{value:.3g}"
              for value in (effect.f, effect.p_value, effect.eta_squared,
                            effect.partial_eta_squared)),
        )  # fmt: skip
    console.print(f"{y}, {len(values)} values, one a run and group; type II sums of squares")
    console.print(table)
    return 0
