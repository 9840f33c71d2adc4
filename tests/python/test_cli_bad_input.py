"""Bad input ends with status 2 and one message that names file, key and what is allowed."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import fullpipe
from fullpipe import cli
from fullpipe.base.errors import UserError

GOOD = """
duration = "2s"
[path]
rate = "10mbit"
rtt = "20ms"
[[flow]]
cc = "cubic"
"""


def queue(qdisc: str, options: str) -> str:
    """GOOD with this discipline and these options."""
    table = f'qdisc = "{qdisc}"\n[path.qdisc_options]\n{options}\n[[flow]]'
    return GOOD.replace("[[flow]]", table)


ROW = """
duration = "2s"
[[link]]
name = "a"
rate = "10mbit"
delay = "5ms"
[[link]]
name = "b"
rate = "5mbit"
delay = "5ms"
"""
BAD = {
    "wrong unit": (GOOD.replace("10mbit", "10ms"), "path.rate", "'10ms'"),
    "no unit": (GOOD.replace('"10mbit"', "10"), "path.rate"),
    "negative rate": (GOOD.replace("10mbit", "-10mbit"), "path.rate", "'-10mbit'"),
    "zero rate": (GOOD.replace("10mbit", "0mbit"), "path.rate", "'0mbit'"),
    "huge rate": (GOOD.replace("10mbit", "9" * 25 + "gbit"), "path.rate", "at most 1000gbit"),
    "not a number": (GOOD.replace('"10mbit"', "nan"), "path.rate", "nan"),
    "zero rtt": (GOOD.replace("20ms", "0ms"), "path.rtt", "'0ms'"),
    "negative rtt": (GOOD.replace("20ms", "-20ms"), "path.rtt", "'-20ms'"),
    "unknown cc": (GOOD.replace("cubic", "cubik"), "did you mean cubic", "'cubik'"),
    "a family of algorithms": (GOOD.replace("cubic", "BBR"), "did you mean bbr1 or bbr2 or bbr3"),
    "a discipline in capitals": (
        GOOD.replace("rtt =", 'qdisc = "CAKE"\nrtt ='), "path.qdisc: 'CAKE'", "did you mean 'cake'?"
    ),
    "a discipline with a hyphen": (
        GOOD.replace("rtt =", 'qdisc = "fq-codel"\nrtt ='), "did you mean 'fq_codel'?"
    ),
    "what owners call a rate": (
        GOOD.replace("rtt =", 'download = "300mbit"\nrtt ='),
        "path.download: unknown key; write rate",
    ),
    "what owners call a delay": (
        GOOD.replace("rtt =", 'latency = "3ms"\nrtt ='), "path.latency: unknown key; write rtt",
    ),
    "the loss of everything": (GOOD.replace("rtt =", "loss = 1\nrtt ="), "path.loss", '"1%"'),
    "empty cc": (GOOD.replace("cubic", ""), "flow.0.cc"),
    "no flows": ("flow = []\n" + GOOD.split("[[flow]]")[0], "flow"),
    "flow missing": (GOOD.split("[[flow]]")[0], "there must be at least one [[flow]]"),
    "path missing": ('duration = "2s"\n[[flow]]\ncc = "cubic"\n', "path: is missing"),
    "duration missing": (GOOD.replace('duration = "2s"', ""), "duration: is missing"),
    "zero duration": (GOOD.replace('"2s"', '"0s"'), "duration", "'0s'"),
    "week and more": (GOOD.replace('"2s"', '"100000000s"'), "duration", "'100000000s'"),
    "unknown key": (GOOD + 'colour = "red"\n', "flow.0.colour"),
    "a key misspelt": (GOOD + 'starrt = "1s"\n', "flow.0.starrt: unknown key; did you mean start?"),
    "a key of a table within": (
        'duration="2s"\n[[link]]\nname="w"\nkind="wifi"\nstandard="ac"\n[[flow]]\ncc = "cubic"\n',
        "link.0.standard: unknown key; did you mean wifi.standard?",
    ),
    "two wrong keys": (GOOD + "colour = 1\nshape = 2\n", "flow.0.colour", "too: flow.0.shape)"),
    "unknown section": (GOOD + "[fast]\nx = 1\n", "fast"),
    "warmup too long": ('warmup = "3s"\n' + GOOD, "warmup", "'3s'"),
    "negative seed": ("seed = -1\n" + GOOD, "seed", "-1"),
    "flow starts too late": (GOOD + 'start = "5s"\n', "flow.0.start", "'5s'"),
    "flow stops before it starts": (GOOD + 'start = "1s"\nstop = "500ms"\n', "stop", "'500ms'"),
    "zero count": (GOOD + "count = 0\n", "flow.0.count"),
    "too many flows": (GOOD + "count = 200000\n", "flow.0.count", "200000"),
    "duplicate names": (
        GOOD + 'name = "a"\n[[flow]]\ncc = "reno"\nname = "a"\n', "used twice", "'a'",
    ),
    "loss above one": (GOOD.replace("[[flow]]", "loss = 1.5\n[[flow]]"), "path.loss", "1.5"),
    "correlation without loss": (
        GOOD.replace("[[flow]]", "loss_correlation = 0.2\n[[flow]]"), "loss_correlation", "0.2",
    ),
    "tiny window": (GOOD + 'receive_window = "1B"\n', "receive_window", "'1B'"),
    "unknown qdisc": (GOOD.replace("[[flow]]", 'qdisc = "wred"\n[[flow]]'), "path.qdisc", "'wred'"),
    "red thresholds": (
        queue("red", 'min = "9KB"\nmax = "8KB"'), "path.qdisc_options.min", "'9KB'", "below max",
    ),
    "unknown tins": (
        queue("cake", 'tins = "diffserv5"'), "qdisc_options.tins", "'diffserv5'", "diffserv4",
    ),
    "unknown DSCP": (
        queue("prio", "dscp.AF99 = 0"), "qdisc_options.dscp", "'AF99'", "AF41",
    ),
    "band that prio lacks": (
        queue("prio", "dscp.EF = 3"), "qdisc_options.dscp", "band 3", "0 to 2",
    ),
    "odd number of buckets": (
        queue("sfq", "buckets = 1000"), "qdisc_options.buckets", "1000", "power of two",
    ),
    "overhead beyond the kernel's": (
        queue("cake", "overhead = 300"), "qdisc_options.overhead", "300", "256",
    ),
    "option of another discipline": (
        queue("fifo", "coupling = 3"),
        "path.qdisc_options.coupling: not an option of fifo; dualpi2 has it",
    ),
    "option of several others": (
        queue("tbf", 'target = "5ms"'), "not an option of tbf; codel, fq_codel, cake, pie",
    ),
    "option of no discipline": (
        queue("codel", 'tarket = "5ms"'),
        "path.qdisc_options.tarket: unknown key; did you mean target? allowed are target, interval",
    ),
    "option of a discipline without options": (
        queue("fifo", "depth = 3"), "path.qdisc_options.depth: unknown key; fifo has no options",
    ),
    "options that are no table": (
        GOOD.replace("[[flow]]", "qdisc_options = 3\n[[flow]]"),
        "path.qdisc_options: 3: must be a table",
    ),
    "options of the reverse discipline": (
        GOOD.replace("[[flow]]", "reverse_qdisc_options = {coupling = 3}\n[[flow]]"),
        "path.reverse_qdisc_options.coupling: not an option of fifo",
    ),
    "options of an unknown discipline": (
        queue("wred", "coupling = 3"), "path.qdisc: 'wred'",
    ),
    "unknown constant": (GOOD + "[cc.cubic]\nbetta = 0.7\n", "did you mean beta"),
    "constant out of range": (GOOD + "[cc.cubic]\nbeta = 3.0\n", "out of range", "3.0"),
    "constant of an unused cc": (GOOD + "[cc.bbr1]\nhigh_gain = 3.0\n", "no flow uses it"),
    "kernel name in sim": (GOOD.replace("cubic", "kernel:cubic"), "--engine vm"),
    "link that no flow passes": (
        ROW + '[[flow]]\ncc = "reno"\nleave = "a"\n', "link.1.name", "'b'", "enter and leave",
    ),
    "leave before enter": (
        ROW + '[[flow]]\ncc = "reno"\nenter = "b"\nleave = "a"\n',
        "flow.0.leave", "'a'", "before",
    ),
    "unknown link": (ROW + '[[flow]]\ncc = "reno"\nenter = "c"\n', "flow.0.enter", "'c'", "a, b"),
    "links of one name": (
        ROW.replace('"b"', '"a"') + '[[flow]]\ncc = "reno"\n', "'a' is used twice",
    ),
    "a row without a rate": (
        re.sub("rate = .*", "", ROW) + '[[flow]]\ncc = "reno"\n',
        "link: at least one needs a rate",
    ),
    "steps out of order": (
        ROW + 'rate_steps = [["2s", "1mbit"], ["1s", "2mbit"]]\n[[flow]]\ncc = "reno"\n',
        "link.1.rate_steps", "1 s", "after the one at 2 s",
    ),
    "outages that overlap": (
        ROW + 'outage = [["1s", "2s"], ["2s", "1s"]]\n[[flow]]\ncc = "reno"\n',
        "link.1.outage", "until 3 s", "begins at 2 s",
    ),
    "steps below a discipline that keeps one rate": (
        ROW + 'qdisc = "cake"\nrate_steps = [["1s", "1mbit"]]\n[[flow]]\ncc = "reno"\n',
        "link.1.rate_steps", "cake shapes to one rate itself", "bandwidth",
    ),
    "an MCS that the width lacks": (
        GOOD + '[wifi]\nstandard = "ac"\nwidth = 20\nmcs = 9\n',
        "wifi.mcs", "9 does not exist at 20 MHz", "6, 7, 8 ",
    ),
    "an MCS of other streams": (
        GOOD + '[wifi]\nstandard = "n"\nwidth = 40\nstreams = 1\nmcs = 8\n',
        "wifi.mcs", "8 with 1 streams", "0 to 7",
    ),
    "a path beside a row": (ROW + '[[flow]]\ncc = "reno"\n[path]\nrate = "1mbit"\n', "path.rate"),
    "reordering without a delay": (
        ROW.replace('"5ms"', '"0ms"') + 'reorder = "1%"\n[[flow]]\ncc = "reno"\n',
        "link.1.reorder", "needs a delay",
    ),
    "two kinds of loss": (
        ROW + 'loss = "1%"\ngemodel = {p = "1%", r = "9%"}\n[[flow]]\ncc = "reno"\n',
        "link.1.gemodel: excludes loss",
    ),
    "a chain that never changes": (
        ROW + 'gemodel = {p = "0", r = "0"}\n[[flow]]\ncc = "reno"\n', "link.1.gemodel.p", "0",
    ),
    "a policer below a packet": (
        ROW + 'policer = {rate = "1mbit", burst = "1KB"}\n[[flow]]\ncc = "reno"\n',
        "link.1.policer.burst", "1514B",
    ),
    "packets held for no time": (
        ROW + 'hold = {time = "0ms"}\n[[flow]]\ncc = "reno"\n', "link.1.hold.time", "above 0",
    ),
    "a trace that is not there": (
        ROW.replace('delay = "5ms"', "")
        + 'delay_trace = "nowhere.delay"\n[[flow]]\ncc = "reno"\n',
        "link.1.delay_trace", "nowhere.delay", "cannot be read",
    ),
    "a trace beside a rate": (
        ROW + 'rate_trace = "x"\n[[flow]]\ncc = "reno"\n', "link.1.rate_trace", "excludes rate",
    ),
    "a route without a row": (GOOD + 'enter = "a"\n', "flow.0.enter", "'a'", "[[link]]"),
    "samples beyond memory": ('sample_interval = "10ns"\n' + GOOD, "sample_interval", "'10ns'"),
    "wrong type": (GOOD.replace('"cubic"', "[1, 2]"), "flow.0.cc", "[1, 2]"),
    "infinite rate": (GOOD.replace('"10mbit"', "inf"), "path.rate", "inf"),
    "constant not a number": (GOOD + "[cc.cubic]\nbeta = nan\n", "cc.cubic.beta", "nan"),
    "huge seed": ("seed = 99999999999999999999\n" + GOOD, "seed", "99999999999999999999"),
    "huge time": (GOOD.replace("20ms", "99999999s"), "path.rtt", "at most 604800s"),
    "zero buffer": (GOOD.replace("[[flow]]", 'buffer = "0bdp"\n[[flow]]'), "path.buffer", "'0bdp'"),
    "delay beyond the rtt": (
        GOOD.replace("[[flow]]", 'forward_delay = "1s"\n[[flow]]'), "path.forward_delay", "'1s'",
    ),
    "name of another flow": (GOOD + 'name = "reno.1"\n[[flow]]\ncc = "reno"\n', "'reno.1'"),
    "duplicate probes": (GOOD + '[[probe]]\nname = "p"\n' * 2, "probe.1.name", "'p'"),
    "key given twice": (GOOD + 'cc = "reno"\n', "not TOML"),
    "nested without end": ("a = " + "[" * 5000, "not TOML"),
    "not TOML": ("duration = = 2", "not TOML"),
    "empty": ("", "empty"),
}  # fmt: skip


def run(arguments: list[str], monkeypatch: pytest.MonkeyPatch) -> int:
    monkeypatch.setattr("sys.argv", ["fullpipe", *arguments])
    with pytest.raises(SystemExit) as stopped:
        cli.main()
    return int(stopped.value.code or 0)


@pytest.mark.parametrize("name", BAD)
def test_a_malformed_scenario_is_refused(
    name: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    text, *expected = BAD[name]
    file = tmp_path / "bad.toml"
    file.write_text(text, encoding="utf-8")
    status = run(["run", str(file), "--out", str(tmp_path / "out")], monkeypatch)
    message = capsys.readouterr().err
    assert status == 2
    for part in (str(file), *expected):
        assert part in message
    assert len(message.strip().splitlines()) == 1
    assert "Traceback" not in message
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("kind", ["folder", "absent", "binary", "unreadable", "endless"])
def test_what_is_no_scenario_file_is_refused(
    kind: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    path = tmp_path / "thing"
    if kind == "folder":
        path.mkdir()
    elif kind == "binary":
        path.write_bytes(bytes(range(256)))
    elif kind == "unreadable":
        # Reading one's own memory from address 0 fails, also for root.
        path = Path("/proc/self/mem")
    elif kind == "endless":
        path = Path("/dev/zero")
    assert run(["run", str(path)], monkeypatch) == 2
    message = capsys.readouterr().err
    assert str(path) in message
    assert len(message.strip().splitlines()) == 1


@pytest.mark.parametrize(
    ("words", "content", "said"),
    [
        (["sweep", "run"], "", "empty; a sweep needs [scenario] and [axis]"),
        (["sweep", "run"], None, "is a folder; a sweep is a TOML file"),
        (["report"], "a page\n", "is a file; a recording is a folder"),
        (["replay"], None, "cannot be read: is a folder"),
        (["test", "rrul", "--path"], f"foo = 1\n{GOOD}", "foo: unknown key"),
    ],
)
def test_what_is_said_of_a_file_is_what_it_should_have_been(
    words: list[str],
    content: str | None,
    said: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    path = tmp_path / "thing"
    if content is None:
        path.mkdir()
    else:
        path.write_text(content, encoding="utf-8")
    assert run([*words, str(path)], monkeypatch) == 2
    message = " ".join(capsys.readouterr().err.split())
    assert f"{path}: {said}" in message and "Errno" not in message


def test_an_unknown_engine_and_an_unknown_option_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "good.toml"
    file.write_text(GOOD, encoding="utf-8")
    assert run(["run", str(file), "--engine", "ns3"], monkeypatch) == 2
    assert "'sim', 'vm', 'live'" in capsys.readouterr().err
    assert run(["run", str(file), "--fast"], monkeypatch) == 2
    assert "--fast" in capsys.readouterr().err


def test_a_folder_that_exists_is_never_overwritten(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "good.toml"
    file.write_text(GOOD, encoding="utf-8")
    (tmp_path / "out").mkdir()
    assert run(["run", str(file), "--out", str(tmp_path / "out")], monkeypatch) == 2
    error = capsys.readouterr().err
    assert "exists already" in error and "--out" in error and "--force" in error
    kept = tmp_path / "out" / "letter.txt"
    kept.write_text("mine")
    assert run(["run", str(file), "--out", str(tmp_path / "out"), "--force"], monkeypatch) == 2
    assert "is no recording" in capsys.readouterr().err
    assert kept.read_text() == "mine"


def test_force_replaces_recordings_once_there_are_new_ones(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    file, out = tmp_path / "good.toml", tmp_path / "out"
    file.write_text(GOOD, encoding="utf-8")
    words = ["run", str(file), "--out", str(out), "--no-report"]
    again = [*words, "--force"]
    assert run(again, monkeypatch) == 0
    first = (out / "metadata.json").read_bytes()
    assert run([*again, "--engine", "vm", "--kernel", "none"], monkeypatch) != 0
    assert (out / "metadata.json").read_bytes() == first
    assert run([*again, "--set", "seed=2"], monkeypatch) == 0
    assert (out / "metadata.json").read_bytes() != first
    assert run([*again, "--repeat", "2", "--jobs", "1"], monkeypatch) == 0
    assert not (out / "metadata.json").exists()
    assert run(again, monkeypatch) == 0
    assert not (out / "run-000").exists()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["good.toml", "out"]


@pytest.mark.parametrize(
    ("option", "engine", "belongs_to"),
    [
        (("--machine", "uml"), "sim", "vm"),
        (("--machine", "uml"), "live", "vm"),
        (("--kernel", "6.1"), "sim", "vm"),
        (("--modules", "."), "sim", "vm"),
        (("--cc-form", "module"), "live", "vm"),
        (("--background-processes", "3"), "sim", "vm or live"),
        (("--peer", "lab2"), "sim", "live"),
        (("--peer", "lab2"), "vm", "live"),
        (("--token", "x"), "sim", "live"),
    ],
)
def test_an_option_of_another_engine_is_refused(
    option: tuple[str, str],
    engine: str,
    belongs_to: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    file = tmp_path / "good.toml"
    file.write_text(GOOD, encoding="utf-8")
    out = ["--out", str(tmp_path / "out")]
    said = f"fullpipe: {option[0]}: belongs to --engine {belongs_to}\n"
    assert run(["run", str(file), "--engine", engine, *option, *out], monkeypatch) == 2
    assert capsys.readouterr().err == said
    if option[0] in ("--machine", "--kernel"):
        assert run(["compare", "reno", "--engine", engine, *option, *out], monkeypatch) == 2
        assert capsys.readouterr().err == said
    if option[0] in ("--kernel", "--modules"):
        words = ["test", "rrul", "--path", str(file), "--engine", engine, *option, *out]
        assert run(words, monkeypatch) == 2
        assert capsys.readouterr().err == said
    with pytest.raises(UserError, match=said.strip().removeprefix("fullpipe: ")):
        name = option[0].removeprefix("--").replace("-", "_")
        fullpipe.run(file, engine=engine, **{name: option[1]})


def test_a_token_is_for_a_peer_and_may_lie_in_the_environment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "good.toml"
    file.write_text(GOOD, encoding="utf-8")
    assert run(["run", str(file), "--engine", "live", "--token", "x"], monkeypatch) == 2
    assert "--token: is for the agent of another host" in capsys.readouterr().err
    monkeypatch.setenv("FULLPIPE_TOKEN", "x")
    words = ["run", str(file), "--no-report", "--out", str(tmp_path / "out")]
    assert run(words, monkeypatch) == 0


def test_a_sweeps_machine_belongs_to_the_engine_that_has_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "s.toml"
    flow = '[[scenario.flow]]\ncc = "{cc}"\n'
    path = '[scenario]\nduration = "1s"\npath = { rate = "1mbit", rtt = "10ms" }\n'
    file.write_text(f'{path}{flow}[axis]\ncc = ["reno"]\n[sweep]\nmachine = "uml"\n')
    store = tmp_path / "store"
    assert run(["sweep", str(file), "--out", str(store)], monkeypatch) == 2
    assert capsys.readouterr().err == f"fullpipe: {file}: sweep.machine: belongs to engine vm\n"
    assert not store.exists()
