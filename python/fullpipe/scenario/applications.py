"""`[[page]]`, `[[udp]]` and a flow's `pattern`, and what engines get of them
(crates/fullpipe-plan/src/applications.rs)."""

from __future__ import annotations

from typing import Annotated, Any, ClassVar, Literal

from pydantic import Field, model_validator

from fullpipe.scenario.fields import SIZE, Interval, Rate, Section, Size, Time
from fullpipe.scenario.route import Sender

#: A larger page is a slip of the pen.
MAX_OBJECTS, MAX_PAGE_BYTES = 10_000, 2**32
#: Connections that a page may open in a run, and datagrams of all streams.
MAX_CONNECTIONS, MAX_DATAGRAMS = 100_000, 20_000_000
_MS = 10**6


class OnOff(Section):
    """An application that writes and falls silent by turns."""

    on: Interval | None = Field(None, description="how long it writes each time")
    off: Time | None = Field(None, description="how long it is silent each time")
    random: bool = Field(False, description="on and off are means of exponential distributions")

    @model_validator(mode="after")
    def _both(self) -> OnOff:
        if (self.on is None) != (self.off is None):
            raise ValueError("on: needs off, and off needs on")
        return self

    def on_off(self) -> dict[str, Any] | None:
        """What engines get; None for an application that always writes."""
        if self.on is None:
            return None
        return {"on_ns": self.on, "off_ns": self.off, "is_random": self.random}


class Page(Sender):
    """A page that is loaded again and again, as a browser or http-getter does: a DNS look-up, the
    document, and its objects over a few connections. The near host is the client, so objects come
    down."""

    cc: str = Field(
        min_length=1, max_length=500, description="congestion control of both ends, as of a flow"
    )
    levels: list[list[Size]] = Field(
        min_length=1,
        description="sizes of objects, headers included; the client requests a level when the "
        "level before is complete, so the first holds the document",
    )
    protocol: Literal["http1", "http2"] = Field(
        "http1",
        description="http1: keep-alive, one object at a time on each connection; http2: one "
        "connection that multiplexes the objects",
    )
    connections: int = Field(4, ge=1, le=256, description="http1: most connections at a time")
    lookup: Literal["none", "once", "each"] = Field(
        "once",
        description="DNS look-up, a UDP exchange: before the first connection of a load, or "
        "before each, as curl in several processes does",
    )
    request: Annotated[int, SIZE.between(1, 65536)] = Field(
        400, description="size of a request, header included"
    )
    think: Time = Field(0, description="time that the server takes before it answers")
    interval: Time = Field(
        200 * _MS,
        description="interval between the starts of loads; a load starts only when the one before "
        "has ended",
    )
    pause: Time = Field(0, description="least time between a load's end and the next one's start")
    loads: int | None = Field(None, ge=1, le=10**6, description="most loads; default: no limit")
    keep_connections: bool = Field(False, description="connections stay open between loads")
    nodelay: bool = Field(
        True, description="both ends set TCP_NODELAY, as browsers and web servers do"
    )
    ecn: bool | None = Field(None, description="negotiates ECN; default: as the path says")

    @model_validator(mode="after")
    def _consistent(self) -> Page:
        sizes = [size for level in self.levels for size in level]
        if not all(self.levels):
            raise ValueError("levels: a level without an object")
        if len(sizes) > MAX_OBJECTS or sum(sizes) > MAX_PAGE_BYTES:
            raise ValueError(f"levels: at most {MAX_OBJECTS} objects and {MAX_PAGE_BYTES} bytes")
        if self.interval < _MS and self.pause < _MS and self.loads is None:
            raise ValueError("interval: must be at least 1ms, or pause must be, or loads be given")
        return self

    def most_connections(self, duration_ns: int) -> int:
        """How many it may open in a run."""
        loads = duration_ns // max(self.interval, self.pause, 1) + 1
        if self.loads is not None:
            loads = min(loads, self.loads)
        return self.connections * (1 if self.keep_connections else loads)


class Udp(Sender, OnOff):
    """A stream of datagrams without congestion control: at a constant rate, on and off, or video
    frames with a deadline."""

    SPOKEN_KEYS: ClassVar[dict[str, str]] = {
        **dict.fromkeys(("bitrate", "bandwidth", "speed"), "write rate"),
        **dict.fromkeys(("size", "packet_size", "bytes", "length"), "write payload"),
        **dict.fromkeys(("fps", "frame_rate"), "write frames, of a second"),
        **dict.fromkeys(("duration", "end", "until"), "write stop, the time at which it ends"),
    }

    direction: Literal["up", "down"] = Field(
        "up", description="direction of its data; up: forward, down: reverse"
    )
    rate: Rate = Field(description="rate of the payload while it sends")
    payload: Annotated[int, SIZE.between(16, 65000)] = Field(
        1200, description="payload of a datagram; of a frame's last one at most"
    )
    frames: float | None = Field(
        None,
        gt=0,
        le=1000,
        allow_inf_nan=False,
        description="video frames per second; each is sent at once, in as many datagrams as it "
        "takes",
    )
    deadline: Time | None = Field(
        None, description="age at which a frame must be complete; the metrics count late ones"
    )

    @model_validator(mode="after")
    def _consistent(self) -> Udp:
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
        """Interval between datagrams, or between frames."""
        if self.frames is not None:
            return max(1, round(1e9 / self.frames))
        return max(1, round(8e9 * self.payload / self.rate))

    def most_datagrams(self, duration_ns: int) -> int:
        """How many it may send in a run."""
        pieces = -(-(self.frame_bytes or 1) // self.payload) if self.frames else 1
        return (duration_ns // self.interval_ns + 1) * pieces


class Pattern(OnOff):
    """When a flow's application writes: by turns with silence, or a volume at intervals."""

    write: Size | None = Field(None, description="volume that it writes at a time")
    every: Interval | None = Field(None, description="interval between writes")

    @model_validator(mode="after")
    def _consistent(self) -> Pattern:
        if (self.write is None) != (self.every is None):
            raise ValueError("write: needs every, and every needs write")
        if (self.on is None) == (self.write is None):
            raise ValueError("on: give on and off, or write and every")
        return self


def resolve_pattern(pattern: Pattern) -> dict[str, Any]:
    """The pattern of a plan's flow."""
    if pattern.write is not None:
        return {"kind": "paced", "write_bytes": pattern.write, "interval_ns": pattern.every}
    return {"kind": "on_off", **(pattern.on_off() or {})}


def resolve_page(page: Page) -> dict[str, Any]:
    """A page of the plan but for what it shares with flows: name, congestion control, route,
    hosts, ECN."""
    objects = [
        {"bytes": size, "level": index} for index, level in enumerate(page.levels) for size in level
    ]
    return {
        "dscp": page.dscp,
        "start_ns": page.start,
        "stop_ns": page.stop,
        "protocol": page.protocol,
        "connections": page.connections if page.protocol == "http1" else 1,
        "lookup": page.lookup,
        "request_bytes": page.request,
        "think_ns": page.think,
        "objects": objects,
        "interval_ns": page.interval,
        "pause_ns": page.pause,
        "loads": page.loads,
        "keeps_connections": page.keep_connections,
        "nodelay": page.nodelay,
    }


def resolve_udp(udp: Udp) -> dict[str, Any]:
    """A stream of datagrams of the plan but for its name, route and hosts."""
    stream: dict[str, Any] = {
        "direction": udp.direction,
        "dscp": udp.dscp,
        "start_ns": udp.start,
        "stop_ns": udp.stop,
        "payload_bytes": udp.payload,
        "interval_ns": udp.interval_ns,
        "frame_bytes": udp.frame_bytes,
        "deadline_ns": udp.deadline,
        "on_off": udp.on_off(),
    }
    return stream
