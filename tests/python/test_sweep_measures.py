"""The metrics of a chunk of runs are those of each run, and those of late samples the same."""

from __future__ import annotations

from pathlib import Path

import polars
import pyarrow as pa
import pyarrow.compute as pc
import pytest

from fullpipe.engines.runner import run_scenario
from fullpipe.metrics import summarise
from fullpipe.recording.recording import TABLES, Recording, write_recording
from fullpipe.scenario.model import make_scenario
from fullpipe.sweep.measures import facts_of, measured, recorded
from sweep_files import filled, sweep


def test_a_chunk_gives_each_run_what_it_gives_alone(tmp_path: Path) -> None:
    store, _ = filled(tmp_path / "store", sweep(sweep={"seeds": 1, "keep": "recordings"}))
    pairs = []
    for key in sorted(store.keys()):
        recording = Recording.open(store.recording(key))
        metadata = recording.metadata
        plan = metadata["plan"]
        facts = facts_of(key, plan, plan["seed"], "sim", metadata["warmup_ns"])
        pairs.append((facts, {name: recording.table(name) for name in TABLES}))
    together = measured(pairs)
    for index, pair in enumerate(pairs):
        alone = measured([pair])
        assert alone["runs"].to_pylist() == together["runs"].slice(index, 1).to_pylist()
        assert alone["path"].to_pylist() == together["path"].slice(index, 1).to_pylist()


def _late(table: pa.Table, late_us: int) -> pa.Table:
    place = table.column_names.index("t_us")
    later = pc.cast(pc.add(table["t_us"], late_us), table.schema.field("t_us").type)
    return table.set_column(place, "t_us", later)


@pytest.mark.parametrize("late_us", [120, 1500])
def test_samples_that_are_taken_a_little_late_are_of_the_time_they_were_asked_for(
    tmp_path: Path, late_us: int
) -> None:
    # As a kernel's are: the window's first sample is else that of an interval before it.
    document = {
        "duration": "4s", "warmup": "1s", "path": {"rate": "10mbit", "rtt": "20ms"},
        "flow": [{"cc": "cubic"}, {"cc": "bbr3"}],
    }  # fmt: skip
    [made] = run_scenario(make_scenario(document), "", [tmp_path / "made"]).recordings
    tables = {name: made.table(name) for name in TABLES}
    late = tables | {
        name: _late(tables[name], late_us)
        for name in ("flow_samples", "queue_samples", "cc_samples")
    }
    metadata = {**made.metadata, "engine": "vm"}
    shifted = write_recording(tmp_path / "late", metadata, "", late)
    facts = [recorded("key", one)[0]._replace(engine="sim") for one in (made, shifted)]
    rows = [measured([(one, of)]) for one, of in zip(facts, (tables, late), strict=True)]
    assert rows[0] == rows[1]
    one, other = (summarise(recording) for recording in (made, shifted))
    assert (one["flows"], one["path"]) == (other["flows"], other["path"])


@pytest.mark.parametrize("table", ["runs", "flows", "path"])
def test_a_store_opens_in_polars(tmp_path: Path, table: str) -> None:
    store, _ = filled(tmp_path / "store", sweep())
    frame = polars.read_parquet(tmp_path / "store" / "parts" / "*" / f"{table}.parquet")
    assert frame.height == store.table(table).num_rows > 0
