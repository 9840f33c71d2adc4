"""Formats are promises: what a released version wrote opens, and says what it said then
(tests/data/released, made by scripts/released.py). A later version may say more."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from fullpipe.recording.recording import Recording
from fullpipe.report.page import write_report
from repository_scripts import script

ROOT = Path(__file__).resolve().parents[2]
FOLDERS = sorted((ROOT / "tests" / "data" / "released").iterdir())
#: What floats may differ by, as a part of their size: sums may be taken in another order.
TOLERANCE = 1e-9

released = pytest.mark.parametrize("folder", FOLDERS, ids=lambda folder: folder.name)


def _differences(then: Any, now: Any, where: str = "") -> Iterator[str]:
    """What was said then and is not said now. New keys are no difference."""
    if isinstance(then, dict) and isinstance(now, dict):
        for key, value in then.items():
            if key in now:
                yield from _differences(value, now[key], f"{where}.{key}")
            else:
                yield f"{where}.{key}: {value!r} is gone"
    elif isinstance(then, list) and isinstance(now, list):
        if len(then) != len(now):
            yield f"{where}: {len(then)} entries are {len(now)}"
        for place, (one, other) in enumerate(zip(then, now, strict=False)):
            yield from _differences(one, other, f"{where}[{place}]")
    elif isinstance(then, float) and isinstance(now, float):
        if not math.isclose(then, now, rel_tol=TOLERANCE):
            yield f"{where}: {then!r} is {now!r}"
    elif type(then) is not type(now) or then != now:
        yield f"{where}: {then!r} is {now!r}"


@released
def test_what_a_release_wrote_says_the_same_today(folder: Path) -> None:
    then = json.loads((folder / "said.json").read_text(encoding="utf-8"))
    assert then["fullpipe_version"] == folder.name
    # Why values beside this line are not those that the release printed: a fault of it was mended.
    assert all(isinstance(reason, str) for reason in then.pop("mended", []))
    found = list(_differences(then, script("released").said(folder)))
    assert not found, "\n".join(found)


@released
def test_a_recording_of_a_release_is_of_its_scenario_and_is_reported(
    folder: Path, tmp_path: Path
) -> None:
    recording = Recording.open(folder / "recording")
    assert recording.scenario_toml == (folder / "scenario.toml").read_text(encoding="utf-8")
    page = write_report([recording], tmp_path / "report.html").read_text(encoding="utf-8")
    for flow in recording.metadata["plan"]["flows"]:
        assert flow["name"] in page


def test_every_release_that_the_changelog_names_is_kept() -> None:
    text = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    named = set(re.findall(r"^## \[(\d+\.\d+\.\d+)\]", text, re.MULTILINE))
    assert named, "no release in CHANGELOG.md"
    assert named == {folder.name for folder in FOLDERS}, "python scripts/released.py"


@pytest.mark.parametrize(
    ("then", "now", "found"),
    [
        ({"a": 1}, {"a": 1, "b": 2}, []),
        ({"a": 1}, {"b": 2}, [".a: 1 is gone"]),
        ([{"a": 1.0}], [{"a": 1.0 + 1e-12}], []),
        ([{"a": 1.0}], [{"a": 1.0 + 1e-8}], ["[0].a: 1.0 is 1.00000001"]),
        ([1], [2, 2], [": 1 entries are 2", "[0]: 1 is 2"]),
        (1, 1.0, [": 1 is 1.0"]),
        (None, 0, [": None is 0"]),
    ],
)
def test_what_counts_as_a_difference(then: Any, now: Any, found: list[str]) -> None:
    assert list(_differences(then, now)) == found
