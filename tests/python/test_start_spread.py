"""Starts of flows that differ from seed to seed, where a scenario is run more than once."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

import pytest

from fullpipe.base.errors import UserError
from fullpipe.engines.runner import run_scenario
from fullpipe.plan.resolve import resolve
from fullpipe.scenario.model import make_scenario

DOCUMENT: dict[str, Any] = {
    "duration": "1s",
    "path": {"rate": "10mbit", "rtt": "20ms", "buffer": "1bdp"},
    "flow": [{"cc": "cubic", "count": 3, "start_step": "100ms"}, {"cc": "reno", "start": "50ms"}],
}  # fmt: skip
TOML = """\
duration = "1s"
path = { rate = "10mbit", rtt = "20ms", buffer = "1bdp" }
flow = [{ cc = "cubic", count = 3, start_step = "100ms" }, { cc = "reno", start = "50ms" }]
"""
STEPS_NS = [0, 100_000_000, 200_000_000, 50_000_000]


def offsets(seed: int, **keys: str) -> list[int]:
    flows = resolve(make_scenario({**DOCUMENT, **keys}), seed)["flows"]
    return [flow["start_ns"] - step for flow, step in zip(flows, STEPS_NS, strict=True)]


def test_a_single_plain_run_starts_when_the_scenario_says() -> None:
    assert offsets(1) == offsets(2) == [0, 0, 0, 0]


def test_each_seed_and_each_flow_draw_their_own_start_evenly_over_the_spread() -> None:
    drawn = [one for seed in range(500) for one in offsets(seed, start_spread="8ms")]
    assert min(drawn) >= 0 and max(drawn) <= 8_000_000
    assert len(set(drawn)) == len(drawn)
    assert sum(drawn) / len(drawn) == pytest.approx(4_000_000, rel=0.05)
    assert offsets(7, start_spread="8ms") == offsets(7, start_spread="8ms")


def test_the_spread_changes_nothing_but_the_starts() -> None:
    with_spread = resolve(make_scenario({**DOCUMENT, "start_spread": "5ms"}), 3)
    without = resolve(make_scenario(DOCUMENT), 3)
    for flow in (*with_spread["flows"], *without["flows"]):
        del flow["start_ns"]
    assert with_spread == without


def test_repeated_runs_spread_by_5_ms_and_each_recording_can_be_run_again_alone(
    tmp_path: Path,
) -> None:
    folders = [tmp_path / "a", tmp_path / "b"]
    outcome = run_scenario(make_scenario(DOCUMENT), TOML, folders, jobs=1)
    starts = [one.table("flows")["start_us"].to_pylist() for one in outcome.recordings]
    assert starts[0] != starts[1]
    second = outcome.recordings[1]
    document = tomllib.loads(second.scenario_toml)
    assert document["start_spread"] == "5000000ns"
    alone = make_scenario({**document, "seed": second.metadata["seed"]})
    again = run_scenario(alone, "", [tmp_path / "again"]).recordings[0]
    assert again.table("flows").equals(second.table("flows"))


def test_comments_at_the_head_of_a_repeated_scenario_stay_there(tmp_path: Path) -> None:
    head = "#:schema ../schema/scenario.json\n# One flow.\n"
    folders = [tmp_path / "a", tmp_path / "b"]
    runs = run_scenario(make_scenario(DOCUMENT), head + TOML, folders, jobs=1)
    recorded = runs.recordings[0].scenario_toml
    assert recorded == f'{head}start_spread = "5000000ns"\n{TOML}'


def test_a_spread_that_the_scenario_names_holds_for_repeated_runs_too(tmp_path: Path) -> None:
    document = {**DOCUMENT, "start_spread": "0"}
    folders = [tmp_path / "a", tmp_path / "b"]
    runs = run_scenario(make_scenario(document), f'start_spread = "0"\n{TOML}', folders, jobs=1)
    assert [one.table("flows")["start_us"].to_pylist() for one in runs.recordings] == [
        [0, 100_000, 200_000, 50_000]
    ] * 2


def test_a_flow_that_might_start_after_the_end_is_refused() -> None:
    with pytest.raises(UserError, match="before the end of the run"):
        make_scenario({**DOCUMENT, "start_spread": "900ms"})
