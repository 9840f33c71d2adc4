"""Small entries of a catalogue for tests, and a store whose runs are made by hand."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from fullpipe import cli
from fullpipe.experiments import Entry, Store, load_entry
from fullpipe.experiments.catalogue import default_folder
from fullpipe.experiments.run_store import StoredRun
from fullpipe.sweep.runs import Run

#: The catalogue's files.
CATALOGUE = tuple(sorted(default_folder().glob("*.toml")))
#: Those of published measurements that are no paper's.
PUBLISHED = tuple(sorted((default_folder() / "published").glob("*.toml")))


@cache
def of_catalogue(path: Path) -> Entry:
    """An entry of the catalogue, validated once for all tests: validating all takes seconds."""
    return load_entry(path)


#: Four cells of one second; what a test changes it replaces in the text.
SMALL = """
paper = "bless2025"
figure = "Fig. 0"
title = "A small experiment"
shows = "Two flows for a second."
repetitions = 2

[scenario]
duration = "1s"
path = { rate = "{rate}mbit", rtt = "{rtt}ms", buffer = "1bdp" }

[[scenario.flow]]
name = "one"
cc = "cubic"

[[scenario.flow]]
name = "two"
cc = "reno"

[[grid]]
rate = [2, 4]
rtt = [10, 20]

[metric.share]
value = "share('one')"
title = "share of one"

[metric.goodput]
value = "goodput_mbps()"
unit = "Mbit/s"

[[plot]]
of = "share"
x = "rate"
by = ["rtt"]

[[claim]]
id = "something-is-carried"
text = "Something is carried."
check = "all(goodput > 0.5)"
"""


def entry_of(folder: Path, text: str = SMALL, name: str = "small") -> Entry:
    """The entry with this text, read as any other."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{name}.toml"
    path.write_text(text, encoding="utf-8")
    return load_entry(path)


def claims(*checks: str) -> str:
    """SMALL with these checks as its claims, numbered from 0."""
    head = SMALL.split("[[claim]]")[0]
    return head + "".join(
        f'[[claim]]\nid = "c{i}"\ntext = "Claim {i}."\ncheck = """{check}"""\n'
        for i, check in enumerate(checks)
    )


class MadeStore(Store):
    """Gives runs without running: `value(plan, expression)` is what each measured."""

    #: The engines that have run.
    engines: tuple[str, ...] = ("sim",)

    def __init__(self, folder: Path, value: Callable[[Mapping[str, Any], str], float]) -> None:
        super().__init__(folder)
        self.value = value
        self.plans: dict[str, Mapping[str, Any]] = {}

    def key(self, run: Run) -> str:
        """A name by which the plan is found again."""
        plan = json.loads(run.plan)
        path = plan["path"]
        key = f"{run.facts.engine}-{path['rate_bps']}-{path['reverse_delay_ns']}-{plan['seed']}"
        self.plans[key] = plan
        return key

    def read(self, key: str, expressions: Mapping[str, str]) -> StoredRun | None:
        """The made run."""
        if not key.startswith(self.engines):
            return None
        plan = self.plans[key]
        found = {text: self.value(plan, text) for text in expressions.values()}
        return StoredRun(plan["seed"], found, {})


def command(arguments: list[str], monkeypatch: pytest.MonkeyPatch) -> int:
    """Runs `fullpipe experiment` with these; its exit status."""
    monkeypatch.setattr("sys.argv", ["fullpipe", "experiment", *arguments])
    with pytest.raises(SystemExit) as stopped:
        cli.main()
    assert isinstance(stopped.value.code, int)
    return stopped.value.code
