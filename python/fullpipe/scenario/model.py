"""A scenario as a user writes it: all its tables, and what must hold among them.

A scenario is a TOML file or a dictionary of the same shape. Here it is checked and its quantities
are parsed; `fullpipe.plan` resolves it into what engines read. Must never know an engine.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path as FilePath
from typing import Any, ClassVar, Literal

import tomli_w
from pydantic import (
    ConfigDict,
    Field,
    ModelWrapValidatorHandler,
    ValidationError,
    model_validator,
)

from fullpipe.base import units
from fullpipe.base.errors import UserError
from fullpipe.base.overrides import apply_changes
from fullpipe.base.packets import datagram_bytes, mss_bytes, wire_bytes
from fullpipe.base.refusals import explain
from fullpipe.congestion.registry import Table, check_choices
from fullpipe.scenario.applications import MAX_CONNECTIONS, MAX_DATAGRAMS, Page, Udp
from fullpipe.scenario.document import changed, load_document, load_with_text
from fullpipe.scenario.fields import Duration, Interval, Section, Spread, Time
from fullpipe.scenario.flow import MAX_FLOWS, Flow, Probe
from fullpipe.scenario.host import Host
from fullpipe.scenario.impairments import check_impairments
from fullpipe.scenario.link import Link
from fullpipe.scenario.path import Path
from fullpipe.scenario.route import Routed
from fullpipe.scenario.traffic.options import Traffic
from fullpipe.scenario.wifi import WifiOptions, station_names

#: More samples are a slip of the pen, and would exhaust memory.
MAX_SAMPLES = 20_000_000
#: About what two programs on one host start apart.
REPEATED_START_SPREAD_NS = 5 * 10**6
#: What [path] may hold beside a row of links.
BESIDE_LINKS = ("mtu", "ecn")


class CcTable(Section):
    """Changed constants of a congestion control, for all flows that use its name; or, with `base`,
    a variant of it under a name of its own. The other keys are constants of `fullpipe cc show
    NAME`."""

    model_config = ConfigDict(extra="allow")
    __pydantic_extra__: dict[str, float | str]

    base: str | None = Field(None, description="congestion control that this is a variant of")

    @property
    def constants(self) -> dict[str, float | str]:
        """The changed constants."""
        return dict(self.model_extra or {})


class Scenario(Section):
    """One thing to run."""

    SPOKEN_KEYS: ClassVar[dict[str, str]] = {
        **dict.fromkeys(("flows", "tcp", "stream", "streams"), "write [[flow]], once for each"),
        **dict.fromkeys(("links", "hop", "hops"), "write [[link]], once for each"),
        **dict.fromkeys(("seeds", "repeat", "repetitions"), "say --repeat N to `fullpipe run`"),
        "engine": "say --engine sim, vm or live to `fullpipe run`",
        "ping": "write [[probe]]",
        **dict.fromkeys(("bottleneck", "network"), "write [path]"),
    }

    version: Literal[1] = Field(1, description="version of the format of this file")
    name: str = Field(
        "scenario", min_length=1, max_length=200, description="name in tables, plots and reports"
    )
    flent_test: str | None = Field(
        None,
        min_length=1,
        max_length=60,
        pattern=r"^[A-Za-z0-9_-]+$",
        description="Flent's test that this scenario is (`fullpipe test`); it is exported as that",
    )
    duration: Duration = Field(description="how long the run lasts")
    warmup: Time = Field(0, description="time at the start that metrics leave out")
    seed: int = Field(1, ge=0, le=2**63 - 1, description="seed of all random numbers")
    start_spread: Time | None = Field(
        None,
        description="each flow starts later by a random time up to this, drawn from the seed; "
        "default: 0, in repeated runs (--repeat, compare, sweeps, experiments) 5ms, since before "
        "the first loss nothing else differs between seeds",
    )
    rtt_spread: Spread | None = Field(
        None,
        description="all RTTs are longer by one random time up to this, drawn from the seed; "
        "default: 0, in repeated runs too; without it, a full queue drops what arrives just "
        "before a packet leaves and takes what arrives just after; a buffer in BDP stays that of "
        "the base RTT",
    )
    sample_interval: Interval = Field(
        100 * 10**6, description="interval between samples of flows and queues"
    )
    path: Path
    wifi: WifiOptions | None = Field(
        None, description="a Wi-Fi hop before the path, whose stations send and receive"
    )
    link: list[Link] = Field(
        [],
        max_length=64,
        description="a row of links instead of [path], which may then hold mtu and ecn only",
    )
    flow: list[Flow] = Field([], description="the connections")
    page: list[Page] = Field([], max_length=64, description="pages that are loaded")
    udp: list[Udp] = Field([], max_length=64, description="streams of datagrams")
    traffic: list[Traffic] = Field([], max_length=64, description="flows that come and go")
    probe: list[Probe] = Field([], max_length=16)
    host: Host = Field(default_factory=Host)
    cc: dict[str, CcTable] = Field(
        {},
        description="changed constants, [cc.bbr3] probe_down_gain = 0.9, and variants, "
        '[cc.cubic85] base = "cubic" beta = 0.85',
    )

    @model_validator(mode="wrap")
    @classmethod
    def _path_of_links(cls, document: Any, read: ModelWrapValidatorHandler[Scenario]) -> Scenario:
        """With a row of links, `path` describes its bottleneck."""
        if not isinstance(document, Mapping) or not document.get("link"):
            return read(document)
        written = document.get("path", {})
        if not isinstance(written, Mapping):
            return read(document)
        for key in written:
            if key not in BESIDE_LINKS:
                raise ValueError(f"path.{key}: beside [[link]], [path] holds mtu and ecn only")
        scenario = read({**document, "path": {"rate": "1mbit", "rtt": "1ns", **written}})
        path = scenario.path.model_copy(update=_bottleneck(scenario.link))
        return scenario.model_copy(update={"path": path})

    @model_validator(mode="after")
    def _consistent(self) -> Scenario:
        if not (self.flow or self.page or self.udp or self.traffic):
            raise ValueError(
                "flow: there must be at least one [[flow]], [[page]], [[udp]] or [[traffic]]"
            )
        self._check_times()
        self._check_sizes()
        self._check_names()
        self._check_stations()
        self._check_links()
        self._check_routes()
        return self

    @property
    def rtt_spread_ns(self) -> int:
        """By how much the round trips of seeds differ at most."""
        if self.rtt_spread is None:
            return 0
        return self.rtt_spread.ns(self.path.rate, wire_bytes(self.path.mtu))

    @property
    def channels(self) -> list[WifiOptions]:
        """All Wi-Fi channels of the network."""
        channels = [self.wifi, *(link.channel for link in self.link)]
        return [channel for channel in channels if channel is not None]

    @property
    def cc_tables(self) -> dict[str, Table]:
        """The tables of `cc`, as the registry of congestion controls takes them."""
        return {name: Table(table.base, table.constants) for name, table in self.cc.items()}

    def repeated(self) -> Scenario:
        """The scenario for runs with several seeds: with its spread of starts, or the default."""
        if self.start_spread is not None:
            return self
        return self.model_copy(update={"start_spread": REPEATED_START_SPREAD_NS})

    def route(self, routed: Routed) -> tuple[int, int]:
        """Positions of the first and the last link that it passes."""
        names = [link.name for link in self.link] or [""]
        first = 0 if routed.enter is None else names.index(routed.enter)
        last = len(names) - 1 if routed.leave is None else names.index(routed.leave)
        return first, last

    def _routed(self) -> Iterator[tuple[str, Routed]]:
        """Everything that sends, with its key, such as `flow.0`."""
        tables: dict[str, Sequence[Routed]] = {
            "flow": self.flow,
            "page": self.page,
            "udp": self.udp,
            "traffic": self.traffic,
            "probe": self.probe,
        }
        for name, members in tables.items():
            for index, routed in enumerate(members):
                yield f"{name}.{index}", routed

    def _check_times(self) -> None:
        if self.warmup >= self.duration:
            raise ValueError("warmup: must be shorter than duration")
        if self.rtt_spread_ns > units.MAX_TIME_NS:
            raise ValueError("rtt_spread: its packets take more than a week at the bottleneck")
        for key, routed in self._routed():
            latest = routed.start
            if isinstance(routed, Flow):
                latest += routed.start_step * (routed.count - 1) + (self.start_spread or 0)
            if latest >= self.duration and not isinstance(routed, Probe):
                raise ValueError(f"{key}.start: must be before the end of the run")

    def _check_sizes(self) -> None:
        flows = sum(flow.count for flow in self.flow)
        if flows > MAX_FLOWS:
            raise ValueError(f"flow: {flows} flows in all, at most {MAX_FLOWS}")
        if self.duration // self.sample_interval * (flows + 1) > MAX_SAMPLES:
            raise ValueError(f"sample_interval: more than {MAX_SAMPLES} samples; make it longer")
        opened = sum(page.most_connections(self.duration) for page in self.page)
        if opened > MAX_CONNECTIONS:
            raise ValueError(
                f"page: may open {opened} connections, at most {MAX_CONNECTIONS}; make interval "
                "longer, or give loads"
            )
        sent = sum(udp.most_datagrams(self.duration) for udp in self.udp)
        if sent > MAX_DATAGRAMS:
            raise ValueError(f"udp: {sent} datagrams in all, at most {MAX_DATAGRAMS}")
        for index, udp in enumerate(self.udp):
            if udp.payload > (most := datagram_bytes(self.path.mtu)):
                raise ValueError(f"udp.{index}.payload: path.mtu leaves {most}")
        packet_bytes = mss_bytes(self.path.mtu)
        for index, flow in enumerate(self.flow):
            if flow.receive_window is not None and flow.receive_window < packet_bytes:
                raise ValueError(
                    f"flow.{index}.receive_window: holds no packet; at least {packet_bytes}B"
                )

    def _check_names(self) -> None:
        links = ((f"link.{index}", link.name) for index, link in enumerate(self.link))
        named = ((key, routed.name) for key, routed in self._routed())
        used: set[tuple[str, str]] = set()
        for key, name in (*links, *named):
            kind = key.partition(".")[0]
            if name is not None and (kind, name) in used:
                raise ValueError(f"{key}.name: is used twice; names must differ")
            used.add((kind, name or ""))

    def _check_stations(self) -> None:
        if self.wifi and any(link.channel for link in self.link):
            raise ValueError("wifi: there is a link of that kind; one of them is enough")
        stations = [name for channel in self.channels for name in station_names(channel)]
        for key, routed in self._routed():
            if routed.station is not None and routed.station not in stations:
                names = ", ".join(stations) or "none: there is no Wi-Fi"
                raise ValueError(f"{key}.station: is not one of {names}")

    def _check_links(self) -> None:
        if self.link and all(link.mean_rate is None for link in self.link):
            raise ValueError("link: at least one needs a rate")
        for index, link in enumerate(self.link):
            for prefix, direction, delay_ns in zip(
                ("", "reverse."), (link, link.reverse), link.delays_ns, strict=True
            ):
                try:
                    check_impairments(direction, delay_ns, self.path.mtu)
                except ValueError as error:
                    raise ValueError(f"link.{index}.{prefix}{error}") from None

    def _check_routes(self) -> None:
        names = [link.name for link in self.link]
        unused = set(range(len(names)))
        for key, routed in self._routed():
            for end in ("enter", "leave"):
                name = getattr(routed, end)
                if name is not None and not names:
                    raise ValueError(f"{key}.{end}: needs [[link]] rows")
                if name is not None and name not in names:
                    raise ValueError(f"{key}.{end}: is no link; known are {', '.join(names)}")
            first, last = self.route(routed)
            if first > last:
                raise ValueError(
                    f"{key}.leave: lies before enter, {names[first]!r}; links are in the order in "
                    "which up flows pass them"
                )
            if not isinstance(routed, Probe):
                unused -= {*range(first, last + 1)}
        if unused:
            raise ValueError(
                f"link.{min(unused)}.name: no flow passes this link; leave the link out, or let it "
                "lie between a flow's enter and leave"
            )


def _bottleneck(links: Sequence[Link]) -> dict[str, Any]:
    """What `path` says of a row: the queue of its slowest link, of equals the first, and the delays
    of all links."""
    delay_ns = sum(sum(link.delays_ns) for link in links)
    limited = [link for link in links if link.mean_rate is not None]
    slowest = min(limited, key=lambda link: link.mean_rate or 0, default=None)
    if slowest is None:
        return {}
    return {
        "rate": slowest.mean_rate,
        "rtt": max(delay_ns, 1),
        "buffer": slowest.buffer,
        "qdisc": slowest.qdisc,
        "qdisc_options": slowest.qdisc_options,
    }


def load_scenario(path: FilePath | str, changes: Iterable[str] = ()) -> Scenario:
    """The scenario in a TOML file, with `key=value` changes applied (see `apply_changes`).

    Raises UserError naming file, key, value and what is allowed."""
    return make_scenario(changed(load_document(path), changes, path), str(path))


def load_with_toml(
    path: FilePath | str,
    changes: Iterable[str] = (),
    edit: Callable[[dict[str, Any]], None] | None = None,
) -> tuple[Scenario, str]:
    """As `load_scenario`, with the scenario's TOML: a file that nothing changes stays as it was
    written, with its comments. `edit` changes the document too."""
    document, text = load_with_text(path)
    changes = list(changes)
    document = changed(document, changes, path)
    if edit is not None:
        edit(document)
    is_as_written = FilePath(path).is_file() and not changes and edit is None
    return make_scenario(document, str(path)), text if is_as_written else tomli_w.dumps(document)


def make_scenario(
    document: Mapping[str, Any], source: str = "scenario", changes: Iterable[str] = ()
) -> Scenario:
    """The scenario in a dictionary of the TOML file's shape; `source` names it in errors.

    Raises UserError naming source, key, value and what is allowed."""
    wanted = list(changes)
    changed = document if type(document) is dict and not wanted else apply_changes(document, wanted)
    try:
        scenario = Scenario.model_validate(changed)
    except ValidationError as error:
        raise UserError(f"{source}: {explain(error, Scenario)}") from None
    choices = [flow.cc for flow in scenario.flow] + [page.cc for page in scenario.page]
    choices += [traffic.cc for traffic in scenario.traffic]
    try:
        check_choices(choices, scenario.cc_tables)
    except UserError as error:
        raise UserError(f"{source}: {error}") from None
    return scenario
