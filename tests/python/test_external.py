"""Congestion controls in files: what runs is what built-in ones are, what is broken is refused or
contained."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
import tomli_w
from typer.testing import CliRunner

from external_files import CONTAINED, GROW, PATH, REFUSED, changed, plan, run, works
from fullpipe import _native
from fullpipe.authoring.new import LIKE, write_new
from fullpipe.base.errors import UserError
from fullpipe.base.installed import shipped
from fullpipe.cli.app import app
from fullpipe.congestion import userfiles
from fullpipe.congestion.controller import Controller, EventKind
from fullpipe.congestion.registry import cc_set
from fullpipe.congestion.userfiles import limits, native, pool, preprocessing
from fullpipe.congestion.userfiles.source import keep, source_of
from fullpipe.engines.runner import run_scenario
from fullpipe.engines.sim import SimEngine
from fullpipe.kernel import replay
from fullpipe.scenario.model import load_scenario, make_scenario


@pytest.fixture(autouse=True)
def own_cache(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path_factory.mktemp("cache")))


@pytest.mark.slow
@pytest.mark.parametrize("like", LIKE)
def test_an_algorithm_in_a_users_file_leaves_the_same_recording(like: str, tmp_path: Path) -> None:
    path = write_new("mine", like, tmp_path)
    example = shipped("examples") / "cc" / f"{like}.h"
    assert run(str(path)) == run(str(example) if example.exists() else like)


def test_a_new_file_can_be_like_every_built_in_algorithm_and_every_example() -> None:
    built_in = {one["name"] for one in _native.cc.algorithms()}
    examples = {path.stem for path in (shipped("examples") / "cc").glob("*.h")}
    assert {*LIKE} == built_in | examples


@pytest.mark.parametrize("like", [None, *LIKE])
def test_an_editor_that_reads_compile_flags_knows_the_contract(
    like: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As clangd does it: clang parses the header itself with these options."""
    path = write_new("mine", like, tmp_path)
    options = (tmp_path / "compile_flags.txt").read_text().split("\n")[:-1]
    parse = ["clang", *options, "-fsyntax-only", str(path)]
    answer = subprocess.run(parse, capture_output=True, text=True, check=False)
    assert (answer.returncode, answer.stderr) == (0, "")


def test_compile_flags_of_the_reader_stay(tmp_path: Path) -> None:
    (tmp_path / "compile_flags.txt").write_text("-DMINE\n")
    write_new("mine", None, tmp_path)
    assert (tmp_path / "compile_flags.txt").read_text() == "-DMINE\n"


def test_the_smallest_file_has_sixty_lines_and_grows_as_reno_does(tmp_path: Path) -> None:
    path = works(tmp_path)
    assert len(path.read_text().splitlines()) <= 60
    assert run(str(path))["flow_samples"] == run("reno")["flow_samples"]


def test_a_file_that_is_named_like_a_built_in_algorithm_is_what_runs(tmp_path: Path) -> None:
    text = works(tmp_path).read_text()
    path = tmp_path / "cubic.h"
    path.write_text(text.replace("mine", "cubic").replace("MINE", "CUBIC"))
    samples = run(str(path))["flow_samples"]
    assert samples == run("reno")["flow_samples"] != run("cubic")["flow_samples"]


def test_constants_of_a_file_are_set_as_those_of_a_built_in_one(tmp_path: Path) -> None:
    path = works(tmp_path)
    usual = run(str(path))["flows"]
    gentle = run(str(path), cc={"mine": {"beta": 0.85}})
    assert gentle["flows"] == run("reno", cc={"reno": {"beta": 0.85}})["flows"] != usual
    theirs = run("reno", cc={"reno": {"beta": 0.85}})["cc_samples"]["prior_cwnd_packets"]
    assert gentle["cc_samples"]["prior_cwnd_packets"][-1] == theirs[-1]
    with pytest.raises(UserError, match=r"cc\.mine\.beta: 2.0 is out of range: 0\.09"):
        plan(str(path), cc={"mine": {"beta": 2}})
    with pytest.raises(UserError, match=r"cc\.mine\.gamma: unknown constant"):
        plan(str(path), cc={"mine": {"gamma": 2}})


def test_a_recording_holds_the_source_and_names_are_relative_to_the_scenario(
    tmp_path: Path,
) -> None:
    path = works(tmp_path)
    text = 'duration = "1s"\n[path]\nrate = "5mbit"\nrtt = "20ms"\n[[flow]]\ncc = "./mine.h"\n'
    (tmp_path / "s.toml").write_text(text)
    scenario = load_scenario(tmp_path / "s.toml")
    (recording,) = run_scenario(scenario, text, [tmp_path / "out"]).recordings
    (source,) = recording.metadata["sources"].values()
    assert source["files"] == {"mine.h": path.read_text()}
    assert recording.table("flows")["flow"].to_pylist() == ["mine.1"]
    assert recording.metadata["constants"]["mine"] == {"beta": 0.5}


@pytest.mark.parametrize("kind", REFUSED)
def test_a_broken_file_is_refused_with_its_reason(kind: str, tmp_path: Path) -> None:
    old, new, reason = REFUSED[kind]
    path = works(tmp_path)
    if kind == "not text":
        path.write_bytes(b"\xff\xfe")
    else:
        path = changed(tmp_path / "x", old, new) if (tmp_path / "x").mkdir() is None else path
    with pytest.raises(UserError) as refusal:
        cc_set(str(path))
    assert reason in str(refusal.value)
    assert str(path.name) in str(refusal.value)


def test_every_error_of_a_compiler_has_its_line_in_the_users_file(tmp_path: Path) -> None:
    path = works(tmp_path)
    text = path.read_text()
    for old, new in (
        ("u32 left = ack", "u32 left = ak"),
        ("s->prior_cwnd = ctl->cwnd", "s->prior_cnd = undeclared"),
        ("CC_RATIO(99, 100)", "CC_RATO(99, 100)"),
    ):
        text = text.replace(old, new)
    path.write_text(text)
    with pytest.raises(UserError) as refusal:
        userfiles.describe(userfiles.read(path))
    lines = str(refusal.value).splitlines()
    for line, word in ((37, "'ak'"), (50, "prior_cnd"), (50, "'undeclared'"), (16, "CC_RATO")):
        assert any(f"mine.h:{line}: " in said and word in said for said in lines), word
    assert len(lines) == len({*lines}) and "more" not in str(refusal.value)


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ('"window before the last reduction")', '3, "window before")', "6 values; it takes 5"),
        (', "window before the last reduction")', ")", "4 values; it takes 5"),
    ],
)
def test_a_row_of_a_list_with_too_many_or_few_values_is_named(
    old: str, new: str, said: str, tmp_path: Path
) -> None:
    path = changed(tmp_path, old, new)
    with pytest.raises(UserError, match=rf"mine\.h:5\d: a row of mine_STATE has {said}"):
        userfiles.describe(userfiles.read(path))


def test_a_division_of_signed_values_is_refused_for_the_kernel(tmp_path: Path) -> None:
    path = changed(tmp_path, GROW, "ctl->cwnd += (u32)((s32)left / (s32)conn->mss_bytes);")
    with pytest.raises(UserError, match=r"mine\.h:43: division of signed values"):
        userfiles.compile_bpf(userfiles.read(path))


@pytest.mark.parametrize("kind", CONTAINED)
def test_code_that_goes_wrong_is_stopped_and_the_program_goes_on(
    kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(limits.STALL_S, "2")
    old, new, reason = CONTAINED[kind]
    if kind == "endless recursion":
        path = changed(tmp_path, GROW, "ctl->cwnd += deep(&left);")
        text = path.read_text().replace(old, new)
        path.write_text(text)
    else:
        path = changed(tmp_path, old, new)
    with pytest.raises(UserError) as stop:
        run(str(path))
    assert reason in str(stop.value)
    assert run("reno")["flows"]["bytes_delivered"][0] > 0


@pytest.mark.slow
def test_a_program_takes_thirty_algorithms_and_contains_the_last_of_them(tmp_path: Path) -> None:
    text = works(tmp_path).read_text()
    for number in range(30):
        path = tmp_path / f"number{number}.h"
        path.write_text(f"{text}/* {number} */\n")
        assert cc_set(str(path)).params
    old, new, reason = CONTAINED["wild pointer"]
    (tmp_path / "mine.h").write_text(text.replace(old, new))
    with pytest.raises(UserError, match=reason):
        run(str(tmp_path / "mine.h"))


@pytest.mark.parametrize(
    "decides", ["ctl->cwnd = 0;", "ctl->cwnd = 0xffffffff;", "ctl->ssthresh = 0;"]
)
def test_decisions_beyond_their_bounds_are_brought_within_them(
    decides: str, tmp_path: Path
) -> None:
    path = changed(tmp_path, GROW, decides)
    samples = run(str(path))["flow_samples"]["cwnd_packets"]
    assert 1 <= min(samples) <= max(samples) <= 2**24


def test_an_owner_of_its_window_that_decides_nothing_else_is_paced_by_its_window(
    tmp_path: Path,
) -> None:
    """It ignores every event and names no rate: nothing stalls (tcp_update_pacing_rate())."""
    path = changed(tmp_path, "mine_FLAGS 0", "mine_FLAGS CC_OWNS_CWND")
    path.write_text(path.read_text().replace(GROW, "ctl->cwnd = 30;")
                    .replace("CC_EVENT_SSTHRESH", "99").replace("CC_EVENT_UNDO", "98"))  # fmt: skip
    tables = run(str(path), path={**PATH, "loss": 0})
    assert tables["flows"]["bytes_delivered"][0] * 8 / 4 > 0.8 * 10e6
    rates = tables["flow_samples"]["pacing_rate_bps"][10:]
    for srtt_us, rate in zip(tables["flow_samples"]["srtt_us"][10:], rates, strict=True):
        assert rate == pytest.approx(2 * 30 * 1448 * 8 * 1e6 / srtt_us, rel=0.01)


def test_a_plan_in_another_process_needs_only_the_cache(tmp_path: Path) -> None:
    """Workers know a plan alone: the id in it leads to the source."""
    found = plan(str(works(tmp_path)))
    identity = found["flows"][0]["cc"]["algorithm"]
    (tmp_path / "mine.h").unlink()
    assert userfiles.source_of(identity).name == "mine"
    result = SimEngine().run(found, lambda _done: True, {})
    assert result.tables["flows"]["bytes_acked"][0].as_py() > 0


def test_a_file_for_an_earlier_version_runs_where_since_then_only_something_was_added(
    tmp_path: Path,
) -> None:
    path = changed(tmp_path, "mine_CONTRACT 5", "mine_CONTRACT 4")
    assert cc_set(str(path)).name == "mine"
    contract = (shipped("cc") / "cc.h").read_text()
    assert f"#define CC_CONTRACT_VERSION {userfiles.CONTRACT_VERSION} " in contract


def test_a_file_compiled_with_another_contract_is_refused_by_structure_and_field(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without the comparison its code would write behind the end of the simulator's structure."""
    other = tmp_path / "cc"
    shutil.copytree(shipped("cc"), other)
    header = other / "cc.h"
    text = header.read_text()
    assert text.count("u64 timer_us;") == 1
    header.write_text(text.replace("u64 timer_us;", "u64 grown, timer_us;"))
    for module in (native, preprocessing):
        monkeypatch.setattr(
            module, "shipped", lambda kind: other if kind == "cc" else shipped(kind)
        )
    with pytest.raises(UserError, match="field timer_us of struct cc_ctl has 8 bytes at offset 40"):
        cc_set(str(works(tmp_path)))


def test_python_knows_every_event_and_flag_of_the_contract() -> None:
    text = "".join((shipped("cc") / name).read_text() for name in ("cc.h", "cc_more.h"))
    contract = re.sub(r"/\*.*?\*/", "", text, flags=re.S)
    events = {name: int(value) for name, value in re.findall(r"CC_EVENT_(\w+) = (\d+),", contract)}
    assert {kind.name: kind.value for kind in EventKind} == events
    flags = re.findall(r"#define CC_(OWNS|WANTS|ECHOES|HOST)_(\w+) (\d+)", contract)
    assert len(flags) >= 9
    for verb, what, value in flags:
        assert getattr(Controller, f"{verb}_{what}") == int(value)


def test_a_compiler_that_does_not_end_is_ended_with_what_it_started(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The one that works is another process, which heeds no SIGTERM and holds the pipes."""
    compiler = tmp_path / "cc"
    compiler.write_text("#!/bin/sh\ntrap '' TERM\nsh -c 'exec sleep 1000.7919' & wait\n")
    compiler.chmod(0o755)
    monkeypatch.setenv("CC", str(compiler))
    monkeypatch.setattr("fullpipe.congestion.userfiles.toolchain.COMPILER_TIMEOUT_S", 0.5)
    with pytest.raises(UserError, match=r"did not end within 0.5 s and was stopped"):
        cc_set(str(works(tmp_path)))
    commands = [read_if_there(file) for file in Path("/proc").glob("[0-9]*/cmdline")]
    assert not [words for words in commands if b"1000.7919" in words]


def read_if_there(file: Path) -> bytes:
    try:
        return file.read_bytes()
    except OSError:  # the process has ended
        return b""


@pytest.mark.parametrize("name", ["int", "linux", "bpf", "u32", "cc", "params", "bbr3_model"])
def test_a_new_file_gets_no_name_that_means_something_else(name: str, tmp_path: Path) -> None:
    with pytest.raises(UserError, match=f"{name}: .*choose another name"):
        write_new(name, None, tmp_path)
    assert not list(tmp_path.iterdir())


def test_a_comparison_goes_on_where_one_file_fails(tmp_path: Path) -> None:
    old, new, reason = CONTAINED["wild pointer"]
    bad = changed(tmp_path, old, new)
    options = ["--duration", "2s", "--warmup", "0.5s", "--repeat", "1", "--json"]
    arguments = ["compare", str(bad), "reno", *options, "--out", str(tmp_path / "out")]
    answer = CliRunner().invoke(app, arguments)
    assert answer.exit_code == 1
    assert set(json.loads(answer.stdout)["runs"]) == {"reno"}
    assert f"mine.h:43: it touched {reason}" in answer.stderr


def test_seeds_go_on_in_other_processes_where_a_file_fails(tmp_path: Path) -> None:
    old, new, reason = CONTAINED["division by zero"]
    document = {"duration": "1s", "path": PATH, "flow": [{"cc": str(changed(tmp_path, old, new))}]}
    folders = [tmp_path / str(seed) for seed in range(3)]
    outcome = run_scenario(make_scenario(document), tomli_w.dumps(document), folders, jobs=2)
    assert outcome.recordings == []
    assert len(outcome.failures) == 3
    assert all(reason in failure for failure in outcome.failures)


def test_an_interruption_reaches_a_worker_and_keeps_what_it_recorded(tmp_path: Path) -> None:
    found = plan(str(works(tmp_path)), duration="10000s")
    asked: list[int] = []

    def progress(done_ns: int) -> bool:
        asked.append(done_ns)
        return done_ns == 0

    result = SimEngine().run(found, progress, {})
    assert result.interrupted
    assert 0 < max(result.tables["flow_samples"]["t_us"].to_pylist()) < 10_000_000_000


def test_a_capture_and_a_trace_of_calls_are_written_by_a_worker(tmp_path: Path) -> None:
    files = {name: str(tmp_path / name) for name in ("pcap", "cc_trace")}
    SimEngine().run(plan(str(works(tmp_path))), lambda _done: True, files)
    there = {name: Path(file).read_bytes() for name, file in files.items()}
    SimEngine().run(plan("reno"), lambda _done: True, files)
    assert there["pcap"] == Path(files["pcap"]).read_bytes()
    assert there["cc_trace"][:8] == b"fpcctrc4"
    assert replay(Path(files["cc_trace"])).algorithms[0].difference is None


def test_nothing_of_a_file_is_loaded_into_the_program(tmp_path: Path) -> None:
    run(str(works(tmp_path)))
    assert str(tmp_path.parent) not in (maps := Path("/proc/self/maps").read_text())
    assert "/native-" not in maps


@pytest.mark.parametrize("ends", ["\r\n", "\r"])
def test_line_ends_of_other_systems_change_nothing(ends: str, tmp_path: Path) -> None:
    path = works(tmp_path)
    unix = userfiles.read(path)
    path.write_bytes(path.read_bytes().replace(b"\n", ends.encode()))
    source = userfiles.read(path)
    assert source.id == unix.id
    keep(source)
    assert userfiles.source_of(source.id).id == unix.id


def test_a_class_with_line_ends_of_windows_runs(tmp_path: Path) -> None:
    path = tmp_path / "mine.py"
    path.write_bytes(
        b"import fullpipe\r\n\r\n\r\nclass Mine(fullpipe.Controller):\r\n"
        b"    def on_ack(self, ack):\r\n        self.ctl.cwnd = 7\r\n"
        b"    def on_event(self, event):\r\n        pass\r\n"
    )
    cwnd = run(str(path))["flow_samples"]["cwnd_packets"]
    assert 7 in cwnd


@pytest.mark.parametrize("content", [b"", b"{", b'{"x": 1}', b"[" * 100_000])
def test_what_the_cache_says_of_a_file_is_written_again_if_it_is_damaged(
    content: bytes, tmp_path: Path
) -> None:
    source = userfiles.read(str(works(tmp_path)))
    folder = keep(source)
    for file in (folder / "about.json", folder / "source" / source.main):
        file.write_bytes(content)
        assert keep(source) == folder
        assert source_of(source.id).files == source.files


def test_a_worker_that_was_ended_closes_no_file_that_was_opened_since(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The numbers of its descriptors go to the next files that are opened."""
    path = works(tmp_path)
    run(str(path))
    pool.end_all()
    opened = [os.open(path, os.O_RDONLY) for _ in range(64)]
    monkeypatch.setattr(pool, "_MOST_IDLE", 0)  # a worker that is given back ends another
    run(str(path))
    for descriptor in opened:
        os.close(descriptor)


def test_a_damaged_object_of_the_cache_is_made_again(tmp_path: Path) -> None:
    path = works(tmp_path)
    before = run(str(path))
    folder = keep(userfiles.read(str(path)))
    (kept,) = folder.glob("native-*.so")
    whole = kept.read_bytes()
    middle = len(whole) // 2
    for damage in (b"", whole[:middle], whole[:middle] + b"\xff" + whole[middle + 1 :]):
        pool.end_all()  # a worker has it in its memory
        kept.write_bytes(damage)
        assert run(str(path)) == before
    assert kept.read_bytes() == whole
