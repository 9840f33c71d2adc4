"""`[path]`: one bottleneck and what lies around it, the short form of one link."""

from __future__ import annotations

from typing import ClassVar, Literal

from pydantic import Field, model_validator

from fullpipe.scenario.fields import Buffer, Duration, Loss, Rate, Ratio, Time
from fullpipe.scenario.qdiscs.options import Options
from fullpipe.scenario.qdiscs.registry import DISCIPLINES
from fullpipe.scenario.queue import QdiscName, QdiscOptions, Queue

JitterShape = Literal["per_packet", "slotted"]
EcnChoice = bool | Literal["classic", "accecn", "l4s"]


_RATES = (
    'write rate = "20mbit" for the upload and reverse_rate = "300mbit" for the download; flows '
    'with direction = "down" are downloads'
)


class Path(Queue):
    """One bottleneck and what lies around it."""

    SPOKEN_KEYS: ClassVar[dict[str, str]] = {
        **dict.fromkeys(("download", "upload", "down", "up", "downlink", "uplink"), _RATES),
        **dict.fromkeys(("bandwidth", "speed", "bw", "capacity"), "write rate"),
        **dict.fromkeys(("latency", "ping", "delay"), "write rtt, of both directions"),
        **dict.fromkeys(("queue", "limit", "queue_limit"), "write buffer"),
        **dict.fromkeys(("aqm", "scheduler"), 'write qdisc, such as qdisc = "cake"'),
        "sqm": 'write [link.sqm] of a [[link]], or qdisc = "cake"',
        **dict.fromkeys(("linklayer", "link_layer"), 'write framing, or overhead = "docsis"'),
        **dict.fromkeys(("packet_loss", "loss_rate"), "write loss"),
    }

    rate: Rate = Field(description="rate of the bottleneck, on the wire")
    rtt: Duration = Field(description="base RTT, without queueing and serialization delay")
    forward_delay: Time = Field(
        0,
        description="part of the base RTT after the bottleneck, in forward direction; the rest is "
        "in reverse direction, where testbeds put it",
    )
    reverse_rate: Rate | None = Field(
        None,
        description="rate of the reverse direction; default: rate if data flow down, else not "
        "limited",
    )
    reverse_buffer: Buffer | None = Field(
        None, description="limit of the reverse queue; default: as for buffer"
    )
    reverse_qdisc: QdiscName = Field(
        "fifo", description="queue discipline of the reverse direction"
    )
    reverse_qdisc_options: QdiscOptions | None = Field(
        None,
        description="options of reverse_qdisc; default: qdisc_options if both disciplines are the "
        "same",
    )
    mtu: int = Field(1500, ge=576, le=9000, description="largest IP packet, in bytes")
    loss: Loss = Field(0.0, description="random loss at the senders' egress")
    loss_correlation: Ratio = Field(
        0.0, description="correlation of successive losses, as netem defines it"
    )
    loss_marks: bool = Field(
        False, description="marks ECT packets CE instead of dropping them (netem's ecn)"
    )
    loss_per: Literal["packet", "burst"] = Field(
        "packet",
        description="burst: one draw for all packets that TCP sends at once, as netem at a sender "
        "sees them",
    )
    reverse_loss: Loss = Field(0.0, description="random loss in reverse direction")
    jitter: Time = Field(
        0, description="largest random extra delay in reverse direction, uniform from 0"
    )
    jitter_shape: JitterShape = Field(
        "per_packet",
        description="per_packet: each packet draws a delay and never overtakes; slotted: packets "
        "that arrive during one delay leave together",
    )
    ecn: EcnChoice = Field(
        False,
        description="flows negotiate ECN and AQMs mark; true or classic: RFC 3168; accecn: "
        "receivers count marks (RFC 9768, kernels from 7.0); l4s: accecn, and algorithms that "
        "respond to marks in proportion send ECT(1)",
    )

    @model_validator(mode="after")
    def _consistent(self) -> Path:
        if self.forward_delay > self.rtt:
            raise ValueError("forward_delay: must not exceed rtt, of which it is a part")
        if self.loss_correlation and not self.loss:
            raise ValueError("loss_correlation: needs loss above 0")
        return self

    @property
    def reverse_options(self) -> Options:
        """The options of the reverse queue."""
        if self.reverse_qdisc_options is None and self.reverse_qdisc != self.qdisc:
            return DISCIPLINES[self.reverse_qdisc].options()
        return self.reverse_qdisc_options or self.qdisc_options
