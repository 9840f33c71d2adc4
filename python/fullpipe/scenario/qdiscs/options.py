"""The options of each queue discipline that a scenario may set, and what engines get of them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any, Literal

from pydantic import Field, model_validator

from fullpipe.base import units
from fullpipe.scenario.fields import SIZE, TIME, Duration, Ratio, Section, Size, Time
from fullpipe.scenario.host import KernelName
from fullpipe.scenario.link_layer import (
    ABOUT,
    LINK_LAYERS,
    Framing,
    LinkLayer,
    Overhead,
    link_layer,
)

MS = 10**6
#: Sizes that kernels count in 32 bits.
Size32 = Annotated[int, SIZE.between(1, 2**31)]
#: Between two updates of a probability, which kernels count in whole microseconds: DualPI2 refuses
#: 0 (dualpi2_policy), and PIE would make none (pie_timer()).
Update = Annotated[int, TIME.between(1000, units.MAX_TIME_NS)]


@dataclass(frozen=True)
class Port:
    """What a queue serves, and how long it may get; both limits are None where the kernel derives
    one. `packet_bytes`: a full packet on the wire."""

    rate_bps: int
    packet_bytes: int
    ecn: bool
    limit_bytes: int | None
    limit_packets: int | None


def set_only(**parameters: Any) -> dict[str, Any]:
    """The parameters that are set: plans name no default of what came later, so that their hashes
    stay."""
    return {name: value for name, value in parameters.items() if value is not None}


class Options(Section):
    """Options of one queue discipline. Defaults are those of tc and Linux."""

    @property
    def keeps_rate(self) -> bool:
        """Whether the discipline shapes to the link's rate itself; htb does for the others."""
        return False

    def over(self, layer: LinkLayer) -> Options:
        """The same over a link layer, for a discipline that counts it."""
        return self

    def limit_bytes(self, port: Port) -> int | None:
        """The limit in bytes that engines get."""
        return port.limit_bytes

    def parameters(self, port: Port) -> dict[str, Any]:
        """The parameters that engines get (`Aqm` of crates/fullpipe-net/src/queue/mod.rs)."""
        return {}


class Fifo(Options):
    """First in, first out (bfifo, pfifo). It has no options."""


class Codel(Options):
    """Controlled delay (sch_codel, RFC 8289)."""

    target: Duration = Field(5 * MS, description="acceptable standing queueing delay")
    interval: Duration = Field(
        100 * MS, description="how long the delay must exceed the target before packets are dropped"
    )
    ce_threshold: Time | None = Field(
        None,
        description="packets that waited longer are marked if they can carry a mark, with or "
        "without path.ecn; default: never",
    )
    kernel: KernelName | None = Field(
        None,
        description="Linux release whose CoDel it is; default: the newest; those from before "
        "March 2026 drop packets of flows that pause",
    )

    def parameters(self, port: Port) -> dict[str, Any]:
        return {
            "target_ns": self.target,
            "interval_ns": self.interval,
            "ecn": port.ecn,
            **set_only(ce_threshold_ns=self.ce_threshold, kernel=self.kernel),
        }


class FqCodel(Codel):
    """Fair queueing with CoDel in each queue (sch_fq_codel, RFC 8290)."""

    quantum: Size32 | None = Field(
        None, description="bytes that a flow may send per round; default: one full packet"
    )
    flows: int = Field(1024, ge=1, le=65536, description="number of queues")
    memory_limit: Size = Field(32 * 2**20, description="kernel memory that all queues may take")

    def parameters(self, port: Port) -> dict[str, Any]:
        return {
            **super().parameters(port),
            "quantum_bytes": self.quantum or port.packet_bytes,
            "flows": self.flows,
            "memory_limit_bytes": self.memory_limit,
        }


#: The kernel counts a gain in sixteenths of a Hz.
_PIE_GAIN_UNITS_PER_HZ = 16


class Pie(Options):
    """Proportional integral controller enhanced (sch_pie, RFC 8033)."""

    target: Duration = Field(15 * MS, description="acceptable queueing delay")
    update: Update = Field(
        15 * MS,
        description="what the timer of the drop probability is set to; the kernel counts in ticks "
        "of 4ms and never fires early, so 15ms is 20ms",
    )
    alpha: float = Field(0.125, ge=0, le=100, description="weight of the delay, in Hz")
    beta: float = Field(1.25, ge=0, le=100, description="weight of the delay's change, in Hz")
    byte_mode: bool = Field(False, description="drops small packets less often")
    departure_rate: bool = Field(
        False, description="estimates the delay from the departure rate instead of timestamps"
    )

    def parameters(self, port: Port) -> dict[str, Any]:
        return {
            "target_ns": self.target,
            "update_ns": self.update,
            "alpha": round(self.alpha * _PIE_GAIN_UNITS_PER_HZ),
            "beta": round(self.beta * _PIE_GAIN_UNITS_PER_HZ),
            "ecn": port.ecn,
            "byte_mode": self.byte_mode,
            "rate_estimator": self.departure_rate,
        }


class FqPie(Pie):
    """Fair queueing with PIE in each queue (sch_fq_pie)."""

    quantum: Size32 | None = Field(
        None, description="bytes that a flow may send per round; default: one full packet"
    )
    flows: int = Field(1024, ge=1, le=65536, description="number of queues")
    ecn_up_to: Ratio = Field(
        0.1, description="marks packets up to this drop probability, and drops them above it"
    )

    def parameters(self, port: Port) -> dict[str, Any]:
        return {
            **super().parameters(port),
            "quantum_bytes": self.quantum or port.packet_bytes,
            "flows": self.flows,
            "ecn_percent": round(self.ecn_up_to * 100),
        }


class Fq(Options):
    """Fair queueing by flow (sch_fq)."""

    quantum: Size32 | None = Field(
        None, description="bytes that a flow may send per round; default: two full packets"
    )
    flow_limit: int = Field(100, ge=1, le=10**6, description="packets that one flow may queue")
    ce_threshold: Time | None = Field(
        None,
        description="packets that leave later than this after they might have left are marked; "
        "default: never",
    )
    kernel: KernelName | None = Field(
        None,
        description="Linux release whose fq it is; default: the newest; before 6.7 it has no "
        "bands, behind which new flows wait",
    )

    def parameters(self, port: Port) -> dict[str, Any]:
        return {
            "quantum_bytes": self.quantum or 2 * port.packet_bytes,
            "flow_limit_packets": self.flow_limit,
            **set_only(ce_threshold_ns=self.ce_threshold, kernel=self.kernel),
        }


class Sfq(Options):
    """Stochastic fairness queueing (sch_sfq)."""

    quantum: Size32 | None = Field(
        None, description="bytes that a flow may send per round; default: one full packet"
    )
    flows: int = Field(128, ge=1, le=65536, description="flows that may queue at once")
    flow_limit: int = Field(127, ge=1, le=10**6, description="packets that one flow may queue")
    buckets: int = Field(1024, ge=1, le=65536, description="hash buckets, a power of two")
    head_drop: bool = Field(False, description="a full flow loses its oldest packet")

    @model_validator(mode="after")
    def _hashable(self) -> Sfq:
        if self.buckets & (self.buckets - 1):
            raise ValueError("buckets: must be a power of two, such as 1024")
        return self

    def parameters(self, port: Port) -> dict[str, Any]:
        return {
            "quantum_bytes": self.quantum or port.packet_bytes,
            "flows": self.flows,
            "depth_packets": self.flow_limit,
            "buckets": self.buckets,
            "head_drop": self.head_drop,
        }


#: tc's `avpkt`, as tc-red(8) advises for Ethernet.
_AVERAGE_PACKET_BYTES = 1000


class Red(Options):
    """Random early detection (sch_red)."""

    min: Size | None = Field(
        None, description="average queue below which nothing is dropped; default: a third of max"
    )
    max: Size | None = Field(
        None,
        description="average queue above which every packet is dropped; default: half the buffer, "
        "at least three full packets",
    )
    max_probability: Ratio = Field(0.02, description="probability of a drop just below max")
    adaptive: bool = Field(
        False,
        description="adapts max_probability, from 1% to 50%, so that the average queue stays in "
        "the middle between min and max (Adaptive RED)",
    )

    @model_validator(mode="after")
    def _in_order(self) -> Red:
        if self.min and self.max and self.min >= self.max:
            raise ValueError("min: must be below max")
        return self

    def limit_bytes(self, port: Port) -> int:
        return max(port.limit_bytes or 0, self._thresholds_bytes(port)[1])

    def parameters(self, port: Port) -> dict[str, Any]:
        least, largest = self._thresholds_bytes(port)
        return {
            "min_bytes": least,
            "max_bytes": largest,
            "max_probability_ppm": round(self.max_probability * 1e6),
            "avpkt_bytes": _AVERAGE_PACKET_BYTES,
            # tc-red(8): (2 min + max) / (3 avpkt).
            "burst_packets": max(1, (2 * least + largest) // (3 * _AVERAGE_PACKET_BYTES)),
            "ecn": port.ecn,
            **set_only(adaptive=self.adaptive or None),
        }

    def _thresholds_bytes(self, port: Port) -> tuple[int, int]:
        """min and max; tc-red(8): min is about a third of max."""
        largest = self.max or max((port.limit_bytes or 0) // 2, 3 * port.packet_bytes)
        return self.min or max(largest // 3, port.packet_bytes), largest


#: The kernel counts a gain in 256ths of a Hz.
_DUALPI2_GAIN_UNITS_PER_HZ = 256


class DualPi2(Options):
    """Coupled dual queue for L4S (sch_dualpi2, RFC 9332)."""

    target: Duration = Field(15 * MS, description="acceptable queueing delay of classic packets")
    update: Update = Field(16 * MS, description="interval at which the base probability is updated")
    alpha: float = Field(0.16, ge=0, le=100, description="weight of the delay, in Hz")
    beta: float = Field(3.2, ge=0, le=100, description="weight of the delay's change, in Hz")
    step: Time = Field(1 * MS, description="L4S packets that queued for longer are marked")
    min_qlen_step: int = Field(
        0,
        ge=0,
        le=10**6,
        description="packets in the L queue below which an arriving packet is not held to `step`",
    )
    coupling: int = Field(
        2, ge=1, le=255, description="the base probability times this marks L4S packets"
    )
    classic_share: Ratio = Field(
        0.1, description="share of the rate that classic packets get while both kinds queue"
    )
    drop_on_overload: bool = Field(True, description="drops L4S packets too in overload")

    def parameters(self, port: Port) -> dict[str, Any]:
        return {
            "target_ns": self.target,
            "update_ns": self.update,
            "alpha": round(self.alpha * _DUALPI2_GAIN_UNITS_PER_HZ),
            "beta": round(self.beta * _DUALPI2_GAIN_UNITS_PER_HZ),
            "step_ns": self.step,
            "coupling": self.coupling,
            "classic_percent": round(self.classic_share * 100),
            "drop_overload": self.drop_on_overload,
            **set_only(min_qlen_step_packets=self.min_qlen_step or None),
        }


class Cake(Options):
    """Common Applications Kept Enhanced (sch_cake): a shaper, classes by DSCP, and fair queues by
    host and flow."""

    rtt: Duration = Field(100 * MS, description="nominal RTT, the interval of its CoDel")
    target: Duration | None = Field(
        None, description="acceptable standing queueing delay; default: a twentieth of rtt"
    )
    bandwidth: Literal["path", "unlimited"] = Field(
        "path",
        description="path: CAKE shapes to the link's rate, as on home routers; unlimited: htb "
        "shapes above CAKE",
    )
    tins: Literal["besteffort", "diffserv3", "diffserv4", "diffserv8", "precedence"] = Field(
        "diffserv3", description="traffic classes by DSCP"
    )
    isolation: Literal[
        "flowblind",
        "srchost",
        "dsthost",
        "hosts",
        "flows",
        "dual-srchost",
        "dual-dsthost",
        "triple-isolate",
    ] = Field("triple-isolate", description="which flows and hosts get fair shares")
    ack_filter: Literal["no", "filter", "aggressive"] = Field(
        "no", description="drops ACKs in the queue that a newer ACK makes redundant"
    )
    overhead: Overhead | None = Field(None, description=f"{ABOUT}; default: the link's")
    mpu: int | None = Field(
        None,
        ge=0,
        le=256,
        description="least size of a packet on the link, in bytes; default: the link's",
    )
    framing: Framing | None = Field(
        None,
        description="link-layer framing; atm: 53-byte cells that carry 48; ptm: 65 bytes for 64; "
        "default: the link's",
    )
    nat: bool = Field(
        False,
        description="tells hosts behind NAT apart; without effect, as nothing translates "
        "addresses here",
    )
    ingress: bool = Field(False, description="dropped packets count against the rate")
    autorate_ingress: bool = Field(
        False, description="sets the bandwidth by the rate at which packets arrive"
    )
    wash: bool = Field(False, description="clears the DSCP of all packets")
    split_gso: bool = Field(True, description="splits GSO packets; the simulator has none")

    @model_validator(mode="after")
    def _has_a_rate_to_set(self) -> Cake:
        if self.autorate_ingress and self.bandwidth != "path":
            raise ValueError('autorate_ingress: needs bandwidth = "path"')
        return self

    @property
    def keeps_rate(self) -> bool:
        return self.bandwidth == "path"

    def over(self, layer: LinkLayer) -> Cake:
        if not self.keeps_rate or link_layer(self.overhead, self.mpu, self.framing):
            return self
        return self.model_copy(update=layer._asdict())

    def parameters(self, port: Port) -> dict[str, Any]:
        layer = link_layer(self.overhead, self.mpu, self.framing) or LINK_LAYERS["raw"]
        return {
            "rtt_ns": self.rtt,
            "target_ns": self.target or max(self.rtt // 20, 1000),
            "shapes": self.keeps_rate,
            "tins": self.tins,
            "isolation": self.isolation,
            "ack_filter": self.ack_filter,
            "overhead_bytes": layer.overhead,
            "mpu_bytes": layer.mpu,
            "framing": layer.framing,
            "ingress": self.ingress,
            "autorate_ingress": self.autorate_ingress,
            "wash": self.wash,
            "split_gso": self.split_gso,
        }


class Prio(Options):
    """FIFOs in strict priority (sch_prio), each of which may hold `buffer`."""

    bands: int = Field(3, ge=1, le=16, description="number of FIFOs; band 0 goes first")
    default_band: int = Field(1, ge=0, le=15, description="band of the DSCPs not listed")
    dscp: dict[str, Annotated[int, Field(ge=0, le=15)]] = Field(
        {"EF": 0, "CS6": 0, "CS7": 0, "CS1": 2, "LE": 2}, description="bands by DSCP"
    )

    @model_validator(mode="after")
    def _bands_exist(self) -> Prio:
        if self.default_band >= self.bands:
            raise ValueError(f"default_band: must be below bands, {self.bands}")
        for name, band in self.dscp.items():
            try:
                units.parse_dscp(name)
            except units.UnitError as error:
                raise ValueError(f"dscp: {error}") from None
            if not 0 <= band < self.bands:
                raise ValueError(f"dscp: {name}: band {band} is not one of 0 to {self.bands - 1}")
        return self

    def parameters(self, port: Port) -> dict[str, Any]:
        return {
            "bands": self.bands,
            "default_band": self.default_band,
            "filters": sorted((units.parse_dscp(dscp), band) for dscp, band in self.dscp.items()),
        }


#: Of a kernel's timer, in each of which tbf must be able to send (tc-tbf(8)).
_TICKS_PER_S = 250


class Tbf(Options):
    """Token bucket filter over a FIFO (sch_tbf)."""

    burst: Size32 | None = Field(
        None,
        description="size of the bucket; default: what the rate carries in 4ms, at least two full "
        "packets",
    )

    @property
    def keeps_rate(self) -> bool:
        return True

    def parameters(self, port: Port) -> dict[str, Any]:
        least = max(2 * port.packet_bytes, port.rate_bps // 8 // _TICKS_PER_S)
        return {"burst_bytes": self.burst or least}
