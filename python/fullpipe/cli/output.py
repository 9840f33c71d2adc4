"""What commands share on the screen: tables, and the two consoles."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.markup import escape
from rich.table import Table

if TYPE_CHECKING:
    from fullpipe.report.comparison import Cell, Row, Test

#: Tables fit this many columns, also where the output is no terminal.
WIDTH = 100

console = Console(width=None if sys.stdout.isatty() else WIDTH, highlight=False, emoji=False)
#: Progress and messages go to stderr, so that stdout can be piped.
messages = Console(stderr=True, highlight=False, emoji=False)


def run_table(summaries: list[dict[str, Any]], per_flow: bool = False) -> Table:
    """One row a group of flows (an entry of the scenario) of each run, or one a flow."""
    table = Table(box=None, padding=(0, 1), header_style="bold")
    grouped = not per_flow and any(len(s["groups"]) < len(s["flows"]) for s in summaries)
    table.add_column("seed", justify="right")
    table.add_column("flow", overflow="fold", max_width=22)
    titles = ["Mbit/s", "share", "retrans", "RTT p50", "p95 ms", "cwnd", "done in s"]
    if grouped:
        titles = ["n", "Mbit/s", "p5", "p95", "share", "retrans", "RTT p50", "p95 ms"]
        titles += ["done", "s p50", "p95"]
    for title in titles:
        table.add_column(title, justify="right")
    for summary in summaries:
        for position, row in enumerate(summary["groups"] if grouped else summary["flows"]):
            rate, took = row["goodput_bps"], row["completion_s"]
            cells = [
                number(row["share"], 1, 3), percent(row["retransmit_ratio"]),
                number(row["rtt_us"]["p50"], 1e3, 1), number(row["rtt_us"]["p95"], 1e3, 1),
            ]  # fmt: skip
            if grouped:
                several = row["flows"] > 1
                spread = [number(rate[key], 1e6, 2) if several else "" for key in ("p5", "p95")]
                cells = [str(row["flows"]), number(rate["mean"], 1e6, 2), *spread, *cells]
                cells += [str(row["finished"] or "-"), number(took["p50"], 1, 2)]
                cells.append(number(took["p95"], 1, 2) if several else "")
            else:
                cwnd = number(row["cwnd_packets"]["mean"], 1, 1)
                cells = [number(rate, 1e6, 2), *cells, cwnd, number(took, 1, 2)]
            name = escape(row["group"] if grouped else row["flow"])
            table.add_row("" if position else str(summary["seed"]), name, *cells)
    return table


def page_table(summaries: list[dict[str, Any]]) -> Table:
    """Page times: a row for each page of each run, in ms."""
    table = Table(box=None, padding=(0, 1), header_style="bold")
    for title in ("seed", "page", "MB", "objects", "loads", "done", "page ms", "min", "p50", "p95",
                  "p99", "max"):  # fmt: skip
        table.add_column(title, justify="left" if title == "page" else "right")
    for summary in summaries:
        for position, page in enumerate(summary["pages"]):
            times = [number(page["time_s"][key], 1e-3, 0) for key in
                     ("mean", "min", "p50", "p95", "p99", "max")]  # fmt: skip
            table.add_row(
                "" if position else str(summary["seed"]), escape(page["page"]),
                number(page["bytes"], 1e6, 2), str(len(page["objects"])), str(page["loads"]),
                str(page["finished"]), *times,
            )  # fmt: skip
    return table


def stream_table(summaries: list[dict[str, Any]]) -> Table:
    """Streams of datagrams: loss, one-way delay, jitter, frames in time."""
    table = Table(box=None, padding=(0, 1), header_style="bold")
    for title in ("seed", "udp", "sent", "lost", "delay ms", "p50", "p95", "p99", "max", "jitter",
                  "in time"):  # fmt: skip
        table.add_column(title, justify="left" if title == "udp" else "right")
    for summary in summaries:
        for position, stream in enumerate(summary["streams"]):
            delays = [number(stream["delay_s"][key], 1e-3, 2) for key in
                      ("mean", "p50", "p95", "p99", "max")]  # fmt: skip
            table.add_row(
                "" if position else str(summary["seed"]), escape(stream["stream"]),
                str(stream["sent"]), percent(stream["loss_ratio"]), *delays,
                number(stream["jitter_s"], 1e-3, 2), percent(stream["frames_in_time"]),
            )  # fmt: skip
    return table


def traffic_table(summaries: list[dict[str, Any]]) -> Table:
    """Slowdown of the flows of traffic: a row for each group, and for each class of sizes."""
    table = Table(box=None, padding=(0, 1), header_style="bold")
    for title in ("seed", "traffic", "flows", "done", "slowdown", "p50", "p95", "p99", "SRPT", "PS",
                  "retrans", "at once"):  # fmt: skip
        table.add_column(title, justify="left" if title == "traffic" else "right")
    for summary in summaries:
        for position, group in enumerate(summary["traffic"]):
            ideal, most = group["yardsticks"], group["at_once"]["max"]
            table.add_row(
                "" if position else str(summary["seed"]), escape(group["group"]),
                str(group["flows"]), str(group["finished"]), *_slowdown(group["slowdown"]),
                number(ideal["srpt"], 1, 2), number(ideal["ps"], 1, 2),
                percent(group["retransmit_ratio"]), f"max {most}",
            )  # fmt: skip
            for row in group["classes"]:
                cells = _slowdown(row["slowdown"])
                table.add_row("", f"  {row['sizes']}", str(row["flows"]), "", *cells)
    return table


def _slowdown(spread: Mapping[str, float | None]) -> list[str]:
    return [number(spread[key], 1, 2) for key in ("mean", "p50", "p95", "p99")]


def link_table(summaries: list[dict[str, Any]]) -> Table:
    """What each queue of a row of links did."""
    table = Table(box=None, padding=(0, 1), header_style="bold")
    for title in ("seed", "link", "way", "Mbit/s", "passed", "queue kB p50", "max", "delay ms p50",
                  "p95", "drops", "marks", "lost"):  # fmt: skip
        table.add_column(title, justify="left" if title in ("link", "way") else "right")
    for summary in summaries:
        for position, link in enumerate(summary["links"]):
            delay, backlog = link["queue_delay_ms"], link["queue_bytes"]
            table.add_row(
                "" if position else str(summary["seed"]), escape(link["link"]), link["way"],
                number(link["rate_bps"], 1e6, 2), number(link["throughput_bps"], 1e6, 2),
                number(backlog["p50"], 1e3, 1), number(backlog["max"], 1e3, 1),
                number(delay["p50"], 1, 1), number(delay["p95"], 1, 1),
                str(link["dropped_packets"]),
                str(link["marked_packets"] + link["random_marked_packets"]),
                str(link["random_lost_packets"]),
            )  # fmt: skip
    return table


def comparison_table(rows: Sequence[Row], alarms: Mapping[str, str]) -> Table:
    """Means with intervals, a row for each metric and group; `alarms`: group -> why not to trust
    it, empty where it is."""
    table = Table(box=None, padding=(0, 1), header_style="bold")
    table.add_column("metric")
    table.add_column("of", overflow="fold", max_width=28)
    table.add_column("n", justify="right")
    table.add_column("mean", justify="right")
    table.add_column("95 % interval")
    test = next((row.test.name for row in rows if row.test is not None), None)
    if test is not None:
        table.add_column(test, overflow="fold", max_width=24)
    for row in rows:
        name = f"{row.metric} ({row.unit})" if row.unit else row.metric
        for position, (label, cell) in enumerate(row.cells.items()):
            mark = "  [bold red]UNHEALTHY[/]" if alarms.get(label) else ""
            cells = [
                "" if position else name, escape(label) + mark, str(cell.n),
                number(cell.mean, 1, row.digits), _interval(cell, row.digits),
            ]  # fmt: skip
            if row.test is not None:
                cells.append("" if position else _p_value(row.test))
            table.add_row(*cells)
    return table


def _interval(cell: Cell, digits: int) -> str:
    if cell.low is None or cell.high is None:
        return "needs 3 runs"
    if cell.method == "constant":
        return "all runs are equal"
    return f"{cell.low:.{digits}f} to {cell.high:.{digits}f}"


def _p_value(test: Test) -> str:
    return f"none: {test.missing}" if test.p_value is None else f"p = {test.p_value:.2g}"


def path_line(summary: dict[str, Any]) -> str:
    """The path's metrics in one line."""
    path, delay = summary["path"], summary["path"]["queue_delay_rttmin"]
    mark = " UNHEALTHY" if summary["health"]["problems"] else ""
    some = summary["jain"] is not None and summary["jain_flows"] < len(summary["flows"])
    of = f" ({summary['jain_flows']} flows of equal demand)" if some else ""
    return (
        f"seed {summary['seed']}{mark}: utilisation {percent(path['utilisation'])}, queue delay "
        f"p50 {number(delay['p50'], 1, 2)} max {number(delay['max'], 1, 2)} RTTmin, "
        f"loss {percent(path['loss_ratio'])}, Jain {number(summary['jain'], 1, 3)}{of}"
    )


def number(value: float | None, unit: float, digits: int) -> str:
    """A value in a unit, or a dash."""
    return "-" if value is None else f"{value / unit:.{digits}f}"


def percent(value: float | None) -> str:
    """A ratio as a percentage, or a dash."""
    return "-" if value is None else f"{100 * value:.2f} %"
