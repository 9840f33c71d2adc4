"""A congestion control in Python: additive increase, and 0.85 of the window after a loss.

fullpipe compare ./mine.py:Mine cubic
"""

from __future__ import annotations

import fullpipe
from fullpipe import Constant, EventKind, Variable


class Mine(fullpipe.Controller):
    """AIMD: the host finds losses and repairs them, this says how the window grows and falls."""

    title = "AIMD with beta 0.85"
    beta = Constant(0.85, 0.1, 0.99, unit="of cwnd", meaning="what a reduction leaves")
    prior_cwnd = Variable("packets", "window before the last reduction")

    def init(self) -> None:
        """What a reduction that was none goes back to."""
        self.prior_cwnd = self.ctl.cwnd

    def on_ack(self, ack: fullpipe.Ack) -> None:
        """A packet a packet in slow start, then a packet a round trip."""
        if not self.conn.is_cwnd_limited:
            return
        left = ack.acked_sacked
        if self.ctl.cwnd < self.ctl.ssthresh:
            left = self.slow_start(left)
        self.additive_increase(self.ctl.cwnd, left)

    def on_event(self, event: fullpipe.Event) -> None:
        """A loss, and a loss that was none."""
        if event.kind == EventKind.SSTHRESH:
            self.prior_cwnd = self.ctl.cwnd
            self.ctl.ssthresh = max(int(self.ctl.cwnd * self.beta), 2)
        elif event.kind == EventKind.UNDO:
            self.ctl.cwnd = max(self.ctl.cwnd, self.prior_cwnd)

    def info(self, info: fullpipe.Info) -> None:
        """What recordings show."""
        in_slow_start = self.ctl.cwnd < self.ctl.ssthresh
        info.phase = fullpipe.Phase.SLOW_START if in_slow_start else fullpipe.Phase.AVOIDANCE


if __name__ == "__main__":
    runs = fullpipe.run(
        {
            "duration": "30s",
            "warmup": "5s",
            "path": {"rate": "20mbit", "rtt": "40ms"},
            "flow": [{"cc": Mine}, {"cc": "cubic"}],
        }
    )
    for row in runs.metrics().to_pylist():
        print(f"{row['flow']:8} {row['goodput_bps'] / 1e6:6.2f} Mbit/s")
