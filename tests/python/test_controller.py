"""Congestion controls that are classes of Python: the simulator runs them as it runs C."""

from __future__ import annotations

import os
import signal
import subprocess
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

import fullpipe
from controller_files import RENO
from external_files import PATH, plan, run
from fullpipe import CaState, Constant, Controller, EventKind
from fullpipe.base.errors import UserError
from fullpipe.congestion.registry import cc_set
from fullpipe.congestion.userfiles import classes, limits, process, protocol, stem
from fullpipe.engines import engine
from fullpipe.engines.runner import run_scenario
from fullpipe.recording.recording import TABLES, Recording
from fullpipe.scenario.model import load_scenario, make_scenario

#: Variables of cc/start.h, which Reno in Python does not have.
START_COLUMNS = ("start_rounds", "start_exit_cwnd_packets")


@pytest.fixture(autouse=True)
def own_cache(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path_factory.mktemp("cache")))


def written(folder: Path, text: str = RENO) -> Path:
    path = folder / "mine.py"
    path.write_text(text)
    return path


def reno(**parts: Any) -> dict[str, Any]:
    """What Reno in C leaves, without what it records of the slow starts that only it has."""
    tables = run("reno", **parts)
    samples = tables["cc_samples"]
    kept = {name: values for name, values in samples.items() if name not in START_COLUMNS}
    assert len(kept) == len(samples) - len(START_COLUMNS)
    return {**tables, "cc_samples": kept}


def test_reno_in_python_leaves_the_recording_of_reno(tmp_path: Path) -> None:
    path = written(tmp_path)
    assert run(f"{path}:Reno") == reno()
    usual = reno(path={**PATH, "qdisc": "codel", "ecn": True})
    assert run(str(path), path={**PATH, "qdisc": "codel", "ecn": True}) == usual
    gentle = reno(cc={"reno": {"beta": 0.85}})
    name = f"{path}:Reno"
    assert run(name, cc={"Reno": {"beta": 0.85}}) == gentle != reno()


def test_files_of_a_recording_are_equal_but_for_names(tmp_path: Path) -> None:
    path = written(tmp_path, RENO.replace("class Reno", "class Mine"))
    text = (
        'duration = "2s"\n[path]\nrate = "5mbit"\nrtt = "20ms"\n[[flow]]\ncc = "{}"\nname = "a"\n'
    )
    recordings = []
    for index, name in enumerate(("reno", f"./{path.name}:Mine")):
        (tmp_path / "s.toml").write_text(text.format(name))
        scenario = load_scenario(tmp_path / "s.toml")
        outcome = run_scenario(scenario, text.format(name), [tmp_path / f"out{index}"])
        recordings += outcome.recordings
    theirs, mine = recordings
    for name in set(TABLES) - {"flows", "cc_samples"}:
        there, here = (one.path / f"{name}.parquet" for one in (theirs, mine))
        assert there.read_bytes() == here.read_bytes()
    samples = [pq.read_table(one.path / "cc_samples.parquet") for one in (theirs, mine)]
    assert samples[0].drop_columns(list(START_COLUMNS)) == samples[1]
    (source,) = mine.metadata["sources"].values()
    assert source["files"] == {"mine.py": path.read_text()}
    of_reno = theirs.metadata["constants"]["reno"]
    assert mine.metadata["constants"] == {
        "Mine": {name: of_reno[name] for name in ("beta", "min_ssthresh")}
    }
    assert mine.table("flows")["cc"].to_pylist() == ["Mine"]


def test_seeds_in_other_processes_leave_what_they_leave_here(tmp_path: Path) -> None:
    """Modules are loaded for every run: what one leaves in its globals, the next does not find."""
    path = written(tmp_path, RENO + "calls = []\nclass Counts(Reno):\n    def on_ack(self, ack):\n"
                   "        calls.append(0)\n        self.ctl.cwnd = 5 + len(calls) // 100\n"
                   )  # fmt: skip
    text = (
        f'duration = "1s"\n[path]\nrate = "5mbit"\nrtt = "20ms"\n[[flow]]\ncc = "{path}:Counts"\n'
    )
    scenario = make_scenario({"duration": "1s", "path": {"rate": "5mbit", "rtt": "20ms"},
                              "flow": [{"cc": f"{path}:Counts"}]})  # fmt: skip

    def tables(recordings: list[Recording]) -> list[Any]:
        return [one.table("flow_samples").to_pydict() for one in recordings]

    pooled = run_scenario(scenario, text, [tmp_path / "p" / str(n) for n in range(2)]).recordings
    first = run_scenario(scenario, text, [tmp_path / "one"]).recordings
    again = run_scenario(scenario, text, [tmp_path / "two"]).recordings
    assert tables(first) == tables(again)
    assert len(tables(pooled)) == 2


def test_an_owner_of_its_window_gets_every_fact_and_its_decisions_hold() -> None:
    seen: dict[str, Any] = {"kinds": set(), "sends": 0, "rtts": []}

    class Owner(Controller):
        flags = Controller.OWNS_CWND | Controller.WANTS_RTT
        gain = Constant(2.0, 1.0, 4.0)

        def __init__(self) -> None:
            self.rate = 0.0

        def on_ack(self, ack: Any) -> None:
            assert self.conn.inflight <= 60 and ack.acked_sacked >= 0
            assert self.conn.now_us * 1000 <= self.conn.now_ns
            seen["rtts"].append(ack.rtt_us)
            self.ctl.cwnd = 40
            self.ctl.pacing_rate_Bps = 250_000

        def on_event(self, event: Any) -> None:
            seen["kinds"].add(EventKind(event.kind))
            if event.kind == EventKind.STATE:
                assert CaState(event.value) is not None

        def on_send(self) -> None:
            seen["sends"] += 1
            self.ctl.tso_segs = 1

        def info(self, info: Any) -> None:
            info.cwnd_gain = int(1024 * self.gain)

    tables = run(classes.hand_over(Owner), path={**PATH, "buffer": "4bdp"})
    samples = tables["flow_samples"]
    assert set(samples["cwnd_packets"][3:]) == {40}
    assert set(samples["pacing_rate_bps"][3:]) == {2_000_000}
    # A packet of 1500 bytes every 1448/250000 s.
    goodput_bps = tables["flows"]["bytes_delivered"][0] * 8 / 4
    assert goodput_bps == pytest.approx(2e6, rel=0.05)
    assert set(tables["cc_samples"]["cwnd_gain"]) == {2.0}
    assert seen["kinds"] >= {EventKind.RTT, EventKind.STATE} and EventKind.SEND not in seen["kinds"]
    assert seen["sends"] > 500
    assert min(rtt for rtt in seen["rtts"] if rtt > 0) >= 20_000


def test_a_class_whose_bursts_follow_its_rate_alone_is_asked_less_for_the_same_recording() -> None:
    asked = {"always": 0, "where something may leave": 0}

    class Always(Controller):
        flags = Controller.OWNS_CWND
        how = "always"

        def on_ack(self, ack: Any) -> None:
            self.ctl.cwnd = 60
            self.ctl.pacing_rate_Bps = 200_000 + 50_000 * (self.conn.now_us // 500_000 % 4)

        def on_send(self) -> None:
            asked[self.how] += 1
            self.ctl.tso_segs = 1 if self.ctl.pacing_rate_Bps < 275_000 else 3

    class Seldom(Always):
        flags = Controller.OWNS_CWND | Controller.SEND_IS_PURE
        how = "where something may leave"

    usual, spared = (run(classes.hand_over(one)) for one in (Always, Seldom))
    assert usual == spared and usual["flows"]["bytes_delivered"][0] > 500_000
    assert 0 < asked["where something may leave"] < 0.9 * asked["always"]


def test_what_a_class_leaves_alone_is_decided_as_for_c() -> None:
    """It owns its window and decides nothing: the window stays, pacing follows it (defaults.h)."""

    class Idle(Controller):
        flags = Controller.OWNS_CWND

    tables = run(classes.hand_over(Idle), path={**PATH, "loss": 0})
    assert set(tables["flow_samples"]["cwnd_packets"]) == {10}
    assert tables["flows"]["bytes_delivered"][0] * 8 / 4 == pytest.approx(10 * 1448 * 8 / 0.0214,
                                                                          rel=0.1)  # fmt: skip


WRONG = {
    "raises": ("acked = ack.acked_sacked", "acked = 1 // 0",
               r"mine\.py:21: in on_ack \(acked = 1 // 0\): ZeroDivisionError"),
    "a wrong type": ("acked = ack.acked_sacked", "acked = ctl.cwnd = 1.5",
                     r"mine\.py:21: in on_ack .*TypeError: .*'float' object"),
    "below zero": ("acked = ack.acked_sacked", "acked = ctl.cwnd = -1",
                   r"mine\.py:21: in on_ack .*OverflowError"),
    "writes to ack": ("acked = ack.acked_sacked", "acked = ack.losses = 1",
                      r"mine\.py:21: in on_ack .*AttributeError: .*'losses'.*not writable"),
    "an exception with a note": (
        "acked = ack.acked_sacked", "e = ValueError('no'); e.add_note('aside'); raise e",
        r"mine\.py:21: in on_ack .*ValueError: no$"),
    "calls itself": ("acked = ack.acked_sacked", "acked = self.on_ack(ack)",
                     r"mine\.py:21: in on_ack .*RecursionError"),
    "an unknown fact": ("acked = ack.acked_sacked", "acked = ack.acked",
                        r"mine\.py:21: in on_ack .*AttributeError: .*no attribute 'acked'"),
    "fails to begin": ("self.prior_cwnd = self.ctl.cwnd\n\n", "raise ValueError('no')\n\n",
                       r"mine\.py:15: in init .*ValueError: no"),
    "syntax error": ("def on_ack(", "def on_ack)(", r"mine\.py:17: "),
    "breaks at import": ("class Reno", "import nowhere_at_all\nclass Reno",
                         r"mine\.py:8: in <module> .*ModuleNotFoundError.*; a class may import"),
    "a relative import": ("class Reno", "from .weights import W\nclass Reno",
                          r"mine\.py:8: .*: from weights import W, without a point"),
    "no such class": ("class Reno", "class Other", r"has no class Reno of fullpipe\.Controller"),
    "not a controller": ("(fullpipe.Controller)", "", r"has no class Reno"),
    "an unknown flag": ("title =", "flags = 1048576\n    title =", r"flags: 1048576"),
    "a ring without a window": ("title =", "flags = 2\n    title =", "needs OWNS_CWND"),
    "a mistyped method": ("def on_ack(", "def on_acks(",
                          r"Reno\.on_acks: nothing calls this method; did you mean on_ack\?"),
    "another spelling": ("def on_ack(", "def onAck(", r"onAck: nothing calls .* mean on_ack\?"),
    "a name from elsewhere": ("    def on_ack(",
                              "    def on_loss(self, event):\n        pass\n\n    def on_ack(",
                              r"on_loss: nothing calls this method; did you mean on_event\?"),
    "a mistyped setting": ("title =", "flag = 1\n    title =",
                           r"Reno\.flag: nothing reads it; did you mean flags\?"),
    "a mistyped flag": ("title =", "flags = fullpipe.Controller.OWN_CWND\n    title =",
                        r"no attribute 'OWN_CWND'; did you mean OWNS_CWND\?"),
    "a mistyped fact": ("acked = ack.acked_sacked", "acked = self.ctl.cwdn",
                        r"mine\.py:21: .*'cwdn'; did you mean cwnd\?"),
    "half a packet": ("acked = ack.acked_sacked", "acked = self.ctl.cwnd = 40.5",
                      r"mine\.py:21: .*; a decision is a whole number, such as int\(...\)"),
    "less than nothing": ("acked = ack.acked_sacked", "acked = self.ctl.cwnd = -4",
                          r"mine\.py:21: .*; a decision is at least 0, and a window less than"),
    "a constant beyond its range": ("Constant(0.5, 0.1", "Constant(0.5, 0.7",r"Reno\.beta: a "),
}  # fmt: skip


@pytest.mark.parametrize("kind", WRONG)
def test_a_class_that_goes_wrong_ends_the_run_with_its_line(kind: str, tmp_path: Path) -> None:
    old, new, reason = WRONG[kind]
    assert old in RENO
    path = written(tmp_path, RENO.replace(old, new))
    with pytest.raises(UserError, match=reason):
        run(f"{path}:Reno")
    assert run("reno")["flows"]["bytes_delivered"][0] > 0


@pytest.mark.parametrize(
    ("ending", "reason"),
    [
        ("raise KeyboardInterrupt", r"mine\.py:21: in on_ack .*KeyboardInterrupt"),
        ("raise SystemExit(0)", r"mine\.py:21: in on_ack .*SystemExit: 0"),
        ("import os; os._exit(0)", r"mine\.py: it ended its process \(exit status 0\)"),
        ("import os; os.abort()", r"mine\.py:21: it ended its process \(SIGABRT\)"),
    ],
)
def test_ending_the_program_in_a_class_ends_the_run_not_the_program(
    ending: str, reason: str, tmp_path: Path
) -> None:
    path = written(tmp_path, RENO.replace("acked = ack.acked_sacked", ending))
    with pytest.raises(UserError, match=reason):
        run(f"{path}:Reno")
    assert run("reno")["flows"]["bytes_delivered"][0] > 0


def test_a_class_that_waits_for_ever_is_stopped_with_its_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(limits.STALL_S, "2")
    for endless in ("while True: pass", "import time; time.sleep(1e6)"):
        path = written(tmp_path, RENO.replace("acked = ack.acked_sacked", endless))
        with pytest.raises(UserError, match=r"mine\.py:21: stopped: no simulated time"):
            run(f"{path}:Reno")


def test_a_class_can_do_nothing_to_the_machine(tmp_path: Path) -> None:
    made = tmp_path / "made"
    for attack, refusal in {
        f"open({str(made)!r}, 'w')": "Permission",
        f"open({str(tmp_path / 'mine.py')!r}, 'a')": "Permission",
        "import os; os.fork()": "not permitted",
        "import os; os.kill(os.getppid(), 9)": "not permitted",
        "import os; os.execv('/bin/true', ['true'])": "not permitted",
        "import socket; socket.socket()": "not permitted",
        "open('/etc/passwd').read()": "Permission",
        f"import ctypes; ctypes.CDLL(None).system(b'touch {made}')": "",
    }.items():
        path = written(tmp_path, RENO.replace("acked = ack.acked_sacked", f"acked = 1; {attack}"))
        if refusal:
            with pytest.raises(UserError, match=rf"mine\.py:21: in on_ack .*{refusal}"):
                run(f"{path}:Reno")
        else:
            run(f"{path}:Reno")
    assert [file.name for file in tmp_path.iterdir()] == ["mine.py"]


def test_a_class_cannot_take_all_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(limits.MEMORY_MIB, "1024")
    path = written(tmp_path, RENO.replace("acked = ack.acked_sacked", "acked = bytearray(2**31)"))
    with pytest.raises(UserError, match=r"mine\.py:21: in on_ack .*MemoryError"):
        run(f"{path}:Reno")


def test_the_files_of_a_class_have_a_largest_size(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Holes count: a file system that keeps them shows the size that a copy would have."""
    monkeypatch.setenv(limits.OUTPUT_MIB, "0.125")
    attack = "acked = [os.lseek(fd, 1 << 40, 0) and os.write(fd, b'x') for fd in FILES]"
    text = RENO.replace("acked = ack.acked_sacked", attack).replace(
        "import fullpipe",
        "import fullpipe, json, os, sys\nFILES = json.loads(sys.argv[1])['files'].values()",
    )
    options = {"pcap": str(tmp_path / "x.pcap")}
    for content, said in (
        (text, r"mine\.py:\d+: .*File too large"),
        (RENO, "more than 0.125 MiB of output"),
    ):
        with pytest.raises(UserError, match=said):
            engine("sim").run(
                plan(f"{written(tmp_path, content)}:Reno"), lambda _done: True, options
            )
    assert [file.name for file in tmp_path.iterdir()] == ["mine.py"]


def test_what_a_class_prints_is_shown(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    text = RENO.replace("self.prior_cwnd = self.ctl.cwnd\n\n", "print('begun \\x1b[31m')\n\n")
    run(f"{written(tmp_path, text)}:Reno")
    assert capfd.readouterr().err == "begun ?[31m\n"


def test_kernels_refuse_a_class_and_say_what_they_run(tmp_path: Path) -> None:
    found = plan(f"{written(tmp_path)}:Reno")
    for name in ("vm", "live"):
        with pytest.raises(UserError, match=r"mine.py: a class of Python runs in the simulator"):
            engine(name).check(found)


def test_the_class_of_another_program_is_refused() -> None:
    class Here(Controller):
        pass

    identity = classes.hand_over(Here)
    classes._current.pop(identity)
    with pytest.raises(UserError, match="a program handed this class over"):
        cc_set(identity)


def test_a_method_that_the_class_itself_calls_may_have_any_name(tmp_path: Path) -> None:
    text = RENO.replace("def on_ack(self, ack", "def _on_ack(self, ack")
    more = "\n    def on_ack(self, ack):\n        self._on_ack(ack)\n"
    assert run(f"{written(tmp_path, text + more)}:Reno")["flows"] is not None


def test_constants_may_be_below_zero(tmp_path: Path) -> None:
    text = (
        "import fullpipe\n\n\nclass Line(fullpipe.Controller):\n"
        "    flags = fullpipe.Controller.OWNS_CWND\n"
        "    bias = fullpipe.Constant(-0.5, -2.0, 2.0)\n\n"
        "    def on_ack(self, ack):\n        self.ctl.cwnd = int(40 + 10 * self.bias)\n"
    )
    path = written(tmp_path, text)
    for bias, cwnd in ((None, 35), (-1.5, 25), (0, 40), (0.7, 47)):
        tables = {} if bias is None else {"cc": {"Line": {"bias": bias}}}
        samples = run(f"{path}:Line", **tables)["flow_samples"]
        assert samples["cwnd_packets"][-1] == cwnd
    (bias,) = cc_set(f"{path}:Line").params
    assert [bias.value(bias.min), bias.value(bias.default), bias.value(bias.max)] == [-2, -0.5, 2]
    assert bias.shortest(bias.stored(-0.37)) == "-0.37"
    with pytest.raises(UserError, match=r"-3\.0 is out of range: -2 to 2"):
        run(f"{path}:Line", cc={"Line": {"bias": -3}})


def test_a_class_that_reads_a_file_is_told_where_its_numbers_belong(tmp_path: Path) -> None:
    (tmp_path / "w.json").write_text('{"cwnd": 40}')
    reads = f"import json\nW = json.load(open({str(tmp_path / 'w.json')!r}))\nimport fullpipe\n"
    path = written(tmp_path, RENO.replace("import fullpipe\n", reads, 1))
    with pytest.raises(UserError, match=r"no right to read files: .*weights\.py, and import"):
        run(f"{path}:Reno")


def test_modules_beside_a_class_belong_to_it(tmp_path: Path) -> None:
    (tmp_path / "gains.py").write_text("BETA = 0.85\n")
    text = RENO.replace("import fullpipe\n", "import fullpipe\nfrom gains import BETA\n")
    path = written(tmp_path, text.replace("Constant(0.5, 0.1", "Constant(BETA, 0.1"))
    found = cc_set(f"{path}:Reno")
    assert found.values[0] == round(0.85 * 1024)
    first = found.algorithm
    (tmp_path / "gains.py").write_text("BETA = 0.8\n")
    assert cc_set(f"{path}:Reno").algorithm != first


LEAKS = """
import sys
import fullpipe
sys.leak = getattr(sys, "leak", 0) + 1
fullpipe.Controller.leak = getattr(fullpipe.Controller, "leak", 0) + 1

class Leaks(fullpipe.Controller):
    def on_ack(self, ack):
        self.ctl.cwnd = 10 * sys.leak * fullpipe.Controller.leak
    def on_event(self, event):
        self.ctl.ssthresh = 10
"""


@pytest.mark.parametrize("can_fork", [True, False])
def test_every_run_of_a_class_begins_from_a_clean_interpreter(
    can_fork: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whichever runs share a process: also where the kernel lets no stem fork workers."""
    if not can_fork:
        monkeypatch.setattr(stem.Stem, "fork", lambda *_: None)
    file = tmp_path / "leaks.py"
    file.write_text(LEAKS)
    path = {"rate": "10mbit", "rtt": "20ms", "buffer": "1bdp"}
    scenario = {
        "duration": "1s", "warmup": "0s", "path": path, "flow": [{"cc": f"{file}:Leaks"}],
    }  # fmt: skip
    for _ in range(2):
        samples = fullpipe.run(scenario).table("flow_samples")
        assert pc.max(samples["cwnd_packets"]).as_py() == 10


def test_a_worker_that_a_stem_forked_is_a_child_of_this_process(tmp_path: Path) -> None:
    file = tmp_path / "leaks.py"
    file.write_text(LEAKS)
    algorithm = protocol.Algorithm(classes.read(f"{file}:Leaks"), None)
    worker = protocol.Worker([algorithm], process.Rights([], {}, 1 << 30))
    forked = worker._process._process
    assert isinstance(forked, stem.Forked)
    parent = int(Path(f"/proc/{forked.pid}/stat").read_text().rpartition(")")[2].split()[1])
    assert parent == os.getpid()
    assert forked.poll() is None
    with pytest.raises(subprocess.TimeoutExpired):
        forked.wait(0.0)
    worker.end()
    assert forked.returncode == -signal.SIGKILL
    assert not Path(f"/proc/{forked.pid}").exists()


def test_a_stem_ends_with_its_thread_and_is_forgotten(tmp_path: Path) -> None:
    file = tmp_path / "leaks.py"
    file.write_text(LEAKS)
    algorithm = protocol.Algorithm(classes.read(f"{file}:Leaks"), None)

    def work() -> int:
        worker = protocol.Worker([algorithm], process.Rights([], {}, 1 << 30))
        worker.end()
        return threading.get_native_id()

    with ThreadPoolExecutor(1) as several:
        thread = several.submit(work).result()
        ended = stem._stems[thread]._process
    assert ended.wait() == -signal.SIGKILL
    work()
    assert [*stem._stems] == [threading.get_native_id()]
