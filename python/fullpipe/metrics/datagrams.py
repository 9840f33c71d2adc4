"""Streams of datagrams: loss, one-way delay, jitter, and frames that were in time."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from fullpipe.metrics.flows import finite, spread
from fullpipe.metrics.pages import SPREAD
from fullpipe.metrics.view import Floats, View


@dataclass(frozen=True)
class Stream:
    """The datagrams of one stream that were sent after the warm-up, in the order of sending. Delays
    in s, NaN where one did not arrive. Left out are those that had not arrived when the run ended
    and may have been under way, for it ended less than the stream's largest delay later."""

    name: str
    sent_s: Floats
    delay_s: Floats
    bytes: Floats
    frame: Floats
    deadline_s: float | None

    @property
    def loss_ratio(self) -> float:
        """Datagrams that did not arrive, of all; NaN without any."""
        return float(np.isnan(self.delay_s).mean()) if self.delay_s.size else float("nan")

    @property
    def jitter_s(self) -> float:
        """Interarrival jitter by RFC 3550 section 6.4.1 at the end of the stream: the mean of
        |D(i-1, i)|, D being the difference of delays of datagrams that arrived one after the other,
        with a gain of 1/16. NaN for less than two."""
        there = ~np.isnan(self.delay_s)
        arrived = self.sent_s[there] + self.delay_s[there]
        delays = self.delay_s[there][np.argsort(arrived, kind="stable")]
        if delays.size < 2:
            return float("nan")
        jitter = 0.0
        for step in np.abs(np.diff(delays)):
            jitter += (float(step) - jitter) / 16
        return jitter

    def frames_in_time(self) -> tuple[int, int]:
        """(frames whose last datagram arrived, and none was lost, within the deadline of the
        frame's sending; all frames). Without a deadline, those that are whole."""
        if not self.frame.size:
            return 0, 0
        _, first = np.unique(self.frame, return_index=True)
        late = np.isnan(self.delay_s)
        if self.deadline_s is not None:
            begins = np.repeat(self.sent_s[first], np.diff([*first, self.frame.size]))
            with np.errstate(invalid="ignore"):
                late |= self.sent_s + self.delay_s - begins > self.deadline_s + 1e-9
        bad = np.logical_or.reduceat(late, first)
        return int((~bad).sum()), int(first.size)


def streams(view: View) -> list[Stream]:
    """The streams of a recording, in the order of the scenario."""
    if not view.recording.has("datagrams"):
        return []
    table = view._all("datagrams")
    recorded = []
    for index, stream in enumerate(view.plan.get("datagrams", [])):
        selected = (table["stream_id"] == index) & (table["t_us"] >= view.start_s * 1e6)
        order = np.argsort(table["seq"][selected], kind="stable")
        cut = {name: values[selected][order] for name, values in table.items()}
        end_us = float(view.plan.get("duration_ns", 0)) / 1e3
        if not np.isnan(cut["delay_us"]).all():
            under_way = cut["t_us"] > end_us - np.nanmax(cut["delay_us"])
            counted = ~(np.isnan(cut["delay_us"]) & under_way)
            cut = {name: values[counted] for name, values in cut.items()}
        deadline = stream.get("deadline_ns")
        recorded.append(
            Stream(
                stream["name"],
                sent_s=cut["t_us"] / 1e6,
                delay_s=cut["delay_us"] / 1e6,
                bytes=cut["bytes"],
                frame=cut["frame"],
                deadline_s=None if deadline is None else deadline / 1e9,
            )
        )
    return recorded


def summarise_streams(view: View) -> list[dict[str, Any]]:
    """Of each stream: datagrams `sent`, `loss_ratio`, `delay_s` (mean, min, p50, p95, p99, max),
    `jitter_s` (RFC 3550), and of video `frames` and `frames_in_time` (a ratio). None where there
    is nothing."""
    summaries = []
    for index, stream in enumerate(streams(view)):
        in_time, frames = stream.frames_in_time()
        is_video = view.plan["datagrams"][index]["frame_bytes"] is not None
        summary = {
            "stream": stream.name,
            "sent": int(stream.sent_s.size),
            "loss_ratio": finite(stream.loss_ratio),
            "delay_s": spread(stream.delay_s, SPREAD),
            "jitter_s": finite(stream.jitter_s),
            "frames": frames if is_video else None,
            "frames_in_time": in_time / frames if is_video and frames else None,
        }
        summaries.append(summary)
    return summaries
