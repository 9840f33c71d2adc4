"""What ran, and how to run it again: versions, seeds, constants, commands."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from typing import Any

from fullpipe.base.units import format_rate, format_size, format_time
from fullpipe.congestion.registry import Table, base_of, is_kernel
from fullpipe.metrics import View
from fullpipe.report.runs import Group, Qdisc, Run

#: What metadata says that the page shows elsewhere.
_SHOWN = {
    "plan",
    "constants",
    "variables",
    "health",
    "seed",
    "warmup_ns",
    "interrupted",
    "failure",
    "format_version",
    "engine",
    "options",
    "fullpipe_version",
    "git_commit",
}
_MAX_FACT = 300


def path_line(runs: Sequence[Run]) -> str:
    """The path of repeated runs in one line, whose round trips may differ; empty where the
    recording does not say."""
    paths = [path for run in runs if (path := run.metadata.plan.path) is not None]
    if not paths:
        return ""
    path = paths[0]
    rtts_ns = {path.forward_delay_ns + path.reverse_delay_ns for path in paths}
    rtt = " to ".join(format_time(ns) for ns in sorted({min(rtts_ns), max(rtts_ns)}))
    rtt_ns = min(rtts_ns) if len(rtts_ns) == 1 else 0.0
    rate_bps, qdisc = path.rate_bps, path.qdisc
    down_bps, down = path.reverse_rate_bps, path.reverse_qdisc
    view = View(runs[0].recording)
    if is_row := view.bottleneck != "path":
        main = next(iter(view.bottlenecks.values()))
        rate_bps, qdisc = main.rate_bps or rate_bps, Qdisc.model_validate(main.qdisc)
    capacity = next(iter(view.bottlenecks.values())).capacity
    when = " on average" if capacity.trace else " at the start" if len(capacity.rates) > 1 else ""
    line = f"{format_rate(rate_bps)}{when}, base RTT {rtt}, {_queue(qdisc, rate_bps, rtt_ns)}"
    if is_row or down_bps is None or down is None or (down_bps, down) == (rate_bps, qdisc):
        return line
    return f"{line}; down {format_rate(down_bps)}, {_queue(down, down_bps, rtt_ns)}"


def _queue(qdisc: Qdisc, rate_bps: float, rtt_ns: float) -> str:
    """A queue and its limits, in BDP too where the round trip is known."""
    limits = []
    if qdisc.limit_bytes is not None:
        bdp_bytes = rate_bps * rtt_ns / 8e9
        bdp = f" ({qdisc.limit_bytes / bdp_bytes:.3g} BDP)" if bdp_bytes > 0 else ""
        limits.append(f"{format_size(qdisc.limit_bytes)}{bdp}")
    if qdisc.limit_packets is not None:
        limits.append(f"{qdisc.limit_packets:g} packets")
    held = f" of {' and '.join(limits)}" if limits else ""
    return f"{qdisc.aqm.kind} queue{held}"


def facts(group: Group) -> list[tuple[str, str]]:
    """(what, value) of everything that tells what ran."""
    first = group.runs[0]
    counts = {cc: first.ccs.count(cc) for cc in dict.fromkeys(first.ccs)}
    rows = [
        ("path", path_line(group.runs) or "not recorded"),
        (
            "flows",
            ", ".join(f"{count} x {cc}" for cc, count in counts.items()) or "none of [[flow]]",
        ),
        ("duration", format_time(first.metadata.plan.duration_ns)),
        ("warm-up, left out of metrics", format_time(first.metadata.warmup_ns)),
        ("engine", _each(run.metadata.engine for run in group.runs)),
        ("fullpipe", _each(run.metadata.fullpipe_version for run in group.runs)),
        ("commit", _each(run.metadata.git_commit for run in group.runs)),
        ("seeds", _each(run.metadata.seed for run in group.runs)),
    ]
    for key, value in sorted(first.recording.metadata.items()):
        if key not in _SHOWN and value not in (None, "", [], {}):
            rows.append((key, _short(value)))
    health = first.recording.metadata.get("health", {})
    figures = {key: value for key, value in health.items() if key != "problems"}
    if figures:
        rows.append(("the instrument's own figures, first run", _short(figures)))
    return rows


def texts(group: Group) -> list[tuple[str, str]]:
    """(what, text) of the texts that the first run's engine recorded: what a kernel logged, and
    its counters."""
    recorded = group.runs[0].recording.metadata.get("facts")
    if not isinstance(recorded, dict):
        return []
    return [
        (str(name), text)
        for name, text in recorded.items()
        if isinstance(text, str) and "\n" in text
    ]


def constants(group: Group) -> list[dict[str, Any]]:
    """For each congestion control that ran: every constant, and which differ from its set.

    `usual` is the value in the set that it comes from, None where this program does not know it."""
    entries = []
    tables = _tables(group.runs[0].recording.document)
    for cc in group.ccs:
        values = group.runs[0].metadata.constants.get(cc, {})
        base = base_of(cc, tables)
        usual, units, sources = {}, {}, {}
        if base is not None:
            for param, stored in zip(base.params, base.values, strict=True):
                usual[param.name] = param.value(stored)
                units[param.name], sources[param.name] = param.unit, param.source
        rows = [
            {
                "name": name,
                "value": value,
                "usual": usual.get(name),
                "unit": units.get(name, ""),
                "source": sources.get(name, ""),
                "differs": name in usual and usual[name] != value,
            }
            for name, value in values.items()
        ]
        entry = {
            "cc": cc,
            "title": base.title if base else "",
            "rows": rows,
            "differs": [row for row in rows if row["differs"]],
            "kernel": is_kernel(cc),
        }
        entries.append(entry)
    return entries


def _tables(document: Mapping[str, Any]) -> dict[str, Table]:
    """The variants that a recorded scenario declares; it may come from anywhere."""
    written = document.get("cc")
    tables = written.items() if isinstance(written, dict) else ()
    return {
        str(name): Table(str(table["base"]), {})
        for name, table in tables
        if isinstance(table, dict) and "base" in table
    }


def commands(group: Group) -> list[str]:
    """The command lines that repeat these runs from `scenario.toml`; empty where the recording has
    no scenario."""
    document = group.runs[0].recording.document
    engine = group.runs[0].metadata.engine
    options = group.runs[0].metadata.options
    seeds = [run.metadata.seed for run in group.runs]
    if not document or engine is None or None in seeds:
        return []
    lines = []
    for first, count in _in_a_row(sorted({seed for seed in seeds if seed is not None})):
        line = f"fullpipe run scenario.toml --engine {shlex.quote(engine)}"
        for name, value in options.items():
            line += f" --{name.replace('_', '-')} {shlex.quote(value)}"
        if first != document.get("seed", 1):
            line += f" --set seed={first}"
        lines.append(line + (f" --repeat {count}" if count > 1 else ""))
    return lines


def _in_a_row(seeds: Sequence[int]) -> list[tuple[int, int]]:
    """(first, count) of seeds that follow one another."""
    ranges: list[tuple[int, int]] = []
    for seed in seeds:
        if ranges and seed == ranges[-1][0] + ranges[-1][1]:
            ranges[-1] = (ranges[-1][0], ranges[-1][1] + 1)
        else:
            ranges.append((seed, 1))
    return ranges


def _each(values: Any) -> str:
    distinct = [str(value) for value in dict.fromkeys(values) if value is not None]
    return _short(", ".join(distinct)) or "not recorded"


def _short(value: Any) -> str:
    if isinstance(value, dict):
        text = ", ".join(f"{key}: {item}" for key, item in value.items())
    else:
        text = str(value)
    return text if len(text) <= _MAX_FACT else text[: _MAX_FACT - 3] + "..."
