"""Checks a recording against what must hold on every network: what was sent arrived, was dropped or
is on its way; no link is faster than its rate nor idle with a backlog; nothing overtakes on a FIFO;
nothing is faster than light.

Reads the Parquet tables, the plan and the capture of a run. Shares no code with the simulator, nor
with the metrics that it holds against the tables.
"""

from __future__ import annotations

import json
from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq

import capture
from capture import ECE, FIN, SYN, Segment
from network import (
    DIRECTIONS,
    FORWARD,
    HEADER_BYTES,
    REVERSE,
    Keys,
    Network,
    Way,
    data_direction,
    has_ecn,
)

Column = npt.NDArray[Any]
Table = dict[str, Column]

#: Offsets of sequence numbers from here on are those before the first byte: no flow has so many.
BEFORE_FIRST = 2**32 - 2**20
#: TCP/IP headers of data, Ethernet's included.
TCP_HEADERS = 66


class Recorded:
    """The tables, plan and capture of a run."""

    def __init__(self, folder: Path, pcap: Path | None) -> None:
        self.metadata: Keys = json.loads((folder / "metadata.json").read_text())
        self.plan: Keys = self.metadata["plan"]
        self.network = Network(self.plan)
        self.tables = {
            file.stem: _columns(pq.read_table(file)) for file in folder.glob("*.parquet")
        }
        self.segments = capture.read(pcap) if pcap else None

    def table(self, name: str) -> Table | None:
        """A table that has rows."""
        found = self.tables.get(name)
        return found if found and len(next(iter(found.values()))) else None


def _columns(table: pa.Table) -> Table:
    """NumPy columns: text, whole numbers, or where some are null real numbers with NaN."""
    columns = {name: table[name].to_numpy() for name in table.column_names}
    return {
        name: column.astype(np.int64) if column.dtype == np.uint64 else column
        for name, column in columns.items()
    }


def problems_of(folder: Path, pcap: Path | None, summary: Keys) -> list[str]:
    """What is wrong with a recording, its capture, and the metrics computed from it."""
    recorded = Recorded(folder, pcap)
    return [
        problem
        for check in (
            totals, flows, flow_samples, queues, rows_of_links, offered, marks, pings, datagrams,
            pages, traffic, captured,
        )
        for problem in check(recorded)
    ] + list(metrics(recorded, summary))  # fmt: skip


# Conservation.


def totals(run: Recorded) -> Iterator[str]:
    """Data packets that were sent arrived, were lost, or are on their way."""
    health, tables = run.metadata["health"], run.tables
    sent = int(tables["flows"]["packets_sent"].sum())
    if group := run.table("traffic"):
        sent += int(group["packets_sent"].sum())
    gone = health["packets_delivered"] + health["packets_lost"]
    more = gone + health["packets_in_flight"] - sent
    if run.plan.get("pages"):
        return  # packets of pages are in no table
    copies = any(way.duplicates for ways in run.network.ways for way in ways.values())
    if more < 0 or (more > 0 and not copies):
        yield (
            f"totals: {sent} packets sent, {gone} arrived or lost, "
            f"{health['packets_in_flight']} in flight"
        )


def offered(run: Recorded) -> Iterator[str]:
    """What a capture and the tables say was sent into a queue was sent on, dropped, or waits."""
    if run.segments is None or (samples := run.table("queue_samples")) is None:
        return
    for way in run.network.by_queue.values():
        if not way.has_rate or way.duplicates:
            continue
        found = _arrivals_ns(run, way)
        if found is None:
            continue
        times, is_exact = found
        t_ns = samples["t_us"][samples["queue"] == way.queue] * 1000
        count = _offered(samples, way)
        most = np.searchsorted(times, t_ns + 999, "right")
        least = np.searchsorted(times, t_ns, "left") if is_exact else np.zeros_like(most)
        for index in np.flatnonzero((count > most) | (count < least))[:1]:
            yield (
                f"offered: {way.queue}: {count[index]} packets by {t_ns[index]} ns, "
                f"{least[index]} to {most[index]} were sent into it"
            )


def _offered(samples: Table, way: Way) -> Column:
    of_way = samples["queue"] == way.queue
    names = ("sent_packets", "dropped_packets", "random_lost_packets", "queue_packets")
    return np.sum([samples[name][of_way] for name in names], axis=0)


def _arrivals_ns(run: Recorded, way: Way) -> tuple[Column, bool] | None:
    """When packets were sent into a queue that is the first of all that pass it, and whether they
    enter it at once; None where not all are known."""
    plan, host = run.plan, run.plan["host"]
    assert run.segments is not None
    times: list[int] = []
    first = run.network.plan["links"]
    end = 0 if way.direction == FORWARD else len(first) - 1
    if way.link != end:
        return None
    senders = [*plan["flows"], *plan.get("datagrams", []), *plan["probes"]]
    for sender in senders:
        route = run.network.route(sender, way.direction)
        if route and route[0] is not way and way in route:
            return None
    for flow_id, flow in enumerate(plan["flows"]):
        if way not in run.network.route(flow, way.direction):
            continue
        if data_direction(flow) != way.direction:
            return None  # ACKs are captured where they arrive
        times += [one.at_ns for one in run.segments.get(flow_id, []) if one.leaves]
    for probe_id, probe in enumerate(plan["probes"]):
        if way in run.network.route(probe, way.direction):
            if way.direction == REVERSE:
                return None
            pings = run.tables["ping_samples"]
            name = plan["probes"][probe_id]["name"]
            times += list(pings["t_us"][pings["probe"] == name] * 1000)
    for stream_id, stream in enumerate(plan.get("datagrams", [])):
        if data_direction(stream) == way.direction and way in run.network.route(
            stream, way.direction
        ):
            table = run.tables["datagrams"]
            times += list(table["t_us"][table["stream_id"] == stream_id] * 1000)
    at_once = (
        host["pacing"] == "internal"
        and not host["access_rate_bps"]
        and not host.get("work")
        and not host["arp"]
    )
    return np.sort(np.array(times, np.int64)), at_once


def rows_of_links(run: Recorded) -> Iterator[str]:
    """What a link of a row sent on reaches the next one: all of it, and not before its delay."""
    plan, samples = run.plan, run.table("queue_samples")
    if samples is None:
        return
    senders = [
        *plan["flows"], *plan["probes"], *plan.get("datagrams", []), *plan.get("pages", []),
        *plan.get("traffic", []),
    ]  # fmt: skip
    for link in range(len(plan["links"]) - 1):
        passes = [one["route"]["enter"] <= link < one["route"]["leave"] for one in senders]
        if any(
            not both and (one["route"]["enter"] <= link + 1 and one["route"]["leave"] >= link)
            for both, one in zip(passes, senders, strict=True)
        ):
            continue
        for direction in DIRECTIONS:
            way, after = run.network.ways[link][direction], run.network.ways[link + 1][direction]
            if direction == REVERSE:
                way, after = after, way
            if not (way.has_rate and after.has_rate) or after.duplicates:
                continue
            of_way = samples["queue"] == way.queue
            t_ns = samples["t_us"][of_way] * 1000
            sent, came = samples["sent_packets"][of_way], _offered(samples, after)
            before = np.searchsorted(t_ns, t_ns - way.least_delay_ns(), "right") - 1
            # At a sample's own time packets may be counted at one link and not yet at the other.
            most = sent[np.clip(before + 1, 0, len(sent) - 1)]
            for index in np.flatnonzero((came > most) & (before >= 0))[:1]:
                yield (
                    f"rows: {after.queue}: {came[index]} packets by {t_ns[index]} ns, but "
                    f"{way.queue} had sent {most[index]} in time"
                )
            delay_ns = way.most_delay_ns()
            if delay_ns is None:
                continue
            until = np.searchsorted(t_ns, t_ns - delay_ns - 1000, "right") - 1
            least = np.where(until >= 0, sent[np.maximum(until, 0)], 0)
            # A packet that has passed in part is counted as sent.
            least -= way.has_trace
            for index in np.flatnonzero(came < least)[:1]:
                yield (
                    f"rows: {after.queue}: {came[index]} packets by {t_ns[index]} ns, but "
                    f"{way.queue} sent {least[index]} before its delay of {delay_ns} ns"
                )


# Queues and rates.


def queues(run: Recorded) -> Iterator[str]:
    """Counters that grow, limits, rates, and no idle link with a backlog."""
    samples = run.table("queue_samples")
    if samples is None:
        return
    for name in np.unique(samples["queue"]):
        way = run.network.by_queue.get(name)
        if way is None:
            yield f"queues: {name} is no queue of the plan"
            continue
        rows = {key: column[samples["queue"] == name] for key, column in samples.items()}
        for key in rows:
            if key in ("t_us", "queue", "queue_bytes", "queue_packets"):
                continue
            if np.any(np.diff(rows[key]) < 0):
                yield f"queues: {name}: {key} decreases"
        empty = (rows["queue_bytes"] == 0) != (rows["queue_packets"] == 0)
        if way.wire is not None and np.any(empty):
            yield f"queues: {name}: {int(empty.sum())} samples with bytes xor packets"
        for key, most in zip(("queue_bytes", "queue_packets"), way.limits(), strict=True):
            if rows[key].max() > most:
                yield f"queues: {name}: {key} {rows[key].max()}, at most {most} may wait"
        largest = run.network.frame_bytes
        if np.any(rows["sent_bytes"] > rows["sent_packets"] * largest):
            yield f"queues: {name}: packets of more than {largest} bytes"
        yield from _rates(way, rows)


def _rates(way: Way, rows: Table) -> Iterator[str]:
    capacity = way.capacity()
    if capacity is None:
        return
    t_ns = rows["t_us"].astype(np.int64) * 1000
    sent, packets = rows["sent_bytes"].astype(float), rows["sent_packets"].astype(float)
    least, most = way.charged(sent, packets)
    carried = np.array([capacity.until(int(at)) for at in t_ns])
    gains, losses = np.array([capacity.changes_until(int(at)) for at in t_ns]).T
    # Never above the rate: of all windows the worst is where the excess rose most.
    slack = 2 + 1e-6 * carried[-1, 1]
    excess = least - carried[:, 1] - gains
    floor = least - carried[:, 0] - gains
    before = np.minimum.accumulate(np.concatenate(([0.0], floor)))[:-1]
    rise = excess - before
    worst = int(np.argmax(rise))
    if rise[worst] > capacity.credit_bytes + slack:
        yield (
            f"rates: {way.queue}: in a window up to {t_ns[worst]} ns it sent {rise[worst]:.0f} "
            f"bytes more than its rate carries; its credit is {capacity.credit_bytes:.0f}"
        )
    # Never idle with a backlog: in an interval in which what waited at its start did not run out.
    if way.aqm.get("ingress"):
        return  # dropped packets count against the rate
    gone = np.diff(sent) + np.diff(rows["dropped_packets"].astype(float)) * way.frame_bytes
    is_busy = rows["queue_bytes"][:-1] > gone
    lowest = np.inf
    slack += capacity.debt_bytes
    for index, busy in enumerate(is_busy):
        if not busy:
            lowest = np.inf
            continue
        # The fall of what was sent less what could be, over a busy period.
        lost = capacity.changes_until(int(t_ns[index]) - capacity.debt_ns)[1]
        lowest = min(lowest, -(most[index] - carried[index, 1] + lost))
        now = most[index + 1] - carried[index + 1, 0] + losses[index + 1]
        if now + lowest < -slack:
            yield (
                f"idle: {way.queue}: by {t_ns[index + 1]} ns it sent {-(now + lowest):.0f} bytes "
                "less than its rate carries, though packets waited"
            )
            return


def marks(run: Recorded) -> Iterator[str]:
    """Marks are on packets of flows that negotiated ECN, and in their direction, only."""
    samples, plan = run.table("queue_samples"), run.plan
    marking = [*plan["flows"], *plan.get("traffic", [])]
    marked = {
        id(way)
        for sender in marking
        if has_ecn(sender)
        for way in run.network.route(sender, data_direction(sender))
    }
    marked |= {
        id(way)
        for page in plan.get("pages", [])
        if has_ecn(page)
        for direction in DIRECTIONS
        for way in run.network.route(page, direction)
    }
    total = 0
    for way in run.network.by_queue.values():
        if samples is None:
            break
        rows = samples["queue"] == way.queue
        if not rows.any():
            continue
        count = sum(
            int(samples[key][rows][-1]) for key in ("marked_packets", "random_marked_packets")
        )
        total += count
        if count and id(way) not in marked:
            yield f"marks: {way.queue} marked {count} packets, none of which has ECN"
    unseen = (
        any(
            not way.has_rate and (way.wire or {}).get("loss")
            for way in run.network.by_queue.values()
        )
        or plan["access"]["loss"]
    )
    of_flows = run.tables["flows"]
    for flow_id, flow in enumerate(plan["flows"]):
        if of_flows["packets_delivered_ce"][flow_id] and not (has_ecn(flow) and (total or unseen)):
            yield f"marks: flow {flow['name']} has marks that no queue made"


# Flows.


def flows(run: Recorded) -> Iterator[str]:
    """Totals of flows."""
    table = run.tables["flows"]
    if len(table["flow_id"]) != len(run.plan["flows"]):
        yield f"flows: {len(table['flow_id'])} rows for {len(run.plan['flows'])} flows"
        return
    end_us = run.plan["duration_ns"] // 1000
    for flow_id, flow in enumerate(run.plan["flows"]):
        row = {key: column[flow_id] for key, column in table.items()}
        is_wrong = {
            "more acknowledged than delivered": row["bytes_acked"] > row["bytes_delivered"],
            "more marked than delivered": row["packets_delivered_ce"] > row["packets_delivered"],
            "more bytes than packets carry": row["bytes_delivered"]
            > row["packets_sent"] * row["mss_bytes"],
            "a base RTT that is not the path's": row["base_rtt_us"]
            != _base_rtt_ns(run.network, flow) // 1000,
            "another MSS than its MTU's": row["mss_bytes"] + TCP_HEADERS - HEADER_BYTES
            > run.network.access["mtu_bytes"],
        }  # fmt: skip
        amount, done_us = flow["amount_bytes"], row["completion_us"]
        if amount is not None:
            is_wrong["more delivered than written"] = row["bytes_delivered"] > amount
        if done_us is not None and not np.isnan(done_us):
            least_us = row["start_us"] + 2 * run.network.least_rtt_ns(flow) / 1000 - 2
            is_wrong["an end beyond the run's"] = done_us > end_us
            is_wrong["completion faster than two RTTs"] = done_us < least_us
            if amount is not None and flow["stop_ns"] is None:
                is_wrong["completion without its volume"] = row["bytes_acked"] != amount
        yield from (f"flows: {flow['name']}: {what}" for what, wrong in is_wrong.items() if wrong)


def _base_rtt_ns(network: Network, flow: Keys) -> int:
    """The base RTT: the delays at the start of the run."""
    return sum(
        network.end_delay_ns(flow, direction)
        + sum(way.wire["delay_ns"] if way.wire else 0 for way in network.route(flow, direction))
        for direction in DIRECTIONS
    )


def flow_samples(run: Recorded) -> Iterator[str]:
    """Samples of flows: counters, RTTs, and what links could have carried."""
    samples = run.table("flow_samples")
    if samples is None:
        return
    interval_us = run.plan["sample_interval_ns"] // 1000
    if np.any(samples["t_us"] % interval_us):
        yield "samples: not at multiples of the interval"
    counters = [
        "bytes_delivered", "bytes_acked", "packets_sent", "packets_retransmitted", "packets_lost",
        "packets_delivered", "packets_delivered_ce",
    ]  # fmt: skip
    for flow_id, flow in enumerate(run.plan["flows"]):
        rows = {key: column[samples["flow_id"] == flow_id] for key, column in samples.items()}
        if not len(rows["t_us"]):
            continue
        last = {key: run.tables["flows"][key][flow_id] for key in counters}
        for key in counters:
            if np.any(np.diff(rows[key].astype(np.int64)) < 0) or rows[key][-1] > last[key]:
                yield f"samples: {flow['name']}: {key} decreases"
        least_us = run.network.least_rtt_ns(flow) / 1000
        for key in ("srtt_us", "min_rtt_us"):
            found = rows[key].astype(float)
            found = found[~np.isnan(found)]
            # TCP's timestamps, by which it measures what it sent twice, are whole ms.
            if len(found) and found.min() < np.floor(least_us / 1000) * 1000:
                yield f"samples: {flow['name']}: {key} {found.min()} below the path's {least_us}"
        if rows["cwnd_packets"].min() < 1:
            yield f"samples: {flow['name']}: a window of 0"
        if np.any(rows["bytes_acked"] > rows["bytes_delivered"]):
            yield f"samples: {flow['name']}: more acknowledged than delivered"
        if np.any(rows["inflight_packets"] > rows["packets_sent"] + 1):  # a SYN or a FIN
            yield f"samples: {flow['name']}: more in flight than sent"
        written = flow["app_rate_bps"]
        if written:
            mss = run.tables["flows"]["mss_bytes"][flow_id]
            most = written / 8e6 * (rows["t_us"].astype(float) - flow["start_ns"] / 1000) + mss + 1
            if np.any((rows["bytes_delivered"] > most) & (rows["bytes_delivered"] > 0)):
                yield f"samples: {flow['name']}: more delivered than written by then"
    yield from _carried(run, samples)


def _carried(run: Recorded, samples: Table) -> Iterator[str]:
    """At any time, flows have at most what each of their queues had sent by then."""
    by_queue = run.table("queue_samples")
    if by_queue is None:
        return
    times = np.unique(samples["t_us"])
    for way in run.network.by_queue.values():
        if not way.has_rate:
            continue
        rows = by_queue["queue"] == way.queue
        sent = by_queue["sent_bytes"][rows][np.searchsorted(by_queue["t_us"][rows], times)]
        payload = np.zeros(len(times))
        for flow_id, flow in enumerate(run.plan["flows"]):
            direction = data_direction(flow)
            if direction == way.direction and way in run.network.route(flow, direction):
                of_flow = samples["flow_id"] == flow_id
                at = np.searchsorted(times, samples["t_us"][of_flow])
                mss = int(run.tables["flows"]["mss_bytes"][flow_id])
                got = samples["bytes_delivered"][of_flow].astype(float)
                payload[at] += got + TCP_HEADERS * np.ceil(got / mss)
        over = np.flatnonzero(payload > sent)
        if len(over):
            yield (
                f"samples: {way.queue}: flows have {payload[over[0]]:.0f} bytes by "
                f"{times[over[0]]} us, more than it had sent"
            )


# What else sends.


def pings(run: Recorded) -> Iterator[str]:
    """Round trips of probes: not below the path's, and in order."""
    table = run.table("ping_samples")
    if table is None:
        return
    end_us = run.plan["duration_ns"] / 1000
    for probe in run.plan["probes"]:
        rows = {key: column[table["probe"] == probe["name"]] for key, column in table.items()}
        if not np.array_equal(rows["seq"], np.arange(len(rows["seq"]))):
            yield f"pings: {probe['name']}: numbers do not count from 0"
        rtt_us = rows["rtt_us"].astype(float)
        answered = ~np.isnan(rtt_us)
        least_us = run.network.least_rtt_ns(probe) / 1000
        if answered.any() and rtt_us[answered].min() < least_us - 1:
            yield f"pings: {probe['name']}: {rtt_us[answered].min()} us, the path has {least_us}"
        arrivals = (rows["t_us"] + rtt_us)[answered]
        if np.any(arrivals > end_us):
            yield f"pings: {probe['name']}: an answer after the end of the run"
        if all(run.network.keeps_flow_order(probe, way) for way in DIRECTIONS):
            yield from _in_order(f"pings: {probe['name']}", arrivals)


def datagrams(run: Recorded) -> Iterator[str]:
    """Datagrams: not faster than the path, not more than their rate, in order on a FIFO."""
    table = run.table("datagrams")
    if table is None:
        return
    streams = run.plan["datagrams"]
    for stream_id, stream in enumerate(streams):
        rows = {key: column[table["stream_id"] == stream_id] for key, column in table.items()}
        if not np.array_equal(rows["seq"], np.arange(len(rows["seq"]))):
            yield f"datagrams: {stream['name']}: numbers do not count from 0"
        direction = data_direction(stream)
        delay_us = rows["delay_us"].astype(float)
        came = ~np.isnan(delay_us)
        least_us = run.network.least_delay_ns(stream, direction) / 1000
        if came.any() and delay_us[came].min() < least_us - 1:
            yield f"datagrams: {stream['name']}: {delay_us[came].min()} us, path {least_us}"
        if stream["frame_bytes"] is None and stream["on_off"] is None and len(rows["t_us"]):
            most = (rows["t_us"][-1] * 1000 + 1000 - stream["start_ns"]) / stream["interval_ns"] + 1
            if len(rows["t_us"]) > most:
                yield f"datagrams: {stream['name']}: {len(rows['t_us'])} sent, at most {most}"
        if run.network.keeps_flow_order(stream, direction):
            yield from _in_order(f"datagrams: {stream['name']}", (rows["t_us"] + delay_us)[came])
    yield from _across(run, table)


def _across(run: Recorded, table: Table) -> Iterator[str]:
    """Datagrams of all streams over the same FIFOs arrive in the order of sending."""
    groups: dict[tuple[int, int, str], list[int]] = {}
    for stream_id, stream in enumerate(run.plan["datagrams"]):
        direction = data_direction(stream)
        if all(way.keeps_order for way in run.network.route(stream, direction)):
            route = stream["route"]
            groups.setdefault((route["enter"], route["leave"], direction), []).append(stream_id)
    for members in groups.values():
        rows = np.isin(table["stream_id"], members)
        t_us, delay_us = table["t_us"][rows].astype(float), table["delay_us"][rows].astype(float)
        came = ~np.isnan(delay_us)
        t_us, arrivals = t_us[came], (t_us + delay_us)[came]
        # Only of datagrams whose times differ is the order known.
        latest = np.maximum.accumulate(arrivals)
        before = np.searchsorted(t_us, t_us, "left") - 1
        over = (before >= 0) & (arrivals < latest[np.maximum(before, 0)])
        if over.any():
            yield f"order: {int(over.sum())} datagrams overtook another stream's on a FIFO"


def _in_order(what: str, arrivals: Column) -> Iterator[str]:
    if np.any(np.diff(arrivals) < 0):
        yield f"{what}: {int((np.diff(arrivals) < 0).sum())} overtook another of their flow"


def pages(run: Recorded) -> Iterator[str]:
    """Loads and objects of pages."""
    loads, objects = run.table("page_loads"), run.table("page_objects")
    if loads is None:
        return
    for page_id, page in enumerate(run.plan["pages"]):
        rows = {key: column[loads["page_id"] == page_id] for key, column in loads.items()}
        done = rows["done_us"].astype(float)
        least_us = 2 * run.network.least_rtt_ns(page) / 1000
        if page["keeps_connections"]:
            least_us /= 2
        taken = done - rows["start_us"]
        if np.any(taken[~np.isnan(taken)] < least_us - 2):
            yield f"pages: {page['name']}: a load in {np.nanmin(taken)} us, RTTs need {least_us}"
        if page["loads"] is not None and len(done) > page["loads"]:
            yield f"pages: {page['name']}: more loads than asked for"
        if np.any(rows["start_us"][1:] < done[:-1] + page["pause_ns"] / 1000 - 1):
            yield f"pages: {page['name']}: a load began before the one before it was over"
        total = sum(one["bytes"] for one in page["objects"])
        if np.any(rows["bytes"] != total):
            yield f"pages: {page['name']}: {rows['bytes'][0]} bytes, its objects have {total}"
    if objects is None:
        return
    asked, first, done = (
        objects[key].astype(float) for key in ("asked_us", "first_byte_us", "done_us")
    )
    if np.any(first < asked) or np.any(done < first):
        yield "pages: an object came before it was asked for, or ended before it began"


def traffic(run: Recorded) -> Iterator[str]:
    """Flows that come and go."""
    table = run.table("traffic")
    if table is None:
        return
    for group_id, group in enumerate(run.plan["traffic"]):
        rows = {key: column[table["group_id"] == group_id] for key, column in table.items()}
        if not len(rows["number"]):
            continue
        if len(np.unique(rows["number"])) != len(rows["number"]):
            yield f"traffic: {group['name']}: two flows have one number"
        done = rows["completion_us"].astype(float)
        ended = ~np.isnan(done)
        least_us = np.array([
            2 * run.network.least_rtt_ns({**sender, "route": group["route"]}) / 1000
            for sender in group["senders"]
        ])[rows["sender"]]  # fmt: skip
        is_wrong = {
            "more acknowledged than its size": rows["bytes_acked"] > rows["size_bytes"],
            "an end without all acknowledged": ended & (rows["bytes_acked"] != rows["size_bytes"]),
            "faster than two RTTs": ended & (done - rows["start_us"] < least_us - 2),
            "too few packets": rows["packets_sent"] * (run.network.access["mtu_bytes"] - 52)
            < rows["bytes_acked"],
        }  # fmt: skip
        yield from (
            f"traffic: {group['name']}: {int(wrong.sum())} flows: {what}"
            for what, wrong in is_wrong.items()
            if wrong.any()
        )


# The capture.


def captured(run: Recorded) -> Iterator[str]:
    """TCP as a capture at each sender's host shows it."""
    if run.segments is None:
        return
    for flow_id, flow in enumerate(run.plan["flows"]):
        for problem in _Connection(run, flow_id).problems():
            yield f"capture: {flow['name']}: {problem}"


class _Connection:
    """A flow's packets."""

    def __init__(self, run: Recorded, flow_id: int) -> None:
        self.run = run
        self.flow: Keys = run.plan["flows"][flow_id]
        self.row = {key: column[flow_id] for key, column in run.tables["flows"].items()}
        assert run.segments is not None
        # A host writes packets down when TCP hands them on, which may be before they leave.
        self.segments = run.segments.get(flow_id, [])
        self.direction = data_direction(self.flow)
        self.back = REVERSE if self.direction == FORWARD else FORWARD
        starts = [one.seq for one in self.segments if one.leaves and one.flags & SYN]
        self.first = (starts[0] + 1) % 2**32 if starts else 0

    def problems(self) -> Iterator[str]:
        if not self.segments:
            return
        data = [one for one in self.segments if one.leaves and one.payload]
        acks = [one for one in self.segments if not one.leaves and not one.flags & SYN]
        has_arp = self.run.plan["host"]["arp"]
        starts = self.direction == FORWARD and not has_arp
        if starts and self.segments[0].at_ns != self.flow["start_ns"]:
            yield f"starts at {self.segments[0].at_ns} ns"
        yield from self._data(data)
        yield from self._ecn(data, acks)
        if not data:
            return
        yield from self._acks(data, acks)

    def _offset(self, sequence: int) -> int:
        return (sequence - self.first) % 2**32

    def _data(self, data: Sequence[Segment]) -> Iterator[str]:
        if len(data) != self.row["packets_sent"]:
            yield f"{len(data)} data packets, the table has {self.row['packets_sent']}"
        end, again = 0, 0
        for one in data:
            begin = self._offset(one.seq)
            if one.payload > self.row["mss_bytes"]:
                yield f"a packet of {one.payload} bytes"
                return
            if begin > end:
                yield f"a gap: {begin} sent after {end}"
                return
            if begin < end:
                again += 1
                if begin + one.payload > end:
                    yield f"a retransmission of {begin} reaches beyond {end}"
                    return
            end = max(end, begin + one.payload)
        # Kernels count repeated handshake packets, too (tcpi_total_retrans).
        for flag in (SYN, FIN):
            of_flag = sum(
                one.leaves and bool(one.flags & flag) and not one.payload for one in self.segments
            )
            again += max(0, of_flag - 1)
        # Those of a SYN-ACK count from when the connection is established, which only data show.
        is_known = bool(data) or self.direction == FORWARD
        if is_known and again != self.row["packets_retransmitted"]:
            yield f"{again} retransmissions, the table has {self.row['packets_retransmitted']}"
        amount = self.flow["amount_bytes"]
        if amount is not None and end > amount:
            yield f"{end} bytes sent of {amount}"
        fins = [self._offset(one.seq) + one.payload for one in self.segments
                if one.leaves and one.flags & FIN]  # fmt: skip
        if fins and (min(fins) != max(fins) or end > fins[0]):
            yield f"data after the FIN, or two places of it: {fins[0]}, {fins[-1]}, {end}"

    def _ecn(self, data: Sequence[Segment], acks: Sequence[Segment]) -> Iterator[str]:
        if any(one.ecn for one in self.segments if not one.payload and not one.flags & FIN):
            yield "a packet without data is ECT"
        if not has_ecn(self.flow):
            if any(one.ecn for one in data):
                yield "ECT without ECN"
            if any(one.flags & ECE for one in self.segments):
                yield "ECE without ECN"
        if has_ecn(self.flow) and self.flow.get("ecn_kind", "classic") == "classic":
            sent = min((one.at_ns for one in data if one.ecn), default=None)
            for one in acks:
                if one.flags & ECE and (sent is None or one.at_ns < sent):
                    yield "ECE before a packet was ECT"
                    return

    def _acks(self, data: Sequence[Segment], acks: Sequence[Segment]) -> Iterator[str]:
        network = self.run.network
        least_ns = network.least_rtt_ns(self.flow)
        back_ns = network.least_delay_ns(self.flow, self.back)
        there_ns = network.least_delay_ns(self.flow, self.direction)
        # Ends of data in the order of sending, and when they were first sent.
        ends: list[int] = []
        first_ns: list[int] = []
        for one in data:
            end = self._offset(one.seq) + one.payload
            if not ends or end > ends[-1]:
                ends.append(end)
                first_ns.append(one.at_ns)
        by_time = sorted(range(len(first_ns)), key=first_ns.__getitem__)
        if by_time != list(range(len(first_ns))):
            yield "new data are not sent in order"
            return
        acked = 0
        for one in acks:
            ack = self._offset(one.ack)
            if ack >= BEFORE_FIRST:
                continue
            sent = bisect_right(first_ns, one.at_ns)
            highest = ends[sent - 1] if sent else 0
            if ack > highest + 1:
                yield f"an ACK of {ack} at {one.at_ns} ns, {highest} were sent"
                return
            if ack < acked and network.keeps_flow_order(self.flow, self.back):
                yield f"an ACK of {ack} at {one.at_ns} ns after one of {acked}"
                return
            edges = [right for _, right in ((self._offset(a), self._offset(b))
                                            for a, b in one.sack)]  # fmt: skip
            for top in (ack if ack > acked else 0, *edges):
                index = bisect_left(ends, min(top, highest))
                if top and index < len(ends) and one.at_ns - first_ns[index] < least_ns:
                    yield (
                        f"{top} acknowledged {one.at_ns - first_ns[index]} ns after it was sent; "
                        f"the path has {least_ns}"
                    )
                    return
            for left, right in ((self._offset(a), self._offset(b)) for a, b in one.sack):
                if not left < right <= highest + 1:
                    yield f"a SACK of {left} to {right}, {highest} were sent"
                    return
            if one.at_ns - one.tsval * 10**6 < back_ns:
                yield f"an ACK took {one.at_ns - one.tsval * 10**6} ns, the path has {back_ns}"
                return
            if one.tsecr and (one.tsval - one.tsecr + 1) * 10**6 < there_ns:
                yield f"data took {one.tsval - one.tsecr} ms, the path has {there_ns} ns"
                return
            acked = max(acked, ack)
        if acked > self.row["bytes_acked"] + 1:
            yield f"{acked} acknowledged, the table has {self.row['bytes_acked']}"
        yield from self._window()
        yield from self._holes(acks)

    def _window(self) -> Iterator[str]:
        """Nothing is sent beyond what the receiver offered."""
        events = sorted(
            enumerate(self.segments), key=lambda one: (one[1].at_ns, one[1].leaves, one[0])
        )
        edge, shift = 0, 0
        for _, one in events:
            if not one.leaves:
                if one.flags & SYN:
                    shift = one.window_shift or 0
                    edge = max(edge, one.window)
                    continue
                # The field leaves out the window's lowest bits.
                base = self._offset(one.ack)
                if base < BEFORE_FIRST:
                    edge = max(edge, base + ((one.window + 1) << shift))
            elif one.payload and self.direction == FORWARD:
                end = self._offset(one.seq) + one.payload
                if end > edge:
                    yield f"{end} sent at {one.at_ns} ns, the window ends at {edge}"
                    return

    def _holes(self, acks: Sequence[Segment]) -> Iterator[str]:
        """Where nothing is lost, copied, reordered or sent again, no data are missing."""
        network = self.run.network
        ways = network.route(self.flow, self.direction)
        samples = self.run.table("queue_samples")
        if self.row["packets_retransmitted"] or samples is None:
            return
        access = network.access
        if access["loss"] or access["reverse_loss"]:
            return
        for way in ways:
            if way.may_lose or way.reorders or way.duplicates or way.aqm["kind"] == "dualpi2":
                return
            rows = samples["queue"] == way.queue
            # A drop after the last sample is not in the table.
            if way.has_rate and int(samples["dropped_packets"][rows][-1]):
                return
        last_us = samples["t_us"][-1]
        if any(one.sack for one in acks if one.at_ns < last_us * 1000):
            yield "a SACK, but nothing was lost"


# Metrics.


def metrics(run: Recorded, summary: Keys) -> Iterator[str]:
    """Bounds of metrics, and what the tables say of the same."""
    for name, value in _numbers(summary):
        if not np.isfinite(value):
            yield f"metrics: {name} is {value}"
        # Among what was sent again kernels count handshakes, which are no data packets.
        of_ratio = name.endswith(("loss_ratio", "mark_ratio", "share", "jain", "in_time"))
        if value < 0 or (of_ratio and value > 1 + 1e-9):
            yield f"metrics: {name} is {value}"
    for name, values in _spreads(summary):
        known = [values[key] for key in ("min", "p5", "p50", "p95", "p99", "max")
                 if values.get(key) is not None]  # fmt: skip
        if any(after < before * (1 - 1e-9) for before, after in pairwise(known)):
            yield f"metrics: {name}: percentiles do not rise: {values}"
    for direction in ("up", "down"):
        shares = [flow["share"] for flow in summary["flows"]
                  if flow["direction"] == direction and flow["share"] is not None]  # fmt: skip
        if shares and abs(sum(shares) - 1) > 1e-9:
            yield f"metrics: shares {direction} sum to {sum(shares)}"
    if summary["jain"] is not None and summary["jain"] < 1 / max(1, summary["jain_flows"]) - 1e-9:
        yield f"metrics: Jain's index {summary['jain']} of {summary['jain_flows']}"
    samples = run.table("queue_samples")
    for one in summary["links"]:
        if samples is None or one["utilisation"] is None:
            continue
        name = f"{one['link']}.{one['direction']}"
        way = run.network.by_queue.get(name.removeprefix("path."))
        capacity = way.capacity() if way else None
        if way is None or capacity is None:
            continue
        rows = samples["queue"] == way.queue
        t_ns = samples["t_us"][rows].astype(np.int64) * 1000
        begin_ns = t_ns[np.searchsorted(t_ns, run.metadata["warmup_ns"])] if len(t_ns) else 0
        could = capacity.until(int(t_ns[-1]))[1] - capacity.until(int(begin_ns))[0]
        packet = capacity.credit_bytes + capacity.changes_until(int(t_ns[-1]))[0] + way.frame_bytes
        # CAKE with a negative overhead sends more bytes than it counts.
        counted = way.charged(1.0, 1 / 64)[0] if way.aqm["kind"] == "cake" else 1.0
        if could and one["utilisation"] * min(1.0, counted) > 1 + packet / could + 1e-6:
            yield f"metrics: utilisation {one['utilisation']} of {way.queue}"
    table = run.tables["flows"]
    if run.metadata["warmup_ns"] == 0:
        sampled = run.table("flow_samples")
        for flow_id, flow in enumerate(summary["flows"]):
            if sampled is None:
                break
            mine = sampled["bytes_delivered"][sampled["flow_id"] == flow_id]
            got = flow["delivered_bytes"] or 0
            if not (mine[-1] if len(mine) else 0) <= got <= table["bytes_delivered"][flow_id]:
                yield f"metrics: {flow['flow']}: {got} bytes, samples say {mine[-1:]}"


def _numbers(value: Any, name: str = "") -> Iterator[tuple[str, float]]:
    if isinstance(value, dict):
        for key, item in value.items():
            yield from _numbers(item, f"{name}.{key}" if name else key)
    elif isinstance(value, list):
        for index, item in enumerate(value):
            yield from _numbers(item, f"{name}.{index}")
    elif isinstance(value, (int, float)) and not isinstance(value, bool):
        yield name, float(value)


def _spreads(value: Any, name: str = "") -> Iterator[tuple[str, Keys]]:
    if isinstance(value, dict):
        if "p50" in value and isinstance(value["p50"], float):
            yield name, value
        for key, item in value.items():
            yield from _spreads(item, f"{name}.{key}" if name else key)
    elif isinstance(value, list):
        for index, item in enumerate(value):
            yield from _spreads(item, f"{name}.{index}")
