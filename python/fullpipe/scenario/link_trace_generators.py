"""Traces of links: rates and delays that change as on real links, from a few numbers and a seed.

Each kind is a rate over time, in steps of 10 ms, which becomes delivery opportunities of 1500-byte
packets (Mahimahi's files); `leo` also has a delay. They are models with documented numbers, not
measurements. docs/reference/links.md describes them. Knows nothing of scenarios.
"""

from __future__ import annotations

import itertools
import math
import random
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Literal

from fullpipe.base.errors import UserError
from fullpipe.base.packets import FULL_FRAME_BYTES

Kind = Literal["steps", "sawtooth", "cellular", "leo", "wifi-fade"]
STEP_MS = 10
#: Bits on the wire of a delivery opportunity: 1500 bytes and an Ethernet header.
_PACKET_BITS = 8 * FULL_FRAME_BYTES
#: The same as in crates/fullpipe-net/src/trace/files.rs.
_MOST_LINES = 4_000_000

#: Cellular: deviation of the steps of the rate's logarithm each 100 ms, its pull towards the
#: middle, and its bounds, a factor of 10 apart.
_CELLULAR_SIGMA, _CELLULAR_PULL, _CELLULAR_SPREAD = 0.25, 0.05, math.sqrt(10)
#: LEO: seconds between handovers, ms without service at each, range of one-way delays in ms.
_LEO_S, _LEO_GAP_MS, _LEO_DELAY_MS = 15, 60, (18.0, 38.0)
#: Wi-Fi: mean seconds between fades, seconds of a fade, share of the rate at its bottom.
_FADE_EVERY_S, _FADE_S, _FADE_LEFT = 6.0, 2.0, 0.05


@dataclass(frozen=True)
class Shape:
    """Parameters of a trace: the rate about which it moves, its length, and its seed."""

    rate_bps: int
    duration_s: float
    seed: int = 1
    #: Steps and sawtooth: seconds between two edges.
    period_s: float = 10.0
    #: Steps and sawtooth: the lowest rate over the highest.
    low: float = 0.1


@dataclass(frozen=True)
class Made:
    """A trace: times of opportunities in ms, and (ms, delay in ms) where the delay changes."""

    times_ms: list[int]
    delays_ms: list[tuple[int, float]] | None = None

    def rate_text(self) -> str:
        """The file of opportunities."""
        return "".join(f"{at}\n" for at in self.times_ms)

    def delay_text(self) -> str:
        """The file of delays; empty where they never change."""
        return "".join(f"{at} {delay:g}\n" for at, delay in self.delays_ms or [])


def generate(kind: str, shape: Shape) -> Made:
    """A trace of a kind of `KINDS`; the same shape gives the same trace. Raises UserError where it
    would be empty or too long."""
    lines = shape.rate_bps * shape.duration_s / _PACKET_BITS
    if lines > _MOST_LINES:
        raise UserError(
            f"--rate, --duration: about {lines:.0f} lines, at most {_MOST_LINES}; make it shorter, "
            "it repeats"
        )
    if not 0 < shape.low <= 1:
        raise UserError(f"--low {shape.low}: must be above 0 and at most 1")
    if not 0.02 <= shape.duration_s <= 86_400:
        raise UserError(f"--duration {shape.duration_s:g}s: must be from 20ms to a day")
    steps = max(1, round(shape.duration_s * 1000 / STEP_MS))
    rates = list(itertools.islice(KINDS[kind](shape), steps))
    if kind == "cellular":  # a walk of logarithms has a mean above its middle
        scale = shape.rate_bps * steps / sum(rates)
        rates = [rate * scale for rate in rates]
    times = _opportunities(rates)
    length = steps * STEP_MS
    if not times:
        raise UserError("--rate, --duration: not a single packet would pass")
    # The last line is the length: an opportunity there keeps the period exact.
    times.append(length)
    delays = _leo_delays(shape, length) if kind == "leo" else None
    return Made(times, delays)


def _opportunities(rates_bps: Iterable[float]) -> list[int]:
    """The ms at which the rate has carried another whole packet."""
    times = []
    bits = 0.0
    for index, rate in enumerate(rates_bps):
        for ms in range(index * STEP_MS, (index + 1) * STEP_MS):
            bits += rate / 1000
            while bits >= _PACKET_BITS:
                bits -= _PACKET_BITS
                times.append(ms)
    return times


def _steps(shape: Shape) -> Iterator[float]:
    """Alternates between the rate and `low` of it."""
    half = shape.period_s / 2
    for at in _seconds():
        yield shape.rate_bps * (1.0 if int(at / half) % 2 == 0 else shape.low)


def _sawtooth(shape: Shape) -> Iterator[float]:
    """Rises from `low` of the rate to it, and falls at once."""
    for at in _seconds():
        part = at % shape.period_s / shape.period_s
        yield shape.rate_bps * (shape.low + (1 - shape.low) * part)


def _cellular(shape: Shape) -> Iterator[float]:
    """A mean-reverting random walk of the rate's logarithm."""
    draws = random.Random(shape.seed)
    offset = 0.0
    bound = math.log(_CELLULAR_SPREAD)
    for index in itertools.count():
        if index % 10 == 0:
            offset += _CELLULAR_SIGMA * _normal(draws) - _CELLULAR_PULL * offset
            offset = max(-bound, min(bound, offset))
        yield shape.rate_bps * math.exp(offset)


def _leo(shape: Shape) -> Iterator[float]:
    """A new rate each 15 s, after a short gap."""
    draws = random.Random(shape.seed)
    factor = 1.0
    for index in itertools.count():
        within_ms = index * STEP_MS % (_LEO_S * 1000)
        if within_ms == 0:
            factor = 0.5 + draws.random()
        yield 0.0 if within_ms < _LEO_GAP_MS else shape.rate_bps * factor


def _leo_delays(shape: Shape, length_ms: int) -> list[tuple[int, float]]:
    """A new delay each 15 s, which then drifts by up to 2 ms, in steps of 1 s."""
    draws = random.Random(f"leo delay {shape.seed}")
    low, high = _LEO_DELAY_MS
    delays = []
    base = drift = 0.0
    for at in range(0, length_ms, 1000):
        if at % (_LEO_S * 1000) == 0:
            base = low + (high - low) * draws.random()
            drift = 4 * draws.random() - 2
        part = at % (_LEO_S * 1000) / (_LEO_S * 1000)
        delays.append((at, round(base + drift * part, 2)))
    return [*delays, (length_ms, delays[-1][1])]


def _wifi_fade(shape: Shape) -> Iterator[float]:
    """The rate, with fades at random: down to a twentieth and up again, as a cosine."""
    draws = random.Random(shape.seed)
    next_s = -_FADE_EVERY_S * math.log(1 - draws.random())
    for at in _seconds():
        if at > next_s + _FADE_S:
            next_s = at - _FADE_EVERY_S * math.log(1 - draws.random())
        within = (at - next_s) / _FADE_S
        depth = (1 - math.cos(2 * math.pi * within)) / 2 if 0 <= within <= 1 else 0.0
        yield shape.rate_bps * (1 - (1 - _FADE_LEFT) * depth)


KINDS: dict[str, Callable[[Shape], Iterator[float]]] = {
    "steps": _steps,
    "sawtooth": _sawtooth,
    "cellular": _cellular,
    "leo": _leo,
    "wifi-fade": _wifi_fade,
}


def _seconds() -> Iterator[float]:
    return (index * STEP_MS / 1000 for index in itertools.count())


def _normal(draws: random.Random) -> float:
    """Standard normal (Box and Muller), from the generator's stable uniform numbers only."""
    radius = math.sqrt(-2 * math.log(1 - draws.random()))
    return radius * math.cos(2 * math.pi * draws.random())
