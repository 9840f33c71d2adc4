"""The runs whose digests are kept in tests/data/golden: scenarios, and their plans.

Must never know what a digest is.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from every_feature import document, everything
from fullpipe._native import KERNELS
from fullpipe.base.units import parse_time
from fullpipe.plan.resolve import resolve
from fullpipe.scenario.document import find_files
from fullpipe.scenario.model import make_scenario

Keys = dict[str, Any]

DATA = Path(__file__).resolve().parents[1] / "data" / "golden"
#: Scenarios that the swarm's generator drew, one a line, as `Scenario` has them. They are kept, not
#: drawn again: a new parameter set or a new feature of the generator changes all that it draws.
DRAWN = DATA / "scenarios.jsonl"


@dataclass(frozen=True)
class Scenario:
    """A scenario's document, and the files that it names, by their names."""

    document: Keys
    files: dict[str, str] = field(default_factory=dict)

    @property
    def name(self) -> str:
        return str(self.document["name"])

    @property
    def warmup_ns(self) -> int:
        return parse_time(self.document.get("warmup", 0))

    def plan(self, folder: Path) -> Keys:
        """The scenario resolved, with its files in this folder."""
        for name, text in self.files.items():
            (folder / name).write_text(text, encoding="utf-8")
        copy = json.loads(json.dumps(self.document))
        if self.files:
            find_files(copy, folder)
        return resolve(make_scenario(copy))


def by_hand() -> list[Keys]:
    """What the generator does not draw."""
    marked = [
        document(f"{qdisc} marks early", "prague", "bbr3-ecn", "cubic", qdisc=qdisc,
                 qdisc_options=options, ecn="l4s")
        for qdisc, options in (
            ("codel", {"ce_threshold": "2ms"}),
            ("fq_codel", {"ce_threshold": "1ms", "flows": 16}),
            ("fq", {"ce_threshold": "3ms"}),
            ("dualpi2", {"min_qlen_step": 4, "step": "200us"}),
        )
    ]  # fmt: skip
    red = document("adaptive RED", "reno", "cubic", qdisc="red", qdisc_options={"adaptive": True})
    red["flow"][1] |= {"pattern": {"on": "700ms", "off": "900ms"}}
    kernels = document("a kernel a flow", *["cubic", "bbr1"] * 4, loss="0.5%", jitter="2ms")
    for flow, kernel in zip(kernels["flow"], KERNELS, strict=False):
        flow["tcp"] = kernel
    readers = document("readers pause", "cubic", "bbr3")
    readers["host"] = {
        "reader_pause": "15ms", "reader_pause_every": "70ms", "reader_pause_spread": "5ms",
        "rmem_max": "300KB", "tcp": "6.18",
    }  # fmt: skip
    variant = document("a variant of [cc]", "gentle", "reno")
    variant["cc"] = {"gentle": {"base": "bbr3", "startup_pacing_gain": 2.0}}
    return [*marked, red, kernels, readers, variant, *_arriving(), _stations()]


def _arriving() -> list[Keys]:
    """Groups of flows that are drawn in ways of their own."""
    arrivals = {
        "pareto": {"load": 0.4, "sizes": "pareto", "pareto_min": "3KB", "pareto_max": "300KB",
                   "pareto_shape": 1.6, "arrivals": "lognormal", "sigma": 2.0},
        "web search": {"load": 0.5, "sizes": "websearch"},
        "backbone": {"trace": "mawi", "trace_seed": 3, "trace_length": "3s",
                     "trace_rate": "8mbit", "configuration": "replay"},
        "collapsed": {"trace": "mawi", "trace_seed": 4, "trace_length": "3s",
                      "trace_rate": "8mbit", "configuration": "collapsed"},
    }  # fmt: skip
    found = []
    for name, keys in arrivals.items():
        one = document(f"traffic, {name}", "bbr3")
        one["traffic"] = [{"cc": "cubic", "senders": 3, "samples": [0, 5], **keys}]
        found.append(one)
    pages = document("pages of two hosts", "cubic")
    pages["page"] = [
        {"cc": cc, "host": near, "far_host": 2, "levels": [["30KB"], ["8KB", "60KB", "8KB"]]}
        for near, cc in ((1, "bbr3"), (3, "reno"))
    ]
    pages["udp"] = [{"rate": "500kbit", "payload": "200B", "host": 1, "far_host": 2}]
    return [*found, pages]


def _stations() -> Keys:
    """Stations of a Wi-Fi channel that hear it differently well."""
    wifi = {
        "standard": "ac", "width": 80, "mcs": 7, "streams": 2,
        "station": [
            {"name": "near", "count": 2, "mcs": 8},
            {"name": "far", "snr": [["0s", 25], ["1s", 12]], "mcs": "minstrel"},
        ],
    }  # fmt: skip
    flows = [
        {"cc": "cubic", "station": "near.1"}, {"cc": "bbr3", "station": "far"},
        {"cc": "reno", "station": "near.2", "direction": "down"},
    ]  # fmt: skip
    links = [
        {"name": "air", "kind": "wifi", "wifi": wifi},
        {"name": "wire", "rate": "100mbit", "delay": "5ms"},
    ]
    return {
        "name": "stations near and far", "duration": "1500ms", "seed": 7, "link": links,
        "flow": flows,
    }  # fmt: skip


def scenarios() -> Iterator[Scenario]:
    """All of them; no two have the same name."""
    for one in (*everything(), *by_hand()):
        yield Scenario(one)
    with DRAWN.open(encoding="utf-8") as file:
        for line in file:
            yield Scenario(**json.loads(line))
