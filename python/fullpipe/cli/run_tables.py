"""Summaries of runs as tables and lines for the terminal."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from rich.table import Table

from fullpipe.base.units import KIB
from fullpipe.cli.output import number, percent, text_table
from fullpipe.metrics.kinds import KINDS, Figure, Kind

Row = Mapping[str, Any]
#: A column's title, and its cell in a row.
Column = tuple[str, Callable[[Row], str]]


def run_tables(summaries: Sequence[Row], per_flow: bool = False) -> Iterator[Table]:
    """The tables of these runs: flows (or groups of flows), pages, streams, traffic, links."""
    from fullpipe.metrics import has_names

    is_grouped = not per_flow and any(len(s["groups"]) < len(s["flows"]) for s in summaries)
    if is_grouped:
        yield _table(summaries, lambda run: run["groups"], GROUPS)
        if any(group["finished"] for run in summaries for group in run["groups"]):
            yield _table(summaries, lambda run: run["groups"], COMPLETIONS)
    elif any(run["flows"] for run in summaries):
        yield _table(summaries, lambda run: run["flows"], FLOWS)
    for kind in KINDS:
        runs = [run for run in summaries if kind.key in run]
        if runs:
            yield _table(runs, kind.rows, _columns(kind))
    runs = [run for run in summaries if has_names(run["links"])]
    if runs:
        yield _table(runs, lambda run: run["links"], LINKS)


def _table(
    summaries: Sequence[Row], rows: Callable[[Row], Sequence[Row]], columns: Sequence[Column]
) -> Table:
    """A row for each of `rows` of each run. The first column is text. Several runs are
    headed by their seeds; columns without a value are left out."""
    cells = [[[cell(row) for _, cell in columns] for row in rows(run)] for run in summaries]
    indices = [
        index
        for index, column in enumerate(zip(*(row for run in cells for row in run), strict=True))
        if index == 0 or any(cell not in ("", "-") for cell in column)
    ]
    titles = [columns[index][0] for index in indices]
    table = text_table(*titles[:1], right=titles[1:])
    for summary, run in zip(summaries, cells, strict=True):
        if len(summaries) > 1:
            table.add_row(f"seed {summary['seed']}", style="bold")
        for row in run:
            table.add_row(*(row[index] for index in indices))
    return table


def _text(key: str) -> Callable[[Row], str]:
    return lambda row: str(row[key])


def _number(key: str, unit: float, digits: int, part: str | None = None) -> Callable[[Row], str]:
    """The cell of a number in a unit, or of a `part` of its distribution."""

    def cell(row: Row) -> str:
        value = row[key]
        return number(value if part is None else value[part], unit, digits)

    return cell


def _spread(key: str, unit: float, digits: int, part: str) -> Callable[[Row], str]:
    """As `_number`, empty for a group of one flow."""
    cell = _number(key, unit, digits, part)
    return lambda row: cell(row) if row["flows"] > 1 else ""


def _percent(key: str) -> Callable[[Row], str]:
    return lambda row: percent(row[key])


FLOWS: Sequence[Column] = (
    ("flow", _text("flow")),
    ("Mbit/s", _number("goodput_bps", 1e6, 2)),
    ("share", _number("share", 1, 3)),
    ("retrans", _percent("retransmit_ratio")),
    ("RTT ms\np50", _number("rtt_us", 1e3, 1, "p50")),
    ("p95", _number("rtt_us", 1e3, 1, "p95")),
    ("cwnd\npackets", _number("cwnd_packets", 1, 1, "mean")),
    ("done\nin s", _number("completion_s", 1, 2)),
)
GROUPS: Sequence[Column] = (
    ("flows", _text("group")),
    ("n", _text("flows")),
    ("Mbit/s\nmean", _number("goodput_bps", 1e6, 2, "mean")),
    ("p5", _spread("goodput_bps", 1e6, 2, "p5")),
    ("p95", _spread("goodput_bps", 1e6, 2, "p95")),
    ("share", _number("share", 1, 3)),
    ("retrans", _percent("retransmit_ratio")),
    ("RTT ms\np50", _number("rtt_us", 1e3, 1, "p50")),
    ("p95", _number("rtt_us", 1e3, 1, "p95")),
)
COMPLETIONS: Sequence[Column] = (
    ("flows", _text("group")),
    ("n", _text("flows")),
    ("finished", _text("finished")),
    ("in s\np50", _number("completion_s", 1, 2, "p50")),
    ("p95", _spread("completion_s", 1, 2, "p95")),
)
LINKS: Sequence[Column] = (
    ("link", lambda row: f"{row['link']} {row['direction']}"),
    ("Mbit/s", _number("rate_bps", 1e6, 2)),
    ("passed", _number("throughput_bps", 1e6, 2)),
    ("used", _percent("utilisation")),
    ("queue\nKiB max", _number("queue_bytes", KIB, 1, "max")),
    ("delay\nms p50", _number("queue_delay_ms", 1, 1, "p50")),
    ("p95", _number("queue_delay_ms", 1, 1, "p95")),
    ("drops", lambda row: str(row["drops"] or "-")),
    ("ACKs\nfiltered", lambda row: str(row["filtered_acks"] or "-")),
    ("marks", lambda row: str(row["marks"] or "-")),
    ("lost", lambda row: str(row["random_losses"] or "-")),
)


def _columns(kind: Kind) -> list[Column]:
    """The columns of a kind of traffic; a unit that repeats is not written again."""
    columns: list[Column] = [(kind.word, _text(kind.named))]
    unit = ""
    for figure in kind.figures:
        is_new = figure.unit not in ("", "%", unit)
        unit = figure.unit
        title = f"{figure.name} {unit}" if is_new else figure.name
        columns.append((title.replace(" ", "\n", 1), _figure(figure)))
    return columns


def _figure(figure: Figure) -> Callable[[Row], str]:
    def cell(row: Row) -> str:
        text = number(figure.read(row), 1, figure.digits)
        return f"{text} %" if figure.unit == "%" and text != "-" else text

    return cell


def path_line(summary: Row) -> str:
    """The path's metrics in one line."""
    limit = summary["limit"]
    mark = " UNHEALTHY" if summary["health"]["problems"] else ""
    where = f" limited by {limit['link']} {limit['direction']}:" if "link" in limit else ""
    used = "" if limit["utilisation"] is None else f" utilisation {percent(limit['utilisation'])},"
    line = (
        f"seed {summary['seed']}{mark}:{where}{used} {_queue_delay(limit)}, "
        f"loss {percent(limit['loss_ratio'])}"
    )
    if limit["filtered_acks"]:
        line += f", {limit['filtered_acks']} ACKs filtered"
    if summary["jain"] is None:
        return line
    is_some = summary["jain_flows"] < len(summary["flows"])
    of = f" ({summary['jain_flows']} flows of equal demand)" if is_some else ""
    return f"{line}, Jain {summary['jain']:.3f}{of}"


def _queue_delay(link: Row) -> str:
    """In ms, and beside it in base RTTs; where no rate is known, by backlog over throughput."""
    ms, rtts = link["queue_delay_ms"], link["queue_delay_rttmin"]
    if ms["p50"] is None and link["wait_ms"] is not None:
        return f"mean wait {number(link['wait_ms'], 1, 1)} ms (backlog over throughput)"
    median, most = number(ms["p50"], 1, 1), number(ms["max"], 1, 1)
    return f"delay p50 {median} ms ({number(rtts['p50'], 1, 2)} RTTmin) max {most} ms"
