"""What runs were, on the screen: a table of flows, of pages, streams, traffic and links, and a line
about the path.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from fullpipe.cli.sheet import Sheet, number, percent


def run_table(summaries: list[dict[str, Any]], per_flow: bool = False) -> Sheet:
    """One row a group of flows (an entry of the scenario) of each run, or one a flow."""
    table = Sheet()
    grouped = not per_flow and any(len(s["groups"]) < len(s["flows"]) for s in summaries)
    table.add_column("seed", right=True)
    table.add_column("flow", most=22)
    titles = ["Mbit/s", "share", "retrans", "RTT p50", "p95 ms", "cwnd", "done in s"]
    if grouped:
        titles = ["n", "Mbit/s", "p5", "p95", "share", "retrans", "RTT p50", "p95 ms"]
        titles += ["done", "s p50", "p95"]
    for title in titles:
        table.add_column(title, right=True)
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
            name = row["group"] if grouped else row["flow"]
            table.add_row("" if position else str(summary["seed"]), name, *cells)
    return table


def page_table(summaries: list[dict[str, Any]]) -> Sheet:
    """Page times: a row for each page of each run, in ms."""
    table = Sheet()
    for title in ("seed", "page", "MB", "objects", "loads", "done", "page ms", "min", "p50", "p95",
                  "p99", "max"):  # fmt: skip
        table.add_column(title, right=title != "page")
    for summary in summaries:
        for position, page in enumerate(summary["pages"]):
            times = [number(page["time_s"][key], 1e-3, 0) for key in
                     ("mean", "min", "p50", "p95", "p99", "max")]  # fmt: skip
            table.add_row(
                "" if position else str(summary["seed"]), page["page"],
                number(page["bytes"], 1e6, 2), str(len(page["objects"])), str(page["loads"]),
                str(page["finished"]), *times,
            )  # fmt: skip
    return table


def stream_table(summaries: list[dict[str, Any]]) -> Sheet:
    """Streams of datagrams: loss, one-way delay, jitter, frames in time."""
    table = Sheet()
    for title in ("seed", "udp", "sent", "lost", "delay ms", "p50", "p95", "p99", "max", "jitter",
                  "in time"):  # fmt: skip
        table.add_column(title, right=title != "udp")
    for summary in summaries:
        for position, stream in enumerate(summary["streams"]):
            delays = [number(stream["delay_s"][key], 1e-3, 2) for key in
                      ("mean", "p50", "p95", "p99", "max")]  # fmt: skip
            table.add_row(
                "" if position else str(summary["seed"]), stream["stream"],
                str(stream["sent"]), percent(stream["loss_ratio"]), *delays,
                number(stream["jitter_s"], 1e-3, 2), percent(stream["frames_in_time"]),
            )  # fmt: skip
    return table


def traffic_table(summaries: list[dict[str, Any]]) -> Sheet:
    """Slowdown of the flows of traffic: a row for each group, and for each class of sizes."""
    table = Sheet()
    for title in ("seed", "traffic", "flows", "done", "slowdown", "p50", "p95", "p99", "SRPT", "PS",
                  "retrans", "at once"):  # fmt: skip
        table.add_column(title, right=title != "traffic")
    for summary in summaries:
        for position, group in enumerate(summary["traffic"]):
            ideal, most = group["yardsticks"], group["at_once"]["max"]
            table.add_row(
                "" if position else str(summary["seed"]), group["group"],
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


def link_table(summaries: list[dict[str, Any]]) -> Sheet:
    """What each queue of a row of links did."""
    table = Sheet()
    for title in ("seed", "link", "way", "Mbit/s", "passed", "queue kB p50", "max", "delay ms p50",
                  "p95", "drops", "marks", "lost"):  # fmt: skip
        table.add_column(title, right=title not in ("link", "way"))
    for summary in summaries:
        for position, link in enumerate(summary["links"]):
            delay, backlog = link["queue_delay_ms"], link["queue_bytes"]
            table.add_row(
                "" if position else str(summary["seed"]), link["link"], link["way"],
                number(link["rate_bps"], 1e6, 2), number(link["throughput_bps"], 1e6, 2),
                number(backlog["p50"], 1e3, 1), number(backlog["max"], 1e3, 1),
                number(delay["p50"], 1, 1), number(delay["p95"], 1, 1),
                str(link["dropped_packets"]),
                str(link["marked_packets"] + link["random_marked_packets"]),
                str(link["random_lost_packets"]),
            )  # fmt: skip
    return table


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
