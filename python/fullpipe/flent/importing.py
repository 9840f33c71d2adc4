"""A Flent file as a recording. Columns that Flent does not record are null.

Totals are netperf's, by bytes. Between netperf's interim results the bytes are spread evenly,
which is all that is known; an upload's interim results count what the socket took, so the
counter is cut at the total that arrived.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from fullpipe.flent.container import FlentError
from fullpipe.flent.description import describe, queues
from fullpipe.flent.document import FlentFile, Floats, Raw, clean
from fullpipe.flent.identity import Identity, identify
from fullpipe.flent.series import FlowTotal, Interim, flow_totals, interim
from fullpipe.recording.recording import TABLES, Recording, write_recording

#: The most requests that a probe can lose in a row; a larger gap is an error in the file.
_MAX_LOST = 100_000
_MAX_U64 = float(2**63)


def import_flent(file: FlentFile, out: Path | str) -> Recording:
    """Writes the recording of a Flent file into the folder `out`. Raises FlentError for values
    that no recording can hold, UserError if `out` exists or cannot be written."""
    totals, identities = flow_totals(file), identify(file)
    tables = {
        "flows": _flows(file, totals, identities),
        "flow_samples": _flow_samples(file, totals),
        "queue_samples": _queue_samples(file),
        "ping_samples": _ping_samples(file),
        "cc_samples": _cc_samples(file),
        "events": TABLES["events"].empty_table(),
    }
    last_us = max(_last_us(table) for name, table in tables.items() if name != "flows")
    return write_recording(out, describe(file, totals, identities, last_us), "", tables)


def _last_us(table: pa.Table) -> int:
    return int(table["t_us"][-1].as_py()) if len(table) else 0


def _flows(
    file: FlentFile, totals: Sequence[FlowTotal], identities: Sequence[Identity]
) -> pa.Table:
    rows = []
    for index, (total, identity) in enumerate(zip(totals, identities, strict=True)):
        mss = file.meta_number(total.series, "TCP_MSS")
        row = {
            "flow_id": index,
            "flow": clean(total.series),
            "cc": _cc(file, identity),
            "direction": total.direction,
            "start_us": round(total.start_s * 1e6),
            "completion_us": round((total.start_s + total.elapsed_s) * 1e6),
            "bytes_delivered": total.bytes_delivered,
            "packets_retransmitted": _retransmitted(file, total),
            "mss_bytes": round(mss) if mss and 0 < mss < 65536 else None,
        }
        rows.append(row)
    return table_of("flows", {key: [row[key] for row in rows] for key in rows[0]} if rows else {})


def _cc(file: FlentFile, identity: Identity) -> str:
    """A name of the kernel's; fullpipe's own files say it as it was."""
    recorded = file.series_meta(identity.series).get("FULLPIPE_CC")
    if isinstance(recorded, str) and recorded:
        return clean(recorded)
    return f"kernel:{identity.cong_control}" if identity.cong_control else "unknown"


def _retransmitted(file: FlentFile, total: FlowTotal) -> int | None:
    """Netperf's count; remote hosts that do not know theirs send memory, which is left out."""
    count = file.meta_number(total.series, "TCP_RETRANSMIT")
    mss = file.meta_number(total.series, "TCP_MSS") or 1
    if count is None or count < 0 or count * mss > total.bytes_delivered:
        return None
    return round(count)


def _flow_samples(file: FlentFile, totals: Sequence[FlowTotal]) -> pa.Table:
    parts = []
    for index, total in enumerate(totals):
        pieces = interim(file, total.series)
        stats = _statistics(file, total.series)
        end = total.start_s + total.elapsed_s
        times = np.concatenate((pieces.end_s, file.since_t0(stats), [end]))
        missing = np.full(pieces.end_s.size, np.nan)

        def column(key: str, unit: float, stats: Raw = stats, missing: Floats = missing) -> Floats:
            return np.concatenate((missing, stats.column(key) * unit, [np.nan]))

        part = {
            "t_us": times * 1e6,
            "flow_id": np.full(times.size, float(index)),
            "bytes_delivered": _counter(total, pieces, times),
            "cwnd_packets": column("tcp_cwnd", 1),
            "srtt_us": column("tcp_rtt", 1e3),
            "pacing_rate_bps": column("tcp_pacing_rate", 1e6),
            "delivery_rate_bps": column("tcp_delivery_rate", 1e6),
        }
        parts.append(part)
    return _sorted("flow_samples", parts, file)


def _counter(total: FlowTotal, pieces: Interim, at: Floats) -> Floats:
    """Payload bytes delivered by these times: evenly within an interim result, none between."""
    counted = np.zeros(at.size)
    if pieces.bytes.size:
        ends = np.maximum.accumulate(pieces.end_s)
        starts = np.clip(pieces.start_s, np.concatenate((pieces.start_s[:1], ends[:-1])), ends)
        after = pieces.bytes.cumsum()
        knots = np.column_stack((starts, ends)).ravel()
        counts = np.column_stack((after - pieces.bytes, after)).ravel()
        counted = np.interp(at, knots, counts, left=0.0)
    arrived = np.minimum(counted, total.bytes_delivered)
    return np.where(at >= total.start_s + total.elapsed_s, total.bytes_delivered, arrived)


def _statistics(file: FlentFile, series: str) -> Raw:
    raw = file.raw.get(series)
    return raw.with_prefix("tcp_") if raw else Raw("", ())


def _cc_samples(file: FlentFile) -> pa.Table:
    parts = []
    for index, (series, _) in enumerate(file.flows):
        raw = _statistics(file, series).with_prefix("tcp_bbr_")
        part = {
            "t_us": file.since_t0(raw) * 1e6,
            "flow_id": np.full(len(raw), float(index)),
            "bw_bps": raw.column("tcp_bbr_bw") * 1e6,
            "min_rtt_us": raw.column("tcp_bbr_mrtt") * 1e3,
            "pacing_gain": raw.column("tcp_bbr_pacing_gain"),
            "cwnd_gain": raw.column("tcp_bbr_cwnd_gain"),
        }
        parts.append(part)
    return _sorted("cc_samples", parts, file)


def _ping_samples(file: FlentFile) -> pa.Table:
    """When sent: Flent stamps answers, so the round-trip time is taken off. A request whose number
    is missing between two others is a lost one."""
    parts = []
    for series in file.pings:
        raw = file.raw[series].with_key("val")
        rtt_ms = raw.column("val")
        sent_us = file.since_t0(raw) * 1e6 - rtt_ms * 1e3
        order = np.argsort(sent_us, kind="stable")
        sent_us, rtt_us = sent_us[order], rtt_ms[order] * 1e3
        seq = raw.column("seq")[order]
        if _counts_up(seq):
            lost = seq[-1] - seq[0] + 1 - seq.size
            if lost > _MAX_LOST:
                raise FlentError(f"{raw.where}.seq: {lost:.0f} numbers are missing")
            every = np.arange(seq[0], seq[-1] + 1)
            rtt_of_seq = np.full(every.size, np.nan)
            rtt_of_seq[(seq - seq[0]).astype(int)] = rtt_us
            sent_us, rtt_us, seq = np.interp(every, seq, sent_us), rtt_of_seq, every
        else:
            seq = np.arange(float(sent_us.size))
        part = {
            "t_us": sent_us,
            "probe": np.full(sent_us.size, clean(series.removeprefix("Ping (ms) ")), dtype=object),
            "seq": seq,
            "rtt_us": rtt_us,
        }
        parts.append(part)
    return _sorted("ping_samples", parts, file)


def _counts_up(seq: Floats) -> bool:
    whole = bool(seq.size) and bool((seq == np.rint(seq)).all())
    return whole and bool((np.diff(seq) > 0).all()) and seq[0] >= 0 and bool(seq[-1] < 2**53)


def _queue_samples(file: FlentFile) -> pa.Table:
    parts = []
    for queue, series in queues(file).items():
        raw = file.raw[series]
        part = {
            "t_us": file.since_t0(raw) * 1e6,
            "queue": np.full(len(raw), queue, dtype=object),
            "queue_bytes": raw.column("backlog_bytes"),
            "queue_packets": raw.column("backlog_pkts"),
            "sent_bytes": _since_first(raw.column("sent_bytes")),
            "sent_packets": _since_first(raw.column("sent_pkts")),
            "dropped_packets": _added_up(raw.column("dropped")),
            "marked_packets": _added_up(raw.column("ecn_mark")),
        }
        parts.append(part)
    return _sorted("queue_samples", parts, file)


def _since_first(values: Floats) -> Floats:
    """A counter since the first sample; a step back (the qdisc was replaced) counts as none."""
    return np.concatenate((values[:1] * 0, np.maximum(np.diff(values), 0).cumsum()))


def _added_up(values: Floats) -> Floats:
    return np.maximum(values, 0).cumsum()


def _sorted(name: str, parts: Sequence[Mapping[str, Any]], file: FlentFile) -> pa.Table:
    """One table of the parts, by time and then in the order of the parts."""
    parts = [part for part in parts if len(part["t_us"])]
    if not parts:
        return TABLES[name].empty_table()
    columns = {key: np.concatenate([part[key] for part in parts]) for key in parts[0]}
    order = np.argsort(columns["t_us"], kind="stable")
    try:
        return table_of(name, {key: values[order] for key, values in columns.items()})
    except ValueError as error:
        raise FlentError(f"{file.path}: {name}: {error}") from None


def table_of(name: str, columns: Mapping[str, Any]) -> pa.Table:
    """A table of TABLES; absent columns are null. Raises ValueError for what does not fit."""
    length = len(next(iter(columns.values()))) if columns else 0
    arrays = []
    for field in TABLES[name]:
        values = columns.get(field.name)
        if values is None:
            arrays.append(pa.nulls(length, field.type))
        elif field.type == pa.uint64() and isinstance(values, np.ndarray):
            arrays.append(_unsigned(field.name, values))
        else:
            arrays.append(pa.array(values, field.type, from_pandas=True))
    return pa.table(arrays, schema=TABLES[name])


def _unsigned(name: str, values: Floats) -> pa.Array:
    null = np.isnan(values)
    whole = np.rint(np.where(null, 0.0, values))
    if name == "t_us":
        whole = np.maximum(whole, 0.0)  # the first ping was sent before T0, when it was answered
    if whole.size and not ((whole >= 0) & (whole < _MAX_U64)).all():
        raise ValueError(f"{name}: a value is negative or too large")
    return pa.array(whole.astype(np.uint64), pa.uint64(), mask=null)
