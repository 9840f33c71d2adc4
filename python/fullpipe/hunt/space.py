"""The search space of the hunt, and the measurements that it ranks by. Must never run a path."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal

from fullpipe.base.packets import FULL_FRAME_BYTES

Worst = Literal["utilisation", "starvation", "delay", "loss"]

_FRAME_BITS = 8 * FULL_FRAME_BYTES
#: The smallest queue in packets: with fewer, no sender could do well.
_LEAST_PACKETS = 4
#: Below this share of its range an ingredient is left out.
_OFF = 0.3


@dataclass(frozen=True)
class Knob:
    """One quantity of a path, with a logarithmic range. `off` is the value that disables it.

    `kinds`: for an enumeration, the names of the values 0, 1, 2 ..., the simplest first.
    `parts`: knobs that have an effect only if this one is on."""

    name: str
    low: float
    high: float
    usual: float
    off: float | None = None
    nice: tuple[float, ...] = ()
    kinds: tuple[str, ...] = ()
    parts: tuple[str, ...] = ()

    def at(self, share: float) -> float:
        """The value at a share, 0 to 1, of the range."""
        if self.off is not None:
            if share < _OFF:
                return self.off
            share = (share - _OFF) / (1 - _OFF)
        if self.kinds:
            return float(1 + min(int(share * (len(self.kinds) - 1)), len(self.kinds) - 2))
        return float(f"{self.low * (self.high / self.low) ** share:.3g}")

    def described(self, value: float) -> float | str:
        """A value, or the name of a kind."""
        return self.kinds[int(value)] if self.kinds else value


#: What every path has, and the ingredients that it may have.
RATE = Knob("rate_mbit", 5, 50, 10, nice=(5, 10, 20, 50))
RTT = Knob("rtt_ms", 20, 200, 40, nice=(20, 40, 100, 200))
BUFFER = Knob("buffer_bdp", 0.1, 16, 1, nice=(0.1, 0.2, 0.5, 1, 2, 5, 10, 16))
#: How the rate changes (link_trace_generators.KINDS); how long until it repeats, of steps and the
#: sawtooth one round; of these two the lowest rate over the highest.
TRACE = Knob(
    "trace",
    0,
    0,
    0,
    0,
    (1, 2, 3, 4, 5),
    ("constant", "steps", "sawtooth", "leo", "wifi-fade", "cellular"),
    ("trace_s", "trace_low"),
)
TRACE_S = Knob("trace_s", 0.5, 10, 2, nice=(0.5, 1, 2, 5, 10))
TRACE_LOW = Knob("trace_low", 0.05, 0.8, 0.5, nice=(0.05, 0.1, 0.2, 0.5, 0.8))
_HAVE_LOW = ("steps", "sawtooth")
LOSS = Knob("loss_percent", 0.01, 5, 0, 0, (0.01, 0.03, 0.1, 0.3, 1, 1.5, 2, 2.5, 3, 4, 5))
JITTER = Knob("jitter_ms", 0.5, 100, 0, 0, (0.5, 1, 2, 5, 10, 20, 50, 100))
#: Jitter of the first flow alone, where there are two.
ONE_JITTER = replace(JITTER, name="jitter_of_one_ms")
RTT_RATIO = Knob("rtt_ratio", 1.2, 8, 1, 1, (1.5, 2, 3, 4, 6, 8))

_PATH = (RATE, RTT, BUFFER)
_TRACE = (TRACE, TRACE_S, TRACE_LOW)
KNOBS: dict[Worst, tuple[Knob, ...]] = {
    "utilisation": (*_PATH, *_TRACE, LOSS, JITTER),
    "starvation": (*_PATH, *_TRACE, LOSS, ONE_JITTER, RTT_RATIO),
    "delay": (*_PATH, *_TRACE, LOSS, JITTER),
    "loss": (*_PATH, *_TRACE, JITTER),
}
#: Descriptions of the measurements.
SHOWN: dict[Worst, str] = {
    "utilisation": "utilisation",
    "starvation": "lesser of two flows over its fair share",
    "delay": "queueing delay, 95th percentile, in base RTTs",
    "loss": "packets lost over packets offered",
}

Path = Mapping[str, float]


def kind_of(path: Path) -> str | None:
    """The kind of trace that the rate follows; None: it is constant."""
    kind = TRACE.kinds[int(path[TRACE.name])]
    return None if path[TRACE.name] == TRACE.off else kind


def plain(path: Path) -> dict[str, float]:
    """The same path with default values of knobs without effect, so that equal paths compare
    equal."""
    kind = kind_of(path)
    idle = [TRACE_S] if kind is None else []
    idle += [] if kind in _HAVE_LOW else [TRACE_LOW]
    trace_s = round(path[TRACE_S.name], 2)  # whole steps of a trace
    return {**path, TRACE_S.name: trace_s, **{knob.name: knob.usual for knob in idle}}


def matters(knob: Knob, path: Path) -> bool:
    """Whether a part of an ingredient has an effect on this path."""
    first, second = ({**path, knob.name: value} for value in knob.nice[:2])
    return plain(first) != plain(second)


def described(path: Path) -> dict[str, float | str]:
    """A path as shown to users: with names of kinds, without knobs that have no effect."""
    parts = {knob.name: knob for knob in _TRACE if knob.name in TRACE.parts}
    return {
        name: TRACE.described(value) if name == TRACE.name else value
        for name, value in path.items()
        if name not in parts or matters(parts[name], path)
    }


def packets_of(path: Path) -> float:
    """Packets that a trial on this path may carry: what a budget counts."""
    return path["rate_mbit"] * 1e6 * seconds_of(path) / _FRAME_BITS


def _warmup_of(path: Path) -> float:
    """A third of what a trial on a constant rate lasts."""
    return math.ceil(12 + 0.15 * path["rtt_ms"] * max(path.get("rtt_ratio", 1), 1)) / 3


def seconds_of(path: Path) -> float:
    """Seconds that a trial lasts: a few of BBR's cycles and 150 round trips. On a trace it measures
    whole periods, because utilisation is relative to the trace's mean."""
    warmup_s = _warmup_of(path)
    measured_s = 2 * warmup_s
    if kind_of(path):
        measured_s = math.ceil(measured_s / path["trace_s"]) * path["trace_s"]
    return warmup_s + measured_s


def badness(worst: Worst, value: float) -> float:
    """How bad a value is: more is worse. A run without one is not bad."""
    if math.isnan(value):
        return -1.0
    return 1 - value if worst in ("utilisation", "starvation") else value


def document(cc: str, worst: Worst, path: Path, trace: str | None) -> dict[str, Any]:
    """The scenario of a path, as a TOML file has it; `trace`: the file that its rate follows."""
    rate_bps, rtt_s = path["rate_mbit"] * 1e6, path["rtt_ms"] / 1e3
    bdp = rate_bps * rtt_s / _FRAME_BITS
    about = {"buffer": f"{max(math.ceil(path['buffer_bdp'] * bdp), _LEAST_PACKETS)}pkt"}
    if "loss_percent" in path:
        about["loss"] = f"{path['loss_percent']:g}%"
    rtt = f"{path['rtt_ms']:g}ms"
    network: dict[str, Any]
    if trace is None:
        network = {"path": {"rate": f"{path['rate_mbit']:g}mbit", "rtt": rtt, **about}}
    else:
        # As in a [path]: all delay is in the reverse direction.
        link = {"name": "path", "rate_trace": trace, "delay": "0ms", **about}
        network = {"link": [{**link, "reverse": {"delay": rtt}}]}
    seconds, warmup_s = seconds_of(path), _warmup_of(path)
    return {
        "name": f"hunt {worst}",
        "seed": 1,
        "duration": f"{seconds:.5g}s",
        "warmup": f"{warmup_s:.3g}s",
        "start_spread": "5ms",
        **network,
        "flow": _flows(cc, worst, path),
    }


def _flows(cc: str, worst: Worst, path: Path) -> list[dict[str, Any]]:
    def jitter(name: str) -> dict[str, Any]:
        return {"jitter": f"{path[name]:g}ms", "jitter_shape": "slotted"} if path[name] else {}

    if worst == "starvation":
        first = {"cc": cc, "name": "one", **jitter(ONE_JITTER.name)}
        long_rtt = f"{path['rtt_ms'] * path['rtt_ratio']:g}ms"
        return [first, {"cc": cc, "name": "other", "rtt": long_rtt}]
    return [{"cc": cc, **jitter(JITTER.name)}]
