"""`[[flow]]` and `[[probe]]`: connections, and latency measurements beside them."""

from __future__ import annotations

from typing import Annotated, ClassVar, Literal

from pydantic import Field, model_validator

from fullpipe.base.units import MAX_SIZE_BYTES
from fullpipe.scenario.applications import Pattern
from fullpipe.scenario.fields import SIZE, Duration, Interval, Rate, Size, Time
from fullpipe.scenario.host import KernelName
from fullpipe.scenario.path import EcnChoice, JitterShape
from fullpipe.scenario.route import Hosted, Sender

#: More are a slip of the pen, and would exhaust memory. Engines with a kernel take fewer
#: (`fullpipe.engines.arrivals`).
MAX_FLOWS = 100_000


class Flow(Sender):
    """One connection, or `count` equal ones."""

    SPOKEN_KEYS: ClassVar[dict[str, str]] = {
        **dict.fromkeys(
            ("congestion_control", "congestion", "algorithm", "cca", "tcp_congestion"), "write cc"
        ),
        **dict.fromkeys(("n", "number", "parallel", "flows", "streams", "num"), "write count"),
        **dict.fromkeys(("size", "bytes", "length", "volume"), "write amount"),
        **dict.fromkeys(("duration", "end", "until"), "write stop, the time at which it ends"),
        **dict.fromkeys(("delay", "latency"), "write rtt"),
        **dict.fromkeys(("rate", "bandwidth", "limit"), "write app_rate"),
    }

    cc: str = Field(
        min_length=1,
        max_length=500,
        description="congestion control: a name of `fullpipe cc list`; the same with changed "
        "constants (cubic[beta=0.85]); a variant of [cc.NAME]; a file (./mine.h, or a Python "
        "class, ./mine.py:Mine), relative to the scenario; kernel:NAME; or a QUIC stack's own "
        "(quinn:bbr)",
    )
    count: int = Field(1, ge=1, le=MAX_FLOWS, description="number of flows like this")
    start_step: Time = Field(0, description="interval between the starts of `count` flows")
    amount: Size | None = Field(None, description="bytes that it sends; default: no limit")
    app_rate: Rate | None = Field(
        None,
        description="rate at which its application writes; default: as TCP takes it; it writes a "
        "full packet at a time, at gigabits too; while its socket is full it waits, as a blocked "
        "program does, and then writes all that has come up",
    )
    pattern: Pattern | None = Field(None, description="when its application writes")
    direction: Literal["up", "down"] = Field(
        "up", description="direction of its data; up: forward, down: reverse"
    )
    rtt: Duration | None = Field(None, description="its base RTT; default: the path's")
    jitter: Time | None = Field(None, description="its jitter; default: the path's")
    jitter_shape: JitterShape | None = Field(
        None, description="shape of its jitter; default: the path's"
    )
    receive_window: Annotated[int, SIZE.between(2048, MAX_SIZE_BYTES)] | None = Field(
        None,
        description="fixed receive window, at least a packet and its reserve; default: autotuned",
    )
    nodelay: bool = Field(
        False, description="short packets do not wait for one another (TCP_NODELAY)"
    )
    max_pacing_rate: Rate | None = Field(
        None,
        description="TCP sends no faster, and paces every algorithm (SO_MAX_PACING_RATE, iperf3's "
        "--fq-rate); counts payload; default: no limit",
    )
    ecn: EcnChoice | None = Field(None, description="negotiates ECN; default: as the path says")
    tcp: KernelName | None = Field(
        None, description="Linux release whose TCP the hosts at its ends have; default: host.tcp"
    )

    @model_validator(mode="after")
    def _consistent(self) -> Flow:
        if self.pattern and (self.amount is not None or self.app_rate is not None):
            raise ValueError("pattern: excludes amount and app_rate")
        return self


class Probe(Hosted):
    """A latency measurement beside the flows."""

    kind: Literal["ping", "udp"] = Field(
        "ping", description="ping: ICMP echo; udp: a UDP request and its answer"
    )
    interval: Interval = Field(
        200 * 10**6, description="interval between requests, 200ms as in Flent"
    )
