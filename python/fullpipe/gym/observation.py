"""What an agent sees of its flow: what a real sender knows."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float32]

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
LEAST, LARGEST = (np.array([row[at] for row in FEATURES], np.float32) for at in (1, 2))


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
    """The values of `FEATURES`, before they are held within their bounds."""
    srtt_us, cwnd, delivered = state.srtt_us, state.cwnd, counts.delivered
    samples = counts.rtt_samples
    rtt_us = counts.rtt_sum_us / samples if samples else srtt_us
    least_us = state.min_rtt_us or rtt_us or 1
    return (
        float(np.log2(cwnd)), rtt_us / least_us - 1 if samples else 0.0, srtt_us / least_us - 1,
        delivered / cwnd, counts.lost / max(delivered + counts.lost, 1),
        counts.marked / max(delivered, 1), state.inflight / cwnd, elapsed_us / least_us,
    )  # fmt: skip


def within_bounds(rows: npt.ArrayLike) -> Floats:
    """Observations within the bounds of `FEATURES`."""
    return np.minimum(np.maximum(np.asarray(rows, np.float32), LEAST), LARGEST)
