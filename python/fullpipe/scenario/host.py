"""`[host]`: how the end hosts are set up."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Literal

from pydantic import BeforeValidator, Field, model_validator

from fullpipe._native import DEFAULT_KERNEL, GSO_MAX_SEGMENTS, KERNELS
from fullpipe.base import units
from fullpipe.scenario.fields import SIZE, TIME, Rate, Section, Size, Time, release_name
from fullpipe.scenario.sysctl import Sysctl

if TYPE_CHECKING:
    KernelName = str
else:
    KernelName = Annotated[Literal[KERNELS], BeforeValidator(release_name)]

#: Processor time of a packet.
_Cost = Annotated[int, TIME.between(0, 10**9)]


class Host(Section):
    """How the end hosts are set up; the defaults are a stock Linux host's with offloads off."""

    pacing: Literal["internal", "fq"] = Field(
        "internal",
        description="internal: TCP's own timers, for algorithms that pace; fq: sch_fq at the "
        "sender paces every flow",
    )
    tsq: Literal["1ms", "2ms", "4ms", "8ms"] = Field(
        "1ms",
        description="queueing time below TCP that TCP small queues allow (sk_pacing_shift 10 to 7)",
    )
    gso_max_segments: int | None = Field(
        None,
        ge=1,
        le=65535,
        description="packets in the largest burst; 1: TSO off; default: 45 with `tcp` before "
        "6.10, whose bursts end with a buffer of 45, else 44",
    )
    receive_aggregation: Time = Field(
        0, description="GRO: packets that arrive within this time share an ACK; 0: off"
    )
    ack_policy: Literal["linux", "every_packet", "every_second"] = Field(
        "linux",
        description="linux: quick ACKs at first, then one for every second packet or when a timer "
        "expires",
    )
    tcp: KernelName = Field(
        DEFAULT_KERNEL,
        description="Linux release whose TCP the hosts have, as first released; 6.1 and 6.12.117: "
        "stable releases of November 2026 (6.1.192); the virtual machine boots 6.12.117",
    )
    cc_facts: Literal["google", "stock"] = Field(
        "google",
        description="what TCP reports to congestion controls; google: inflight and losses when "
        "each packet was sent, as in Google's kernel; stock: what eBPF learns on a stock kernel",
    )
    rate_restart: Literal["unacknowledged", "inflight"] = Field(
        "unacknowledged",
        description="when a sample of the delivery rate begins a new interval; unacknowledged: as "
        "Linux, when all is acknowledged; inflight: also when all else is declared lost "
        "(draft-ietf-ccwg-bbr, pull request 56)",
    )
    receive_low_water: Annotated[int, SIZE.between(1, 32768)] = Field(
        1,
        description="the receiving application reads when this much waits (SO_RCVLOWAT); 1B: at "
        "once, as most do",
    )
    rmem_max: Size = Field(64 * 2**20, description="ceiling of receive-window autotuning")
    wmem_max: Size = Field(64 * 2**20, description="ceiling of the send buffer")
    initial_cwnd: int = Field(
        10, ge=1, le=1000, description="initial congestion window in packets (RFC 6928)"
    )
    access_rate: Rate | None = Field(
        None, description="rate of each sender's own link; default: not limited"
    )
    arp: bool = Field(False, description="the first packets wait for an address resolution")
    packet_cost: _Cost = Field(
        0,
        description="processor time of a receiving host for each data packet; packets wait while "
        "its one processor is busy",
    )
    ack_cost: _Cost = Field(
        0,
        description="processor time for each ACK, at the host that sends it and at the host that "
        "receives it",
    )
    send_cost: _Cost = Field(
        0,
        description="processor time of a sending host for each packet of a burst; the burst "
        "leaves when all its packets are made",
    )
    handshake_cost: _Cost = Field(
        0, description="processor time of a receiving host for each handshake packet"
    )
    reader_pause: Time = Field(
        0,
        description="receiving applications stall for this long each time, and data that they "
        "have not read are not acknowledged; 0: never",
    )
    reader_pause_spread: Time = Field(
        0, description="each pause is longer or shorter by up to this, drawn from the seed"
    )
    reader_pause_every: Time = Field(
        100 * 10**6,
        description="interval between the starts of pauses; the first start is drawn from the seed",
    )
    program_timer: Annotated[int, TIME.between(0, 10**8)] = Field(
        10**6,
        description="programs that run a QUIC stack wake at the first multiple of this behind a "
        "timer's time; 1ms: as tokio's; 0: at that time",
    )

    sysctl: Sysctl = Field(default_factory=Sysctl)

    def largest_burst(self, tcp: str) -> int:
        """Packets in the largest burst of a host with TCP of this release."""
        return self.gso_max_segments or GSO_MAX_SEGMENTS[tcp]

    @model_validator(mode="after")
    def _reads_between_pauses(self) -> Host:
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
