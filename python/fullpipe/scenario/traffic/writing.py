"""Whether a TCP sender in a capture waited for its application or for the network, and whether an
application wrote at a steady rate. Captures are untrusted input."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import dpkt
import numpy as np
import numpy.typing as npt

#: A sender answers an acknowledgment later than its path takes by so much, or by that share:
#: timers and processors of hosts make it late.
_LATE_NS, _LATE_SHARE = 2 * 10**6, 0.25
#: Chunks that a steady application needs, and how many of them must be alike, and how much.
_LEAST_CHUNKS, _ALIKE, _WITHIN = 10, 0.8, 0.1
_SEQUENCE = 1 << 32


@dataclass(slots=True)
class _Sender:
    """One end of a connection. `near_ns`: from the capture to it and back, by the handshake;
    `end`: sequence number behind its data; `acknowledged`: up to where its peer acknowledged it, at
    `answer_ns`; `asked_ns`: when its SYN or SYN-ACK passed."""

    near_ns: int | None = None
    asked_ns: int | None = None
    end: int | None = None
    acknowledged: int | None = None
    answer_ns: int = 0


@dataclass(frozen=True)
class Steady:
    """An application that wrote so much at such intervals."""

    write_bytes: int
    every_us: int

    @property
    def rate_bps(self) -> float:
        """Payload."""
        return 8e6 * self.write_bytes / self.every_us


class Senders:
    """The ends of the connections in a capture."""

    def __init__(self) -> None:
        self._senders: dict[bytes, _Sender] = {}

    def idle_ns(self, at_ns: int, ends: tuple[bytes, bytes], segment: Any, payload: int) -> int:
        """For how long this packet's sender had nothing in flight that was not acknowledged, and
        sent nothing all the same: it waited for its application. 0 where it did not, or where the
        capture does not tell. `ends`: addresses and ports, of the sender first."""
        near, far = ends
        sender = self._senders.setdefault(near + far, _Sender())
        peer = self._senders.setdefault(far + near, _Sender())
        _see_handshake(at_ns, segment, sender, peer)
        if segment.flags & dpkt.tcp.TH_ACK:
            peer.acknowledged, peer.answer_ns = segment.ack, at_ns
        if payload <= 0:
            return 0
        idle_ns = _idle_ns(at_ns, segment.seq, sender)
        end = (segment.seq + payload) % _SEQUENCE
        if sender.end is None or 0 < (end - sender.end) % _SEQUENCE < _SEQUENCE // 2:
            sender.end = end
        return idle_ns


def _see_handshake(at_ns: int, segment: Any, sender: _Sender, peer: _Sender) -> None:
    """Takes the round trips from the capture to either end from SYN, SYN-ACK and ACK."""
    if segment.flags & dpkt.tcp.TH_SYN:
        sender.asked_ns = at_ns
        if segment.flags & dpkt.tcp.TH_ACK and peer.asked_ns is not None:
            sender.near_ns = at_ns - peer.asked_ns
    elif sender.near_ns is None and sender.asked_ns is not None and peer.asked_ns is not None:
        sender.near_ns = at_ns - peer.asked_ns


def _idle_ns(at_ns: int, sequence: int, sender: _Sender) -> int:
    is_new = sequence == sender.end == sender.acknowledged
    if sender.near_ns is None or not is_new:
        return 0
    idle_ns = at_ns - sender.answer_ns - max(sender.near_ns, 0)
    return idle_ns if idle_ns > _LATE_NS + _LATE_SHARE * max(sender.near_ns, 0) else 0


def steady(sizes_bytes: Sequence[int], begins_us: Sequence[int]) -> Steady | None:
    """The application that wrote chunks of these sizes at these times; None where they are not
    alike."""
    # The first may have a test's header in it, and the last may be cut off.
    sizes = np.array(sizes_bytes[1:-1], float)
    if sizes.size < _LEAST_CHUNKS:
        return None
    every = np.diff(np.array(begins_us[1:], float))
    if not (_are_alike(sizes) and _are_alike(every)):
        return None
    return Steady(round(float(np.mean(sizes))), max(round(float(np.mean(every))), 1))


def _are_alike(values: npt.NDArray[np.float64]) -> bool:
    middle = float(np.median(values))
    return bool(np.mean(np.abs(values - middle) <= _WITHIN * middle) >= _ALIKE)
