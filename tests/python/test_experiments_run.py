"""Running, reusing, continuing, reporting; and what a new user gets wrong."""

from __future__ import annotations

from pathlib import Path

import polars
import pytest

from experiment_entries import CATALOGUE, SMALL, claims, command, entry_of, of_catalogue
from fullpipe import experiments
from fullpipe.base.errors import UserError
from fullpipe.experiments import Progress, Store, judge, run_entries
from fullpipe.metrics import View
from fullpipe.recording.recording import Recording
from fullpipe.sweep.file import load_sweep
from fullpipe.sweep.pool import Pool
from fullpipe.sweep.query import ask
from fullpipe.sweep.running import run_sweep
from fullpipe.sweep.store import Store as Tables


def test_runs_are_done_once_and_more_repetitions_only_add(tmp_path: Path) -> None:
    entry, store = entry_of(tmp_path), Store(tmp_path / "store")
    first = run_entries([entry], store, jobs=2)
    assert (first.ran, first.reused, first.failures) == (8, 0, {})
    again = run_entries([entry], store, jobs=2)
    assert (again.ran, again.reused) == (0, 8)
    more = run_entries([entry], store, repetitions=3, jobs=2)
    assert (more.ran, more.reused) == (4, 8)
    # Another entry that asks for the same runs reuses them, whatever its name.
    other = entry_of(tmp_path, SMALL.replace("A small", "Another"), "other")
    assert run_entries([other], store, jobs=2).ran == 0
    assert not (tmp_path / "store" / "recordings").exists(), "recordings are dropped unless kept"


def test_an_interrupted_request_continues_where_it_stopped(tmp_path: Path) -> None:
    entry, store = entry_of(tmp_path), Store(tmp_path / "store")

    def interrupt(progress: Progress) -> None:
        if progress.done >= 3:
            raise KeyboardInterrupt

    first = run_entries([entry], store, jobs=1, on_progress=interrupt)
    assert first.interrupted
    assert 3 <= first.ran < 8
    second = run_entries([entry], store, jobs=1)
    assert second.reused >= first.ran
    assert second.ran + second.reused == 8
    assert judge(entry, store).verdicts[0].status == "reproduced"
    assert not list((tmp_path / "store" / "work").glob("*"))


def test_what_is_measured_is_what_the_recording_holds(tmp_path: Path) -> None:
    entry, store = entry_of(tmp_path), Store(tmp_path / "store")
    run_entries([entry], store, keep_recordings=True, jobs=2)
    results = judge(entry, store).results
    folders = set((tmp_path / "store" / "recordings").glob("*/*"))
    assert len(folders) == 8
    shares = set()
    for folder in folders:
        recording = Recording.open(folder)
        delivered = View(recording).flows["bytes_delivered"]
        shares.add(round(float(delivered[0] / delivered.sum()), 9))
    measured = {round(float(v), 9) for values in results.values("share") for v in values}
    assert measured == shares
    # A metric added later needs no new run where recordings are kept.
    later = entry_of(tmp_path, SMALL.replace("goodput_mbps()", "goodput_mbps('two')"), "later")
    assert run_entries([later], store, jobs=2).ran == 0


def test_axes_are_written_as_in_a_sweep_and_older_files_call_them_grid(tmp_path: Path) -> None:
    def labels(name: str, axes: str) -> list[str]:
        text = SMALL.replace("[[grid]]\nrate = [2, 4]\nrtt = [10, 20]\n", axes)
        return [cell.label for cell in entry_of(tmp_path, text, name).cells("default")]

    older = labels("older", "[[grid]]\nrate = [2, 4]\nrtt = [10, 20]\n")
    assert older == ["rate 2, rtt 10", "rate 2, rtt 20", "rate 4, rtt 10", "rate 4, rtt 20"]
    ranges = (
        "[axis]\nrate = { from = 2, to = 4, count = 2 }\nrtt = { from = 10, to = 20, step = 10 }\n"
    )
    assert labels("ranges", ranges) == older
    united = "[[axis]]\nrate = [2]\nrtt = [10, 20]\n[[axis]]\nrate = [4]\nrtt = [10, 20]\n"
    assert labels("united", united) == older


def test_fields_of_an_axis_may_be_tables_and_lists(tmp_path: Path) -> None:
    text = (
        SMALL.split("[scenario]")[0]
        + """
[scenario]
duration = "2s"
path = "{place.path}"
link = "{place.link}"
flow = [{ cc = "reno" }]

[[grid]]
place = [
    { label = "path", path = { rate = "1mbit", rtt = "20ms" }, link = [] },
    { label = "row", path = {}, link = [{ name = "a", rate = "2mbit", delay = "10ms" }] },
]

[default]
repetitions = 1

[metric.rate]
value = "goodput_mbps()"
title = "goodput"

[[claim]]
id = "twice"
text = "The row carries twice as much."
check = "all(rate[place == 'row'] > 1.7 * rate[place == 'path'])"
"""
    )
    entry, store = entry_of(tmp_path, text), Store(tmp_path / "store")
    assert run_entries([entry], store, jobs=1).ran == 2
    results = judge(entry, store).results
    assert [point.axes["place"] for point in results.points] == ["path", "row"]
    slow, fast = (float(values[0]) for values in results.values("rate"))
    assert fast > 1.7 * slow


@pytest.mark.slow
def test_a_damaged_file_is_named_set_aside_and_its_runs_are_run_again(tmp_path: Path) -> None:
    entry, store = entry_of(tmp_path), Store(tmp_path / "store")
    run_entries([entry], store, jobs=2)
    [values] = (tmp_path / "store" / "parts").glob("*/values.parquet")
    values.write_bytes(values.read_bytes()[:100])
    with pytest.raises(UserError, match=r"values\.parquet: damaged"):
        judge(entry, Store(tmp_path / "store"))
    outcome = run_entries([entry], Store(tmp_path / "store"), jobs=2)
    assert outcome.ran == 8 and str(values) in outcome.damaged[0]


def test_runs_of_experiments_lie_in_the_store_that_sweeps_use_and_sql_asks(tmp_path: Path) -> None:
    entry, store = entry_of(tmp_path), Store(tmp_path / "store")
    run_entries([entry], store, jobs=2)
    results = judge(entry, store).results
    shares = dict(zip([(p.axes["rate"], p.axes["rtt"]) for p in results.points],
                      results.values("share"), strict=True))  # fmt: skip
    sql = "select rate, rtt, list(share order by seed) as shares from flows where flow = 'one' "
    answer = ask(Tables(tmp_path / "store"), sql + "group by all order by all").to_pylist()
    assert len(answer) == 4
    for row in answer:
        assert row["shares"] == pytest.approx(list(shares[row["rate"], row["rtt"]]), abs=1e-12)
    # A sweep over the same scenarios finds them there.
    file = tmp_path / "sweep.toml"
    same = SMALL.split("[scenario]")[1].split("[[grid]]")[0]
    axes = "[axis]\nrate = [2, 4]\nrtt = [10, 20]\n[sweep]\nseeds = 2\n"
    file.write_text("[scenario]" + same + axes)
    outcome = run_sweep(load_sweep(file, None), Tables(tmp_path / "store"), Pool(2))
    assert (outcome.ran, outcome.reused) == (0, 8)


def test_parts_of_a_grid_are_run_on_their_own(tmp_path: Path) -> None:
    entry, store = entry_of(tmp_path), Store(tmp_path / "store")
    part = run_entries([entry], store, jobs=2, where="rate == 2 and rtt in (20, 30)")
    assert (part.ran, part.reused) == (2, 0)
    assert judge(entry, store).results.missing == {0, 2, 3}
    rest = run_entries([entry], store, jobs=2)
    assert (rest.ran, rest.reused) == (6, 2)


def test_a_part_without_cells_leaves_the_store_fit_for_the_rest(tmp_path: Path) -> None:
    text = SMALL.replace("rate = [2, 4]", 'cell = ["2mbit", "4mbit"]')
    entry = entry_of(tmp_path, text.replace("{rate}mbit", "{cell}").replace('"rate"', '"cell"'))
    store = Store(tmp_path / "store")
    assert run_entries([entry], store, jobs=2, where="cell == 7mbit").ran == 0
    assert run_entries([entry], store, jobs=2, where="cell == 2mbit and rtt == 10").ran == 2


def test_an_engine_that_cannot_run_a_scenario_is_named(tmp_path: Path) -> None:
    bad = entry_of(tmp_path, SMALL.replace('cc = "reno"', 'cc = "kernel:reno"'), "bad")
    good = entry_of(tmp_path, name="good")
    outcome = run_entries([bad, good], Store(tmp_path / "store"), jobs=2)
    assert outcome.ran == 8
    assert list(outcome.failures) == [("bad", "sim")]
    assert "kernel:reno" in outcome.failures["bad", "sim"]


def test_the_command_runs_reports_and_says_what_it_did(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "catalogue"
    entry_of(folder, claims("all(goodput > 0.5)", "all(goodput > 100)"))
    where = ["--catalogue", str(folder), "--store", str(tmp_path / "store")]
    monkeypatch.chdir(tmp_path)
    assert command(["run", "small", *where, "--jobs", "2"], monkeypatch) == 0
    shown = capsys.readouterr()
    assert "reproduced c0" in shown.out
    assert "contradicted c1" in shown.out
    assert "8 runs" in shown.err
    assert shown.err.splitlines()[-1] == "wrote recordings/small.html"
    assert "Claim 0." in (tmp_path / "recordings" / "small.html").read_text()
    out, short = tmp_path / "page.html", tmp_path / "claims.md"
    report = ["report", "--all", *where, "--out", str(out), "--claims", str(short)]
    assert command(report, monkeypatch) == 0
    page, text = out.read_text(), short.read_text()
    for word in ("Claim 0.", "A small experiment", "fullpipe experiment run small"):
        assert word in page
    assert "| bless2025 | 1 | 0 | 1 | 0 | 0 | 0 |" in text
    # Both pages are functions of the results: no date, no place, no order of runs.
    assert command(report, monkeypatch) == 0
    assert (out.read_text(), short.read_text()) == (page, text)
    assert str(tmp_path) not in text
    for name in ("list", "show small"):
        assert command([*name.split(), "--catalogue", str(folder)], monkeypatch) == 0


def test_all_runs_leave_as_csv_and_parquet_and_all_cells_as_a_table(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    folder, store = tmp_path / "catalogue", tmp_path / "store"
    entry = entry_of(folder)
    run_entries([entry], Store(store), jobs=2)
    where = ["--catalogue", str(folder), "--store", str(store)]
    files = ["--csv", str(tmp_path / "a.csv"), "--parquet", str(tmp_path / "a.parquet")]
    assert command(["report", "small", *where, "--table", *files], monkeypatch) == 0
    shown = capsys.readouterr().out.splitlines()
    assert shown[1].split() == ["rate", "rtt", "runs", "share", "goodput", "(Mbit/s)"]
    assert [line.split()[:3] for line in shown[2:]] == [
        ["2", "10", "2"], ["2", "20", "2"], ["4", "10", "2"], ["4", "20", "2"],
    ]  # fmt: skip
    rows = polars.read_parquet(tmp_path / "a.parquet")
    assert rows.equals(polars.read_csv(tmp_path / "a.csv"))
    assert rows.columns == [
        "experiment", "engine", "rate", "rtt", "seed", "share", "goodput", "unsettled",
    ]  # fmt: skip
    results = judge(entry, Store(store)).results
    assert rows["share"].to_list() == [v for values in results.values("share") for v in values]
    assert command(["report", "small", *where, "--csv", "a.txt"], monkeypatch) == 2
    assert "name it *.csv" in capsys.readouterr().err


def test_the_list_is_filtered_and_fits_80_columns(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    from fullpipe.cli import experiment

    monkeypatch.setattr(experiment.console, "width", 80)
    monkeypatch.setattr(experiments, "load_catalogue", lambda _: [*map(of_catalogue, CATALOGUE)])
    assert command(["list"], monkeypatch) == 0
    everything = capsys.readouterr().out.splitlines()
    assert max(len(line.rstrip()) for line in everything) <= 80
    assert (
        command(["list", "--paper", "ahsan2026", "--runnable", "--grep", "RECEIVE"], monkeypatch)
        == 0
    )
    found = capsys.readouterr().out
    assert "ahsan2026_table3_receive_window" in found
    assert "bless2025" not in found
    assert "not yet runnable" not in found
    assert command(["list", "--grep", "no such thing"], monkeypatch) == 2


def test_a_catalogue_of_ones_own_need_not_pose_as_a_paper(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    named = SMALL.replace('paper = "bless2025"\nfigure = "Fig. 0"', 'paper = "Our own tests"')
    entry_of(tmp_path / "catalogue", named, "named")
    bare = named.replace('paper = "Our own tests"\n', "").replace("shows = ", "differs = ")
    entry_of(tmp_path / "catalogue", bare, "bare")
    out, short = tmp_path / "page.html", tmp_path / "claims.md"
    where = ["--catalogue", str(tmp_path / "catalogue"), "--store", str(tmp_path / "store")]
    report = ["report", "--all", *where, "--out", str(out), "--claims", str(short)]
    assert command(report, monkeypatch) == 0
    assert "## Our own tests\n\n### A small experiment\n" in short.read_text()
    assert "## Experiments\n\n### A small experiment\n" in short.read_text()
    assert "Our own tests" in out.read_text()
    assert command(["list", "--paper", "Our own tests", *where[:2]], monkeypatch) == 0
    assert "bare" not in capsys.readouterr().out


def test_text_of_an_entry_is_no_markup(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "catalogue"
    hostile = "<script>alert(1)</script> | [bold]x[/bold]"
    entry_of(folder, SMALL.replace("Something is carried.", hostile).replace("A small", hostile))
    out, short = tmp_path / "page.html", tmp_path / "claims.md"
    where = ["--catalogue", str(folder), "--store", str(tmp_path / "store")]
    report = ["report", "--all", *where, "--out", str(out), "--claims", str(short)]
    assert command(report, monkeypatch) == 0
    assert "<script>" not in out.read_text() + short.read_text()
    assert "\\|" in short.read_text()
    capsys.readouterr()
    assert command(["show", "small", "--catalogue", str(folder)], monkeypatch) == 0
    assert "[bold]x[/bold]" in capsys.readouterr().out


#: What is wrong -> (the file's text, what the message must say).
BROKEN = {
    "not TOML": ("paper = = 4", "not TOML"),
    "empty": ("", "empty"),
    "unknown key": (SMALL + "colour = 1\n", "claim.0.colour: unknown key"),
    "unknown section": (SMALL + "[wifi]\nx = 1\n", "wifi: unknown key"),
    "paper no text": (SMALL.replace('"bless2025"', "4"), "paper"),
    "no title": (SMALL.replace('title = "A small experiment"\n', ""), "title: is missing"),
    "metric named like an axis": (
        SMALL.replace("[metric.goodput]", "[metric.rate]"), "metric.rate: an axis has that name",
    ),
    "scenario wrong": (SMALL.replace("mbit", "mbits"), "path.rate"),
    "unknown cc": (SMALL.replace('cc = "reno"', 'cc = "rino"'), "did you mean reno"),
    "unknown hole": (SMALL.replace("{rtt}", "{rrt}"), "{rrt} is no axis"),
    "axis that is text multiplied": (
        SMALL.replace("[2, 4]", '["a"]').replace("{rate}", "{rate*2}"), "no number to multiply",
    ),
    "empty axis": (SMALL.replace("rate = [2, 4]", "rate = []"), "axis.0.rate: is empty"),
    "other axes": (SMALL + "[[default.grid]]\nrate = [2]\n", "are not those of the first"),
    "table without label": (
        SMALL.replace("[2, 4]", "[{ x = 1 }]").replace("{rate}", "{rate.x}"), "needs a label",
    ),
    "too many cells": (
        SMALL.replace("[2, 4]", str(list(range(1, 50)))).replace(
            "[10, 20]", str(list(range(1, 50)))
        ), "more than 2000 cells",
    ),
    "unknown metric": (SMALL.replace("share('one')", "part('one')"), "'part' is no metric"),
    "metric wrongly called": (SMALL.replace("share('one')", "share()"), "missing a required"),
    "phase": (SMALL.replace("share('one')", "phase_share('one', 'UP')"), "'UP' is no phase"),
    "Python": (SMALL.replace("share('one')", "__import__('os').system('x')"), "listed functions"),
    "comprehension": (claims("all(x for x in share)"), "not part of the language"),
    "no single truth": (claims("share > 0.1"), "gives 4 values"),
    "unknown name": (claims("all(shore > 0.1)"), "'shore' is no metric"),
    "unknown axis": (claims("all(share[rte == 10] > 0)"), "'rte' is no axis"),
    "no cell": (claims("all(share[rtt == 11] > 0)"), "no cell"),
    "cells do not pair": (claims("all(share[rtt == 10] > share[rate == 2, rtt == 20])"),
                          "do not pair"),
    "not an expression": (claims("all(share >"), "not an expression"),
    "claim twice": (claims("all(share > 0)").replace("[[plot]]", "[[plot]]")
                    + '[[claim]]\nid = "c0"\ntext = "t"\ncheck = "1 > 0"\n', "used twice"),
    "claim without a check": (SMALL.replace('check = "all(goodput > 0.5)"', ""), "check or needs"),
    "published too short": (
        SMALL + '[[published]]\nmetric = "share"\nalong = "rtt"\nvalues = [0.1]\n',
        "1 values along rtt, which has 2",
    ),
    "published too long": (
        SMALL + '[[published]]\nmetric = "share"\nalong = "rtt"\nvalues = [0.1, 0.2, 0.3]\n',
        "3 values along rtt, which has 2",
    ),
    "published nowhere": (
        SMALL + '[[published]]\nmetric = "share"\nat = { rtt = 11 }\nvalues = [0.1]\n',
        "11 is not one of 10, 20",
    ),
    "published of no metric": (
        SMALL + '[[published]]\nmetric = "shore"\nvalues = [0.1]\n', "'shore' is not one of",
    ),
    "plot of no metric": (SMALL.replace('of = "share"', 'of = "shore"'), "'shore' is not one of"),
    "plot over no axis": (SMALL.replace('x = "rate"', 'x = "rat"'), "'rat' is not one of"),
    "prediction": (
        SMALL.replace('unit = "Mbit/s"', 'predict = "speed"'), "must be share:CC, jain",
    ),
    "neither runs nor says why": (
        SMALL.split("[scenario]")[0], "needs [scenario], [number] or not_yet_runnable",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", BROKEN)
def test_a_broken_entry_ends_with_status_2_and_names_file_and_key(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    text, says = BROKEN[name]
    (tmp_path / "broken.toml").write_text(text, encoding="utf-8")
    assert command(["list", "--catalogue", str(tmp_path)], monkeypatch) == 2
    error = capsys.readouterr().err
    assert says in error
    assert "broken.toml" in error
    assert "Traceback" not in error


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["run", "smal"], "did you mean small"),
        (["run", "bless2024"], "not in the catalogue"),
        (["run"], "name entries"),
        (["run", "small", "--all"], "name entries"),
        (["run", "small", "--engine", "ns3"], "--engine ns3: unknown; known are sim"),
        (["run", "small", "--repeat", "0"], "--repeat"),
        (["run", "small", "--jobs", "0"], "--jobs"),
        (["run", "small", "--store", "/proc/x"], "--store /proc/x: cannot be written"),
        (["run", "small", "--where", "rat == 2"], "'rat' is no axis; known: rate, rtt"),
        (["run", "small", "--where", "rate == "], "is not an expression"),
        (["run", "small", "--where", "rate < 'x'"], "cannot be compared"),
        (["run", "small", "--observed", "no.csv"], "no.csv: cannot be read"),
        (["report", "small", "--observed", "no.csv"], "no.csv: cannot be read"),
        (["report", "small", "--out", "/proc/x/page.html"], "cannot be written"),
        (["show", "large"], "not in the catalogue"),
        (["report"], "name entries"),
    ],
)
def test_a_wrong_command_ends_with_status_2_and_says_what_would_be_right(
    arguments: list[str],
    says: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    folder = tmp_path / "catalogue"
    entry_of(folder, SMALL.replace("rate = [2, 4]", "rate = [2]").replace("[10, 20]", "[10]"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.chdir(tmp_path)
    assert command([*arguments, "--catalogue", str(folder)], monkeypatch) == 2
    error = " ".join(capsys.readouterr().err.split())
    assert says in error
    assert "Traceback" not in error


def test_a_folder_without_entries_and_a_wrong_file_name_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert command(["list", "--catalogue", str(tmp_path)], monkeypatch) == 2
    assert "no experiments here" in capsys.readouterr().err
    (tmp_path / "Fig 8.toml").write_text(SMALL)
    assert command(["list", "--catalogue", str(tmp_path)], monkeypatch) == 2
    assert "name it with" in capsys.readouterr().err
