"""`[[link]]`: one hop of a row of links, with both its directions."""

from __future__ import annotations

from itertools import pairwise
from typing import Any, ClassVar, Literal

from pydantic import Field, model_validator

from fullpipe.base import units
from fullpipe.scenario import link_traces
from fullpipe.scenario.fields import Loss, Rate, Ratio, Time
from fullpipe.scenario.impairments import Impairments
from fullpipe.scenario.queue import Queue
from fullpipe.scenario.sqm import Sqm, expanded
from fullpipe.scenario.wifi import WifiOptions

#: Of rates or delays of one direction.
MAX_STEPS = 100_000


_RATES = (
    'write rate = "20mbit" for the upload, and rate = "300mbit" in [link.reverse] for the '
    'download; flows with direction = "down" are downloads'
)


class LinkDirection(Impairments, Queue):
    """The reverse direction of a link. Its rate defaults to that of the forward direction where
    data flow down, and else is not limited; its delay defaults to that of the forward direction."""

    SPOKEN_KEYS: ClassVar[dict[str, str]] = {
        **dict.fromkeys(("download", "upload", "down", "up", "downlink", "uplink"), _RATES),
        **dict.fromkeys(("bandwidth", "speed", "bw", "capacity"), "write rate"),
        **dict.fromkeys(("latency", "rtt", "ping"), "write delay, which is of one direction"),
        **dict.fromkeys(("queue", "limit", "queue_limit"), "write buffer"),
        **dict.fromkeys(("aqm", "scheduler"), 'write qdisc, such as qdisc = "cake"'),
        "sqm": 'write [link.sqm] of a [[link]], or qdisc = "cake"',
        **dict.fromkeys(("linklayer", "link_layer"), 'write framing, or overhead = "docsis"'),
        **dict.fromkeys(("packet_loss", "loss_rate"), "write loss"),
    }

    delay: Time | None = Field(
        None, description="one-way delay; default: 0, in reverse direction the forward delay"
    )
    loss: Loss = Field(0.0, description="random loss before the queue, of probes too")
    loss_correlation: Ratio = Field(
        0.0, description="correlation of successive losses, as netem defines it"
    )
    loss_marks: bool = Field(
        False, description="marks ECT packets CE instead of dropping them (netem's ecn)"
    )
    rate_steps: list[tuple[Time, Rate]] = Field(
        [], max_length=MAX_STEPS, description="times in order, and the rate from each on"
    )
    delay_steps: list[tuple[Time, Time]] = Field(
        [],
        max_length=MAX_STEPS,
        description="times in order, and the delay from each on; packets never overtake",
    )
    outage: list[tuple[Time, Time]] = Field(
        [],
        max_length=MAX_STEPS,
        description="start and length of each time in which no packet passes",
    )
    rate_trace: str | None = Field(
        None,
        min_length=1,
        max_length=4096,
        description="file of delivery opportunities in Mahimahi's format, instead of rate; its "
        "name is relative to the scenario",
    )
    delay_trace: str | None = Field(
        None,
        min_length=1,
        max_length=4096,
        description="file of times and one-way delays in ms, instead of delay; its name is "
        "relative to the scenario",
    )

    @model_validator(mode="after")
    def _consistent_direction(self) -> LinkDirection:
        self._check_steps()
        self._check_discipline()
        self._check_traces()
        if self.link_layer and self.rate_trace:
            raise ValueError("overhead: a rate_trace has packets, not bytes; write a rate")
        if self.gemodel and self.loss:
            raise ValueError("gemodel: excludes loss")
        if self.loss_correlation and not self.loss:
            raise ValueError("loss_correlation: needs loss above 0")
        return self

    def _check_steps(self) -> None:
        for key in ("rate_steps", "delay_steps", "outage"):
            times = [step[0] for step in getattr(self, key)]
            for before, after in pairwise(times):
                if after <= before:
                    at, last = units.format_time(after), units.format_time(before)
                    raise ValueError(f"{key}: the one at {at} must come after the one at {last}")
            if key != "delay_steps" and times and self.rate is None:
                raise ValueError(f"{key}: needs a rate")
        for (start, length), (after, _) in pairwise(self.outage):
            if start + length > after:
                end, begin = units.format_time(start + length), units.format_time(after)
                raise ValueError(
                    f"outage: one lasts until {end} and the next begins at {begin}; "
                    "one must end before the next begins"
                )

    def _check_discipline(self) -> None:
        for key in ("rate_steps", "outage", "rate_trace"):
            if self.qdisc_options.keeps_rate and getattr(self, key):
                raise ValueError(
                    f"{key}: {self.qdisc} shapes to one rate itself; change the rate of a link "
                    'behind it, or write qdisc_options.bandwidth = "unlimited" (cake)'
                )

    def _check_traces(self) -> None:
        for key, read in (("rate", link_traces.rate_trace), ("delay", link_traces.delay_trace)):
            name = getattr(self, f"{key}_trace")
            if name is None:
                continue
            if getattr(self, key) is not None or getattr(self, f"{key}_steps"):
                raise ValueError(f"{key}_trace: excludes {key} and {key}_steps")
            try:
                read(name)
            except ValueError as error:
                raise ValueError(f"{key}_trace: {error}") from None

    @property
    def mean_rate(self) -> int | None:
        """The rate, or the mean of its trace, in bit/s."""
        return link_traces.rate_trace(self.rate_trace).value if self.rate_trace else self.rate

    @property
    def first_delay(self) -> int | None:
        """The delay, or the first one of its trace, in ns."""
        return link_traces.delay_trace(self.delay_trace).value if self.delay_trace else self.delay


_RATES = (
    'write rate = "20mbit" for one direction, and rate in [link.reverse] for the other: data of '
    '"down" flows go there'
)


class Link(LinkDirection):
    """One hop of a row, in the order in which up flows pass them; these keys are those of its
    forward direction. A link of `kind = "wifi"` has its channel in `[link.wifi]`, with the keys of
    `[wifi]`."""

    name: str = Field(
        min_length=1,
        max_length=40,
        pattern=r"^[A-Za-z0-9_+:-]+$",
        description="unique name, for tables, enter and leave",
    )
    kind: Literal["wire", "wifi"] = Field(
        "wire",
        description="wire: two independent directions; wifi: a channel that both directions and "
        "all stations share, behind a queue where the direction has a rate",
    )
    wifi: WifiOptions | None = None
    sqm: Sqm | None = None
    reverse: LinkDirection = Field(default_factory=LinkDirection)

    @model_validator(mode="before")
    @classmethod
    def _with_sqm(cls, document: Any) -> Any:
        return expanded(document) if isinstance(document, dict) else document

    @model_validator(mode="after")
    def _consistent_kind(self) -> Link:
        if self.kind == "wire":
            if self.wifi is not None:
                raise ValueError('wifi: needs kind = "wifi"')
            return self
        for prefix, direction in (("", self), ("reverse.", self.reverse)):
            wire_keys = LinkDirection.model_fields.keys() - Queue.model_fields.keys()
            for key in sorted(wire_keys & direction.model_fields_set):
                raise ValueError(f"{prefix}{key}: a Wi-Fi link has none; add a wire before it")
            if direction.rate is None and (direction.qdisc != "fifo" or direction.buffer):
                raise ValueError(
                    f"{prefix}rate: a queue before the channel needs one; the channel's own queues "
                    "are in wifi"
                )
        return self

    @property
    def delays_ns(self) -> tuple[int, int]:
        """The first delays, forward and reverse."""
        forward, reverse = self.first_delay or 0, self.reverse.first_delay
        return forward, forward if reverse is None else reverse

    @property
    def channel(self) -> WifiOptions | None:
        """The channel of a Wi-Fi link."""
        return (self.wifi or WifiOptions()) if self.kind == "wifi" else None
