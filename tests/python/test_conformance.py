"""Cases of RFC 9438 and RFC 5681 hold for what implements them, and fail for what breaks a rule;
reference traces are the recording's samples."""

from __future__ import annotations

import csv
import json
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from fullpipe import cli
from fullpipe.conformance.cases import CUBIC, RENO, cases_of
from fullpipe.conformance.reference_traces import trace_of
from fullpipe.conformance.runner import Result, run_cases
from fullpipe.sweep.store import Store


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Store:
    return Store(tmp_path_factory.mktemp("conformance") / "store", create=True)


def run(store: Store, cc: str, document: str, quick: bool = True) -> dict[str, Result]:
    results = run_cases(cc, cases_of(document), store, quick=quick, jobs=2)
    return {found.case.id.removeprefix(f"{document}-"): found for found in results}


@pytest.mark.slow
@pytest.mark.parametrize(("cc", "document"), [("cubic", CUBIC), ("reno", RENO)])
def test_every_case_holds_on_every_path_for_what_follows_the_document(
    store: Store, cc: str, document: str
) -> None:
    results = run(store, cc, document, quick=False)
    assert {name: [one.failed for one in found.paths if one.failed]
            for name, found in results.items() if not found.holds} == {}  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize(
    ("broken", "document", "cases"),
    [
        ("cubic[beta=0.85]", CUBIC, {"decrease", "cubic", "response"}),
        ("cubic[scale=100]", CUBIC, {"cubic", "response"}),
        ("cubic[reno_friendly=0]", CUBIC, {"reno-friendly"}),
        ("reno", CUBIC, {"decrease", "cubic", "response"}),
        ("cubic", RENO, {"decrease", "several-losses"}),
        ("bbr1", RENO, {"decrease", "response"}),
    ],
)
def test_what_breaks_a_rule_fails_its_case(
    store: Store, broken: str, document: str, cases: set[str]
) -> None:
    results = run(store, broken, document)
    assert cases <= {name for name, found in results.items() if found.holds is False}


def test_a_reference_trace_has_the_samples_at_its_times(store: Store) -> None:
    recording = run(store, "reno", RENO)["decrease"].paths[0].recording
    assert recording is not None
    table = trace_of(recording, 5)
    samples = recording.table("flow_samples").to_pylist()
    by_time = {row["t_us"]: row for row in samples if row["flow_id"] == 0}
    for row in table.slice(100, 200).to_pylist():
        sample = by_time[round(row["t_ms"] * 1000)]
        assert row["cwnd_packets"] == sample["cwnd_packets"]
        assert row["srtt_us"] == sample["srtt_us"]


Command = Callable[..., tuple[int, str, str]]


@pytest.fixture
def conformance(
    store: Store, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> Command:
    """Runs the command; gives its exit status, its output and its messages."""

    def ran(*words: str, folder: Path = store.folder) -> tuple[int, str, str]:
        options = ["--store", str(folder), "--quick"]
        monkeypatch.setattr(sys, "argv", ["fullpipe", "conformance", *words, *options])
        with pytest.raises(SystemExit) as ended:
            cli.main()
        return (int(ended.value.code or 0), *capsys.readouterr())

    return ran


def test_the_command_names_deviations_with_their_figures(
    conformance: Command, tmp_path: Path
) -> None:
    status, out, err = conformance("cubic[beta=0.85]", "--only", "rfc9438-decrease")
    assert status == 1
    assert "deviates" in out
    assert "share 0.85" in err

    traces = tmp_path / "traces"
    only = ("--only", "rfc5681-growth", "--json", "--traces", str(traces))
    status, out, _ = conformance("reno", *only)
    assert status == 0
    (case,) = json.loads(out)["cases"]
    assert case["holds"] is True
    assert case["measured"]["per_round"] == pytest.approx(1, abs=0.1)
    for interval_ms in (1, 5, 100):
        file = traces / f"rfc5681_growth_10mbit_40ms_{interval_ms}ms.csv"
        rows = list(csv.DictReader(file.read_text().splitlines()))
        assert float(rows[1]["t_ms"]) == interval_ms

    assert conformance("vegas", "--only", "rfc9438-x")[0] == 2
    status, _, err = conformance("dctcp")
    assert status == 2
    assert "--document is needed" in err


def test_one_case_of_an_rfc_runs_no_other(conformance: Command, tmp_path: Path) -> None:
    status, _, _ = conformance("reno", "--only", "rfc5681-growth", folder=tmp_path / "store")
    assert status == 0
    assert Store(tmp_path / "store").table("runs").num_rows == 1


def test_cases_of_which_none_could_run_are_no_success(conformance: Command) -> None:
    status, out, err = conformance("reno", "--document", "draft", "--only", "draft-01")
    assert status == 2
    assert "not run" in out
    assert "draft-01: not run: shows no phases of BBRv2 or v3" in err
    assert "fullpipe: reno: no case could run" in err


def test_an_unknown_algorithm_is_named_before_its_document_is_asked_for(
    conformance: Command,
) -> None:
    status, _, err = conformance("nope")
    assert status == 2 and "unknown congestion control 'nope'" in err
    status, _, err = conformance("./nope.h")
    assert status == 2 and "nope.h: cannot be read" in err


def test_ctrl_c_says_what_is_stored(
    conformance: Command, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("fullpipe.conformance.runner.run_cases", interrupted)
    status, _, err = conformance("cubic")
    assert status == 130
    assert f"interrupted; the runs that ended are in {store.folder}" in err
