"""What a plan promises of its network: what links may carry, least delays, limits of queues.

Read from a plan's JSON and the traces that it names, by the documents of fullpipe alone
(docs/reference/links.md, docs/reference/queues.md). Shares no code with the simulator.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from bisect import bisect_left, bisect_right
from dataclasses import dataclass
from pathlib import Path
from typing import Any

Keys = dict[str, Any]

FORWARD, REVERSE = "forward", "reverse"
DIRECTIONS = (FORWARD, REVERSE)
#: Ethernet's header, which queues and rates count.
HEADER_BYTES = 14
#: htb's credit, one packet and a bit (docs/architecture.md: the bottleneck is Linux's htb).
HTB_CREDIT_BYTES = 1600
#: Bytes that pass at an opportunity of a trace (docs/reference/links.md).
OPPORTUNITY_BYTES = 1514
#: Disciplines in which no packet overtakes another.
IN_ORDER = {"fifo", "codel", "pie", "red", "tbf"}


@dataclass(frozen=True)
class Way:
    """One direction of a link."""

    link: int
    direction: str
    queue: str
    #: None: a Wi-Fi channel.
    wire: Keys | None
    frame_bytes: int

    @property
    def aqm(self) -> Keys:
        return self.wire["qdisc"]["aqm"] if self.wire else {"kind": "wifi"}

    @property
    def impairments(self) -> Keys:
        return (self.wire or {}).get("impairments") or {}

    @property
    def has_rate(self) -> bool:
        return self.wire is not None and self.wire["rate_bps"] is not None

    @property
    def has_trace(self) -> bool:
        return self.wire is not None and self.wire.get("rate_trace") is not None

    @property
    def reorders(self) -> bool:
        return self.impairments.get("reorder") is not None

    @property
    def duplicates(self) -> bool:
        return self.impairments.get("duplicate") is not None

    @property
    def keeps_order(self) -> bool:
        """Whether no packet overtakes another, of whatever flows."""
        if self.wire is None or self.reorders:
            return False
        return not self.has_rate or self.aqm["kind"] in IN_ORDER

    @property
    def may_lose(self) -> bool:
        lossy = {"gemodel", "policer"} & {key for key, one in self.impairments.items() if one}
        return self.wire is None or bool(self.wire["loss"] or lossy)

    def delays_ns(self) -> list[int]:
        """All constant delays that it may have, without jitter."""
        if self.wire is None:
            return [0]
        found = [self.wire["delay_ns"], *(ns for _, ns in self.wire.get("delay_steps", []))]
        if trace := self.wire.get("delay_trace"):
            lines = Path(trace["path"]).read_text().split("\n")
            found += [round(float(line.split()[1]) * 1e6) for line in lines if line.strip()]
        return found

    def least_delay_ns(self) -> int:
        """What every packet takes at least."""
        return 0 if self.reorders else min(self.delays_ns())

    def most_delay_ns(self) -> int | None:
        """What a packet takes at most behind the queue; None: no bound."""
        if self.wire is None or self.impairments.get("wifi_jitter_ns"):
            return None
        hold = self.impairments.get("hold")
        return max(self.delays_ns()) + (hold["time_ns"] if hold else 0)

    def capacity(self) -> Capacity | None:
        """What it may carry; None where nobody can know (Wi-Fi, CAKE's autorate, no rate)."""
        if not self.has_rate or self.aqm.get("autorate_ingress"):
            return None
        assert self.wire is not None
        if trace := self.wire.get("rate_trace"):
            lines = Path(trace["path"]).read_text().split()
            return Capacity.of_trace([int(line) for line in lines], self.frame_bytes)
        return Capacity.of_steps(
            self.wire["rate_bps"], self.wire.get("rate_steps", []), self._credit_bytes()
        )

    def _credit_bytes(self) -> float:
        if self.aqm["kind"] == "tbf":
            return float(self.aqm["burst_bytes"])
        if self.aqm["kind"] == "cake" and self.aqm["shapes"]:
            return self._cake_bytes(self.frame_bytes, 1)[1]
        return HTB_CREDIT_BYTES + self.frame_bytes

    def charged(self, sent_bytes: float, packets: float) -> tuple[float, float]:
        """The least and most that so many bytes in so many packets count against the rate."""
        is_cake = self.aqm["kind"] == "cake" and self.aqm["shapes"]
        if not is_cake and self.aqm["kind"] != "tbf":
            return sent_bytes, sent_bytes
        least, most = self._cake_bytes(sent_bytes, packets) if is_cake else (sent_bytes, sent_bytes)
        assert self.wire is not None
        # Kernels cut a packet's time to whole ns (cake_advance_shaper(), psched_l2t_ns()).
        return least - packets * self.wire["rate_bps"] / 8e9, most

    def _cake_bytes(self, sent_bytes: float, packets: float) -> tuple[float, float]:
        """CAKE's accounting of overhead, least packet and framing (tc-cake(8))."""
        overhead = self.aqm["overhead_bytes"]
        change = 0 if overhead is None else overhead - HEADER_BYTES
        least = sent_bytes + change * packets
        most = least + self.aqm["mpu_bytes"] * packets
        framing = self.aqm["framing"]
        if framing == "atm":
            return least * 53 / 48, (most + 47 * packets) * 53 / 48
        if framing == "ptm":
            return least * 65 / 64, (most + 63 * packets) * 65 / 64
        return least, most

    def limits(self) -> tuple[float, float]:
        """The most bytes and packets that may wait."""
        if not self.has_rate:
            return float("inf"), float("inf")
        assert self.wire is not None
        qdisc, aqm = self.wire["qdisc"], self.aqm
        most_bytes = float("inf") if qdisc["limit_bytes"] is None else qdisc["limit_bytes"]
        most_packets = float("inf") if qdisc["limit_packets"] is None else qdisc["limit_packets"]
        kind = aqm["kind"]
        if kind == "prio":
            most_bytes, most_packets = most_bytes * aqm["bands"], most_packets * aqm["bands"]
        elif kind == "fq_codel":
            most_bytes = min(most_bytes, aqm["memory_limit_bytes"])
        elif kind == "fq":
            most_packets += 8  # of sch_fq.c's internal queue, which its limit does not count
        elif kind == "sfq":
            most_packets = min(most_packets, aqm["flows"] * aqm["depth_packets"])
        if self.wire.get("rate_trace"):  # the packet that has passed in part
            most_bytes, most_packets = most_bytes + self.frame_bytes, most_packets + 1
        return most_bytes, most_packets


class Capacity(ABC):
    """What a link may carry from the start of the run to a time, in bytes that count."""

    def __init__(self, credit_bytes: float, debt_bytes: float) -> None:
        #: By how much any window may exceed it, and a busy one fall short of it.
        self.credit_bytes = credit_bytes
        self.debt_bytes = debt_bytes
        #: How long a link may be kept from sending by what it sent before.
        self.debt_ns = 0

    @staticmethod
    def of_steps(rate_bps: int, steps: list[list[int]], credit_bytes: float) -> _Steps:
        return _Steps(rate_bps, steps, credit_bytes)

    @staticmethod
    def of_trace(times_ms: list[int], frame_bytes: int) -> _Trace:
        return _Trace(times_ms, frame_bytes)

    @abstractmethod
    def until(self, at_ns: int) -> tuple[float, float]:
        """The least and most that opportunities up to this time carry."""

    def changes_until(self, at_ns: int) -> tuple[float, float]:
        """What changes of the rate before this time may have let pass beyond it, and may have kept
        from passing. What htb is owed is a time (docs/architecture.md), so a packet that was sent
        before a change costs as long as it would have, and an outage pays all that is owed."""
        return 0.0, 0.0


class _Steps(Capacity):
    def __init__(self, rate_bps: int, steps: list[list[int]], credit_bytes: float) -> None:
        super().__init__(credit_bytes, credit_bytes)
        self._steps = [(0, rate_bps), *((at, bps) for at, bps in steps)]
        self._times = [at for at, _ in self._steps]
        slowest_bps = min(bps for _, bps in self._steps if bps)
        self.debt_ns = int(credit_bytes * 8e9 / slowest_bps)
        self._sums = [0.0]
        self._changes = [(0.0, 0.0)]
        last_bps = rate_bps
        for _, bps in self._steps[1:]:
            gained, lost = self._change(last_bps, bps)
            self._changes.append((self._changes[-1][0] + gained, self._changes[-1][1] + lost))
            last_bps = bps or last_bps
        for (start, bps), (end, _) in zip(self._steps, self._steps[1:], strict=False):
            self._sums.append(self._sums[-1] + bps * (end - start) / 8e9)

    def until(self, at_ns: int) -> tuple[float, float]:
        index = bisect_right(self._times, at_ns) - 1
        start, bps = self._steps[index]
        carried = self._sums[index] + bps * (at_ns - start) / 8e9
        return carried, carried

    def changes_until(self, at_ns: int) -> tuple[float, float]:
        index = bisect_left(self._times, at_ns) - 1
        return self._changes[max(index, 0)]

    def _change(self, before: int, after: int) -> tuple[float, float]:
        if after == 0:
            return 2 * self.credit_bytes, 0.0
        return self.credit_bytes, self.credit_bytes * max(1.0, after / before)


class _Trace(Capacity):
    def __init__(self, times_ms: list[int], frame_bytes: int) -> None:
        # A packet counts when the last of its bytes passes.
        super().__init__(frame_bytes, frame_bytes + OPPORTUNITY_BYTES)
        self._times_ms = times_ms

    def until(self, at_ns: int) -> tuple[float, float]:
        """At a time that is an opportunity's, it may or may not have been used yet."""
        return self._count(at_ns, bisect_left), self._count(at_ns, bisect_right)

    def _count(self, at_ns: int, bisect: Any) -> float:
        period_ns = self._times_ms[-1] * 10**6
        rounds, rest_ns = divmod(at_ns, period_ns)
        passed = rounds * len(self._times_ms) + bisect(self._times_ms, rest_ns / 1e6)
        if rest_ns == 0 and rounds and bisect is bisect_left:
            # The end of a round belongs to the round that ends.
            last = self._times_ms[-1]
            passed -= sum(at == last for at in self._times_ms)
        return float(passed * OPPORTUNITY_BYTES)


class Network:
    """A plan's row of links."""

    def __init__(self, plan: Keys) -> None:
        self.plan = plan
        self.access = plan["access"]
        self.frame_bytes = self.access["mtu_bytes"] + HEADER_BYTES
        self.ways: list[dict[str, Way]] = []
        for index, link in enumerate(plan["links"]):
            name = "" if link["name"] == "path" else f"{link['name']}."
            medium = link["medium"]
            self.ways.append({
                direction: Way(
                    index, direction, f"{name}{direction}",
                    medium[direction] if medium["kind"] == "wire" else None, self.frame_bytes,
                )
                for direction in DIRECTIONS
            })  # fmt: skip
        #: By the names of queues in recordings.
        self.by_queue = {way.queue: way for ways in self.ways for way in ways.values()}

    def route(self, sender: Keys, direction: str) -> list[Way]:
        """The ways that a sender's packets pass in this direction, in order."""
        route = sender["route"]
        links = range(route["enter"], route["leave"] + 1)
        return [self.ways[link][direction] for link in (links if direction == FORWARD
                                                        else reversed(links))]  # fmt: skip

    def end_delay_ns(self, sender: Keys, direction: str) -> int:
        """The constant delay between the row and the host."""
        own = sender.get(f"{direction}_delay_ns")
        return self.access[f"{direction}_delay_ns"] if own is None else own

    def least_delay_ns(self, sender: Keys, direction: str) -> int:
        """What each of a sender's packets takes at least, in this direction."""
        ways = self.route(sender, direction)
        return sum(way.least_delay_ns() for way in ways) + self.end_delay_ns(sender, direction)

    def least_rtt_ns(self, sender: Keys) -> int:
        return sum(self.least_delay_ns(sender, direction) for direction in DIRECTIONS)

    def keeps_flow_order(self, sender: Keys, direction: str) -> bool:
        """Whether packets of one flow with one class and one kind of ECN stay in order."""
        return not any(way.reorders for way in self.route(sender, direction))


def data_direction(sender: Keys) -> str:
    """The direction of a sender's data."""
    return FORWARD if sender.get("direction", "up") == "up" else REVERSE


def has_ecn(sender: Keys) -> bool:
    """Whether a sender asks for ECN: it is told to, or its algorithm always does."""
    return bool(sender["ecn"]) or sender["cc"]["algorithm"] in ("dctcp", "prague")
