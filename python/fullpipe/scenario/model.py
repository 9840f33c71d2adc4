"""What a user may write: the scenario, validated key by key.

A scenario is a TOML file or a dictionary of the same shape. Here it is checked and its quantities
are parsed; `fullpipe.plan` resolves it into what engines read. This module must never know an
engine.
"""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import pairwise
from pathlib import Path as FilePath
from typing import TYPE_CHECKING, Any, Literal

from pydantic import ConfigDict, Field, ValidationError, model_validator

from fullpipe._native import DEFAULT_KERNEL, KERNELS
from fullpipe.base import units
from fullpipe.base.errors import UserError
from fullpipe.base.overrides import apply_changes
from fullpipe.base.refusals import explain
from fullpipe.scenario import link_traces
from fullpipe.scenario.applications import (
    MAX_CONNECTIONS,
    MAX_DATAGRAMS,
    Page,
    Pattern,
    Udp,
)
from fullpipe.scenario.fields import Buffer, Dscp, Rate, Ratio, Section, Size, Spread, Time
from fullpipe.scenario.impairments import DamageKeys, check_damage
from fullpipe.scenario.qdiscs import wire_bytes
from fullpipe.scenario.traffic.options import MAWI, Traffic
from fullpipe.scenario.traffic.sizes import is_file
from fullpipe.scenario.wifi import WifiOptions, station_names

if TYPE_CHECKING:
    from fullpipe.congestion.registry import Table

#: Beyond these a scenario is a slip of the pen, and would only exhaust memory.
MAX_FLOWS = 1000
#: Of rates or delays of one way.
MAX_STEPS = 100_000
MAX_SAMPLES = 20_000_000
#: About what two programs on one host start apart.
REPEATED_START_SPREAD_NS = 5 * 10**6
MAX_FILE_BYTES = 2**20


QdiscName = Literal[
    "fifo", "fq", "codel", "fq_codel", "red", "cake", "pie", "fq_pie", "sfq", "tbf", "prio",
    "dualpi2",
]  # fmt: skip
if TYPE_CHECKING:
    KernelName = str
else:
    KernelName = Literal[KERNELS]
JitterShapeName = Literal["per_packet", "slotted"]
EcnChoice = bool | Literal["classic", "accecn", "l4s"]


class QdiscOptions(Section):
    """Parameters of the queue disciplines; those left out are Linux's defaults."""

    target: Time | None = Field(
        None, description="acceptable delay; codel, fq_codel: 5ms; pie, fq_pie, dualpi2: 15ms; "
        "cake: a twentieth of rtt"
    )  # fmt: skip
    interval: Time = Field(100 * 10**6, description="codel, fq_codel: width of the window")
    quantum: Size | None = Field(
        None, description="fq, fq_codel, fq_pie, sfq: bytes a flow sends per round"
    )
    flows: int | None = Field(
        None, ge=1, le=65536, description="number of queues; fq_codel, fq_pie: 1024; sfq: 128"
    )
    flow_limit: int | None = Field(
        None, ge=1, le=10**6, description="packets one flow may hold; fq: 100; sfq: 127"
    )
    memory_limit: Size = Field(32 * 2**20, description="fq_codel: bytes all queues may hold")
    min: Size | None = Field(None, description="red: threshold below which nothing is dropped")
    max: Size | None = Field(None, description="red: threshold above which everything is")
    max_probability: Ratio = Field(0.02, description="red: probability at `max`")
    update: Time | None = Field(
        None, description="between updates of the probability; pie, fq_pie: 15ms (ticks of "
        "4ms); dualpi2: 16ms"
    )  # fmt: skip
    alpha: float | None = Field(
        None, ge=0, le=100, description="weight of the delay in Hz; pie, fq_pie: 0.125; dualpi2: "
        "0.16"
    )  # fmt: skip
    beta: float | None = Field(
        None, ge=0, le=100, description="weight of the delay's change in Hz; pie, fq_pie: 1.25; "
        "dualpi2: 3.2"
    )  # fmt: skip
    byte_mode: bool = Field(False, description="pie, fq_pie: small packets are dropped less")
    departure_rate: bool = Field(
        False, description="pie, fq_pie: delay from the departure rate, not from timestamps"
    )
    ecn_up_to: Ratio = Field(0.1, description="fq_pie: marks up to this probability, then drops")
    buckets: int = Field(1024, ge=1, le=65536, description="sfq: hash buckets, a power of two")
    head_drop: bool = Field(False, description="sfq: a full flow loses its oldest packet")
    burst: Size | None = Field(
        None, description="tbf: bytes that gather while idle; what the rate carries in 4ms, two "
        "packets at least"
    )  # fmt: skip
    bands: int = Field(3, ge=1, le=16, description="prio: queues in strict priority, each `buffer`")
    default_band: int = Field(1, ge=0, le=15, description="prio: band of all other DSCPs")
    dscp: dict[str, int] = Field(
        default={"EF": 0, "CS6": 0, "CS7": 0, "CS1": 2, "LE": 2},
        description="prio: bands of DSCPs; 0 goes first",
    )
    step: Time = Field(10**6, description="dualpi2: L4S packets that waited longer are marked")
    coupling: int = Field(
        2, ge=1, le=255, description="dualpi2: L4S marks for each base probability"
    )
    classic_share: Ratio = Field(0.1, description="dualpi2: classic part where both queues wait")
    drop_on_overload: bool = Field(True, description="dualpi2: drops L4S too in overload")
    rtt: Time = Field(100 * 10**6, description="cake: nominal RTT")
    bandwidth: Literal["path", "unlimited"] = Field(
        "path", description="cake: path: its own shaper keeps the rate, as on home routers; "
        "unlimited: it only queues, and htb above it keeps the rate"
    )  # fmt: skip
    tins: Literal["besteffort", "diffserv3", "diffserv4", "diffserv8", "precedence"] = Field(
        "diffserv3", description="cake: classes of traffic by DSCP"
    )
    isolation: Literal[
        "flowblind", "srchost", "dsthost", "hosts", "flows", "dual-srchost", "dual-dsthost",
        "triple-isolate",
    ] = Field("triple-isolate", description="cake: what is kept apart from what")  # fmt: skip
    ack_filter: Literal["no", "filter", "aggressive"] = Field(
        "no", description="cake: drops ACKs that newer ones make superfluous"
    )
    overhead: int | None = Field(
        None, ge=-64, le=256, description="cake: bytes the link adds to an IP packet; an Ethernet "
        "header"
    )  # fmt: skip
    mpu: int = Field(0, ge=0, le=256, description="cake: least size of a packet on the link")
    framing: Literal["none", "atm", "ptm"] = Field(
        "none", description="cake: atm: cells of 53 bytes for 48; ptm: 65 bytes for 64"
    )
    ingress: bool = Field(False, description="cake: what it drops counts as sent")
    autorate_ingress: bool = Field(
        False, description="cake: sets its bandwidth by the rate at which packets arrive"
    )
    wash: bool = Field(False, description="cake: clears DSCPs")
    split_gso: bool = Field(True, description="cake: cuts GSO packets, which only kernels have")

    @model_validator(mode="after")
    def _consistent(self) -> QdiscOptions:
        if self.buckets & (self.buckets - 1):
            raise ValueError("buckets: must be a power of two, such as 1024")
        if self.default_band >= self.bands:
            raise ValueError(f"default_band: must be below bands, {self.bands}")
        for name, band in self.dscp.items():
            try:
                units.parse_dscp(name)
            except units.UnitError as error:
                raise ValueError(f"dscp: {error}") from None
            if not 0 <= band < self.bands:
                raise ValueError(f"dscp: {name}: band {band} is not one of 0 to {self.bands - 1}")
        if self.autorate_ingress and self.bandwidth != "path":
            raise ValueError('autorate_ingress: needs bandwidth = "path"')
        return self


class Path(Section):
    """One bottleneck and what lies around it."""

    rate: Rate = Field(description="rate of the bottleneck, on the wire")
    rtt: Time = Field(description="base RTT: no queue, no serialization")
    buffer: Buffer | None = Field(None, description="limit of the queue; fifo: 1bdp")
    qdisc: QdiscName = Field("fifo", description="what manages the queue")
    qdisc_options: QdiscOptions = Field(default_factory=QdiscOptions)
    forward_delay: Time = Field(
        0, description="part of the base RTT that lies behind the bottleneck; the rest is on the "
        "way back, where testbeds put it"
    )  # fmt: skip
    reverse_rate: Rate | None = Field(None, description="rate of the way back; not limited")
    reverse_buffer: Buffer | None = Field(None, description="limit of its queue; 1bdp")
    reverse_qdisc: QdiscName = Field("fifo", description="what manages it")
    mtu: int = Field(1500, ge=576, le=9000, description="largest IP packet in bytes")
    loss: Ratio = Field(0.0, description="random loss at the senders' egress")
    loss_correlation: Ratio = Field(0.0, description="netem's correlation of that loss")
    loss_marks: bool = Field(False, description="mark CE instead of dropping (netem ecn)")
    loss_per: Literal["packet", "burst"] = Field(
        "packet", description="burst: one draw for what TCP sends at once, as netem at a sender"
    )
    reverse_loss: Ratio = Field(0.0, description="random loss of the way back")
    jitter: Time = Field(0, description="random extra delay of the way back, 0 to this")
    jitter_shape: JitterShapeName = Field("per_packet", description="how it is drawn")
    ecn: EcnChoice = Field(
        False, description="flows negotiate ECN and AQMs mark; true is classic (RFC 3168), accecn "
        "counts marks (RFC 9768; kernels from 7.0), l4s also sends ECT(1) where the algorithm "
        "answers marks in proportion"
    )  # fmt: skip

    @model_validator(mode="after")
    def _consistent(self) -> Path:
        if self.rtt <= 0:
            raise ValueError("rtt: must be above 0, such as 40ms")
        if self.forward_delay > self.rtt:
            raise ValueError("forward_delay: must not exceed rtt, of which it is a part")
        options = self.qdisc_options
        if options.min and options.max and options.min >= options.max:
            raise ValueError("qdisc_options.min: must be below qdisc_options.max")
        if self.loss_correlation and not self.loss:
            raise ValueError("loss_correlation: needs loss above 0")
        return self


class LinkWay(DamageKeys):
    """The way back of a link; what is left out is as the way forward, but it is not limited."""

    rate: Rate | None = Field(None, description="rate on the wire; not limited")
    delay: Time | None = Field(None, description="one-way delay; of the way back: as forward")
    buffer: Buffer | None = Field(None, description="limit of the queue; fifo: 1bdp")
    qdisc: QdiscName = Field("fifo", description="what manages the queue")
    qdisc_options: QdiscOptions = Field(default_factory=QdiscOptions)
    loss: Ratio = Field(0.0, description="random loss before the queue, of probes too")
    loss_correlation: Ratio = Field(0.0, description="netem's correlation of that loss")
    loss_marks: bool = Field(False, description="mark CE instead of dropping (netem ecn)")
    rate_steps: list[tuple[Time, Rate]] = Field(
        default=[], max_length=MAX_STEPS, description="the rate from a time on, in order"
    )
    delay_steps: list[tuple[Time, Time]] = Field(
        default=[], max_length=MAX_STEPS, description="the delay from a time on, in order; of "
        "packets none overtakes another"
    )  # fmt: skip
    outage: list[tuple[Time, Time]] = Field(
        default=[], max_length=MAX_STEPS, description="when nothing passes: its start and how long"
    )
    rate_trace: str | None = Field(
        None, min_length=1, max_length=4096, description="file of delivery opportunities as "
        "Mahimahi's, in place of rate; relative to the scenario"
    )  # fmt: skip
    delay_trace: str | None = Field(
        None, min_length=1, max_length=4096, description="file of times and one-way delays in ms, "
        "in place of delay; relative to the scenario"
    )  # fmt: skip

    @model_validator(mode="after")
    def _consistent_way(self) -> LinkWay:
        for key in ("rate_steps", "delay_steps", "outage"):
            times = [step[0] for step in getattr(self, key)]
            for before, after in pairwise(times):
                if after <= before:
                    at, last = units.format_time(after), units.format_time(before)
                    raise ValueError(f"{key}: the one at {at} must come after the one at {last}")
            if key != "delay_steps" and times and self.rate is None:
                raise ValueError(f"{key}: needs a rate")
        if self.qdisc == "tbf" or (self.qdisc == "cake" and self.qdisc_options.bandwidth == "path"):
            for key in ("rate_steps", "outage", "rate_trace"):
                if getattr(self, key):
                    raise ValueError(
                        f"{key}: {self.qdisc} keeps the rate itself, and keeps one; let a link "
                        'behind it change, or write qdisc_options.bandwidth = "unlimited" (cake)'
                    )
        for key, read in (("rate", link_traces.rate_trace), ("delay", link_traces.delay_trace)):
            name = getattr(self, f"{key}_trace")
            if name is None:
                continue
            if getattr(self, key) is not None or getattr(self, f"{key}_steps"):
                raise ValueError(f"{key}_trace: stands in place of {key} and {key}_steps")
            try:
                read(name)
            except ValueError as error:
                raise ValueError(f"{key}_trace: {error}") from None
        if self.gemodel and self.loss:
            raise ValueError("gemodel: and loss: one of them decides what is lost")
        for (start, length), (after, _) in pairwise(self.outage):
            if start + length > after:
                end, begin = units.format_time(start + length), units.format_time(after)
                raise ValueError(
                    f"outage: one lasts until {end} and the next begins at {begin}; "
                    "one must end before the next begins"
                )
        if self.loss_correlation and not self.loss:
            raise ValueError("loss_correlation: needs loss above 0")
        return self

    @property
    def mean_rate(self) -> int | None:
        """The rate, or the mean of its trace."""
        return link_traces.rate_trace(self.rate_trace).value if self.rate_trace else self.rate

    @property
    def first_delay(self) -> int | None:
        """The delay, or that with which its trace begins."""
        return link_traces.delay_trace(self.delay_trace).value if self.delay_trace else self.delay


class Link(LinkWay):
    """One hop of a row, both directions; `[[link]]` in the order in which "up" flows pass them. A
    link of `kind = "wifi"` has its channel in `[link.wifi]`, with the keys of `[wifi]`."""

    name: str = Field(
        min_length=1, max_length=40, pattern=r"^[A-Za-z0-9_+:-]+$",
        description="unique; in tables, and what a flow's enter and leave name",
    )  # fmt: skip
    kind: Literal["wire", "wifi"] = Field(
        "wire", description="wire: both ways at once, independent; wifi: a channel that both ways "
        "and all stations share, behind a queue of its rate where it has one"
    )  # fmt: skip
    wifi: WifiOptions | None = None
    reverse: LinkWay = Field(default_factory=LinkWay)

    @model_validator(mode="after")
    def _consistent_kind(self) -> Link:
        if self.kind == "wire" and self.wifi is not None:
            raise ValueError('wifi: needs kind = "wifi"')
        if self.kind == "wire":
            return self
        allowed = {"rate", "buffer", "qdisc", "qdisc_options"}
        for prefix, way in (("", self), ("reverse.", self.reverse)):
            for key in LinkWay.model_fields:
                if key in way.model_fields_set - allowed:
                    raise ValueError(
                        f"{prefix}{key}: a Wi-Fi link has none; write a wire beside it"
                    )
            if way.rate is None and (way.qdisc != "fifo" or way.buffer is not None):
                raise ValueError(
                    f"{prefix}rate: a queue before the channel needs one; the channel's own queues "
                    "are in wifi"
                )
        return self

    @property
    def channel(self) -> WifiOptions | None:
        """The channel of a Wi-Fi link."""
        return (self.wifi or WifiOptions()) if self.kind == "wifi" else None


class Flow(Section):
    """One connection, or `count` equal ones."""

    cc: str = Field(
        min_length=1, max_length=500,
        description="congestion control: a name of `fullpipe cc list`, the same with changed "
        "constants (cubic[beta=0.85]), a variant of [cc.NAME], a file (./mine.h, or a "
        "class of Python, ./mine.py:Mine; relative to the scenario), or kernel:NAME",
    )  # fmt: skip
    count: int = Field(1, ge=1, le=MAX_FLOWS, description="how many flows like this")
    name: str | None = Field(
        None, min_length=1, max_length=60, pattern=r"^[A-Za-z0-9._+:-]+$",
        description="name in tables and plots; the congestion control and a number",
    )  # fmt: skip
    start: Time = Field(0, description="when it connects")
    start_step: Time = Field(0, description="each further flow of `count` starts so much later")
    stop: Time | None = Field(None, description="when its application stops; at the end")
    amount: Size | None = Field(None, description="how much it sends; without end")
    app_rate: Rate | None = Field(None, description="rate of its application; always ready")
    pattern: Pattern | None = Field(None, description="when its application writes")
    direction: Literal["up", "down"] = Field("up", description="up: through the bottleneck")
    rtt: Time | None = Field(None, description="own base RTT; the path's")
    jitter: Time | None = Field(None, description="own jitter; the path's")
    jitter_shape: JitterShapeName | None = Field(None, description="how it is drawn; the path's")
    receive_window: Size | None = Field(None, description="fixed receive window; autotuned")
    ecn: EcnChoice | None = Field(None, description="negotiate ECN; as the path says")
    dscp: Dscp = Field(0, description="DSCP of its packets, ACKs included, such as EF or AF41")
    host: int = Field(
        0, ge=0, le=255, description="host at its near end (where up flows begin); flows with the "
        "same number share it and its address"
    )  # fmt: skip
    far_host: int = Field(0, ge=0, le=255, description="host at its far end, likewise")
    station: str | None = Field(
        None, description="with Wi-Fi: the station that it is at, by name; the first"
    )
    enter: str | None = Field(None, description="the link where its route begins; the first")
    leave: str | None = Field(None, description="the link where its route ends; the last")

    @model_validator(mode="after")
    def _consistent(self) -> Flow:
        if self.stop is not None and self.stop <= self.start:
            raise ValueError("stop: must be after start")
        if self.rtt == 0:
            raise ValueError("rtt: must be above 0, such as 40ms")
        if self.pattern and (self.amount is not None or self.app_rate is not None):
            raise ValueError("pattern: not beside amount or app_rate")
        if self.receive_window is not None and self.receive_window < 2048:
            raise ValueError("receive_window: must be at least 2KB, one packet and its reserve")
        return self


class Probe(Section):
    """A latency measurement beside the flows."""

    kind: Literal["ping", "udp"] = Field("ping", description="ICMP echo, or UDP and back")
    name: str | None = Field(
        None, min_length=1, max_length=60, pattern=r"^[A-Za-z0-9._+:-]+$",
        description="name in tables and plots; the kind and a number",
    )  # fmt: skip
    interval: Time = Field(200 * 10**6, description="between requests; Flent uses 200ms")
    start: Time = Field(0, description="when the first request is sent")
    dscp: Dscp = Field(0, description="DSCP of requests and answers, such as EF")
    station: str | None = Field(
        None, description="with Wi-Fi: the station that it is at, by name; the first"
    )
    enter: str | None = Field(None, description="the link where its route begins; the first")
    leave: str | None = Field(None, description="the link where its route ends; the last")

    @model_validator(mode="after")
    def _consistent(self) -> Probe:
        if self.interval < 10**6:
            raise ValueError("interval: must be at least 1ms")
        return self


class Host(Section):
    """How the end hosts are set up; defaults are a stock Linux host's with offloads off."""

    pacing: Literal["internal", "fq"] = Field(
        "internal", description="internal: TCP's own timers, for algorithms that pace; fq: sch_fq "
        "at the sender paces every flow"
    )  # fmt: skip
    tsq: Literal["1ms", "2ms", "4ms", "8ms"] = Field(
        "1ms", description="queued time that TCP small queues allow (sk_pacing_shift 10 to 7)"
    )
    gso_max_segments: int = Field(
        44, ge=1, le=65535, description="largest burst; 1: TSO off; most devices: 45"
    )
    receive_aggregation: Time = Field(0, description="GRO: packets within it share an ACK; 0: off")
    ack_policy: Literal["linux", "every_packet", "every_second"] = Field(
        "linux", description="linux: quick ACKs at first, then every second packet or a timer"
    )
    tcp: KernelName = Field(
        DEFAULT_KERNEL, description="whose TCP, as that Linux was released; 6.1, 6.12.117: as "
        "stable releases since late 2025; the virtual machine boots the latter"
    )  # fmt: skip
    cc_facts: Literal["google", "stock"] = Field(
        "google", description="what TCP tells congestion controls: google: of each packet its own "
        "flight and losses, as Google's kernel; stock: what eBPF learns on a stock kernel"
    )  # fmt: skip
    receive_low_water: Size = Field(
        1, ge=1, le=32768, description="the receiving application reads when so much waits "
        "(SO_RCVLOWAT); 1B: at once, as most do"
    )  # fmt: skip
    rmem_max: Size = Field(64 * 2**20, description="ceiling of receive-window autotuning")
    wmem_max: Size = Field(64 * 2**20, description="ceiling of the send buffer")
    initial_cwnd: int = Field(10, ge=1, le=1000, description="packets (RFC 6928)")
    access_rate: Rate | None = Field(None, description="each sender's own link; not limited")
    arp: bool = Field(False, description="first packets pay an address resolution")
    packet_cost: Time = Field(
        0, le=10**9, description="work of a receiving host for a data packet; what its one "
        "processor cannot do at once waits"
    )  # fmt: skip
    ack_cost: Time = Field(
        0, le=10**9, description="work for an ACK, of the host that makes it and the one it reaches"
    )
    send_cost: Time = Field(
        0, le=10**9, description="work of a sending host for each packet of a burst, none of which "
        "leaves before all are made"
    )  # fmt: skip
    handshake_cost: Time = Field(
        0, le=10**9, description="work for a packet of a handshake, of the host that it reaches"
    )
    reader_pause: Time = Field(
        0, description="other processes keep those who read from the processor for so long each "
        "time: what nobody has read is not acknowledged; 0: never"
    )  # fmt: skip
    reader_pause_spread: Time = Field(
        0, description="each is longer or shorter by up to so much, drawn from the seed"
    )
    reader_pause_every: Time = Field(
        100 * 10**6, description="how often, beginning at a time drawn from the seed"
    )

    @model_validator(mode="after")
    def _reads_at_times(self) -> Host:
        if self.reader_pause_spread > self.reader_pause:
            mean = units.format_time(self.reader_pause)
            raise ValueError(f"reader_pause_spread: must be at most reader_pause, {mean}")
        longest = self.reader_pause + self.reader_pause_spread
        if longest and longest >= self.reader_pause_every:
            every = units.format_time(self.reader_pause_every)
            raise ValueError(
                f"reader_pause: with reader_pause_spread must be less than reader_pause_every, "
                f"{every}"
            )
        return self


class CcTable(Section):
    """Constants of a congestion control: of all flows that use its name, or, with `base`, of a
    variant that stands beside it under a name of its own. The other keys are constants of `fullpipe
    cc show NAME`."""

    model_config = ConfigDict(extra="allow")
    __pydantic_extra__: dict[str, float]

    base: str | None = Field(None, description="the congestion control that this is a variant of")

    @property
    def numbers(self) -> dict[str, float]:
        """The constants."""
        return dict(self.model_extra or {})


_Routed = Flow | Probe | Page | Udp | Traffic


class Scenario(Section):
    """One thing to run."""

    name: str = Field(
        "scenario", min_length=1, max_length=200, description="in tables, plots and reports"
    )
    flent_test: str | None = Field(
        None, min_length=1, max_length=60, pattern=r"^[A-Za-z0-9_-]+$",
        description="the test of Flent's that this is (`fullpipe test`): it is exported as that",
    )  # fmt: skip
    duration: Time = Field(description="how long the run lasts")
    warmup: Time = Field(0, description="metrics leave out this much at the start")
    seed: int = Field(1, ge=0, le=2**63 - 1, description="of every random number")
    start_spread: Time | None = Field(
        None, description="each flow starts up to so much later, drawn from the seed, because "
        "nothing else differs between seeds before the first loss; 0, or 5ms in runs that are "
        "repeated (--repeat, compare, sweeps, experiments)"
    )  # fmt: skip
    rtt_spread: Spread | None = Field(
        None, description="every round trip is up to so much longer, drawn from the seed, because "
        "whether what follows an ACK comes just before or just after a packet leaves decides who "
        "finds a full queue; a buffer in BDP stays that of the base RTT; 0, in repeated runs too"
    )  # fmt: skip
    sample_interval: Time = Field(100 * 10**6, description="between samples of flows and queues")
    path: Path
    wifi: WifiOptions | None = Field(
        None, description="a Wi-Fi hop before the path: its stations send and receive"
    )
    link: list[Link] = Field(
        default_factory=list, max_length=64, description="a row of links in place of [path], which "
        "may then hold mtu and ecn only"
    )  # fmt: skip
    flow: list[Flow] = Field(default_factory=list, description="the connections")
    page: list[Page] = Field(
        default_factory=list, max_length=64, description="pages that are loaded"
    )
    udp: list[Udp] = Field(default_factory=list, max_length=64, description="streams of datagrams")
    traffic: list[Traffic] = Field(
        default_factory=list, max_length=64, description="flows that come and go"
    )
    probe: list[Probe] = Field(default_factory=list, max_length=16)
    host: Host = Field(default_factory=Host)
    cc: dict[str, CcTable] = Field(
        default_factory=dict, description="changed constants, [cc.bbr3] probe_down_gain = 0.9, and "
        'variants, [cc.cubic85] base = "cubic" beta = 0.85'
    )  # fmt: skip

    @model_validator(mode="before")
    @classmethod
    def _path_of_row(cls, document: Any) -> Any:
        """With a row of links, `path` is its first bottleneck in short."""
        if not isinstance(document, Mapping) or not document.get("link"):
            return document
        path = document.get("path", {})
        if not isinstance(path, Mapping):
            return document
        for key in path:
            if key not in ("mtu", "ecn"):
                raise ValueError(
                    f"path.{key}: with [[link]] rows, only mtu and ecn stand in [path]"
                )
        return {**document, "path": {**path, **_bottleneck(document["link"])}}

    @model_validator(mode="after")
    def _consistent(self) -> Scenario:
        if not (self.flow or self.page or self.udp or self.traffic):
            raise ValueError(
                "flow: there must be at least one [[flow]], [[page]], [[udp]] or [[traffic]]"
            )
        self._check_row()
        self._check_applications()
        self._check_traffic()
        if self.duration <= 0:
            raise ValueError("duration: must be above 0, such as 60s")
        if self.warmup >= self.duration:
            raise ValueError("warmup: must be shorter than duration")
        if self.sample_interval < 10**6:
            raise ValueError("sample_interval: must be at least 1ms")
        count = sum(flow.count for flow in self.flow)
        if count > MAX_FLOWS:
            raise ValueError(f"flow: {count} flows in all, at most {MAX_FLOWS}")
        if self.duration // self.sample_interval * (count + 1) > MAX_SAMPLES:
            raise ValueError(f"sample_interval: more than {MAX_SAMPLES} samples; make it longer")
        for index, flow in enumerate(self.flow):
            latest = flow.start + flow.start_step * (flow.count - 1) + (self.start_spread or 0)
            if latest >= self.duration:
                raise ValueError(f"flow.{index}.start: must be before the end of the run")
        if self.rtt_spread_ns > units.MAX_TIME_NS:
            raise ValueError("rtt_spread: its packets take more than a week at the bottleneck")
        stations = [name for one in self.channels for name in station_names(one)]
        everyone: dict[str, Sequence[_Routed]] = {
            "flow": self.flow, "probe": self.probe, "page": self.page, "udp": self.udp,
            "traffic": self.traffic,
        }  # fmt: skip
        chosen = [
            (f"{kind}.{index}", one.station)
            for kind, members in everyone.items()
            for index, one in enumerate(members)
        ]
        for key, name in chosen:
            if name is not None and name not in stations:
                known = ", ".join(stations) or "none: there is no Wi-Fi"
                raise ValueError(f"{key}.station: is not one of {known}")
        names = [flow.name for flow in self.flow if flow.name]
        for name in names:
            if names.count(name) > 1:
                raise ValueError(f"flow: the name {name!r} is used twice; names must differ")
        return self

    @property
    def rtt_spread_ns(self) -> int:
        """By how much round trips of seeds differ at most."""
        if self.rtt_spread is None:
            return 0
        return self.rtt_spread.ns(self.path.rate, wire_bytes(self.path.mtu))

    @property
    def channels(self) -> list[WifiOptions]:
        """All Wi-Fi channels of the network."""
        found = [self.wifi, *(link.channel for link in self.link)]
        return [channel for channel in found if channel is not None]

    def _check_applications(self) -> None:
        kinds: list[tuple[str, Sequence[Page | Udp]]] = [("page", self.page), ("udp", self.udp)]
        for kind, members in kinds:
            names = [one.name for one in members if one.name]
            for index, one in enumerate(members):
                if one.name and names.count(one.name) > 1:
                    raise ValueError(f"{kind}: the name {one.name!r} is used twice")
                if one.start >= self.duration:
                    raise ValueError(f"{kind}.{index}.start: must be before the end of the run")
        opened = sum(page.most_connections(self.duration) for page in self.page)
        if opened > MAX_CONNECTIONS:
            raise ValueError(
                f"page: may open {opened} connections, at most {MAX_CONNECTIONS}; make interval "
                "longer, or give loads"
            )
        sent = sum(udp.most_datagrams(self.duration) for udp in self.udp)
        if sent > MAX_DATAGRAMS:
            raise ValueError(f"udp: {sent} datagrams in all, at most {MAX_DATAGRAMS}")
        for index, udp in enumerate(self.udp):
            if udp.payload > self.path.mtu - 28:
                raise ValueError(
                    f"udp.{index}.payload: at most {self.path.mtu - 28}, what path.mtu holds"
                )

    def _check_traffic(self) -> None:
        names = [traffic.name for traffic in self.traffic if traffic.name]
        for index, traffic in enumerate(self.traffic):
            if traffic.name and names.count(traffic.name) > 1:
                raise ValueError(
                    f"traffic: the name {traffic.name!r} is used twice; names must differ"
                )
            if traffic.start >= self.duration:
                raise ValueError(f"traffic.{index}.start: must be before the end of the run")

    def repeated(self) -> Scenario:
        """As it is run with several seeds: with the spread of starts that it names, or the usual
        one."""
        if self.start_spread is not None:
            return self
        return self.model_copy(update={"start_spread": REPEATED_START_SPREAD_NS})

    def _check_row(self) -> None:
        names = [link.name for link in self.link]
        everyone: list[tuple[str, Sequence[_Routed]]]
        everyone = [
            ("flow", self.flow), ("probe", self.probe), ("page", self.page), ("udp", self.udp),
            ("traffic", self.traffic),
        ]  # fmt: skip
        if not names:
            for kind, users in everyone:
                for index, one in enumerate(users):
                    for key in ("enter", "leave"):
                        if getattr(one, key) is not None:
                            raise ValueError(f"{kind}.{index}.{key}: needs [[link]] rows")
            return
        for name in names:
            if names.count(name) > 1:
                raise ValueError(f"link: the name {name!r} is used twice; names must differ")
        if all(link.mean_rate is None for link in self.link):
            raise ValueError("link: at least one needs a rate")
        if self.wifi and any(link.channel for link in self.link):
            raise ValueError("wifi: there is a link of that kind; one of them is enough")
        for index, link in enumerate(self.link):
            delay = link.first_delay or 0
            back = link.reverse.first_delay
            for prefix, way, ns in (
                ("", link, delay), ("reverse.", link.reverse, delay if back is None else back)
            ):  # fmt: skip
                try:
                    check_damage(way, ns, self.path.mtu)
                except ValueError as error:
                    raise ValueError(f"link.{index}.{prefix}{error}") from None
        passed: set[int] = set()
        for kind, users in everyone:
            for index, one in enumerate(users):
                for key in ("enter", "leave"):
                    name = getattr(one, key)
                    if name is not None and name not in names:
                        known = ", ".join(names)
                        raise ValueError(f"{kind}.{index}.{key}: is no link; known are {known}")
                first, last = self.route(one)
                if first > last:
                    raise ValueError(
                        f"{kind}.{index}.leave: lies before enter, {names[first]!r}; links are in "
                        "the order in which up flows pass them"
                    )
                if kind != "probe":
                    passed |= {*range(first, last + 1)}
        unused = [name for index, name in enumerate(names) if index not in passed]
        if unused:
            raise ValueError(
                f"link.{names.index(unused[0])}.name: no flow passes this link; leave the link "
                "out, or let it lie between a flow's enter and leave"
            )

    def route(self, one: _Routed) -> tuple[int, int]:
        """Positions of the first and the last link that it passes."""
        names = [link.name for link in self.link] or [""]
        first = 0 if one.enter is None else names.index(one.enter)
        last = len(names) - 1 if one.leave is None else names.index(one.leave)
        return first, last

    @property
    def cc_tables(self) -> dict[str, Table]:
        """The tables of `cc`, as `cc_sets` takes them."""
        if not self.cc:
            return {}
        from fullpipe.congestion.registry import Table  # the registry is compiled: only when needed

        return {name: Table(table.base, table.numbers) for name, table in self.cc.items()}


def _bottleneck(links: Any) -> dict[str, Any]:
    """What [path] says of the slowest link of a row, of equals the first, and of all delays."""
    slowest: dict[str, Any] = {"rate": "1mbit"}
    least, rtt = units.MAX_RATE_BPS + 1, 0
    for link in links if isinstance(links, list) else []:
        try:
            reverse = link.get("reverse") or {}
            forth = _of(link, "delay", units.parse_time, link_traces.delay_trace) or 0
            back = _of(reverse, "delay", units.parse_time, link_traces.delay_trace)
            rtt += forth + (forth if back is None else back)
            rate = _of(link, "rate", units.parse_rate, link_traces.rate_trace)
        except (ValueError, AttributeError, TypeError):
            continue  # the link's own check says what is wrong
        if rate is not None and rate < least:
            least = rate
            keys = ("buffer", "qdisc", "qdisc_options")
            slowest = {key: link[key] for key in keys if key in link}
            slowest["rate"] = link.get("rate", f"{rate}bit")
    return {**slowest, "rtt": f"{max(rtt, 1)}ns"}


def _of(
    link: Mapping[str, Any], key: str, parse: Callable[[Any], int],
    read: Callable[[str], link_traces.Trace],
) -> int | None:  # fmt: skip
    """What a link says of its rate or delay, by a value or by a trace."""
    if f"{key}_trace" in link:
        return read(link[f"{key}_trace"]).value
    return parse(link[key]) if key in link else None


def load_scenario(path: FilePath | str, changes: Iterable[str] = ()) -> Scenario:
    """The scenario in a TOML file, with `key=value` changes applied (see `apply_changes`).

    Raises UserError naming file, key, value and what is allowed."""
    return make_scenario(load_document(path), str(path), changes)


def load_document(
    path: FilePath | str, what: str = "scenario", needs: str = "duration, [path] and [[flow]]"
) -> dict[str, Any]:
    """The TOML file as a dictionary, not validated yet; `what` it is and `needs` stand in errors.

    Raises UserError where it cannot be read, is empty, too large or no TOML."""
    path = FilePath(path)
    try:
        if path.is_dir():
            raise UserError(f"{path}: is a folder; a {what} is a TOML file")
        with path.open("rb") as file:
            content = file.read(MAX_FILE_BYTES + 1)
        if len(content) > MAX_FILE_BYTES:
            raise UserError(f"{path}: larger than 1 MiB; that is no {what}")
        document: dict[str, Any] = tomllib.loads(content.decode("utf-8"))
    except OSError as error:
        raise UserError(f"{path}: cannot be read: {error.strerror}") from None
    except UnicodeDecodeError:
        raise UserError(f"{path}: not a text file; a {what} is TOML in UTF-8") from None
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        raise UserError(f"{path}: not TOML: {error}") from None
    if not document:
        raise UserError(f"{path}: empty; a {what} needs {needs}")
    find_files(document, path.parent)
    return document


def find_files(document: dict[str, Any], folder: FilePath) -> None:
    """Files of congestion controls, sizes and traces are named relative to the scenario's folder;
    unless that is the current one, the document then has their absolute paths."""
    from fullpipe.congestion.external import (
        is_file_name,  # loads what is compiled: only when needed
    )

    folder = folder.resolve()
    if folder == FilePath.cwd():
        return
    tables = document.get("cc")
    lists = [document.get(key) for key in ("flow", "page", "traffic")]
    items = [(item, "cc") for found in lists if isinstance(found, list) for item in found]
    for item in lists[2] if isinstance(lists[2], list) else []:
        for key in ("sizes", "trace"):
            name = item.get(key) if isinstance(item, dict) else None
            if isinstance(name, str) and (name != MAWI if key == "trace" else is_file(name)):
                item[key] = str(folder / name)
    items += [(item, "base") for item in tables.values()] if isinstance(tables, dict) else []
    for item, key in items:
        name = item.get(key) if isinstance(item, dict) else None
        if isinstance(name, str) and is_file_name(name.split("[")[0]):
            item[key] = str(folder / name)
    links = document.get("link")
    ways = [link for link in links if isinstance(link, dict)] if isinstance(links, list) else []
    ways += [link["reverse"] for link in ways if isinstance(link.get("reverse"), dict)]
    for way in ways:
        for key in ("rate_trace", "delay_trace"):
            if isinstance(way.get(key), str):
                way[key] = str(folder / way[key])


def make_scenario(
    document: Mapping[str, Any], source: str = "scenario", changes: Iterable[str] = ()
) -> Scenario:
    """The scenario in a dictionary of the TOML file's shape; `source` names it in errors.

    Raises UserError naming source, key, value and what is allowed."""
    wanted = list(changes)
    changed = document if type(document) is dict and not wanted else apply_changes(document, wanted)
    try:
        scenario = Scenario.model_validate(changed)
    except ValidationError as error:
        raise UserError(f"{source}: {explain(error, Scenario)}") from None
    try:
        check_ccs(scenario)
    except UserError as error:
        raise UserError(f"{source}: {error}") from None
    return scenario


def check_ccs(scenario: Scenario) -> None:
    """Raises UserError unless every congestion control of a scenario exists, and every table of
    `cc` fits its own."""
    from fullpipe.congestion.registry import (
        check_choices,  # the registry is compiled: only when needed
    )

    choices = [flow.cc for flow in scenario.flow] + [page.cc for page in scenario.page]
    choices += [one.cc for one in scenario.traffic]
    check_choices(choices, scenario.cc_tables)
