"""`fullpipe flent`: Flent's files into recordings and back, and analysis of variance."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.table import Table

from fullpipe.base.errors import UserError
from fullpipe.base.units import MIB, counted
from fullpipe.cli.options import Json
from fullpipe.cli.output import console, message, number, text_table

if TYPE_CHECKING:
    from fullpipe.flent import FlentFile
    from fullpipe.flent.comparing import ByBytes
    from fullpipe.statistics.comparison import Comparison

app = typer.Typer(help="Reads, writes and analyses Flent's files.", no_args_is_help=True)

_Files = Annotated[list[Path], typer.Argument(metavar="FILE", help="Flent's .flent.gz files.")]
_Interpolation = Annotated[
    bool,
    typer.Option("--flent-interpolation", help="Use Flent's interpolated series, not bytes."),
]


@app.command("import")
def import_(
    files: _Files,
    out: Annotated[
        Path,
        typer.Option("--out", "-o", metavar="DIR", help="Folder for the recordings, one per file."),
    ] = Path("recordings/flent"),
    flent_interpolation: _Interpolation = False,
) -> None:
    """Turns files of Flent, iperf3 and qlog into recordings.

    Prints what they carried, by bytes, and which series a recording has no place for. Damaged files
    are refused; the others are imported."""
    from fullpipe.flent import import_flent, left_out, qlog, read_flent
    from fullpipe.flent.comparing import both_by_bytes
    from fullpipe.flent.iperf3 import described, import_iperf3, is_iperf3, read_iperf3
    from fullpipe.flent.qlog import import_qlog, is_qlog, read_qlogs

    rows, refused, others = [], [], 0
    for path in files:
        try:
            if is_iperf3(path):
                result = read_iperf3(path)
                folder = import_iperf3(result, out / path.stem).path
                console.print(f"{folder}: {described(result)}", soft_wrap=True)
                others += 1
                continue
            if is_qlog(path):
                for trace in read_qlogs(path):
                    name = f"{path.stem}-{trace.name}" if trace.name else path.stem
                    folder = import_qlog(trace, out / name).path
                    console.print(f"{folder}: {qlog.described(trace)}", soft_wrap=True)
                    others += 1
                    if trace.has_seconds:
                        message(f"note: {path.name}: RTTs are in seconds; taken as such")
                continue
            file = read_flent(path)
            totals = both_by_bytes(file)
            rows.append((file, totals, import_flent(file, out / _stem(path)).path))
            _warn(file)
            if names := left_out(file):
                more = f" and {len(names) - 12} more" if len(names) > 12 else ""
                message(f"note: {path.name}: left out: {', '.join(names[:12])}{more}")
        except UserError as error:
            refused.append(str(error))
    if rows:
        console.print(_import_table(rows, flent_interpolation))
    if rows or others:
        console.print(f"{len(rows) + others} recording(s) in {out}", soft_wrap=True)
    for reason in refused[:-1]:
        message(f"refused: {reason}")
    if refused:
        more = f" ({len(refused)} of {len(files)} files refused)" if len(files) > 1 else ""
        raise UserError(refused[-1] + more)


@app.command("export")
def export(
    recordings: Annotated[
        list[Path], typer.Argument(metavar="RECORDING", help="Folders of recordings.")
    ],
    out: Annotated[
        Path,
        typer.Option(
            "--out",
            "-o",
            metavar="PATH",
            help="Folder, or for one recording a name that ends in .flent.gz.",
        ),
    ] = Path(),
    test: Annotated[
        str | None,
        typer.Option(help="Flent's test, such as tcp_nup; by default the one that fits."),
    ] = None,
    title: Annotated[str | None, typer.Option(help="Title in Flent's plots.")] = None,
) -> None:
    """Writes recordings as files that Flent opens."""
    from fullpipe.flent import export_flent
    from fullpipe.recording.recording import Recording

    is_file = out.name.endswith(".flent.gz")
    if is_file and len(recordings) > 1:
        raise UserError(f"--out {out}: is one file, but there are {len(recordings)} recordings")
    if not is_file and out.exists() and not out.is_dir():
        raise UserError(f"--out {out}: is a file; name a folder or NAME.flent.gz")
    for path in recordings:
        recording = Recording.open(path)
        file = out if is_file else out / f"{path.resolve().name}.flent.gz"
        shape = export_flent(recording, file, test, title)
        kinds = {"flow": shape.flows, "page": shape.pages, "stream": shape.streams}
        held = ", ".join(counted(len(names), kind) for kind, names in kinds.items() if names)
        console.print(f"{file}: {shape.test}, {held}", soft_wrap=True)
        for group in recording.metadata.get("plan", {}).get("traffic", []):
            message(
                f"note: {path.name}: no test of Flent's has flows that come and go: left out, "
                f"{group['name']}"
            )


@app.command()
def anova(
    files: _Files,
    flent_interpolation: _Interpolation = False,
    samples: Annotated[
        int | None, typer.Option(min=2, help="Use only the first so many values of each file.")
    ] = None,
    series: Annotated[
        str, typer.Option(help="throughput, ping, or a series of the files.")
    ] = "throughput",
    alpha: Annotated[float, typer.Option(min=1e-6, max=0.5, help="Significance level.")] = 0.05,
    json_: Json = False,
) -> None:
    """Compares files by a one-way analysis of variance.

    Groups are the files' titles. A file is one number, by bytes. --flent-interpolation takes the
    values on Flent's grid as independent repetitions, as some papers did; the result is marked as
    pseudo-replicated."""
    from fullpipe.flent import read_flent
    from fullpipe.flent.comparing import by_bytes, run_groups, sample_groups
    from fullpipe.statistics.comparison import compare_groups

    if samples is not None and not flent_interpolation:
        raise UserError("--samples: counts values of Flent's series; add --flent-interpolation")
    read = [read_flent(path) for path in files]
    for file in read:
        _warn(file)
    if flent_interpolation:
        groups, short = sample_groups(read, series, samples)
        for sentence in short:
            message(f"note: {sentence}")
    else:
        groups = run_groups(read, series)
    result = compare_groups(groups, alpha)
    totals = [by_bytes(file) for file in read]
    if json_:
        document = {
            "series": series,
            "flent_interpolation": flent_interpolation,
            **result.to_dict(),
            "by_bytes": [dataclasses.asdict(total) for total in totals],
        }
        print(json.dumps(document, allow_nan=False))
        return
    unit = {"throughput": "Mbit/s", "ping": "ms"}.get(series, "")
    how = "values on Flent's grid" if flent_interpolation else "one number a run, by bytes"
    console.print(f"{series} {unit}, {how}".replace(" ,", ","))
    for table in _anova_tables(result):
        console.print(table)
    for sentence in [*_test_lines(result), *(f"note: {note}" for note in result.notes)]:
        console.print(sentence)
    console.print("\nBy bytes (netperf's totals):")
    console.print(_bytes_table(totals))


def _stem(path: Path) -> str:
    name = path.name
    for ending in (".gz", ".bz2", ".flent"):
        name = name.removesuffix(ending)
    return name or "flent"


def _warn(file: FlentFile) -> None:
    from fullpipe.flent import warnings_of

    for sentence in warnings_of(file):
        message(f"warning: {file.path.name}: {sentence}")


def _import_table(
    rows: Sequence[tuple[FlentFile, Sequence[ByBytes], Path]], flent_interpolation: bool
) -> Table:
    import numpy as np

    from fullpipe.flent import interpolated, ping_rtts_ms

    means = ["Flent's\nmean"] if flent_interpolation else []
    table = text_table(
        "recording", "test", "title", "ran", right=("flows", "Mbit/s", "ping ms\np50", *means)
    )
    for file, totals, path in rows:
        rtts = ping_rtts_ms(file)
        ran = dict.fromkeys(total.ran for total in totals)
        cells = [
            path.name,
            file.test,
            file.title,
            "\n".join(ran),
            "\n".join(f"{total.flows} {total.direction}" for total in totals),
            "\n".join(number(total.rate_bps, 1e6, 2) for total in totals),
            number(float(np.median(rtts)), 1, 2) if rtts.size else "-",
        ]
        if flent_interpolation:
            cells.append(f"{interpolated(file, 'throughput').mean():.2f}")
        table.add_row(*cells)
    return table


def _anova_tables(result: Comparison) -> list[Table]:
    """SUMMARY and ANOVA as spreadsheets, and so the papers, print them; then Tukey's pairs."""
    anova = result.anova
    summary = text_table("Groups", right=("Count", "Sum", "Average", "Variance"))
    summary.title = "Anova: Single Factor, SUMMARY"
    for group in anova.groups:
        summary.add_row(
            group.name,
            str(group.count),
            _figure(group.sum),
            _figure(group.mean),
            _figure(group.variance),
        )
    source = text_table("Source of Variation", right=("SS", "df", "MS", "F", "P-value", "F crit"))
    source.title = "ANOVA"
    source.add_row(
        "Between Groups",
        _figure(anova.ss_between),
        str(anova.df_between),
        _figure(anova.ms_between),
        f"{anova.f:.6f}",
        f"{anova.p_value:.5E}",
        f"{anova.f_critical:.6f}",
    )
    source.add_row(
        "Within Groups", _figure(anova.ss_within), str(anova.df_within), _figure(anova.ms_within)
    )
    source.add_row("Total", _figure(anova.ss_total), str(anova.df_total))
    tables = [summary, source]
    if result.tukey:
        pairs = text_table("Tukey HSD", right=("difference", "low", "high", "adjusted p"))
        for pair in result.tukey:
            pairs.add_row(
                f"{pair.first} - {pair.second}",
                _figure(pair.difference),
                _figure(pair.low),
                _figure(pair.high),
                f"{pair.p_value:.3G}",
            )
        tables.append(pairs)
    for table in tables:
        table.title_justify = "left"
    return tables


def _test_lines(result: Comparison) -> list[str]:
    anova, assumptions = result.anova, result.assumptions
    lines = [f"effect size: eta^2 {anova.eta_squared:.3f}, omega^2 {anova.omega_squared:.3f}"]
    if result.welch:
        welch = result.welch
        lines.append(
            f"Welch: F({welch.df_between:.0f}, {welch.df_within:.1f}) = {welch.f:.4f}, "
            f"p = {welch.p_value:.3G}"
        )
    if result.kruskal:
        kruskal = result.kruskal
        lines.append(
            f"Kruskal-Wallis: H({kruskal.df}) = {kruskal.h:.4f}, p = {kruskal.p_value:.3G}, "
            f"epsilon^2 {kruskal.epsilon_squared:.3f}"
        )
    if assumptions.equal_variances:
        levene = assumptions.equal_variances
        lines.append(
            f"equal variances, Levene: F({levene.df_between}, {levene.df_within}) = "
            f"{levene.statistic:.4f}, p = {levene.p_value:.3G}"
        )
    lines += [
        f"normality of {check.group}, {check.test}: {check.statistic:.4f}, p = {check.p_value:.3G}"
        for check in assumptions.normality
    ]
    lines += [
        f"independence of {check.group}: lag-1 autocorrelation {check.lag1:.3f}, "
        f"Ljung-Box({check.lags}) p = {check.ljung_box_p:.3G}"
        for check in assumptions.autocorrelation
    ]
    return lines


def _bytes_table(totals: Sequence[ByBytes]) -> Table:
    table = text_table("group", "file", "ran", right=("flows", "MiB", "s", "Mbit/s"))
    for total in totals:
        table.add_row(
            total.group,
            total.file,
            total.ran,
            f"{total.flows} {total.direction}",
            number(total.bytes_delivered, MIB, 1),
            number(total.elapsed_s, 1, 1),
            number(total.rate_bps, 1e6, 2),
        )
    return table


def _figure(value: float) -> str:
    return f"{value:.10g}"
