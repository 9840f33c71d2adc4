"""What a plan holds, as types: the JSON of crates/fullpipe-plan/src/plan.rs.

Integers are in the unit that a key's name ends with. What only some plans have is not required.
"""

from __future__ import annotations

from typing import Any, NotRequired, TypedDict


class Choice(TypedDict):
    """A congestion control. `algorithm`: None for one that only a kernel has."""

    name: str
    algorithm: str | None
    params: list[int]


class Route(TypedDict):
    """Positions of the first and the last link that something passes."""

    enter: int
    leave: int


class Hosts(TypedDict):
    """Numbers of the hosts at both ends."""

    near: int
    far: int


class Jitter(TypedDict):
    """A random delay."""

    shape: str
    max_ns: int


class Loss(TypedDict):
    """Random loss."""

    probability_ppm: int
    correlation_ppm: int
    ecn: bool
    per_burst: bool


class Flow(TypedDict):
    """A connection. Its delays are None where they are the path's."""

    name: str
    cc: Choice
    start_ns: int
    stop_ns: int | None
    amount_bytes: int | None
    app_rate_bps: int | None
    direction: str
    route: Route
    dscp: int
    hosts: Hosts
    forward_delay_ns: int | None
    reverse_delay_ns: int | None
    jitter: Jitter | None
    receive_window_bytes: int | None
    ecn: bool
    ecn_kind: NotRequired[str]
    max_pacing_rate_bps: NotRequired[int]
    pattern: NotRequired[dict[str, Any]]
    stack: NotRequired[dict[str, Any]]


class Probe(TypedDict):
    """Pings, or what else measures round trips."""

    name: str
    kind: str
    interval_ns: int
    start_ns: int
    dscp: int
    route: Route
    hosts: Hosts


class Link(TypedDict):
    """A link of the row. `medium`: a wire of two directions, or a channel."""

    name: str
    medium: dict[str, Any]


class Access(TypedDict):
    """What lies between the row and the hosts."""

    mtu_bytes: int
    forward_delay_ns: int
    reverse_delay_ns: int
    jitter: Jitter | None
    loss: Loss | None
    reverse_loss: Loss | None


class Path(Access):
    """The first bottleneck, for models and reports; engines do not read it."""

    rate_bps: int
    reverse_rate_bps: int | None
    qdisc: dict[str, Any]
    reverse_qdisc: dict[str, Any]


class Network(TypedDict):
    """The row of links, and what lies around it."""

    links: list[Link]
    access: Access
    path: Path


class Plan(Network):
    """A scenario with a seed, resolved for engines."""

    name: str
    seed: int
    duration_ns: int
    sample_interval_ns: int
    flows: list[Flow]
    probes: list[Probe]
    host: dict[str, Any]
    pages: NotRequired[list[dict[str, Any]]]
    datagrams: NotRequired[list[dict[str, Any]]]
    traffic: NotRequired[list[dict[str, Any]]]
