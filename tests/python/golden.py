"""Digests of runs that tests/data/golden keeps: a change of a digest is a change of behaviour.

make golden                                rewrites them
python tests/python/golden.py plans FILE   writes the plans, a line each, for
                                           fullpipe-tables --digests < FILE
"""

from __future__ import annotations

import argparse
import json
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from fullpipe.scenario.traffic.traces import traces_of
from golden_digests import Digest, digest_of
from golden_runs import DATA, scenarios

KEPT = DATA / "digests.jsonl"
#: Runs of which a message names the figures.
_TOLD = 12

Digests = dict[str, Digest]


def current() -> Digests:
    """The digests of this build, by scenario."""
    with tempfile.TemporaryDirectory() as folder:
        return {one.name: digest_of(one, Path(folder)) for one in scenarios()}


def kept() -> Digests:
    """Those of the file."""
    found = {}
    for line in KEPT.read_text(encoding="utf-8").splitlines():
        fields = json.loads(line)
        name = fields.pop("name")
        found[name] = Digest(**fields)
    return found


def write(digests: Digests) -> None:
    lines = [json.dumps({"name": name, **one.as_json()}) for name, one in digests.items()]
    KEPT.write_text("\n".join(lines) + "\n", encoding="utf-8")


def write_plans(path: Path) -> None:
    """Every plan with the traces of flows that it names. Files of links are written beside it."""
    folder = path.with_suffix(".files")
    folder.mkdir(exist_ok=True)
    with path.open("w", encoding="utf-8") as file:
        for one in scenarios():
            plan = one.plan(folder)
            traces = {sha256: _numbers(trace) for sha256, trace in traces_of(plan).items()}
            file.write(json.dumps({"plan": plan, "traces": traces}) + "\n")


def _numbers(trace: Any) -> list[list[int]]:
    return [memoryview(part).cast("Q").tolist() for part in trace.parts()]


def changes(before: Digests, after: Digests) -> str:
    """What became of each run, in some thirty lines at most; empty where nothing changed."""
    same = [name for name in before if name in after]
    plans = [name for name in same if before[name].plan != after[name].plan]
    changed = [name for name in same if _of_result(before[name]) != _of_result(after[name])]
    by_engine = [name for name in changed if name not in plans]
    by_plan = [name for name in changed if name in plans]
    results = by_engine + by_plan
    parts = [
        _listed("runs that the file lacks", [name for name in after if name not in before]),
        _listed("runs that are no more", [name for name in before if name not in after]),
        _listed("results that changed though their plans did not", by_engine),
        _listed("plans that the front end resolves otherwise", plans),
        _listed("results that changed with their plans", by_plan),
    ]
    for name in results[:_TOLD]:
        parts += [f"  {name}: {line}" for line in _differences(before[name], after[name])]
    if len(results) > _TOLD:
        parts.append(f"  and {len(results) - _TOLD} more")
    found = "\n".join(filter(None, parts))
    if not found:
        return ""
    return (
        f"{found}\nA change of a digest is a change of behaviour. If it is meant, `make golden` "
        f"rewrites tests/data/golden/{KEPT.name}, and the body of the commit says why."
    )


def _of_result(digest: Digest) -> Any:
    """All that a run decides. Events are what it cost."""
    return digest.tables, digest.metrics


def _listed(what: str, names: list[str]) -> str:
    if not names:
        return ""
    more = ", ..." if len(names) > _TOLD else ""
    return f"{len(names)} {what}: {'; '.join(names[:_TOLD])}{more}"


def _differences(before: Digest, after: Digest) -> Iterator[str]:
    titles = [*before.tables, *[name for name in after.tables if name not in before.tables]]
    tables = [name for name in titles if before.tables.get(name) != after.tables.get(name)]
    if tables:
        figures = dict.fromkeys([*before.figures, *after.figures])
        moved = [
            f"{name} {before.figures.get(name, 0)} -> {after.figures.get(name, 0)}"
            for name in figures
            if before.figures.get(name, 0) != after.figures.get(name, 0)
        ]
        which = "all tables" if len(tables) == len(titles) > 1 else ", ".join(tables)
        yield f"{which}: {'; '.join(moved) or 'no figure moved'}"
    else:
        yield "metrics alone, of the same tables (crates/fullpipe-metrics)"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    commands = parser.add_subparsers(dest="command", required=True)
    commands.add_parser("rewrite", help="keep the digests of this build, and say what changed")
    plans = commands.add_parser("plans", help="write the plans for fullpipe-tables --digests")
    plans.add_argument("file", type=Path)
    given = parser.parse_args()
    if given.command == "plans":
        write_plans(given.file)
        return
    digests = current()
    print(changes(kept() if KEPT.exists() else {}, digests) or "no digest changed")
    write(digests)


if __name__ == "__main__":
    main()
