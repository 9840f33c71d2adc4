"""A Flent file as checked data: format version 4, or an older one converted.

Every value is checked before use; an error names the key. It must never know of
recordings. The format: https://flent.org/data-format.html and what Flent 2.1.1 reads.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from fullpipe.flent.container import FlentError, load_object
from fullpipe.flent.versions import FORMAT_VERSION, to_current

Floats = npt.NDArray[np.float64]

#: The longest test in seconds; later times are an error in the file.
MAX_SECONDS = 1e7
#: Of each kind that is looked at one by one (flows, probes, qdiscs), and of all.
MAX_SERIES, MAX_NAMES, MAX_NAME_LENGTH = 1000, 50_000, 500
#: What netperf measures (-t of its command line), and which way the bytes of a TCP flow go.
_NETPERF_TEST = re.compile(r"-t\s+([A-Z]+_[A-Z]+)")
_NETPERF_TCP = {"TCP_STREAM": "up", "TCP_SENDFILE": "up", "TCP_MAERTS": "down"}
#: Options of iperf: datagrams, and data towards who asks.
_IPERF_UDP, _IPERF_DOWN = re.compile(r"\s(?:-u|--udp)\b"), re.compile(r"\s(?:-R|--reverse)\b")
#: Names of what Flent computes from other series, where the metadata do not say so.
_COMPUTED = re.compile(r"(?:.*[ :])?(?:sum|avg|totals?|fairness)$")
_NO_TCP = re.compile(r"(?:UDP|SCTP|VoIP|Ping|HTTP)\b", re.IGNORECASE)
_TCP = re.compile(r"TCP (?!.*::tcp_)")
_DOWN = re.compile(r"(?<![a-z])down(?:load|link|stream)?(?![a-z])|maerts", re.IGNORECASE)
_UP = re.compile(r"(?<![a-z])up(?:load|link|stream)?(?![a-z])", re.IGNORECASE)
_PING = re.compile(r"Ping \(ms\)(?!.* avg$)")
#: Units of a flow, which Flent writes as Mbits/s and other tools otherwise.
_RATE_UNIT = re.compile(r"([kmgt]?)(?:bits?/s(?:ec)?|bps)", re.IGNORECASE)
_MBPS = {"": 1e-6, "k": 1e-3, "m": 1.0, "g": 1e3, "t": 1e6}
_QDISC = re.compile(r"qdisc_stats_(?!.*::)(.*)")


@dataclass(frozen=True)
class Raw:
    """The raw values of one series: dictionaries with a time `t`, in the order of time."""

    where: str
    entries: tuple[dict[str, Any], ...]

    def with_key(self, key: str) -> Raw:
        """Only the entries that have this key, and not null there."""
        return Raw(self.where, tuple(e for e in self.entries if e.get(key) is not None))

    def column(self, key: str) -> Floats:
        """One key of every entry; NaN where it is absent or null. Raises FlentError if it is
        no number."""
        values = [entry.get(key) for entry in self.entries]
        if not all(type(value) is float or value is None for value in values):
            values = [
                None if value is None else number(value, f"{self.where}[{index}].{key}")
                for index, value in enumerate(values)
            ]
        numbers = np.array(values, dtype=np.float64)  # None becomes NaN
        if np.isinf(numbers).any():
            raise FlentError(f"{self.where}.{key}: must be finite numbers")
        return numbers

    def with_prefix(self, prefix: str) -> Raw:
        """Only the entries with a key that begins so."""
        return Raw(
            self.where,
            tuple(e for e in self.entries if any(key.startswith(prefix) for key in e)),
        )

    def __len__(self) -> int:
        return len(self.entries)


@dataclass(frozen=True)
class FlentFile:
    """One Flent file. `x` is the grid in seconds since T0, `results` the interpolated series on it
    (NaN for a gap), `raw` the raw values with absolute Unix times."""

    path: Path
    sha256: str
    version: int
    metadata: dict[str, Any]
    x: Floats
    results: dict[str, Floats]
    raw: dict[str, Raw]

    @property
    def test(self) -> str:
        """Flent's name of the test (metadata NAME)."""
        return clean(self.metadata["NAME"])

    @property
    def title(self) -> str:
        """The title; empty if there is none."""
        return self.text("TITLE")

    @property
    def label(self) -> str:
        """The file's label: its title, else its file name."""
        return self.title or self.path.name.removesuffix(".gz").removesuffix(".flent")

    def text(self, key: str) -> str:
        """A text of the metadata; empty if it is absent or no text."""
        value = self.metadata.get(key)
        return clean(value) if isinstance(value, str) else ""

    def seconds(self, key: str) -> float | None:
        """A duration of the metadata; None if it is absent."""
        value = self.metadata.get(key)
        if value is None:
            return None
        where = f"{self.path}: metadata.{key}"
        seconds = number(value, where)
        if not 0 <= seconds <= MAX_SECONDS:
            raise FlentError(f"{where}: is {seconds:g}; must be from 0 to {MAX_SECONDS:g} s")
        return seconds

    def series_meta(self, series: str) -> dict[str, Any]:
        """What the metadata says of a series; empty if it says nothing."""
        meta: dict[str, Any] = self.metadata["SERIES_META"].get(series, {})
        return meta

    def meta_number(self, series: str, key: str) -> float | None:
        """A number of a series' metadata; None if it is absent, null or empty."""
        value = self.series_meta(series).get(key)
        if value is None or value == "":
            return None
        return number(value, f"{self.path}: metadata.SERIES_META[{clean(series)!r}].{key}")

    def mbps_unit(self, series: str) -> float:
        """One of the unit of a flow's values in Mbit/s. Raises FlentError for no unit of rates."""
        units = self.series_meta(series).get("UNITS", "Mbits/s")
        unit = _RATE_UNIT.fullmatch(_text(units) or "Mbits/s")
        if unit is None:
            where = f"{self.path}: metadata.SERIES_META[{clean(series)!r}].UNITS"
            raise FlentError(f"{where}: is {_short(units)}; must be Mbits/s, as of a TCP flow")
        return _MBPS[unit[1].lower()]

    @cached_property
    def flows(self) -> list[tuple[str, str]]:
        """Series that are single TCP flows, with their direction (`up`, `down`): in the order of
        the names, numbers in them by value.

        A flow is what netperf measured as a rate with a test of TCP, by the runner, command and
        units of the metadata, or iperf for a series of TCP. Older files lack these; there a flow is
        named after TCP, or has netperf's interim results (`dur`) or end results."""
        measured = filter(self._measured, self._named_flows)
        return sorted(((name, self._direction(name)) for name in measured), key=_natural)

    @cached_property
    def unmeasured(self) -> list[str]:
        """Flows of which the file has no value: what should have measured them failed."""
        return sorted(name for name in self._named_flows if not self._measured(name))

    @cached_property
    def _named_flows(self) -> list[str]:
        names = {*self.raw, *self.results, *self.metadata["SERIES_META"]}
        return [name for name in names if self._is_flow(name)]

    def is_computed(self, name: str) -> bool:
        """Whether Flent made a series from others: a sum, a mean, an index."""
        meta = self.series_meta(name)
        runner, command = (_text(meta.get(key)) for key in ("RUNNER", "COMMAND"))
        if "COMPUTED_LATE" in meta or "(computed)" in command:
            return True
        return not runner.startswith("Netperf") and _COMPUTED.match(name) is not None

    def _is_flow(self, name: str) -> bool:
        meta = self.series_meta(name)
        runner, units = (_text(meta.get(key)) for key in ("RUNNER", "UNITS"))
        test = _NETPERF_TEST.search(_text(meta.get("COMMAND")))
        if "::tcp_" in name or self.is_computed(name):
            return False
        is_rate = _RATE_UNIT.fullmatch(units) is not None
        if runner.startswith("Iperf"):
            has_datagrams = _IPERF_UDP.search(_text(meta.get("COMMAND"))) is not None
            return is_rate and name.startswith("TCP ") and not has_datagrams
        if runner and not runner.startswith("Netperf"):
            return False
        if units and not is_rate and not name.startswith("TCP "):
            return False
        if test is not None or _NO_TCP.match(name):
            return test is not None and test[1] in _NETPERF_TCP
        if name.startswith("TCP "):
            return True
        raw = self.raw.get(name)
        is_netperfs = "ELAPSED_TIME" in meta or (raw is not None and len(raw.with_key("dur")) > 0)
        return is_rate and is_netperfs

    def _direction(self, name: str) -> str:
        """By netperf's test, else by the series' name, else by the test's name."""
        test = _NETPERF_TEST.search(_text(self.series_meta(name).get("COMMAND")))
        if test is not None:
            return _NETPERF_TCP[test[1]]
        if _IPERF_DOWN.search(_text(self.series_meta(name).get("COMMAND"))):
            return "down"
        for text in (name, self.test):
            if _UP.search(text):
                return "up"
            if _DOWN.search(text):
                return "down"
        return "up"

    def _measured(self, name: str) -> bool:
        mean = self.series_meta(name).get("MEAN_VALUE")
        if mean not in (None, ""):
            return True
        raw, grid = self.raw.get(name), self.results.get(name)
        has_raw = raw is not None and any(e.get("val") is not None for e in raw.entries)
        return has_raw or (grid is not None and not bool(np.isnan(grid).all()))

    @cached_property
    def pings(self) -> list[str]:
        """Series that are probes of latency."""
        pings = [name for name in self.raw if _PING.match(name)]
        return sorted(pings, key=lambda name: _natural((name, "")))

    @cached_property
    def qdiscs(self) -> dict[str, str]:
        """Host -> series of its qdisc's statistics."""
        matches = ((name, _QDISC.match(name)) for name in sorted(self.raw) if len(self.raw[name]))
        return {clean(match[1]): name for name, match in matches if match}

    @cached_property
    def t0(self) -> float:
        """Unix time of x = 0: metadata T0, else the first raw value.

        A T0 without time zone is the writer's local time; it is moved by whole quarters of an hour
        to the raw values, as Flent does by hours."""
        first = min((raw.entries[0]["t"] for raw in self.raw.values() if len(raw)), default=0.0)
        text = self.metadata.get("T0")
        if text is None:
            return float(first)
        when = parse_time(text, f"{self.path}: metadata.T0")
        if not str(text).endswith("Z") and first:
            when += round((first - when) / 900) * 900
        return when

    def since_t0(self, raw: Raw) -> Floats:
        """Times of raw values in seconds since T0. Raises FlentError if they are not near."""
        times = raw.column("t") - self.t0
        if times.size and not (np.abs(times) <= MAX_SECONDS).all():
            raise FlentError(f"{raw.where}: times are not those of this test (T0 is elsewhere)")
        return times


def read_flent(path: Path | str) -> FlentFile:
    """Reads and checks a Flent file. Raises FlentError."""
    path = Path(path)
    document, sha256 = load_object(path)
    if not document.keys() & {"metadata", "results", "raw_values", "x_values"}:
        raise FlentError(f"{path}: is no Flent file: it has no metadata and no results")
    try:
        version = to_current(document)
    except (KeyError, TypeError, AttributeError, ZeroDivisionError, OverflowError) as error:
        raise FlentError(f"{path}: an old format with damage: {clean(repr(error))}") from None
    except ValueError as error:
        raise FlentError(f"{path}: {clean(str(error))}") from None
    for key, kind, name in (
        ("metadata", dict, "an object"),
        ("x_values", list, "a list"),
        ("results", dict, "an object"),
        ("raw_values", dict, "an object"),
    ):
        if key not in document:
            raise FlentError(f"{path}: has no {key}; a Flent file of version {FORMAT_VERSION} does")
        if not isinstance(document[key], kind):
            raise FlentError(f"{path}: {key}: is {_kind(document[key])}; must be {name}")
    metadata = _metadata(path, document["metadata"])
    _check_names(path, document, metadata)
    x = _numbers(f"{path}: x_values", document["x_values"])
    if np.isnan(x).any() or (np.diff(x) <= 0).any() or (np.abs(x) > MAX_SECONDS).any():
        raise FlentError(f"{path}: x_values: must be seconds that rise")
    results = {}
    for name, values in document["results"].items():
        where = f"{path}: results[{clean(name)!r}]"
        results[name] = _numbers(where, values)
        if results[name].size != x.size:
            raise FlentError(f"{where}: has {results[name].size} values; x_values has {x.size}")
    raw = {name: _raw(path, name, entries) for name, entries in document["raw_values"].items()}
    file = FlentFile(path, sha256, version, metadata, x, results, raw)
    if len(file.flows) > MAX_SERIES:
        raise FlentError(f"{path}: has more than {MAX_SERIES} flows, probes or qdiscs")
    return file


def number(value: Any, where: str) -> float:
    """A finite number, also from its text (netperf's are texts in some fields).

    Raises FlentError."""
    if isinstance(value, bool) or not isinstance(value, (int, float, str)):
        raise FlentError(f"{where}: is {_kind(value)}; must be a number")
    try:
        parsed = math.nan if isinstance(value, str) and len(value) > 40 else float(value)
    except (ValueError, OverflowError):
        parsed = math.nan
    if not math.isfinite(parsed):
        raise FlentError(f"{where}: is {_short(value)}; must be a finite number")
    return parsed


def clean(text: str) -> str:
    """Text that can be printed and stored: one line, no control characters, at most 200 long."""
    printable = "".join(c if c.isprintable() else "?" for c in text[:200])
    return printable.encode("utf-8", "replace").decode("utf-8")


def parse_time(text: Any, where: str) -> float:
    """Unix time of Flent's `2026-01-01T00:00:00.250000Z`, the fraction and Z being optional."""
    try:
        if isinstance(text, str):
            when = datetime.fromisoformat(text.removesuffix("Z")).replace(tzinfo=UTC)
            return when.timestamp()
    except (ValueError, OverflowError):
        pass
    raise FlentError(f"{where}: is {_short(text)}; must be like 2026-01-01T00:00:00.000000Z")


def _metadata(path: Path, metadata: dict[str, Any]) -> dict[str, Any]:
    name = metadata.get("NAME")
    if not isinstance(name, str) or not name:
        raise FlentError(f"{path}: metadata.NAME: is {_kind(name)}; must be the name of a test")
    series = metadata.get("SERIES_META")
    if series is None:
        series = {}
    if not isinstance(series, dict) or not all(isinstance(v, dict) for v in series.values()):
        raise FlentError(f"{path}: metadata.SERIES_META: must be an object of objects")
    return {**metadata, "SERIES_META": series}


def _check_names(path: Path, document: dict[str, Any], metadata: dict[str, Any]) -> None:
    names = {*document["results"], *document["raw_values"], *metadata["SERIES_META"]}
    if len(names) > MAX_NAMES:
        raise FlentError(f"{path}: has {len(names)} series; at most {MAX_NAMES} are read")
    if any(len(name) > MAX_NAME_LENGTH for name in names):
        raise FlentError(f"{path}: a series' name is longer than {MAX_NAME_LENGTH}")
    for kind in (_TCP, _PING, _QDISC):
        if sum(kind.match(name) is not None for name in names) > MAX_SERIES:
            raise FlentError(f"{path}: has more than {MAX_SERIES} flows, probes or qdiscs")


def _numbers(where: str, values: Any) -> Floats:
    if not isinstance(values, list):
        raise FlentError(f"{where}: is {_kind(values)}; must be a list")
    for index, value in enumerate(values):
        if type(value) not in (float, int) and value is not None:
            raise FlentError(f"{where}[{index}]: is {_kind(value)}; must be a number or null")
    try:
        column = np.array([math.nan if v is None else v for v in values], dtype=np.float64)
    except OverflowError:
        column = np.array([math.inf])
    if np.isinf(column).any():
        raise FlentError(f"{where}: holds a number too large to be one")
    return column


def _raw(path: Path, name: str, entries: Any) -> Raw:
    where = f"{path}: raw_values[{clean(name)!r}]"
    if not isinstance(entries, list):
        raise FlentError(f"{where}: is {_kind(entries)}; must be a list")
    for index, entry in enumerate(entries):
        if not isinstance(entry, dict):
            raise FlentError(f"{where}[{index}]: is {_kind(entry)}; must be an object")
        if "t" not in entry:
            raise FlentError(f"{where}[{index}]: has no time t")
        if type(entry["t"]) is not float or not math.isfinite(entry["t"]):
            entry["t"] = number(entry["t"], f"{where}[{index}].t")
    return Raw(where, tuple(sorted(entries, key=lambda entry: entry["t"])))


def _natural(named: tuple[str, str]) -> tuple[bool, list[str | int]]:
    name, direction = named
    parts = re.split(r"(\d{1,9})", name)  # text and digits by turns
    return direction == "down", [int(p) if index % 2 else p for index, p in enumerate(parts)]


def _text(value: Any) -> str:
    return value if isinstance(value, str) else ""


def _kind(value: Any) -> str:
    names = {dict: "an object", list: "a list", str: "a text", bool: "true or false"}
    return "missing" if value is None else names.get(type(value), "a number")


def _short(value: Any) -> str:
    if isinstance(value, (dict, list)) or value is None:
        return _kind(value)
    try:
        text = clean(str(value))
    except ValueError:  # an integer of more digits than Python prints
        return "too large"
    return text if len(text) <= 40 else f"{text[:37]}..."
