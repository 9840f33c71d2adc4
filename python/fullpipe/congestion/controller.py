"""Congestion controls written in Python: the contract of cc/cc.h as a class.

The simulator makes one instance a connection and calls it as it calls C. Must never know what
carries packets.
"""

from __future__ import annotations

from enum import IntEnum
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar, overload

if TYPE_CHECKING:
    from fullpipe._native import Ack, Conn, Ctl, Event, Info

_Kind = TypeVar("_Kind")

#: "No bound": a slow-start threshold that is not set.
INFINITE = 0x7FFFFFFF


class EventKind(IntEnum):
    """What `Event.kind` says (cc/cc.h and cc/cc_more.h)."""

    TX_START = 1  #: first packet after idling
    CWND_RESTART = 2  #: window restarted after idle (RFC 2861)
    COMPLETE_CWR = 3  #: a recovery or CWR episode ended
    RTO = 4  #: retransmission timeout: all in flight is lost
    ECN_CE = 5  #: a data packet arrived here with CE
    STATE = 6  #: `conn.ca_state` changes to `event.value`
    SSTHRESH = 7  #: about to reduce: set `ctl.ssthresh`
    UNDO = 8  #: the reduction was spurious: set `ctl.cwnd`
    RTT = 9  #: an RTT sample: `value` us, `packets` acknowledged (WANTS_RTT)
    SEND = 10  #: about to send; comes as `Controller.on_send()`
    LOST = 11  #: a packet was lost that was sent with `value` in flight (WANTS_RING)
    TLP_RECOVERY = 12  #: a tail loss probe repaired the loss of one packet
    ACK = 13  #: an ACK was taken in and not answered yet (WANTS_ACKS, without OWNS_CWND)
    TIMER = 14  #: `ctl.timer_us` has come, `value` us ago (WANTS_TIMER)


class CaState(IntEnum):
    """What `Conn.ca_state` says (Linux's enum tcp_ca_state)."""

    OPEN = 0
    DISORDER = 1
    CWR = 2
    RECOVERY = 3
    LOSS = 4


class Phase(IntEnum):
    """What `Info.phase` may say (enum cc_phase of cc/state.h)."""

    NONE = 0
    STARTUP = 1
    DRAIN = 2
    PROBE_RTT = 3
    UP = 4
    DOWN = 5
    CRUISE = 6
    REFILL = 7
    SLOW_START = 8
    AVOIDANCE = 9


class Constant:
    """A constant of a `Controller`, which scenarios can change (`[cc.Mine] beta = 0.85`).

    Written in the class's body; an instance has the value, a float, under the same name. Values are
    kept as whole multiples of 1/`scale`, from `least` to `most`."""

    def __init__(
        self,
        default: float,
        least: float,
        most: float,
        *,
        unit: str = "",
        meaning: str = "",
        source: str = "",
        scale: int = 1024,
    ) -> None:
        self.default, self.least, self.most = default, least, most
        self.unit, self.meaning, self.source, self.scale = unit, meaning, source, scale

    @overload
    def __get__(self, instance: None, owner: type) -> Constant: ...
    @overload
    def __get__(self, instance: object, owner: type) -> float: ...
    def __get__(self, instance: object | None, owner: type) -> Constant | float:
        return self if instance is None else self.default


class Variable:
    """A variable of a `Controller` that recordings show, as a column `name_unit` of `cc_samples`.

    Written in the class's body; an instance sets the value, a number or None, under the same name
    (`self.w_max = 20.5`)."""

    def __init__(self, unit: str = "", meaning: str = "") -> None:
        self.unit, self.meaning = unit, meaning

    @overload
    def __get__(self, instance: None, owner: type) -> Variable: ...
    @overload
    def __get__(self, instance: object, owner: type) -> Any: ...
    def __get__(self, instance: object | None, owner: type) -> Any:
        return self if instance is None else None


class Controller:
    """A congestion control in Python, run by the simulator: one instance a connection.

    Every call has the same shape: facts in `self.conn` (and `ack` or `event`), decisions in
    `self.ctl`, which holds the values in force. A value that you do not set keeps its default, as
    in C (cc/defaults.h). Every call gets the same objects: keep numbers, not objects.

    Without `OWNS_CWND` the host detects loss and runs recovery (RFC 6675, PRR): `on_ack` comes when
    the window may grow, with `ack.acked_sacked`, and `EventKind.SSTHRESH` asks what a reduction
    leaves. With it every ACK comes, with its rate sample, and window and pacing are yours."""

    OWNS_CWND: ClassVar[int] = 1  #: every ACK comes; window and pacing are the algorithm's
    WANTS_RING: ClassVar[int] = 2  #: fill `ack.tx_inflight` and `ack.lost`; needs OWNS_CWND
    WANTS_ECN: ClassVar[int] = 4  #: negotiate ECN even where the system does not
    WANTS_RTT: ClassVar[int] = 8  #: send EventKind.RTT
    WANTS_ACKS: ClassVar[int] = 16  #: send EventKind.ACK, where the host owns the window
    ECHOES_CE: ClassVar[int] = 32  #: the receiver echoes each packet's mark (RFC 8257 section 3.2)
    SEND_IS_PURE: ClassVar[int] = 64  #: `on_send` sets `ctl.tso_segs` and keeps nothing
    WANTS_TIMER: ClassVar[int] = 128  #: send EventKind.TIMER at `ctl.timer_us`
    WANTS_DETAILS: ClassVar[int] = 256  #: fill the second part of `conn`, from `min_rtt_us` on
    HOST_RECOVERS: ClassVar[int] = 512  #: with OWNS_CWND: in CWR and Recovery the host sets cwnd
    WANTS_EVERY_RTT: ClassVar[int] = 1024  #: EventKind.RTT without a sample too: `value` 2**32 - 1

    #: A sum of the flags above.
    flags: ClassVar[int] = 0
    #: A description of it for tables.
    title: ClassVar[str] = ""

    conn: Conn
    ctl: Ctl

    def init(self) -> None:
        """The connection was established; `self.conn` and `self.ctl` are filled."""

    def on_ack(self, ack: Ack) -> None:
        """An ACK arrived (with OWNS_CWND), or the window may grow (without)."""

    def on_event(self, event: Event) -> None:
        """Anything else happened: `event.kind` is an `EventKind`."""

    def on_send(self) -> None:
        """A burst is about to leave (with OWNS_CWND); may set `ctl.tso_segs`. It is a method, not
        an event, because it is called so often; in C it is the event SEND. An algorithm with
        SEND_IS_PURE that sets a pacing rate is not called while pacing blocks sending."""

    def info(self, info: Info) -> None:
        """Fills the values that BBR has too, at each sample (table `cc_samples`); a `Variable`
        needs nothing here."""

    def slow_start(self, acked: int) -> int:
        """Grows the window by a packet for each acknowledged, up to ssthresh (RFC 5681 section
        3.1); returns the packets left for avoidance."""
        ctl = self.ctl
        before = ctl.cwnd
        cwnd = min(before + acked, ctl.ssthresh)
        ctl.cwnd = min(cwnd, self.conn.cwnd_clamp)
        return acked - (cwnd - before)

    def additive_increase(self, per: int, acked: int) -> None:
        """Grows the window by a packet for every `per` acknowledged; `ctl.cwnd_cnt` keeps the
        fraction (Linux tcp_cong_avoid_ai())."""
        ctl = self.ctl
        cwnd, count = ctl.cwnd, ctl.cwnd_cnt
        if count >= per:
            cwnd, count = cwnd + 1, 0
        grown, ctl.cwnd_cnt = divmod(count + acked, per)
        ctl.cwnd = min(cwnd + grown, self.conn.cwnd_clamp)


def constants_of(controller: type[Controller]) -> dict[str, Constant]:
    """The constants that a class and its bases declare, by name, bases first."""
    return _declared(controller, Constant)


def variables_of(controller: type[Controller]) -> dict[str, Variable]:
    """The variables that a class and its bases declare, by name, bases first."""
    return _declared(controller, Variable)


def _declared(controller: type[Controller], kind: type[_Kind]) -> dict[str, _Kind]:
    declared: dict[str, _Kind] = {}
    for base in reversed(controller.__mro__):
        declared |= {name: value for name, value in vars(base).items() if isinstance(value, kind)}
    return declared
