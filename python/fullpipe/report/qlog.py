"""A flow of a recording as qlog: draft-ietf-quic-qlog-main-schema in JSON-SEQ (RFC 7464), with the
events of draft-ietf-quic-qlog-quic-events that a congestion control is about.

Samples become metrics and congestion states. Packets come from a capture of the same run: TCP
numbers bytes, so a packet's number here counts the flow's transmissions. Must never judge.
"""

from __future__ import annotations

import bisect
import json
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import dpkt
import numpy as np

import fullpipe
from fullpipe.base.errors import UserError
from fullpipe.base.units import counted
from fullpipe.congestion.stacks import is_stack
from fullpipe.metrics.view import View
from fullpipe.recording.recording import Recording
from fullpipe.scenario.traffic.capture_packets import packets_of, payload_bytes

_SCHEMA = "urn:ietf:params:qlog:file:sequential"
_EVENTS = "urn:ietf:params:qlog:events:quic"
_RECORD = "\x1e"
#: The server's port in captures of the simulator (crates/fullpipe-sim/src/hosts/pcap.rs).
_SERVER_PORT = 5201
_CLIENT_PORT, _CLIENT_PORTS = 40_000, 20_000
_SACK = 5
_WRAP = 2**32

Event = tuple[float, str, dict[str, Any]]


def write_qlog(recording: Recording, folder: Path, capture: Path | None = None) -> list[Path]:
    """Writes one file for each flow into a folder; gives the files. `capture`: of the same run, by
    `run --pcap`, for the events of packets.

    Raises UserError where the capture cannot be read or is another run's, or the folder cannot be
    written."""
    view = View(recording, start_s=-1.0)
    names = [str(name) for name in view.flows["flow"]]
    packets = {} if capture is None else _packet_events(capture)
    if capture is not None:
        _check_same_run(capture, packets, names, [int(n) for n in view.flows["packets_sent"]])
    files = []
    for flow_id, name in enumerate(names):
        events = sorted(
            [*_sample_events(view, flow_id), *packets.get(flow_id, [])], key=lambda event: event[0]
        )
        file = folder / f"{_stem(name)}.sqlog"
        try:
            folder.mkdir(parents=True, exist_ok=True)
            with file.open("w", encoding="utf-8") as out:
                out.writelines(records(_header(view, flow_id, name), events))
        except OSError as error:
            raise UserError(f"{file}: cannot be written: {error.strerror}") from None
        files.append(file)
    return files


def _check_same_run(
    capture: Path, packets: Mapping[int, Sequence[Event]], names: Sequence[str], sent: Sequence[int]
) -> None:
    """Raises UserError where a capture has other flows than the recording, or where a flow sent
    another number of packets (`sent`)."""
    last = max(packets, default=-1)
    if last >= len(names):
        raise UserError(
            f"{capture}: is not this run's: it has packets of flow number {last + 1}, the run has "
            + counted(len(names), "flow")
        )
    for flow_id, (name, expected) in enumerate(zip(names, sent, strict=True)):
        count = sum(kind == "packet_sent" for _, kind, _ in packets.get(flow_id, ()))
        if count != expected:
            raise UserError(
                f"{capture}: is not this run's: flow {name} sent {expected} packets, the capture "
                f"has {count}"
            )


def records(header: dict[str, Any], events: Iterable[Event]) -> Iterator[str]:
    """The records of a file (RFC 7464): its header, then an event each."""
    yield f"{_RECORD}{json.dumps(header)}\n"
    for time_ms, name, data in events:
        event = {"time": round(time_ms, 6), "name": f"quic:{name}", "data": data}
        yield f"{_RECORD}{json.dumps(event)}\n"


def _header(view: View, flow_id: int, name: str) -> dict[str, Any]:
    cc = str(view.flows["cc"][flow_id])
    return {
        "file_schema": _SCHEMA,
        "serialization_format": "application/qlog+json-seq",
        "title": f"{view.plan.get('name', '')}: {name}, {cc}",
        "description": f"fullpipe {fullpipe.__version__}; packet numbers count transmissions",
        "trace": {
            "title": name,
            "vantage_point": {"name": name, "type": "client"},
            "event_schemas": [_EVENTS],
            "common_fields": {
                "protocol_types": ["QUIC" if is_stack(cc) else "TCP"],
                "reference_time": {"clock_type": "monotonic", "epoch": "unknown"},
                "time_format": "relative_to_epoch",
            },
        },
    }


def _sample_events(view: View, flow_id: int) -> Iterator[Event]:
    """What changed from sample to sample: metrics, and the congestion state."""
    flow = view.flow_samples(flow_id)
    mss = float(view.flows["mss_bytes"][flow_id])
    columns = {
        "min_rtt": flow["min_rtt_us"] / 1e3,
        "smoothed_rtt": flow["srtt_us"] / 1e3,
        "congestion_window": flow["cwnd_packets"] * mss,
        "bytes_in_flight": flow["inflight_packets"] * mss,
        "ssthresh": flow["ssthresh_packets"] * mss,
        "packets_in_flight": flow["inflight_packets"],
        "pacing_rate": flow["pacing_rate_bps"],
    }
    last: dict[str, float] = {}
    for index, t_us in enumerate(flow["t_us"]):
        now = {name: float(values[index]) for name, values in columns.items()}
        changed = {
            name: value if name.endswith("rtt") else int(value)
            for name, value in now.items()
            if math.isfinite(value) and value != last.get(name)
        }
        if changed:
            last.update(changed)
            yield float(t_us) / 1e3, "recovery_metrics_updated", changed
    yield from _states(view, flow_id, flow)


def _states(view: View, flow_id: int, flow: Any) -> Iterator[Event]:
    """Changes of the congestion state: the algorithm's phase where it tells one, else slow start,
    congestion avoidance and recovery."""
    samples = view.samples("cc_samples")
    of_flow = samples["flow_id"] == flow_id
    phases = samples["phase"][of_flow]
    if any(phase for phase in phases):
        times = samples["t_us"][of_flow]
    else:
        times = flow["t_us"]
        slow = ~(flow["cwnd_packets"] >= flow["ssthresh_packets"])
        phases = np.where(slow, "slow_start", "congestion_avoidance")
        phases = np.where(flow["ca_state"] >= 3, "recovery", phases)
    old = ""
    for t_us, phase in zip(times, phases, strict=True):
        new = str(phase or "")
        if new and new != old:
            data = {"old": old, "new": new} if old else {"new": new}
            yield float(t_us) / 1e3, "congestion_state_updated", data
            old = new


@dataclass
class _Sender:
    """The packets of one flow. `sent`: first byte -> number and end of its latest transmission that
    is not acknowledged; `starts`: all first bytes in order, of which those before `oldest` are
    acknowledged."""

    base: int | None = None
    number: int = 0
    received: int = 0
    sent: dict[int, tuple[int, int]] = field(default_factory=dict)
    starts: list[int] = field(default_factory=list)
    oldest: int = 0

    def transmit(self, time_ms: float, seq: int, length: int, wire: int) -> Iterator[Event]:
        """A data packet leaves. A byte that was sent before makes the earlier packet lost."""
        if seq in self.sent:
            yield time_ms, "packet_lost", {"header": _numbered(self.sent[seq][0])}
        payload = {"payload_length": length}
        frame = {"frame_type": "stream", "stream_id": 0, "offset": seq, "raw": payload}
        data = {"header": _numbered(self.number), "raw": {"length": wire}, "frames": [frame]}
        yield time_ms, "packet_sent", data
        self.sent[seq] = self.number, seq + length
        if not self.starts or seq > self.starts[-1]:
            self.starts.append(seq)
        self.number += 1

    def acknowledge(
        self, time_ms: float, ack: int, blocks: Sequence[tuple[int, int]], wire: int
    ) -> Iterator[Event]:
        """An ACK arrives; what it newly acknowledges follows."""
        header = _numbered(self.received)
        yield time_ms, "packet_received", {"header": header, "raw": {"length": wire}}
        self.received += 1
        end = bisect.bisect_left(self.starts, ack, self.oldest)
        numbers = self._take(self.starts[self.oldest : end], ack)
        self.oldest = end
        for low, high in blocks:
            first, last = (bisect.bisect_left(self.starts, edge) for edge in (low, high))
            numbers += self._take(self.starts[first:last], high)
        if numbers:
            yield time_ms, "packets_acked", {"packet_numbers": sorted(numbers)}

    def _take(self, starts: Sequence[int], limit: int) -> list[int]:
        """Removes the packets with these first bytes that end by a limit; gives their numbers."""
        done = [seq for seq in starts if seq in self.sent and self.sent[seq][1] <= limit]
        return [self.sent.pop(seq)[0] for seq in done]


def _numbered(number: int) -> dict[str, Any]:
    return {"packet_type": "1RTT", "packet_number": number}


def _packet_events(capture: Path) -> dict[int, list[Event]]:
    """The events of packets by flow. Raises UserError where the file is no capture."""
    senders: dict[int, _Sender] = {}
    events: dict[int, list[Event]] = {}
    for at_ns, packet in packets_of(capture):
        segment = packet.data
        if not isinstance(segment, dpkt.tcp.TCP):
            continue
        from_sender = segment.dport == _SERVER_PORT
        near = packet.src if from_sender else packet.dst
        flow_id = near[2] * 256 + near[3] - 1
        port = segment.sport if from_sender else segment.dport
        if port != _CLIENT_PORT + flow_id % _CLIENT_PORTS:
            raise UserError(f"{capture}: is no capture of `fullpipe run --pcap` in the simulator")
        sender = senders.setdefault(flow_id, _Sender())
        flow_events = events.setdefault(flow_id, [])
        if segment.flags & dpkt.tcp.TH_SYN:
            if from_sender:
                sender.base = segment.seq + 1
            continue
        if sender.base is None:
            continue
        header = segment.off * 4
        wire = payload_bytes(packet, 0)
        length = payload_bytes(packet, header)
        if from_sender and length > 0:
            seq = (segment.seq - sender.base) % _WRAP
            flow_events += sender.transmit(at_ns / 1e6, seq, length, wire)
        elif not from_sender:
            ack = (segment.ack - sender.base) % _WRAP
            blocks = _blocks(segment, sender.base)
            flow_events += sender.acknowledge(at_ns / 1e6, ack, blocks, wire)
    return events


def _blocks(segment: Any, base: int) -> list[tuple[int, int]]:
    """The SACK blocks of an ACK in bytes since the flow's begin."""
    blocks = []
    for kind, value in dpkt.tcp.parse_opts(segment.opts):
        if kind == _SACK:
            edges = [int.from_bytes(value[i : i + 4], "big") for i in range(0, len(value), 4)]
            pairs = zip(edges[::2], edges[1::2], strict=False)
            blocks += [((low - base) % _WRAP, (high - base) % _WRAP) for low, high in pairs]
    return blocks


def _stem(name: str) -> str:
    return "".join(letter if letter.isalnum() or letter in "-_." else "_" for letter in name)
