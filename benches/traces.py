"""Traces of Google's BBRv3 kernel and of the BBRv2 kernel in virtual time, as recordings, and the
scenarios that repeat their runs. How they were recorded: tests/data/README.md. A run is two CSV
files, NAME.flows.csv (one row per flow and sample of TCP_INFO and BBR's state) and NAME.queue.csv
(one row per sample of the bottleneck's queue).
"""

from __future__ import annotations

import csv
import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from pathlib import Path
from typing import Any

import pyarrow as pa
import tomli_w

from fullpipe.base.units import parse_time
from fullpipe.plan.resolve import resolve
from fullpipe.recording.recording import TABLES, Recording, empty_table, write_recording
from fullpipe.scenario.model import make_scenario

#: Names of flows in the traces -> ours.
CC = {"bbr3": "bbr3-linux", "bbr2": "bbr2", "bbr": "bbr1"}
PHASES = {
    1: "startup", 2: "drain", 3: "probe_rtt", 4: "up", 5: "down", 6: "cruise", 7: "refill",
}  # fmt: skip
#: Figures begin so long after the last flow has started: Startup is over.
SETTLED_S = 3
SAMPLE_MS = 50
#: A queue that stands is longer than this at both ends of an interval between samples; what was
#: sent in so many of them tells a rate.
STANDING_PACKETS, LEAST_STANDING = 15, 30
#: Queues are stamped with /proc/uptime, which counts these; a stamp is what is left of it.
STAMP_S = 0.01
#: A router that carried less than its rate by more than so many standard deviations did.
DOUBTLESS = 4
#: What htb makes up for, its burst, besides half of the packet on its way when it stands still.
CREDIT_BYTES = 1600 + 1514 / 2
_NAME = re.compile(
    r"(?P<key>[a-z]\d+)_.*?(?P<rate>\d+)M_(?P<rtt>\d+)ms_(?P<bdp>\d+(\.\d+)?)bdp(_loss(?P<loss>\d+(\.\d+)?))?"
)
_LINK_HEADER_BYTES, _MTU_BYTES, _MSS_BYTES = 14, 1500, 1448
Rows = list[dict[str, str]]


@dataclass(frozen=True)
class Carried:
    """Part of its rate that a router carried."""

    part: float
    #: What its stamps leave open: a standard deviation.
    deviation: float

    @property
    def is_less(self) -> bool:
        """Whether it carried significantly less than its rate."""
        return 1 - self.part > DOUBTLESS * self.deviation


@dataclass(frozen=True)
class Trace:
    """One traced run."""

    key: str
    path: str
    #: As `fullpipe.scenario.model` reads it, without a seed.
    document: dict[str, Any]
    flow_rows: dict[str, Rows]
    queue_rows: Rows

    @property
    def version(self) -> str:
        """The kernel of the trace: `bbr3-linux` or `bbr2`."""
        return str(self.document["flow"][0]["cc"])

    @cached_property
    def carried(self) -> Carried | None:
        """What the traced router itself carried while packets waited, by its own counter; `None`
        where they did in fewer than 30 intervals."""
        standing = [
            (earlier, later)
            for earlier, later in pairwise(self.queue_rows)
            if float(earlier["t_s"]) >= SETTLED_S
            and min(int(row["backlog_packets"]) for row in (earlier, later)) > STANDING_PACKETS
        ]
        if len(standing) < LEAST_STANDING:
            return None
        sent_bytes, seconds = (
            sum(float(later[name]) - float(earlier[name]) for earlier, later in standing)
            for name in ("sent_bytes", "t_s")
        )
        # Stamps within a row of intervals cancel.
        rows = 1 + sum(end is not begin for (_, end), (begin, _) in pairwise(standing))
        return Carried(
            8 * sent_bytes / seconds / self.rate_bps, STAMP_S * math.sqrt(rows / 6) / seconds
        )

    @cached_property
    def rate_bps(self) -> float:
        """Of the path."""
        return float(resolve(make_scenario(self.document))["path"]["rate_bps"])

    @property
    def bdp_bytes(self) -> float:
        """Of the path."""
        return float(parse_time(self.document["path"]["rtt"])) * self.rate_bps / 8e9

    @cached_property
    def looked_every_s(self) -> float:
        """Mean interval between two samples of its queue, in seconds."""
        times = [float(row["t_s"]) for row in self.queue_rows]
        return (times[-1] - times[0]) / (len(times) - 1)

    def stands_s(self, part: float) -> float:
        """Seconds that its router stalled at each sample of its queue, if it carried this part of
        its rate: the missing part, and what htb makes up for."""
        return (1 - part) * self.looked_every_s + 8 * CREDIT_BYTES / self.rate_bps

    @property
    def title(self) -> str:
        """The path and the flows."""
        ccs = [flow["cc"] for flow in self.document["flow"]]
        counts = " + ".join(f"{ccs.count(cc)} {cc}" for cc in dict.fromkeys(ccs))
        return f"{counts}, {self.path}"

    def recording(self, folder: Path) -> Recording:
        """The trace written as a recording, so that the same code measures and draws both."""
        scenario = make_scenario(self.document)
        metadata = {
            "engine": "kernel", "plan": resolve(scenario), "seed": 0, "warmup_ns": scenario.warmup,
            "health": {"problems": []}, "interrupted": False, "failure": None,
            "fullpipe_version": None, "git_commit": None, "constants": {},
        }  # fmt: skip
        tables = {name: empty_table(name) for name in TABLES}
        tables |= {
            "flows": _flows(self), "flow_samples": _flow_samples(self),
            "cc_samples": _cc_samples(self), "queue_samples": _queue_samples(self),
        }  # fmt: skip
        return write_recording(folder, metadata, tomli_w.dumps(self.document), tables)


def load(folder: Path) -> list[Trace]:
    """All traces of a folder; SystemExit if it has none."""
    files = sorted(folder.glob("*.flows.csv"))
    if not files:
        raise SystemExit(f"{folder}: has no traces (*.flows.csv)")
    return [_load(file) for file in files]


def _load(file: Path) -> Trace:
    found = _NAME.match(file.name)
    if found is None:
        raise SystemExit(f"{file}: its name does not say the path (s01_..._100M_50ms_8bdp)")
    flow_rows: dict[str, Rows] = {}
    for row in _rows(file):
        flow_rows.setdefault(row["flow"], []).append(row)
    queue_rows = [row for row in _rows(_queue_file(file)) if float(row["t_s"]) >= 0]
    rate, rtt, bdp = (float(found[part]) for part in ("rate", "rtt", "bdp"))
    first = min(_first_s(rows) for rows in flow_rows.values())
    flows = [
        {"cc": _cc(name), "name": name, "start": _start(_first_s(rows) - first)}
        for name, rows in flow_rows.items()
    ]
    last_start = max(round(_first_s(rows) - first) for rows in flow_rows.values())
    path = {
        "rate": f"{rate:g}mbit",
        "rtt": f"{rtt:g}ms",
        "buffer": f"{bdp * rate * rtt * 125:.0f}B",
    }
    loss = found["loss"]
    document = {
        "name": found["key"],
        "duration": f"{math.ceil(max(float(rows[-1]['t_s']) for rows in flow_rows.values()))}s",
        "warmup": f"{last_start + SETTLED_S}s",
        "sample_interval": f"{SAMPLE_MS}ms",
        # netem at the sender drops whole bursts; it leaves pacing to TCP, where fq would do it.
        "path": path | ({"loss": f"{loss}%", "loss_per": "burst"} if loss else {}),
        "host": {
            "arp": True,
            "pacing": "internal" if loss else "fq",
            # What veth allows: 65215 bytes. Before 6.10 the write queue's buffers end there too.
            "gso_max_segments": 45,
        },
        "flow": flows,
    }
    shown = f"{rate:g} Mbit/s, {rtt:g} ms, {bdp:g} BDP" + (f", {loss} % loss" if loss else "")
    return Trace(found["key"], shown, document, flow_rows, queue_rows)


def _rows(file: Path) -> Rows:
    with file.open(encoding="utf-8") as lines:
        return list(csv.DictReader(lines))


def _queue_file(file: Path) -> Path:
    return file.with_name(file.name.replace(".flows.", ".queue."))


def _cc(flow: str) -> str:
    name = flow.partition(".")[0]
    return CC.get(name, name)


def _first_s(rows: Rows) -> float:
    return float(rows[0]["t_s"])


def _start(offset_s: float) -> str:
    """When a flow began after the first one. Senders sample at a fixed time after their start, so
    their first samples tell; later starts were at whole seconds."""
    return f"{round(offset_s)}s" if offset_s > 1 else f"{round(offset_s * 1e6)}us"


def _flows(trace: Trace) -> pa.Table:
    plan = resolve(make_scenario(trace.document))
    columns: dict[str, list[Any]] = {name: [] for name in TABLES["flows"].names}
    for index, (name, rows) in enumerate(trace.flow_rows.items()):
        last = rows[-1]
        values = {
            "flow_id": index, "flow": name, "cc": _cc(name), "direction": "up",
            "start_us": plan["flows"][index]["start_ns"] // 1000, "completion_us": None,
            "bytes_delivered": int(last["bytes_acked"]), "bytes_acked": int(last["bytes_acked"]),
            "packets_retransmitted": int(last["total_retrans"]),
            "packets_delivered": int(last["delivered_packets"]),
            "base_rtt_us": plan["path"]["reverse_delay_ns"] // 1000, "mss_bytes": _MSS_BYTES,
        }  # fmt: skip
        for column, cells in columns.items():
            cells.append(values.get(column, 0))
    return pa.table(columns, schema=TABLES["flows"])


def _flow_samples(trace: Trace) -> pa.Table:
    return _samples(trace, "flow_samples", {
        "bytes_delivered": lambda row: int(row["bytes_acked"]),
        "bytes_acked": lambda row: int(row["bytes_acked"]),
        "cwnd_packets": lambda row: int(row["cwnd_packets"]),
        "ssthresh_packets": lambda row: None,
        # The traces count what is not acknowledged cumulatively, SACKed and lost packets included.
        "inflight_packets": lambda row: None,
        "srtt_us": lambda row: int(row["srtt_us"]),
        "min_rtt_us": lambda row: int(row["min_rtt_us"]),
        "pacing_rate_bps": lambda row: 8 * int(row["pacing_rate_Bps"]),
        "delivery_rate_bps": lambda row: 8 * int(row["delivery_rate_Bps"]),
        "packets_retransmitted": lambda row: int(row["total_retrans"]),
        "packets_delivered": lambda row: int(row["delivered_packets"]),
        "ca_state": lambda row: int(row["ca_state"]),
    })  # fmt: skip


def _cc_samples(trace: Trace) -> pa.Table:
    return _samples(trace, "cc_samples", {
        "phase": lambda row: PHASES[int(row["phase"])],
        "bw_bps": lambda row: 8 * int(row["bw_Bps"]),
        "max_bw_bps": lambda row: None,
        "bw_shortterm_bps": lambda row: 8 * int(row["bw_lo_Bps"]) if row["bw_lo_Bps"] else None,
        "min_rtt_us": lambda row: int(row["cc_min_rtt_us"]),
        "pacing_gain": lambda row: int(row["pacing_gain_256"]) / 256,
        "cwnd_gain": lambda row: int(row["cwnd_gain_256"]) / 256,
        "inflight_longterm_packets": lambda row: _optional(row["inflight_hi"]),
        "inflight_shortterm_packets": lambda row: _optional(row["inflight_lo"]),
        "extra_acked_packets": lambda row: int(row["extra_acked"]),
    }, lambda row: bool(row["phase"]))  # fmt: skip


def _optional(text: str) -> int | None:
    return int(text) if text else None


def _samples(
    trace: Trace,
    table: str,
    of: Mapping[str, Callable[[dict[str, str]], Any]],
    wanted: Callable[[dict[str, str]], bool] = lambda _row: True,
) -> pa.Table:
    chosen = [
        (round(float(row["t_s"]) * 1e6), flow, row)
        for flow, rows in enumerate(trace.flow_rows.values())
        for row in rows
        if wanted(row)
    ]
    chosen.sort(key=lambda item: item[:2])
    columns: dict[str, Sequence[Any]] = {
        name: [of[name](row) for *_, row in chosen] if name in of else [0] * len(chosen)
        for name in TABLES[table].names
    }
    columns |= {"t_us": [t for t, *_ in chosen], "flow_id": [flow for _, flow, _ in chosen]}
    return pa.table(columns, schema=TABLES[table])


def _queue_samples(trace: Trace) -> pa.Table:
    rows = trace.queue_rows
    columns: dict[str, Sequence[Any]] = {
        name: [0] * len(rows) for name in TABLES["queue_samples"].names
    }
    columns |= {
        "t_us": [round(float(row["t_s"]) * 1e6) for row in rows],
        "queue": ["forward"] * len(rows),
        "queue_bytes": [int(row["backlog_bytes"]) for row in rows],
        "queue_packets": [int(row["backlog_packets"]) for row in rows],
        "sent_bytes": [int(row["sent_bytes"]) for row in rows],
        "sent_packets": [
            int(row["sent_bytes"]) // (_MTU_BYTES + _LINK_HEADER_BYTES) for row in rows
        ],
        "dropped_packets": [int(row["dropped_packets"]) for row in rows],
    }
    return pa.table(columns, schema=TABLES["queue_samples"])
