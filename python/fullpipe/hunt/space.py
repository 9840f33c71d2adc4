"""The paths that the hunt searches, and what it looks for on them. Must never run one."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal

from fullpipe.sweep.file import Sweep, read_sweep

Worst = Literal["utilisation", "starvation", "delay", "loss"]

_FRAME_BITS = 1514 * 8
#: A queue holds at least so many packets: with fewer, no sender could do well.
_LEAST_PACKETS = 4
#: Below this share of its range an ingredient is left out.
_OFF = 0.3


@dataclass(frozen=True)
class Knob:
    """One quantity of a path. A range is logarithmic; `off` is what an ingredient is without."""

    name: str
    low: float
    high: float
    usual: float
    off: float | None = None
    nice: tuple[float, ...] = ()

    def at(self, share: float) -> float:
        """The value at a share, 0 to 1, of the range."""
        if self.off is not None:
            if share < _OFF:
                return self.off
            share = (share - _OFF) / (1 - _OFF)
        return float(f"{self.low * (self.high / self.low) ** share:.3g}")


#: What every path has, and the ingredients that it may have.
RATE = Knob("rate_mbit", 5, 50, 10, nice=(5, 10, 20, 50))
RTT = Knob("rtt_ms", 20, 200, 40, nice=(20, 40, 100, 200))
BUFFER = Knob("buffer_bdp", 0.1, 16, 1, nice=(0.1, 0.2, 0.5, 1, 2, 5, 10, 16))
LOSS = Knob("loss_percent", 0.01, 5, 0, 0, (0.01, 0.03, 0.1, 0.3, 1, 1.5, 2, 2.5, 3, 4, 5))
JITTER = Knob("jitter_ms", 0.5, 100, 0, 0, (0.5, 1, 2, 5, 10, 20, 50, 100))
#: Jitter of the first flow alone, where there are two.
ONE_JITTER = replace(JITTER, name="jitter_of_one_ms")
RTT_RATIO = Knob("rtt_ratio", 1.2, 8, 1, 1, (1.5, 2, 3, 4, 6, 8))

_PATH = (RATE, RTT, BUFFER)
KNOBS: dict[Worst, tuple[Knob, ...]] = {
    "utilisation": (*_PATH, LOSS, JITTER),
    "starvation": (*_PATH, LOSS, ONE_JITTER, RTT_RATIO),
    "delay": (*_PATH, LOSS, JITTER),
    "loss": (*_PATH, JITTER),
}
#: What is looked at, as people call it.
SHOWN: dict[Worst, str] = {
    "utilisation": "utilisation",
    "starvation": "lesser of two flows over its fair share",
    "delay": "queueing delay, 95th percentile, in base RTTs",
    "loss": "packets lost over packets offered",
}

Path = Mapping[str, float]


def packets_of(path: Path) -> float:
    """Packets that a trial on this path may carry: what a budget counts."""
    return path["rate_mbit"] * 1e6 * seconds_of(path) / _FRAME_BITS


def seconds_of(path: Path) -> float:
    """How long a trial lasts: time for a few of BBR's cycles and 150 round trips."""
    return float(math.ceil(12 + 0.15 * path["rtt_ms"] * max(path.get("rtt_ratio", 1), 1)))


def badness(worst: Worst, value: float) -> float:
    """How bad a value is: more is worse. A run without one is not bad."""
    if math.isnan(value):
        return -1.0
    return 1 - value if worst in ("utilisation", "starvation") else value


def trials(cc: str, worst: Worst, paths: list[Path]) -> Sweep:
    """The sweep of these paths. Raises UserError for an unknown congestion control."""
    axis = [{"label": _label(index, path), **_fields(path)} for index, path in enumerate(paths)]
    return read_sweep(
        {
            "scenario": _scenario(worst),
            "axis": {"path": axis, "cc": [cc]},
            "sweep": {"name": f"hunt {worst}", "seeds": 1},
        },
        f"hunt --worst {worst}",
    )


def _label(index: int, path: Path) -> str:
    return f"{index}: " + ", ".join(f"{name} {value:g}" for name, value in path.items())


def _fields(path: Path) -> dict[str, Any]:
    rate_bps, rtt_s = path["rate_mbit"] * 1e6, path["rtt_ms"] / 1e3
    bdp = rate_bps * rtt_s / _FRAME_BITS
    seconds = seconds_of(path)
    return {
        "rate": f"{path['rate_mbit']:g}mbit",
        "rtt": f"{path['rtt_ms']:g}ms",
        "buffer": f"{max(math.ceil(path['buffer_bdp'] * bdp), _LEAST_PACKETS)}pkt",
        "loss": f"{path.get('loss_percent', 0):g}%",
        "jitter": f"{path.get('jitter_ms', 0):g}ms",
        "one_jitter": f"{path.get('jitter_of_one_ms', 0):g}ms",
        "long_rtt": f"{path['rtt_ms'] * path.get('rtt_ratio', 1):g}ms",
        "seconds": f"{seconds:g}s",
        "warmup": f"{seconds / 3:.3g}s",
    }


def _scenario(worst: Worst) -> dict[str, Any]:
    path = {"rate": "{path.rate}", "rtt": "{path.rtt}", "buffer": "{path.buffer}"}
    names = {knob.name for knob in KNOBS[worst]}
    if "loss_percent" in names:
        path["loss"] = "{path.loss}"
    flow: dict[str, Any] = {"cc": "{cc}"}
    flows = [flow]
    if "jitter_ms" in names:
        path |= {"jitter": "{path.jitter}", "jitter_shape": "slotted"}
    if worst == "starvation":
        flows = [
            {**flow, "name": "one", "jitter": "{path.one_jitter}", "jitter_shape": "slotted"},
            {**flow, "name": "other", "rtt": "{path.long_rtt}"},
        ]
    return {
        "name": f"hunt {worst}", "duration": "{path.seconds}", "warmup": "{path.warmup}",
        "path": path, "flow": flows,
    }  # fmt: skip
