"""Congestion controls in Python for tests."""

#: cc/reno.h, statement by statement.
RENO = """
from __future__ import annotations

import fullpipe
from fullpipe import Constant, EventKind, Variable


class Reno(fullpipe.Controller):
    title = "NewReno in Python"
    beta = Constant(0.5, 0.1, 0.99, unit="of cwnd", meaning="what a reduction leaves")
    min_ssthresh = Constant(2, 1, 1000, unit="packets", scale=1)
    prior_cwnd = Variable("packets")

    def init(self) -> None:
        self.prior_cwnd = self.ctl.cwnd

    def on_ack(self, ack: fullpipe.Ack) -> None:
        ctl = self.ctl
        if not self.conn.is_cwnd_limited:
            return
        acked = ack.acked_sacked
        if ctl.cwnd < ctl.ssthresh:
            acked = self.slow_start(acked)
        if acked:
            self.additive_increase(ctl.cwnd, acked)

    def on_event(self, event: fullpipe.Event) -> None:
        ctl = self.ctl
        if event.kind == EventKind.SSTHRESH:
            self.prior_cwnd = ctl.cwnd
            ctl.ssthresh = max(int(ctl.cwnd * self.beta), int(self.min_ssthresh))
        elif event.kind == EventKind.UNDO:
            ctl.cwnd = max(ctl.cwnd, self.prior_cwnd)
"""
