"""What a program does with fullpipe: the functions and classes of `fullpipe.__all__`."""

from __future__ import annotations

import concurrent.futures
import gc
import inspect
import subprocess
import sys
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
import tomli_w

import fullpipe
from controller_files import RENO
from fullpipe import Recordings, RunError, UserError
from fullpipe.base.toml import parse_toml, with_value
from fullpipe.engines.runner import run_scenario
from fullpipe.metrics import summarise
from fullpipe.recording.recording import TABLES
from fullpipe.scenario.model import load_scenario

SCENARIO: dict[str, Any] = {
    "duration": "2s",
    "warmup": "500ms",
    "path": {"rate": "10mbit", "rtt": "20ms"},
    "flow": [{"cc": "bbr3"}, {"cc": "cubic"}],
}


def test_every_public_name_says_what_it_is() -> None:
    missing = []
    for name in set(fullpipe.__all__) - {"__version__"}:
        thing = getattr(fullpipe, name)
        members = {name: thing}
        if inspect.isclass(thing):
            members |= {f"{name}.{key}": value for key, value in inspect.getmembers(thing)
                        if not key.startswith("_") and (callable(value) or isinstance(
                            value, property) or inspect.isgetsetdescriptor(value))
                        and key not in dir(BaseException) and key not in dir(int)
                        and not isinstance(value, type)}  # fmt: skip
        missing += [key for key, value in members.items() if not inspect.getdoc(value)]
    assert missing == []
    assert set(fullpipe.__all__) <= set(dir(fullpipe))


def test_importing_loads_no_library() -> None:
    code = "import sys, fullpipe; print([m for m in sys.modules if m.split('.')[0] in %r])"
    heavy = ("numpy", "pyarrow", "polars", "pandas", "matplotlib", "scipy", "pydantic", "duckdb")
    found = subprocess.run([sys.executable, "-c", code % (heavy,)], capture_output=True, text=True,
                           check=True)  # fmt: skip
    assert found.stdout.strip() == "[]"


def test_a_report_of_one_run_loads_no_library_of_statistics() -> None:
    code = (
        "import sys, fullpipe.report.page; "
        "print([m for m in sys.modules if m in ('scipy', 'statsmodels', 'pandas', 'matplotlib')])"
    )
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout.strip() == "[]"


def test_a_run_is_the_one_of_the_command_line(tmp_path: Path) -> None:
    text = 'duration = "1s"\n[path]\nrate = "5mbit"\nrtt = "20ms"\n[[flow]]\ncc = "cubic"\n'
    (tmp_path / "s.toml").write_text(text)
    scenario = load_scenario(tmp_path / "s.toml")
    (theirs,) = run_scenario(scenario, text, [tmp_path / "cli"]).recordings
    (mine,) = fullpipe.run(tmp_path / "s.toml", out=tmp_path / "api")
    assert mine.path == tmp_path / "api"
    for file in theirs.path.iterdir():
        assert (mine.path / file.name).read_bytes() == file.read_bytes()


def test_recordings_last_as_long_as_anything_refers_to_one_of_them() -> None:
    for recording in fullpipe.run(SCENARIO):
        assert recording.table("flows").num_rows == 2
    second = fullpipe.run(SCENARIO, seeds=2, jobs=1)[1:][0]
    assert second.table("flows").num_rows == 2
    place = second.path
    del second, recording
    gc.collect()
    assert not place.parent.exists()


def test_the_saved_scenario_of_each_repetition_repeats_that_run(tmp_path: Path) -> None:
    text = f"# A seed of its own.\nseed = 4\n{tomli_w.dumps(SCENARIO)}"
    (tmp_path / "s.toml").write_text(text, encoding="utf-8")
    runs = fullpipe.run(tmp_path / "s.toml", seeds=3, jobs=1, out=tmp_path / "runs")
    assert runs.seeds == [4, 5, 6]
    assert "# A seed of its own." in runs[2].scenario_toml
    for run in runs:
        (again,) = fullpipe.run(run.path / "scenario.toml")
        assert again.metadata["seed"] == run.metadata["seed"]
        assert again.metadata["plan"] == run.metadata["plan"]
        for name in TABLES:
            assert again.table(name).equals(run.table(name))
    samples = [str(run.table("flow_samples")["srtt_us"].to_pylist()) for run in runs]
    assert len(set(samples)) == 3


@pytest.mark.parametrize(
    "text",
    ["a = 1", "seed = 3 # mine\na = 1", "[path]\nseed = 3", "", 'name = """\nseed = 3\n"""\na = 1'],
)
def test_a_key_of_a_document_is_set_and_all_others_stay(text: str) -> None:
    changed = with_value(text, "seed", 7)
    assert parse_toml(changed) == parse_toml(text) | {"seed": 7}
    assert with_value(changed, "seed", 7) == changed


def test_a_script_without_a_guard_may_run_several_seeds(tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text(f"import fullpipe\nprint(len(fullpipe.run({SCENARIO!r}, seeds=2, jobs=2)))\n")
    found = subprocess.run([sys.executable, script], capture_output=True, text=True, check=False)
    assert (found.stdout.strip(), found.stderr, found.returncode) == ("2", "", 0)


def test_one_job_starts_no_process_and_gives_what_several_give(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    theirs = fullpipe.run(SCENARIO, seeds=2, jobs=2, out=tmp_path / "two")

    def refused(*_arguments: Any, **_options: Any) -> None:
        raise AssertionError("a process was started")

    monkeypatch.setattr(concurrent.futures, "ProcessPoolExecutor", refused)
    monkeypatch.setattr(subprocess, "Popen", refused)
    mine = fullpipe.run(SCENARIO, seeds=2, jobs=1, out=tmp_path / "one")
    for one, other in zip(mine, theirs, strict=True):
        for file in other.path.iterdir():
            assert (one.path / file.name).read_bytes() == file.read_bytes()


def test_tables_join_runs_and_metrics_are_those_of_summaries() -> None:
    runs = fullpipe.run(SCENARIO, seeds=[7, 3], jobs=1)
    assert isinstance(runs, Recordings) and len(runs) == 2 and runs.seeds == [7, 3]
    samples = runs.table("flow_samples")
    assert samples.column_names[:3] == ["run", "seed", "t_us"]
    assert samples.num_rows == sum(one.table("flow_samples").num_rows for one in runs)
    assert set(samples["seed"].to_pylist()) == {7, 3}
    flows = runs.metrics().to_pylist()
    wanted = [flow["goodput_bps"] for one in runs for flow in summarise(one)["flows"]]
    assert [row["goodput_bps"] for row in flows] == pytest.approx(wanted)
    assert [row["flow"] for row in flows] == ["bbr3.1", "cubic.1"] * 2
    path = runs.metrics("path").to_pylist()
    assert [row["utilisation"] for row in path] == pytest.approx(
        [one["path"]["utilisation"] for one in runs.summaries()])  # fmt: skip
    assert runs.polars("flows").height == runs.pandas("flows").shape[0] == 4
    assert runs[1:].seeds == [3]
    for ask in (runs.table, runs.metrics, runs.plot):
        with pytest.raises(UserError, match="nonsense"):
            ask("nonsense")


def test_recordings_without_a_folder_go_with_the_object_and_can_be_kept(tmp_path: Path) -> None:
    runs = fullpipe.run(SCENARIO, seeds=2, jobs=1, changes=["duration=1s"])
    place = runs[0].path
    kept = runs.save(tmp_path / "kept")
    again = fullpipe.load(tmp_path / "kept")
    assert again.table("flows") == runs.table("flows") == kept.table("flows")
    del runs
    assert not place.exists()


def test_a_class_runs_by_itself_with_seeds_and_constants(tmp_path: Path) -> None:
    path = tmp_path / "mine.py"
    path.write_text(RENO)
    scope: dict[str, Any] = {"__name__": "elsewhere"}
    exec(compile(RENO, str(path), "exec"), scope)
    flow = [{"cc": scope["Reno"], "name": "a"}]
    cc = {"Reno": {"beta": 0.7}}
    mine = fullpipe.run(SCENARIO | {"flow": flow, "cc": cc}, seeds=2)
    flow = [{"cc": "reno", "name": "a"}]
    theirs = fullpipe.run(SCENARIO | {"flow": flow, "cc": {"reno": {"beta": 0.7}}}, seeds=2, jobs=1)
    assert mine.table("flow_samples") == theirs.table("flow_samples")
    flow = [{"cc": f"{path}:Reno", "name": "a"}]
    named = fullpipe.run(SCENARIO | {"flow": flow, "cc": cc}, seeds=2, jobs=1)
    assert named.table("flow_samples") == theirs.table("flow_samples")


def test_what_a_class_raises_reaches_the_program_with_its_cause() -> None:
    class Broken(fullpipe.Controller):
        def on_ack(self, ack: fullpipe.Ack) -> None:
            raise LookupError("nothing here")

    with pytest.raises(UserError, match=r"in on_ack .*LookupError: nothing here") as caught:
        fullpipe.run(SCENARIO | {"flow": [{"cc": Broken}]})
    assert isinstance(caught.value.__cause__, LookupError)


def test_bad_input_is_a_user_error() -> None:
    for bad in ({"engine": "ns4"}, {"seeds": []}, {"seeds": [1, 1]}, {"changes": ["path.rate=x"]}):
        with pytest.raises(UserError):
            fullpipe.run(SCENARIO, **bad)
    assert not issubclass(UserError, RunError)


def test_a_notebook_shows_recordings_and_escapes_what_they_say() -> None:
    flow = [{"cc": "cubic", "name": "a+b"}]
    runs = fullpipe.run(SCENARIO | {"flow": flow})
    shown = runs._repr_html_()
    assert "goodput, Mbit/s" in shown and shown.count("<svg") == 2 and len(shown) < 100_000
    hostile = runs.table("flows").set_column(3, "flow", pa.array(["<script>x</script>"]))
    assert "<script>" not in str(_shown_with(runs, hostile))
    assert runs.plot("cwnd")._repr_svg_().count("<svg") == 1


def _shown_with(runs: Recordings, flows: pa.Table) -> str:
    from fullpipe.api.recordings import _html_table

    metrics = runs.metrics()
    index = metrics.column_names.index("flow")
    return _html_table(metrics.set_column(index, "flow", flows["flow"]))


def test_models_are_asked_without_a_run() -> None:
    flow = [{"cc": "bbr1"}, {"cc": "cubic"}]
    found = fullpipe.predict(SCENARIO | {"duration": "60s", "flow": flow})
    assert {"bbr1"} <= set(found[0].shares) and 0 < found[0].shares["bbr1"] < 1
    assert (
        fullpipe.predict(SCENARIO | {"path": {"rate": "1mbit", "rtt": "20ms", "loss": "1%"}}) == []
    )


def test_a_sweep_fills_a_store_and_answers(tmp_path: Path) -> None:
    asked = {
        "scenario": {"duration": "1s", "path": {"rate": "5mbit", "rtt": "{rtt}"},
                     "flow": [{"cc": "{cc}"}]},
        "axis": {"cc": ["reno", "cubic"], "rtt": ["10ms", "20ms"]}, "sweep": {"seeds": 2},
    }  # fmt: skip
    swept = fullpipe.run_sweep(asked, out=tmp_path / "store", jobs=1)
    assert swept.table("runs").num_rows == 8 and swept.table("cells").num_rows == 4
    (row,) = swept.query("select count(*) as n from flows where flow_cc = 'reno'").to_pylist()
    assert row["n"] == 4
    assert swept.polars("path").height == 8
    again = fullpipe.open_store(tmp_path / "store")
    (asked_again,) = again.pandas("select count(*) as n from runs").to_dict("records")
    assert asked_again == {"n": 8} and again.polars("select 1 as a").height == 1
    with pytest.raises(UserError, match="no store"):
        fullpipe.open_store(tmp_path / "nothing")
    assert "<svg" in swept.plot("goodput_bps", x="rtt", by="cc")._repr_svg_()
    assert "<table" in swept._repr_html_()
    with pytest.raises(UserError, match="views are"):
        swept.query("select nothing from nowhere")
