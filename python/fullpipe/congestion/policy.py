"""A congestion control that asks a policy once in a round trip, as an agent of `fullpipe.gym` is
asked: the same observation, the same meaning of an action.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, ClassVar, NamedTuple

from fullpipe.congestion.controller import Controller

if TYPE_CHECKING:
    from fullpipe._native import Ack

#: Features of a flow's observation: name, least, largest value. A real sender knows all of them.
FEATURES: tuple[tuple[str, float, float], ...] = (
    ("window", 0.0, 24.0),  # log2 of the window in packets
    ("delay", 0.0, 10.0),  # mean RTT of the step over the least RTT, less 1; 0 without a sample
    ("smoothed_delay", 0.0, 10.0),  # the same of the smoothed RTT
    ("delivered", 0.0, 4.0),  # packets delivered in the step over the window
    ("lost", 0.0, 1.0),  # of those delivered or lost in the step, the share that was lost
    ("marked", 0.0, 1.0),  # of those delivered in the step, the share with CE
    ("inflight", 0.0, 2.0),  # packets in the network over the window
    ("elapsed", 0.0, 10.0),  # length of the step over the least RTT
)
MAX_CWND = 1 << 24
_U32 = 0xFFFFFFFF

#: Weights by output and input, biases, and the activation.
Layer = tuple[Sequence[Sequence[float]], Sequence[float], str]
ACTIVATIONS = ("tanh", "relu", "linear")


class Counts(NamedTuple):
    """What a flow saw since it was looked at (`Counts` in crates/fullpipe-py/src/stepper.rs)."""

    acks: int
    delivered: int
    marked: int
    lost: int
    timeouts: int
    rtt_samples: int
    rtt_sum_us: int


class State(NamedTuple):
    """What a flow is now (`State` in crates/fullpipe-py/src/stepper.rs)."""

    cwnd: int
    inflight: int
    srtt_us: int
    min_rtt_us: int
    is_established: bool
    is_finished: bool


def features(counts: Counts, state: State, elapsed_us: float) -> tuple[float, ...]:
    """The values of `FEATURES`, within their bounds."""
    srtt_us, cwnd, delivered = state.srtt_us, state.cwnd, counts.delivered
    samples = counts.rtt_samples
    rtt_us = counts.rtt_sum_us / samples if samples else srtt_us
    least_us = state.min_rtt_us or rtt_us or 1
    values = (
        math.log2(cwnd),
        rtt_us / least_us - 1 if samples else 0.0,
        srtt_us / least_us - 1,
        delivered / cwnd,
        counts.lost / max(delivered + counts.lost, 1),
        counts.marked / max(delivered, 1),
        state.inflight / cwnd,
        elapsed_us / least_us,
    )
    bounds = zip(values, FEATURES, strict=True)
    return tuple(min(max(value, least), most) for value, (_, least, most) in bounds)


def apply(layers: Sequence[Layer], observation: Sequence[float]) -> list[float]:
    """What a network of these layers makes of an observation."""
    values = list(observation)
    for weights, biases, activation in layers:
        sums = [
            bias + sum(weight * value for weight, value in zip(row, values, strict=True))
            for row, bias in zip(weights, biases, strict=True)
        ]
        if activation == "tanh":
            values = [math.tanh(total) for total in sums]
        else:
            values = [max(total, 0.0) for total in sums] if activation == "relu" else sums
    return values


class Policy(Controller):
    """Sets the window once in a smoothed RTT: 2**action times as large, for the action that `act`
    returns. `act` computes it with `layers` unless a class defines its own."""

    flags = Controller.OWNS_CWND
    layers: ClassVar[Sequence[Layer]] = ()

    def act(self, observation: tuple[float, ...]) -> float:
        """The action, from -1 to 1, for an observation (`FEATURES`)."""
        return apply(self.layers, observation)[0]

    def init(self) -> None:
        """Begins the first round trip."""
        self.window = float(self.ctl.cwnd)
        self.min_rtt_us = self.conn.srtt_us
        self._begin()

    def on_ack(self, ack: Ack) -> None:
        """Counts, and decides at the end of a round trip."""
        conn = self.conn
        if ack.rtt_us > 0:
            self._samples += 1
            self._rtt_sum_us += ack.rtt_us
            self.min_rtt_us = min(self.min_rtt_us or ack.rtt_us, ack.rtt_us)
        if conn.now_us - self._begun_us >= max(conn.srtt_us, 1):
            action = min(max(self.act(self._observation()), -1.0), 1.0)
            self.window = min(max(self.window * 2.0**action, 1.0), MAX_CWND)
            self._begin()
        self.ctl.cwnd = round(self.window)

    def _begin(self) -> None:
        conn = self.conn
        self._begun_us, self._samples, self._rtt_sum_us = conn.now_us, 0, 0
        self._before = conn.delivered, conn.delivered_ce, conn.lost

    def _observation(self) -> tuple[float, ...]:
        conn = self.conn
        now = conn.delivered, conn.delivered_ce, conn.lost
        delivered, marked, lost = (
            (after - before) & _U32 for after, before in zip(now, self._before, strict=True)
        )
        counts = Counts(0, delivered, marked, lost, 0, self._samples, self._rtt_sum_us)
        window = round(self.window)
        state = State(window, conn.inflight, conn.srtt_us, self.min_rtt_us, True, False)
        return features(counts, state, conn.now_us - self._begun_us)
