"""What a user may write in `[[page]]`, `[[udp]]` and a flow's `pattern`, and what of it engines get
(crates/fullpipe-plan/src/applications.rs)."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import Field, model_validator

from fullpipe.scenario.fields import Dscp, Rate, Section, Size, Time

#: A page of more is a slip of the pen.
MAX_OBJECTS, MAX_PAGE_BYTES = 10_000, 2**32
#: Connections that a page may open in a run, and datagrams of all streams.
MAX_CONNECTIONS, MAX_DATAGRAMS = 100_000, 20_000_000
_NAME = r"^[A-Za-z0-9._+:-]+$"


class _Routed(Section):
    """Who has a place in the network."""

    name: str | None = Field(
        None, min_length=1, max_length=60, pattern=_NAME,
        description="name in tables and plots; the kind and a number",
    )  # fmt: skip
    start: Time = Field(0, description="when it begins")
    stop: Time | None = Field(None, description="from when on nothing new begins; at the end")
    dscp: Dscp = Field(0, description="DSCP of its packets, such as EF or AF41")
    host: int = Field(0, ge=0, le=255, description="host at its near end, as of a flow")
    far_host: int = Field(0, ge=0, le=255, description="host at its far end, likewise")
    station: str | None = Field(
        None, description="with Wi-Fi: the station that it is at, by name; the first"
    )
    enter: str | None = Field(None, description="the link where its route begins; the first")
    leave: str | None = Field(None, description="the link where its route ends; the last")

    @model_validator(mode="after")
    def _in_order(self) -> _Routed:
        if self.stop is not None and self.stop <= self.start:
            raise ValueError("stop: must be after start")
        return self


class Page(_Routed):
    """A page that is loaded again and again, as http-getter or a browser does: look-up, document,
    what it needs, over a few connections. The near host is the client, so objects come down."""

    cc: str = Field(
        min_length=1, max_length=500, description="congestion control of both ends, as of a flow"
    )
    levels: list[list[Size]] = Field(
        min_length=1, description="sizes of objects, headers included; those of a level are asked "
        "for when all of the level before have come, so the first is the document"
    )  # fmt: skip
    protocol: Literal["http1", "http2"] = Field(
        "http1", description="http1: keep-alive, one object a connection at a time; http2: one "
        "connection, whose frames take turns"
    )  # fmt: skip
    connections: int = Field(4, ge=1, le=256, description="http1: connections at most")
    lookup: Literal["none", "once", "each"] = Field(
        "once", description="who looks the name up (a UDP exchange): the first connection of a "
        "load, or each, as curl in several processes"
    )  # fmt: skip
    request: Size = Field(400, ge=1, le=65536, description="a request, header included")
    think: Time = Field(0, description="what the server takes to begin an answer")
    interval: Time = Field(
        200 * 10**6, description="from one load's start to the next one's, which waits for its end"
    )
    pause: Time = Field(0, description="from one load's end to the next one's start, at least")
    loads: int | None = Field(None, ge=1, le=10**6, description="loads at most; no limit")
    keep_connections: bool = Field(False, description="they stay open from load to load")
    ecn: bool | None = Field(None, description="negotiate ECN; as the path says")

    @model_validator(mode="after")
    def _consistent(self) -> Page:
        sizes = [size for level in self.levels for size in level]
        if not all(self.levels):
            raise ValueError("levels: a level without an object")
        if len(sizes) > MAX_OBJECTS or sum(sizes) > MAX_PAGE_BYTES:
            raise ValueError(f"levels: at most {MAX_OBJECTS} objects and {MAX_PAGE_BYTES} bytes")
        if self.interval < 10**6 and self.pause < 10**6 and self.loads is None:
            raise ValueError("interval: must be at least 1ms, or pause, or loads be given")
        return self

    def most_connections(self, duration_ns: int) -> int:
        """How many it may open in a run."""
        loads = duration_ns // max(self.interval, self.pause, 1) + 1
        if self.loads is not None:
            loads = min(loads, self.loads)
        return self.connections * (1 if self.keep_connections else loads)


class Udp(_Routed):
    """A stream of datagrams that does not yield: at a constant rate, on and off, or video frames
    with a deadline."""

    direction: Literal["up", "down"] = Field("up", description="up: through the bottleneck")
    rate: Rate = Field(description="payload a second, while it sends")
    payload: Size = Field(
        1200, ge=16, le=65000, description="payload of a datagram; of a frame's at most"
    )
    frames: float | None = Field(
        None, gt=0, le=1000, allow_inf_nan=False, description="video: frames a second, each cut "
        "into datagrams that leave at once"
    )  # fmt: skip
    deadline: Time | None = Field(
        None, description="a frame that is not whole by then is late; only the metrics know"
    )
    on: Time | None = Field(None, description="it sends for so long; always")
    off: Time | None = Field(None, description="and is silent for so long")
    random: bool = Field(False, description="on and off are means of exponential times")

    @model_validator(mode="after")
    def _consistent(self) -> Udp:
        if (self.on is None) != (self.off is None):
            raise ValueError("on: needs off, and off needs on")
        if self.on is not None and self.on < 10**6:
            raise ValueError("on: must be at least 1ms")
        if self.deadline is not None and self.frames is None:
            raise ValueError("deadline: needs frames")
        if self.frame_bytes is not None and not 1 <= self.frame_bytes <= 2**31:
            raise ValueError("frames: each would hold less than a byte, or more than 2 GiB")
        return self

    @property
    def frame_bytes(self) -> int | None:
        """Payload of a frame."""
        return None if self.frames is None else round(self.rate / 8 / self.frames)

    @property
    def interval_ns(self) -> int:
        """From one datagram, or one frame, to the next."""
        if self.frames is not None:
            return max(1, round(1e9 / self.frames))
        return max(1, round(8e9 * self.payload / self.rate))

    def most_datagrams(self, duration_ns: int) -> int:
        """How many it may send in a run."""
        pieces = -(-(self.frame_bytes or 1) // self.payload) if self.frames else 1
        return (duration_ns // self.interval_ns + 1) * pieces


class Pattern(Section):
    """When a flow's application writes: in turns with silence, or so much at a time."""

    on: Time | None = Field(None, description="it writes as much as TCP takes for so long")
    off: Time | None = Field(None, description="and then nothing for so long")
    random: bool = Field(False, description="on and off are means of exponential times")
    write: Size | None = Field(None, description="or it writes so much at a time")
    every: Time | None = Field(None, description="from one write to the next")

    @model_validator(mode="after")
    def _consistent(self) -> Pattern:
        if (self.on is None) != (self.off is None):
            raise ValueError("on: needs off, and off needs on")
        if (self.write is None) != (self.every is None):
            raise ValueError("write: needs every, and every needs write")
        if (self.on is None) == (self.write is None):
            raise ValueError("on: give on and off, or write and every")
        for key in ("on", "every"):
            value = getattr(self, key)
            if value is not None and value < 10**6:
                raise ValueError(f"{key}: must be at least 1ms")
        return self


def resolve_pattern(pattern: Pattern) -> dict[str, Any]:
    """The pattern of a plan's flow."""
    if pattern.write is not None:
        return {"kind": "paced", "write_bytes": pattern.write, "interval_ns": pattern.every}
    return {"kind": "on_off", **_on_off(pattern)}


def resolve_page(page: Page) -> dict[str, Any]:
    """A page of the plan but for what it shares with flows: name, congestion control, route,
    hosts, ECN."""
    objects = [
        {"bytes": size, "level": index} for index, level in enumerate(page.levels) for size in level
    ]
    return {
        "dscp": page.dscp, "start_ns": page.start, "stop_ns": page.stop, "protocol": page.protocol,
        "connections": page.connections if page.protocol == "http1" else 1, "lookup": page.lookup,
        "request_bytes": page.request, "think_ns": page.think, "objects": objects,
        "interval_ns": page.interval, "pause_ns": page.pause, "loads": page.loads,
        "keeps_connections": page.keep_connections,
    }  # fmt: skip


def resolve_udp(udp: Udp) -> dict[str, Any]:
    """A stream of datagrams of the plan but for its name, route and hosts."""
    stream: dict[str, Any] = {
        "direction": udp.direction, "dscp": udp.dscp, "start_ns": udp.start, "stop_ns": udp.stop,
        "payload_bytes": udp.payload, "interval_ns": udp.interval_ns,
        "frame_bytes": udp.frame_bytes, "deadline_ns": udp.deadline,
        "on_off": None if udp.on is None else _on_off(udp),
    }  # fmt: skip
    return stream


def _on_off(one: Udp | Pattern) -> dict[str, Any]:
    return {"on_ns": one.on, "off_ns": one.off, "is_random": one.random}
