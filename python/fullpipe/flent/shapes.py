"""The shapes of Flent's tests: which series a test has, and which flow or probe each is.

Names are those of the test definitions that Flent 2.1.1 installs (tcp_nup.conf, rrul.conf,
rtt_fair.inc, ...): its plots find series by name. It must never know of recordings.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from fullpipe.base.errors import UserError

#: Tests with the number of flows in their name, by direction.
_COUNTED = {"up": (2, 4, 6, 8, 12), "down": (2, 4, 6, 8, 12)}
_WORD = {"up": "upload", "down": "download"}
_RRUL = ("BE", "BK", "CS5", "EF")
_RRUL_PINGS = ("ICMP", "UDP BE", "UDP BK", "UDP EF")
_RTT_FAIR = ("BE1", "BE2", "BK1", "BK2")

TESTS = (
    "tcp_1up",
    "tcp_1down",
    "tcp_nup",
    "tcp_ndown",
    *(f"tcp_{n}{direction}" for direction, counts in _COUNTED.items() for n in counts),
    "rrul",
    "rtt_fair",
)


@dataclass(frozen=True)
class End:
    """The properties of a flow that a shape needs: its direction and, if known, its base RTT."""

    direction: str
    base_rtt_us: int | None


@dataclass(frozen=True)
class Shape:
    """A test: the series of each flow and of each probe in their order, and `computed`: series ->
    (`sum`, `average` or `fairness`, of which series)."""

    test: str
    flows: tuple[str, ...]
    pings: tuple[str, ...]
    hosts: tuple[str, ...] = ("bottleneck",)
    parameters: dict[str, str] = field(default_factory=dict)
    computed: dict[str, tuple[str, tuple[str, ...]]] = field(default_factory=dict)
    #: Series of pages, and of streams of datagrams.
    pages: tuple[str, ...] = ()
    streams: tuple[str, ...] = ()


def shape(test: str | None, flows: Sequence[End], probes: Sequence[str]) -> Shape:
    """The shape of a test for these flows and probes (by name); without a test the one that fits.

    Raises UserError for an unknown test, or one whose flows are others."""
    test = test or fitting_test(flows)
    if test not in TESTS:
        raise UserError(f"--test {test}: unknown; known are {', '.join(TESTS)}")
    if not flows:
        raise UserError("the recording has no flow; a Flent test has at least one")
    if test == "rrul":
        return _rrul(flows, probes)
    if test == "rtt_fair":
        return _rtt_fair(flows, probes)
    return _streams(test, flows, probes)


def with_applications(of_flows: Shape, pages: Sequence[str], streams: Sequence[str]) -> Shape:
    """The shape with series of pages and of streams of datagrams besides, by name. The only one of
    a kind has the name that Flent's plots look for."""
    return replace(of_flows, pages=_series("HTTP latency", pages), streams=_series("VoIP", streams))


def of_applications(
    pages: Sequence[str], streams: Sequence[str], probes: Sequence[str]
) -> Shape | None:
    """The shape of a recording without flows: Flent's test of pages or of streams, with all that
    there is. None where there is neither."""
    if not pages and not streams:
        return None
    bare = Shape("http" if pages else "voip", (), _named(("ICMP",), probes))
    return with_applications(bare, pages, streams)


def _series(base: str, names: Sequence[str]) -> tuple[str, ...]:
    return (base,) if len(names) == 1 else tuple(f"{base} {name}" for name in names)


def fitting_test(flows: Sequence[End]) -> str:
    """The test whose shape these flows have. Raises UserError if none has."""
    directions = [flow.direction for flow in flows]
    rtts = {flow.base_rtt_us for flow in flows if flow.base_rtt_us is not None}
    if max(directions.count("up"), directions.count("down")) <= 4:
        if len(rtts) > 1:
            return "rtt_fair"
        if len(set(directions)) == 2:
            return "rrul"
    if len(set(directions)) == 2:
        raise UserError(
            f"{directions.count('up')} flows up and {directions.count('down')} down fit no test of "
            "Flent's; rrul and rtt_fair hold at most 4 in each direction"
        )
    return f"tcp_{'1' if len(flows) == 1 else 'n'}{directions[0]}" if directions else "tcp_nup"


def _streams(test: str, flows: Sequence[End], probes: Sequence[str]) -> Shape:
    direction = "down" if test.endswith("down") else "up"
    count = test.removeprefix("tcp_").removesuffix(direction)
    wrong = [flow for flow in flows if flow.direction != direction]
    if wrong or (count != "n" and int(count) != len(flows)):
        raise UserError(
            f"--test {test}: the recording has {len(flows) - len(wrong)} flow(s) {direction} and "
            f"{len(wrong)} in the other direction; {fitting_test(flows)} fits"
        )
    base = f"TCP {_WORD[direction]}"
    pings = _named(("ICMP",), probes)
    if count == "1":
        return Shape(test, (base,), pings)
    names = tuple(f"{base}::{index + 1}" for index in range(len(flows)))
    return Shape(
        test,
        names,
        pings=pings,
        parameters={f"{_WORD[direction]}_streams": str(len(flows))},
        computed={f"{base} sum": ("sum", names), f"{base} avg": ("average", names)},
    )


def _rrul(flows: Sequence[End], probes: Sequence[str]) -> Shape:
    names = _by_direction("rrul", flows, _RRUL)
    pings = _named(_RRUL_PINGS, probes)
    computed = _both_directions(names, fairness=False)
    computed["TCP totals"] = ("sum", names)
    computed["Ping (ms) avg"] = ("average", pings)
    return Shape("rrul", names, pings, computed=computed)


def _rtt_fair(flows: Sequence[End], probes: Sequence[str]) -> Shape:
    hosts: list[str] = []
    for direction in ("up", "down"):
        there = [flow for flow in flows if flow.direction == direction]
        for index, flow in enumerate(there[len(hosts) :], len(hosts)):
            rtt = "" if flow.base_rtt_us is None else f"-{flow.base_rtt_us / 1000:g}ms"
            hosts.append(f"host{index + 1}{rtt}")
    # Flent ignores all of them if there are fewer than four (testenv.py min_host_count).
    hosts += [f"host{index + 1}" for index in range(len(hosts), 4)]
    labels = tuple(f"{label} {host}" for label, host in zip(_RTT_FAIR, hosts, strict=False))
    names = _by_direction("rtt_fair", flows, labels)
    pings = _named(tuple(f"ICMP{i + 1} {host}" for i, host in enumerate(hosts)), probes)
    computed = _both_directions(names, fairness=True)
    computed["Ping (ms) avg"] = ("average", pings)
    parameters = {
        "labels": ",".join(_RTT_FAIR),
        "ping_labels": "ICMP1,ICMP2,ICMP3,ICMP4",
        "markings": "CS0,CS0,CS1,CS1",
    }
    return Shape("rtt_fair", names, pings, tuple(hosts), parameters, computed)


def _by_direction(test: str, flows: Sequence[End], labels: Sequence[str]) -> tuple[str, ...]:
    counts = {"up": 0, "down": 0}
    names = []
    for flow in flows:
        position = counts[flow.direction]
        if position >= 4:
            raise UserError(
                f"--test {test}: holds 4 flows in each direction; the recording has "
                f"more {flow.direction}"
            )
        names.append(f"TCP {_WORD[flow.direction]} {labels[position]}")
        counts[flow.direction] += 1
    return tuple(names)


def _both_directions(
    names: Sequence[str], fairness: bool
) -> dict[str, tuple[str, tuple[str, ...]]]:
    computed = {}
    for word in _WORD.values():
        there = tuple(name for name in names if name.startswith(f"TCP {word} "))
        if there:
            computed[f"TCP {word} sum"] = ("sum", there)
            computed[f"TCP {word} avg"] = ("average", there)
            if fairness:
                computed[f"TCP {word} fairness"] = ("fairness", there)
    return computed


def _named(slots: Sequence[str], probes: Sequence[str]) -> tuple[str, ...]:
    """Series of the probes. A probe keeps its name if the test has such a series; others take the
    test's remaining names in order, and keep their own after that."""
    free = iter([slot for slot in slots if slot not in probes])
    names = (probe if probe in slots else next(free, probe) for probe in probes)
    return tuple(f"Ping (ms) {name}" for name in names)
