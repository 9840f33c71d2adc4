"""Flent's tests as scenarios: templates (`flent_tests/*.toml`) that say which streams, marks,
probes and times a test has, and what its series are called in Flent's files.

A template holds no path: that comes from a scenario file. It must never know an engine.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from fullpipe.base.errors import UserError
from fullpipe.base.installed import shipped
from fullpipe.base.toml import parse_toml
from fullpipe.base.units import parse_time
from fullpipe.flent.shapes import End, Shape
from fullpipe.scenario.network import network_of

#: Flent starts streams this long after its probes, and ends them as long before (DELAY).
DELAY_S = 5.0
STEP = "200ms"
LENGTH = "60s"
_KINDS = ("flow", "probe", "page", "udp")
#: Keys of a template's flows and probes that no scenario has.
_OWN_KEYS = ("series", "host")


@dataclass(frozen=True)
class Template:
    """One test: its name, what it does in a line, and the file's content."""

    name: str
    about: str
    content: Mapping[str, Any]

    @property
    def delay_s(self) -> float:
        """How long the probes go on before the streams."""
        return parse_time(self.content.get("delay", f"{DELAY_S}s")) / 1e9

    @property
    def tail_s(self) -> float:
        """How long the probes go on after the streams."""
        return parse_time(self.content.get("tail", f"{DELAY_S}s")) / 1e9


def names() -> list[str]:
    """Names of all tests."""
    return sorted(file.stem for file in shipped("flent_tests").glob("*.toml"))


def template(name: str) -> Template:
    """The test of this name. Raises UserError if there is none."""
    if name not in names():
        raise UserError(f"test {name}: unknown; known are {', '.join(names())}")
    text = (shipped("flent_tests") / f"{name}.toml").read_text(encoding="utf-8")
    content = parse_toml(text)
    return Template(name, content["about"], content)


def scenario_of(
    test: Template,
    path: Mapping[str, Any],
    source: str,
    cc: str | None = None,
    length: str = LENGTH,
    streams: int = 1,
    rtts: Sequence[str] = (),
    levels: Sequence[Sequence[str]] = (),
) -> dict[str, Any]:
    """The document of a scenario: the test over the network of the document `path`, which the file
    `source` holds. `cc` is what every stream runs whose algorithm the test leaves open, `length`
    how long streams last, `streams` their number where the test has N, `rtts` those to its hosts,
    `levels` sizes of its page.

    Raises UserError if `path` has no network or a length or number is impossible."""
    network = network_of(path, source)
    lasts_ns = _length_ns(length)
    delay_ns = round(test.delay_s * 1e9)
    document: dict[str, Any] = {
        "name": test.name,
        "flent_test": test.name,
        "duration": f"{delay_ns + lasts_ns + round(test.tail_s * 1e9)}ns",
        "warmup": f"{delay_ns}ns",
        **network,
    }
    times = {"start": f"{delay_ns}ns", "stop": f"{delay_ns + lasts_ns}ns"}
    document["flow"] = []
    for flow in test.content.get("flow", []):
        sender = _own(flow)
        sender = {"cc": cc or test.content.get("cc", "cubic"), **times, **sender}
        if sender.get("count") == "N":
            sender["count"] = streams
        if "host" in flow:
            sender["rtt"] = _rtt_of(test, flow["host"], rtts)
        document["flow"].append(sender)
    document["probe"] = [
        {"interval": STEP, **_own(probe)} for probe in test.content.get("probe", [])
    ]
    for page in test.content.get("page", []):
        sender = {"cc": cc or "cubic", "interval": STEP, **times, **_own(page)}
        if sender["stop"] == "length":
            sender["stop"] = f"{lasts_ns}ns"
        if levels:
            sender["levels"] = [list(level) for level in levels]
        document.setdefault("page", []).append(sender)
    for udp in test.content.get("udp", []):
        document.setdefault("udp", []).append(_own(udp))
    if levels and "page" not in document:
        raise UserError(f"--har: {test.name} loads no page")
    return {key: value for key, value in document.items() if value != []}


def shape_of(
    test: Template,
    flows: Mapping[str, End],
    probes: Sequence[str],
    pages: Sequence[str] = (),
    streams: Sequence[str] = (),
) -> Shape | None:
    """The shape of a run of the test with these flows, probes, pages and streams of datagrams, by
    name, in their order; None if they are not those of the test."""
    by_kind = {kind: _series_by_name(test, kind) for kind in _KINDS}
    hosts = _hosts(test, flows)
    series = [_series_of(by_kind["flow"], name, end, hosts) for name, end in flows.items()]
    pings = [by_kind["probe"].get(name, {}).get("series") for name in probes]
    applications = {
        kind: [by_kind[kind].get(name, {}).get("series") for name in names]
        for kind, names in (("page", pages), ("udp", streams))
    }
    if None in (*series, *pings, *applications["page"], *applications["udp"]):
        return None
    if not (series or applications["page"] or applications["udp"]):
        return None
    if hosts:
        pings = [f"{ping} {host}" for ping, host in zip(pings, hosts.values(), strict=False)]
    all_series = [name for name in (*series, *pings) if name is not None]
    parameters = test.content.get("parameters", {})
    return Shape(
        test.name,
        tuple(name for name in series if name is not None),
        tuple(name for name in pings if name is not None),
        tuple(hosts.values()) or ("bottleneck",),
        {key: str(len(flows)) if text == "N" else text for key, text in parameters.items()},
        {
            item["series"]: (
                item["how"],
                tuple(name for name in all_series if name.startswith(item["of"])),
            )
            for item in test.content.get("computed", [])
        },
        pages=tuple(map(str, applications["page"])),
        streams=tuple(map(str, applications["udp"])),
    )


def _length_ns(length: str) -> int:
    try:
        lasts_ns = parse_time(length)
    except ValueError as error:
        raise UserError(f"--length {length}: {error}") from None
    if lasts_ns < 10**9:
        raise UserError(f"--length {length}: must be at least 1s")
    return lasts_ns


def _own(item: Mapping[str, Any]) -> dict[str, Any]:
    keys = {key: value for key, value in item.items() if key not in _OWN_KEYS}
    return {"name": _name(item["series"]), **keys}


def _name(series: str) -> str:
    """A series as the name of a flow or probe, which holds no space."""
    text = series.removeprefix("TCP ").removeprefix("Ping (ms) ").rstrip(":")
    return re.sub(r"[^A-Za-z0-9_]+", ".", text)


def _series_by_name(test: Template, kind: str) -> dict[str, Mapping[str, Any]]:
    return {_name(item["series"]): item for item in test.content.get(kind, [])}


def _series_of(
    by_name: Mapping[str, Mapping[str, Any]], name: str, end: End, hosts: Mapping[int, str]
) -> str | None:
    base, _, number = name.rpartition(".")
    item = by_name.get(name)
    if item is None and number.isdecimal():
        item = by_name.get(base)
    elif item is not None:
        number = "1"
    if item is None or item.get("direction", "up") != end.direction:
        return None
    series = str(item["series"])
    if "host" in item:
        return f"{series} {hosts[item['host']]}"
    return series + number if series.endswith("::") else series


def _hosts(test: Template, flows: Mapping[str, End]) -> dict[int, str]:
    """Names of the hosts that the test's streams go to, by number."""
    hosts = {}
    for name, item in _series_by_name(test, "flow").items():
        end = flows.get(name)
        if "host" in item and end is not None:
            rtt = "" if end.base_rtt_us is None else f"-{end.base_rtt_us / 1000:g}ms"
            hosts[int(item["host"])] = f"host{item['host']}{rtt}"
    return hosts


def _rtt_of(test: Template, host: int, rtts: Sequence[str]) -> str:
    chosen = list(rtts) or list(test.content["rtts"])
    if len(chosen) < host:
        raise UserError(f"--rtts: {len(chosen)} given; {test.name} has {len(test.content['rtts'])}")
    return str(chosen[host - 1])
