"""Quantities with units, parsed once: text in, integers in base units out.

Knows nothing of scenarios; every error names what would be right.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from functools import lru_cache
from typing import Literal

NS_PER_S = 1_000_000_000

#: tc(8): "bit" units are powers of ten.
_RATE_BPS = {"bit": 1, "kbit": 10**3, "mbit": 10**6, "gbit": 10**9}
_TIME_NS = {"ns": 1, "us": 10**3, "ms": 10**6, "s": 10**9, "min": 60 * 10**9}
#: Sizes are powers of two wherever they are read, in upper and lower case: 64KB, 64kB and 64KiB are
#: 65,536 bytes, as for tc(8). Wherever they are printed, the unit is KiB or MiB.
KIB, MIB, GIB = 2**10, 2**20, 2**30
SIZE_BYTES = {"b": 1, "kb": KIB, "mb": MIB, "gb": GIB, "kib": KIB, "mib": MIB, "gib": GIB}
_PACKETS = ("pkt", "pkts", "packets", "p")
_NUMBER = re.compile(r"\s*([0-9]+(?:\.[0-9]*)?|\.[0-9]+)\s*([a-zA-Z%]*)\s*")

#: What people call units, and what they are called here.
_SPOKEN_TIMES = {
    "sec": "s",
    "secs": "s",
    "second": "s",
    "seconds": "s",
    "msec": "ms",
    "usec": "us",
    "µs": "us",
    "μs": "us",
    "nsec": "ns",
    "m": "min",
    "mins": "min",
    "minute": "min",
    "minutes": "min",
}
_SPOKEN_RATE = re.compile(r"([0-9.]+)\s*([kmg]?)(b|bits?)?(?:/s|/sec|ps)?", re.IGNORECASE)
_LONG_RATE = re.compile(r"([0-9.]+)\s*(kilo|mega|giga)bits?(?:/s|ps)?", re.IGNORECASE)
_BINARY_RATE = re.compile(r"([0-9.]+)\s*([kmg])ibits?(?:/s|ps)?", re.IGNORECASE)
_BINARY = {"k": 2**10, "m": 2**20, "g": 2**30}
_SPOKEN_TIME = re.compile(r"([0-9.]+)\s*([a-zµμ]+)", re.IGNORECASE)
_HOURS = re.compile(r"([0-9.]+)\s*(h|hours?)", re.IGNORECASE)
_CLOCK = re.compile(r"(?:(\d{1,2}):)?(\d{1,2}):(\d{2})")
#: `64k` of bytes, `2xBDP`.
_SHORT_SIZE = re.compile(r"([0-9.]+)(?:([kmg])|\s*[x*]\s*bdp)", re.IGNORECASE)
_TWO_RATES = re.compile(r"[0-9.]+\s*[a-z]*\s*[/:]\s*[0-9.]+.*", re.IGNORECASE)
_COMMA = re.compile(r"\s*([0-9]+),([0-9]+)(\s*[a-zA-Z%]*.*)")
#: `Mb`, which is a megabit to some and, as to tc(8), 1 MiB to others.
_BITS_OR_BYTES = re.compile(r"\s*[0-9.]+\s*([KMG])b\s*")

#: Codepoints by name: class selectors and EF, AF (RFC 2474, 2597, 3246), VOICE-ADMIT (RFC 5865) and
#: LE (RFC 8622), as iproute2's rt_dsfield has them.
DSCP = {
    **{f"cs{number}": number * 8 for number in range(8)},
    **{f"af{row}{drop}": row * 8 + drop * 2 for row in (1, 2, 3, 4) for drop in (1, 2, 3)},
    "be": 0,
    "default": 0,
    "le": 1,
    "voice-admit": 44,
    "ef": 46,
}

#: 1 Tbit/s, one week, 1 TiB: beyond these an input is a slip of the pen.
MAX_RATE_BPS = 10**12
MAX_TIME_NS = 7 * 24 * 3600 * NS_PER_S
MAX_SIZE_BYTES = 2**40


class UnitError(ValueError):
    """A quantity that cannot be read; the message says what would be right."""


@dataclass(frozen=True)
class Buffer:
    """A queue limit: so many bytes, packets, bandwidth-delay products (rate x base RTT), or as many
    bytes as the link carries in so many ns."""

    kind: Literal["bytes", "packets", "bdp", "ns"]
    value: float

    def limit_bytes(self, rate_bps: int, rtt_ns: int) -> int | None:
        """The limit in bytes; None for a limit in packets."""
        if self.kind == "packets":
            return None
        if self.kind == "bytes":
            return int(self.value)
        time_ns = self.value if self.kind == "ns" else self.value * rtt_ns
        return max(1, round(time_ns * rate_bps / NS_PER_S / 8))


@dataclass(frozen=True)
class Spread:
    """How far apart seeds may lie: so many ns, or as long as so many packets take at the
    bottleneck."""

    kind: Literal["ns", "packets"]
    value: float

    def ns(self, rate_bps: int, wire_bytes: int) -> int:
        """In ns, with packets of so many bytes on the wire."""
        if self.kind == "ns":
            return int(self.value)
        return round(self.value * 8 * wire_bytes * NS_PER_S / rate_bps)


def parse_rate(text: object) -> int:
    """A rate such as `100mbit` or `1.5Gbit`, in bit/s.

    Raises UnitError for anything else, zero, negative or above 1 Tbit/s."""
    right = "a rate such as 100mbit or 1.5Gbit"
    return _parse(text, _RATE_BPS, right, MAX_RATE_BPS, "1000gbit", least=1)


def parse_time(text: object) -> int:
    """A time such as `40ms` or `1.5s`, in ns. `0` needs no unit.

    Raises UnitError for anything else, negative or above a week."""
    right = "a time such as 40ms, 1.5s or 250us"
    return _parse(text, _TIME_NS, right, MAX_TIME_NS, "604800s", least=0)


def parse_duration(text: object) -> int:
    """A time above 0 such as `40ms` or `1.5s`, in ns.

    Raises UnitError for anything else, 0, negative or above a week."""
    right = "a time such as 40ms, 1.5s or 250us"
    return _parse(text, _TIME_NS, right, MAX_TIME_NS, "604800s", least=1)


def parse_size(text: object) -> int:
    """A volume such as `64KB` (65,536 bytes, as are `64kB` and `64KiB`) or `10MB`, in bytes.

    Raises UnitError for anything else, zero, negative or above 1 TiB."""
    right = "a size such as 64KB or 10MB"
    return _parse(text, SIZE_BYTES, right, MAX_SIZE_BYTES, "1024GB", least=1)


def parse_buffer(text: object) -> Buffer:
    """A queue limit such as `1bdp`, `64KB`, `50000B`, `100pkt`, or `500ms` at the link's rate.

    Raises UnitError for anything else, zero, negative, above 10^6 BDP or packets or above a week,
    and for `1Mb`, which may mean bits."""
    right = "a buffer such as 1bdp, 500ms, 64KB, 50000B or 100pkt"
    number, unit = _split(text, right)
    if isinstance(text, str) and (match := _BITS_OR_BYTES.fullmatch(text)):
        size = f"{number:f}{match[1]}B"
        count = parse_size(size)
        raise UnitError(f"{text!r} may mean bits or bytes: write {size} for {count:,} bytes")
    if unit in _TIME_NS:
        return Buffer("ns", float(parse_duration(text)))
    if unit in SIZE_BYTES:
        return Buffer("bytes", float(parse_size(text)))
    if number <= 0 or number > 10**6:
        raise UnitError(f"{text!r} is out of range: {right}, above 0 and at most 1000000")
    if unit == "bdp":
        return Buffer("bdp", float(number))
    if unit in _PACKETS:
        if number != int(number):
            raise UnitError(f"{text!r} is not a whole number of packets: {right}")
        return Buffer("packets", float(number))
    cure = _cure(text, right) if isinstance(text, str) else ""
    raise UnitError(f"{text!r} is not {right}{cure}")


def parse_spread(text: object) -> Spread:
    """A spread such as `1pkt`, what a packet takes at the bottleneck, or a time. `0` needs no unit.

    Raises UnitError for anything else, negative, above 1000 packets or a week."""
    right = "a spread such as 1pkt (what a packet takes at the bottleneck), or a time such as 250us"
    number, unit = _split(text, right)
    if unit not in _PACKETS:
        return Spread("ns", _parse(text, _TIME_NS, right, MAX_TIME_NS, "604800s", least=0))
    if number > 1000:
        raise UnitError(f"{text!r} is out of range: {right}, 0 or more and at most 1000pkt")
    return Spread("packets", float(number))


def parse_ratio(text: object) -> float:
    """A probability such as `0.01` or `1%`, between 0 and 1.

    Raises UnitError for anything else."""
    right = "a ratio such as 0.01 or 1%"
    if isinstance(text, bool):
        raise UnitError(f"{text!r} is not {right}")
    if isinstance(text, int | float):
        value = float(text)
    else:
        number, unit = _split(text, right)
        if unit not in ("", "%"):
            raise UnitError(f"{text!r} is not {right}")
        value = float(number) / (100 if unit == "%" else 1)
    if not math.isfinite(value) or not 0 <= value <= 1:
        raise UnitError(f"{text!r} is out of range: {right}, from 0 to 1")
    return value


def parse_loss(text: object) -> float:
    """As `parse_ratio`, but a plain number from 1 on is refused: nobody knows whether 1 is all, or
    one in a hundred."""
    if isinstance(text, int | float) and not isinstance(text, bool):
        number = float(text)
    else:
        plain = isinstance(text, str) and re.fullmatch(r"\s*[0-9.]+\s*", text)
        number = float(text) if plain and isinstance(text, str) and text.count(".") < 2 else 0.0
    if number == 1:
        raise UnitError(f'{text!r} is ambiguous: write "1%", or "100%" for the loss of everything')
    if 1 < number <= 100:
        raise UnitError(f'{text!r} is out of range: write "{number:g}%"')
    return parse_ratio(text)


def parse_dscp(text: object) -> int:
    """A codepoint such as `EF`, `AF41`, `CS1`, `LE`, or its number, from 0 to 63.

    Raises UnitError for anything else."""
    right = "a DSCP such as EF, AF41, CS1, LE or BE, or a number from 0 to 63"
    if isinstance(text, int) and not isinstance(text, bool) and 0 <= text <= 63:
        return text
    if isinstance(text, str):
        name = text.strip().lower()
        if name in DSCP:
            return DSCP[name]
        if name.isdecimal() and len(name) <= 2 and int(name) <= 63:
            return int(name)
    shown = repr(text)
    raise UnitError(f"{shown[:60]} is not {right}")


def format_rate(rate_bps: float) -> str:
    """`100 Mbit/s`, with the largest unit that leaves at least 1 and three digits."""
    return _format(rate_bps, [(1e9, "Gbit/s"), (1e6, "Mbit/s"), (1e3, "kbit/s"), (1, "bit/s")])


def format_time(time_ns: float) -> str:
    """`40 ms`, with the largest unit that leaves at least 1 and three digits."""
    return _format(time_ns, [(1e9, "s"), (1e6, "ms"), (1e3, "us"), (1, "ns")])


def format_size(size_bytes: float) -> str:
    """`64 KiB`, with the largest unit that leaves at least 1 and three digits."""
    return _format(size_bytes, [(GIB, "GiB"), (MIB, "MiB"), (KIB, "KiB"), (1, "B")])


def _format(value: float, units: list[tuple[float, str]]) -> str:
    for size, name in units:
        if abs(value) >= size:
            return f"{value / size:.4g} {name}"
    return f"{value:.4g} {units[-1][1]}"


def _split(text: object, right: str) -> tuple[Decimal, str]:
    if isinstance(text, int) and not isinstance(text, bool) and text == 0:
        return Decimal(0), ""
    if isinstance(text, list):
        raise UnitError(
            f"{text!r} is a list: write one value, {right}; `fullpipe sweep` runs over several"
        )
    if not isinstance(text, str):
        raise UnitError(f"{text!r} has no unit: write {right}")
    return _split_text(text, right)


@lru_cache(1 << 12)
def _split_text(text: str, right: str) -> tuple[Decimal, str]:
    match = _NUMBER.fullmatch(text)
    if not match or len(text) > 40:
        shown = text if len(text) <= 40 else text[:37] + "..."
        raise UnitError(f"{shown!r} is not {right}{_cure(text, right)}")
    try:
        return Decimal(match[1]), match[2].lower()
    except InvalidOperation as error:
        raise UnitError(f"{text!r} is not {right}") from error


def _parse(
    text: object, units: dict[str, int], right: str, most: int, most_text: str, least: int
) -> int:
    number, unit = _split(text, right)
    if unit not in units and not (unit == "" and number == 0):
        names = ", ".join(units)
        why = f"unknown unit {unit!r}" if unit else "no unit"
        cure = _cure(text, right) if isinstance(text, str) else ""
        raise UnitError(f"{text!r} has {why}: write {right} (units: {names}){cure}")
    value = int((number * units.get(unit, 1)).to_integral_value())
    if value < least or value > most:
        low = "above 0" if least else "0 or more"
        raise UnitError(f"{text!r} is out of range: {right}, {low} and at most {most_text}")
    return value


def _cure(text: str, right: str) -> str:
    """What was probably meant by a quantity that is not written as here, where `right` is; empty
    where nobody knows."""
    if match := _COMMA.fullmatch(text):
        whole, part, rest = match.groups()
        thousands = f"{whole}{part}{rest} or " if len(part) == 3 else ""
        return f"; write {thousands}{whole}.{part}{rest}: a point, not a comma"
    if "rate" in right:
        return _rate_cure(text)
    if "size" in right or ("buffer" in right and _SHORT_SIZE.fullmatch(text)):
        return _size_cure(text)
    if match := _CLOCK.fullmatch(text):
        hours, minutes, seconds = (int(part or 0) for part in match.groups())
        return f"; as a time it is {hours * 3600 + minutes * 60 + seconds}s"
    if (match := _SPOKEN_TIME.fullmatch(text)) and match[2].lower() in _SPOKEN_TIMES:
        return f"; as a time it is {match[1]}{_SPOKEN_TIMES[match[2].lower()]}"
    if _HOURS.fullmatch(text):
        return "; an hour is 60min"
    return ""


def _size_cure(text: str) -> str:
    if match := _SHORT_SIZE.fullmatch(text):
        return f"; write {match[1]}{match[2].upper()}B" if match[2] else f"; write {match[1]}bdp"
    return ""


def _rate_cure(text: str) -> str:
    if _TWO_RATES.fullmatch(text):
        return (
            '; these are two rates: rate is that of "up" flows, and the other direction has '
            "reverse_rate in [path], or a rate in [link.reverse]"
        )
    if match := _LONG_RATE.fullmatch(text):
        return f"; as a rate it is {match[1]}{match[2][0].lower()}bit"
    if match := _BINARY_RATE.fullmatch(text):
        return f"; a {match[2].upper()}ibit is {_BINARY[match[2].lower()]}bit"
    match = _SPOKEN_RATE.fullmatch(text)
    if not match or not (match[2] or match[3]):
        return ""
    number, prefix, unit = match[1], match[2].lower(), match[3] or ""
    try:
        value = Decimal(number)
    except InvalidOperation:
        return ""
    if unit == "B":
        return f"; of bytes, it is {(value * 8).normalize():f}{prefix}bit"
    return f"; as a rate it is {number}{prefix}bit"


def counted(count: int, noun: str) -> str:
    """How many there are: `1 run`, `2 runs`."""
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"
