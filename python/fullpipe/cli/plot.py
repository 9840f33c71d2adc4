"""`fullpipe plot` and `fullpipe effects`: a sweep's results as plots, and which axes matter."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from fullpipe.base.errors import UserError
from fullpipe.cli.chosen_sweep import say_which
from fullpipe.cli.options import (
    DEFAULT_LOOK,
    ChosenSweep,
    LookOptions,
    StoreFolder,
    with_groups,
)
from fullpipe.cli.output import console, message, text_table

_Where = Annotated[
    str | None, typer.Option(metavar="SQL", help='Condition, such as "rtt_s < 0.1".')
]


@with_groups
def plot(
    store: StoreFolder,
    y: Annotated[
        str,
        typer.Option(metavar="METRIC", help="The y axis: a metric, such as share."),
    ],
    x: Annotated[
        str | None, typer.Option(metavar="AXIS", help="The x axis; of pareto, a metric.")
    ] = None,
    by: Annotated[
        str | None, typer.Option(metavar="COLUMN", help="Group by: a line per value.")
    ] = None,
    facet: Annotated[
        str | None, typer.Option(metavar="COLUMN", help="Facets: a panel per value.")
    ] = None,
    kind: Annotated[str, typer.Option(help="line, heat, box, cdf or pareto.")] = "line",
    where: _Where = None,
    out: Annotated[
        Path | None,
        typer.Option(
            "--out",
            "-o",
            metavar="FILE",
            help="FILE.pdf, .svg, .png or .html; by default a PNG in STORE.",
        ),
    ] = None,
    sweep: ChosenSweep = None,
    looks: LookOptions = DEFAULT_LOOK,
) -> None:
    """Plots a metric of a sweep.

    Lines with intervals, heat maps, boxes, CDFs and Pareto fronts."""
    from fullpipe.plots.look import unknown_labels
    from fullpipe.plots.model import Grid
    from fullpipe.sweep.chart import Request, make_chart
    from fullpipe.sweep.store import Store

    path = out or store / "plots" / f"{'-'.join(filter(None, [kind, y, x, by, facet]))}.png"
    if path.suffix not in (".pdf", ".png", ".svg", ".html"):
        raise UserError(f"--out {path}: must end in .pdf, .svg, .png or .html")
    look = looks.look()
    opened = Store(store)
    chart = make_chart(opened, Request(y, x, by, facet, kind, where, sweep))
    say_which(opened, sweep)
    if unknown := unknown_labels([chart], look):
        raise UserError(f"--label {unknown[0]}: nothing in the plot has this name")
    if path.suffix == ".html":
        from fullpipe.plots.look import dressed
        from fullpipe.plots.plotly_renderer import write_page

        page = dressed(chart, look)
        assert isinstance(page, Grid)
        write_page(page, path)
    else:
        from fullpipe.plots.matplotlib_renderer import write_file

        write_file(chart, path, look)
    message(f"wrote {path}")


def effects(
    store: StoreFolder,
    y: Annotated[str, typer.Option(metavar="METRIC", help="A metric, such as share.")],
    of: Annotated[str, typer.Option(metavar="AXES", help="Axes, separated by commas.")],
    where: _Where = None,
    sweep: ChosenSweep = None,
) -> None:
    """Tests which axes of a sweep matter for a metric.

    Analysis of variance over runs, with pairs of axes."""
    from fullpipe.statistics.factorial import factorial_anova
    from fullpipe.sweep.chart import run_values
    from fullpipe.sweep.store import Store

    names = [name.strip() for name in of.split(",") if name.strip()]
    if not names:
        raise UserError("--of: name axes, such as cc,rtt")
    if twice := sorted({name for name in names if names.count(name) > 1}):
        raise UserError(f"--of {of}: {', '.join(twice)} is named twice")
    opened = Store(store)
    values, factors = run_values(opened, y, names, where, sweep)
    say_which(opened, sweep)
    table = text_table("effect", right=("sum of\nsquares", "df", "F", "p", "eta2", "partial\neta2"))
    for effect in factorial_anova(values, factors):
        ratios = (effect.f, effect.p_value, effect.eta_squared, effect.partial_eta_squared)
        table.add_row(
            effect.source,
            f"{effect.sum_of_squares:.4g}",
            f"{effect.df:g}",
            *("" if value is None else f"{value:.3g}" for value in ratios),
        )
    console.print(f"{y}, {len(values)} values, one a run and group; type II sums of squares")
    console.print(table)
