"""Draws the scenarios of tests/data/golden with the swarm's generator, so that few runs reach all
that the generator has.

    python tests/python/golden_draw.py --seeds 2000

Then `make golden`. What is drawn depends on the generator, on the parameter sets that there are and
on how many events runs take, never on a clock.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "swarm"))

from fullpipe.base.errors import UserError
from generate import generate
from golden_digests import Digest, digest_of
from golden_runs import DRAWN, Scenario

#: Scenarios that are kept, and the events that their runs take at most.
_COUNT = 110
_EVENTS = 1_500_000
#: Longer ones are not kept.
_LONGEST_BYTES = 2_500
#: A run of no event costs as much as one of so many: it is resolved, and hashed.
_FIXED_COST = 30_000
#: What a feature is worth the first time, the second and the third. Whole numbers have the same sum
#: in any order.
_WORTH = (20, 8, 3)
#: Keys of plans whose text says nothing.
_NAMES = {"name", "path", "file", "sha256", "sta"}


@dataclass(frozen=True)
class Candidate:
    """A scenario and what its run has."""

    line: str
    events: int
    features: frozenset[str]


def candidates(seeds: Iterable[int]) -> Iterator[Candidate]:
    for seed in seeds:
        case = generate(seed)
        scenario = Scenario(case.document, case.files)
        files = {"files": case.files} if case.files else {}
        line = json.dumps({"document": case.document, **files})
        if len(line) > _LONGEST_BYTES:
            continue
        with tempfile.TemporaryDirectory() as folder:
            try:
                plan = scenario.plan(Path(folder))
                digest = digest_of(scenario, Path(folder))
            except UserError:
                continue
        features = {*_planned(plan), *_parameters(case.document), *_happened(plan, digest)}
        yield Candidate(line, digest.figures["events"], frozenset(features))


def _planned(value: Any, path: str = "") -> Iterator[str]:
    """Keys of a plan that say something, with their values if these are of few."""
    if isinstance(value, dict):
        for key, inner in value.items():
            if key not in _NAMES:
                yield from _planned(inner, f"{path}.{key}")
    elif isinstance(value, list):
        for inner in value:
            yield from _planned(inner, path)
    elif isinstance(value, str | bool):
        yield f"{path}={value}"
    elif value:
        yield path


def _parameters(document: Any) -> Iterator[str]:
    """Constants of congestion controls that a scenario changes."""
    for kind in ("flow", "page", "traffic"):
        for sender in document.get(kind, []):
            name, _, changed = sender["cc"].partition("[")
            yield f"cc {name}"
            for one in filter(None, changed.rstrip("]").split(",")):
                yield f"cc {one.partition('=')[0]}"


def _happened(plan: Any, digest: Digest) -> Iterator[str]:
    """Which figures moved, beside which discipline, kernel and kind of link."""
    beside = {plan["host"].get("tcp", ""), plan["host"]["pacing"], *_disciplines(plan["links"])}
    for figure in digest.figures:
        for what in beside:
            yield f"{figure} {what}"


def _disciplines(value: Any) -> Iterator[str]:
    if isinstance(value, dict):
        if isinstance(kind := value.get("kind"), str):
            yield kind
        for inner in value.values():
            yield from _disciplines(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from _disciplines(inner)


def chosen(among: list[Candidate]) -> list[Candidate]:
    """The ones that add most for what they cost, one after the other."""
    have: Counter[str] = Counter()
    kept: list[Candidate] = []
    left, events = list(among), 0

    def gain(one: Candidate) -> float:
        worth = sum(_WORTH[have[key]] for key in one.features if have[key] < len(_WORTH))
        return worth / (_FIXED_COST + one.events)

    while left and len(kept) < _COUNT:
        best = max(left, key=gain)
        left.remove(best)
        if events + best.events <= _EVENTS:
            kept.append(best)
            events += best.events
            have.update(best.features)
    return kept


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", type=int, default=2000, help="how many to choose from")
    among = list(candidates(range(parser.parse_args().seeds)))
    kept = chosen(among)
    DRAWN.parent.mkdir(parents=True, exist_ok=True)
    DRAWN.write_text("".join(f"{one.line}\n" for one in kept), encoding="utf-8")
    reached = frozenset().union(*[one.features for one in kept])
    missing = frozenset().union(*[one.features for one in among]) - reached
    print(f"{len(kept)} of {len(among)}, {sum(one.events for one in kept)} events")
    print(f"{len(reached)} features, not reached: {', '.join(sorted(missing)) or 'none'}")


if __name__ == "__main__":
    main()
