"""Damaged files: no turned bit is silent, and what was damaged is set aside and run again."""

from __future__ import annotations

import hashlib
import random
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
import tomli_w

from fullpipe import metrics
from fullpipe.base.errors import UserError
from fullpipe.engines.runner import run_scenario
from fullpipe.experiments import Store as ExperimentStore
from fullpipe.recording.recording import Recording, RecordingError
from fullpipe.scenario.model import make_scenario
from fullpipe.serve import cells
from fullpipe.sweep.pool import Here
from fullpipe.sweep.query import ask
from fullpipe.sweep.running import run_sweep
from fullpipe.sweep.store import Store
from sweep_files import document, filled, rows, sweep

SCENARIO = {
    "duration": "2s", "path": {"rate": "10mbit", "rtt": "20ms"},
    "flow": [{"cc": "bbr3"}, {"cc": "cubic"}], "probe": [{"kind": "ping"}],
}  # fmt: skip


def _read_recording(folder: Path) -> Any:
    """All that a reader sees of a recording."""
    recording = Recording.open(folder)
    tables = {file.stem: recording.table(file.stem) for file in sorted(folder.glob("*.parquet"))}
    return recording.metadata, recording.scenario_toml, tables, metrics.summarise(recording)


def _read_store(folder: Path) -> Any:
    """All that a reader sees of a store."""
    store = Store(folder)
    views = [
        ask(store, f"select * from {view} order by all") for view in ("cells", "flows", "path")
    ]
    (name,) = store.sweep_files()
    facts = ExperimentStore(folder).read_fact("predictions", "known")
    about = cells.cell(folder, {"rtt": "40ms", "buffer": "4.0"})["document"]
    tables = {name: store.table(name) for name in ("runs", "flows", "path", "values")}
    return views, store.document(name), store.scenarios(name), facts, about, tables


def _files(folder: Path) -> list[Path]:
    return sorted(file for file in folder.rglob("*") if file.is_file() and file.stat().st_size)


@pytest.fixture(scope="module")
def recording(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("recording") / "run"
    run_scenario(make_scenario(SCENARIO), tomli_w.dumps(SCENARIO), [folder])
    return folder


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("store") / "store"
    made, _ = filled(folder, sweep())
    (name,) = made.sweep_files()
    made.write_scenarios(name, {0: {"duration": "2s"}})
    made.write_fact("predictions", "known", [{"model": "m", "shares": {"bbr3": 0.5}}])
    return folder


@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize("kind", ["recording", "store"])
def test_of_a_hundred_turned_bits_none_is_silent(
    kind: str, seed: int, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    """Twenty-five bits of two seeds in both; every file of the folder has its turn."""
    good = request.getfixturevalue(kind)
    read: Callable[[Path], Any] = _read_recording if kind == "recording" else _read_store
    draw = random.Random(seed)
    folder = tmp_path / "copy"
    shutil.copytree(good, folder)
    files = _files(folder)
    silent = []
    for turn in range(max(25, len(files))):
        file = files[turn % len(files)]
        content = bytearray(file.read_bytes())
        place, bit = draw.randrange(len(content)), draw.randrange(8)
        content[place] ^= 1 << bit
        whole = file.read_bytes()
        file.write_bytes(content)
        try:
            read(folder)
        except UserError as error:
            message = str(error)
            named = file.name in message or "checksums.json" in message
            assert named and len(message.splitlines()) == 1
        else:
            silent.append((file.name, place, bit))
        file.write_bytes(whole)
    read(folder)
    assert not silent


def test_pages_have_checksums_of_their_own(recording: Path, tmp_path: Path) -> None:
    """A page that was damaged is refused also where the list of checksums is gone."""
    folder = tmp_path / "copy"
    shutil.copytree(recording, folder)
    (folder / "checksums.json").unlink()
    file = folder / "flow_samples.parquet"
    column = pq.ParquetFile(file).metadata.row_group(0).column(2)
    content = bytearray(file.read_bytes())
    content[column.data_page_offset + column.total_compressed_size - 3] ^= 4
    file.write_bytes(content)
    with pytest.raises(RecordingError, match=r"flow_samples\.parquet: cannot be read"):
        Recording.open(folder).table("flow_samples")


def _damaged(folder: Path, name: str) -> Iterator[Path]:
    file = next(folder.glob(name))
    content = bytearray(file.read_bytes())
    content[len(content) // 2] ^= 1
    file.write_bytes(content)
    yield file


@pytest.mark.parametrize(
    ("name", "ran"),
    [
        ("parts/*/flows.parquet", 12), ("parts/*/runs.parquet", 12),
        ("parts/*/checksums.json", 12), ("parts/*/replaces.json", 0),
        ("sweeps/*.toml", 0), ("sweeps/*.parquet", 0), ("sweeps/*.checksums.json", 0),
        ("predictions/known.json", 0),
    ],
)  # fmt: skip
def test_what_is_damaged_is_named_set_aside_and_run_again(
    store: Path, tmp_path: Path, name: str, ran: int
) -> None:
    folder = tmp_path / "store"
    shutil.copytree(store, folder)
    before = rows(Store(folder))
    (file,) = _damaged(folder, name)
    outcome = run_sweep(sweep(), Store(folder, create=True), Here())
    (sentence,) = outcome.damaged
    assert sentence.startswith(f"{file}: damaged") and outcome.ran == ran
    assert rows(Store(folder)) == before
    assert len(list((folder / "damaged").iterdir())) >= 1
    again = run_sweep(sweep(), Store(folder, create=True), Here())
    assert not again.damaged and not again.ran


def test_a_damaged_recording_of_a_sweep_is_run_again(tmp_path: Path) -> None:
    kept = sweep(
        axis={"rtt": ["10ms"], "buffer": [1], "cc": ["bbr3"]},
        sweep={"seeds": 2, "keep": "recordings"},
    )
    store, _ = filled(tmp_path / "store", kept)
    place = store.recording(sorted(store.keys())[0])
    digests = {file.name: hashlib.sha256(file.read_bytes()).digest() for file in _files(place)}
    (file,) = _damaged(place, "flows.parquet")
    with pytest.raises(RecordingError, match=r"flows\.parquet: damaged"):
        Recording.open(place).table("flows")
    outcome = run_sweep(kept, Store(tmp_path / "store", create=True), Here())
    assert outcome.ran == 1 and str(file) in outcome.damaged[0]
    again = {file.name: hashlib.sha256(file.read_bytes()).digest() for file in _files(place)}
    assert again == digests


def test_a_store_without_checksums_is_read_as_before(store: Path, tmp_path: Path) -> None:
    folder = tmp_path / "store"
    shutil.copytree(store, folder)
    for file in folder.rglob("*checksums.json"):
        file.unlink()
    (folder / "store.json").write_text('{"format": 2, "fullpipe_version": "0.1.0"}\n')
    assert rows(Store(folder)) == rows(Store(store))
    outcome = run_sweep(sweep(), Store(folder, create=True), Here())
    assert not outcome.ran and not outcome.damaged


def test_a_refused_sweep_leaves_no_store_and_a_killed_one_no_folder(tmp_path: Path) -> None:
    wrong = document(axis={"rtt": ["10ms"], "buffer": [1], "cc": ["bbr9"]})
    from fullpipe.sweep.file import read_sweep

    with pytest.raises(UserError, match="bbr9"):
        filled(tmp_path / "store", read_sweep(wrong, "test.toml"))
    assert not (tmp_path / "store").exists()

    (tmp_path / "mine").mkdir()
    with pytest.raises(UserError, match="bbr9"):
        filled(tmp_path / "mine", read_sweep(wrong, "test.toml"))
    assert list((tmp_path / "mine").iterdir()) == []


def test_the_folder_of_a_process_that_was_killed_is_removed_and_no_other(tmp_path: Path) -> None:
    import subprocess
    import sys

    folder = tmp_path / "store"
    filled(folder, sweep())
    assert not (folder / "work").exists()
    program = (
        "import sys; from pathlib import Path; from fullpipe.sweep.store import Store\n"
        "place = Store(Path(sys.argv[1])).workplace(); place.mkdir()\n"
        "print(place, flush=True); sys.stdin.read()"
    )
    started = [
        subprocess.Popen([sys.executable, "-c", program, str(folder)], text=True,
                         stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        for _ in range(2)
    ]  # fmt: skip
    places = [Path(one.stdout.readline().strip()) for one in started if one.stdout]
    started[0].kill()
    started[0].wait()
    Store(folder, create=True)
    assert not places[0].parent.exists() and places[1].is_dir()
    started[1].communicate()
    Store(folder, create=True).leave()
    assert not (folder / "work").exists()
