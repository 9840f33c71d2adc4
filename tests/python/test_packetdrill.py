"""Scripts in packetdrill's language: how they are read, and what the simulator and kernels do."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from fullpipe import cli
from fullpipe.packetdrill import parser, play
from fullpipe.packetdrill.code import AssertionFailedError, Evaluator
from fullpipe.packetdrill.judge import Verdict
from fullpipe.packetdrill.script import Call, NotSupportedError, Packet, ScriptError, Time

FOLDER = Path(__file__).parents[1] / "data" / "packetdrill"
SCRIPTS = sorted(FOLDER.glob("*.pkt"))
OPENING = """
    0 socket(..., SOCK_STREAM, IPPROTO_TCP) = 3
   +0 bind(3, ..., ...) = 0
   +0 listen(3, 1) = 0
   +0 < S 0:0(0) win 60000 <mss 1000,sackOK,nop,nop,nop,wscale 8>
   +0 > S. 0:0(0) ack 1 <...>
  +.1 < . 1:1(0) ack 1 win 1000
   +0 accept(3, ..., ...) = 4
"""
LINES_OF_OPENING = OPENING.count("\n")


def verdict(path: Path, text: str, model: str = "6.12.117") -> Verdict:
    """What becomes of a text as a script."""
    path.write_text(text, encoding="utf-8")
    (only,) = play.play([path], play.simulator(model))
    return only


def run(arguments: list[str], monkeypatch: pytest.MonkeyPatch) -> int:
    monkeypatch.setattr("sys.argv", ["fullpipe", *arguments])
    with pytest.raises(SystemExit) as stopped:
        cli.main()
    return int(stopped.value.code or 0)


@pytest.mark.parametrize("model", ["6.12.117", "7.3"])
def test_the_repositorys_scripts_pass_in_the_simulator(model: str) -> None:
    verdicts = play.play(SCRIPTS, play.simulator(model))
    assert len(verdicts) >= 8
    assert [each.words() for each in verdicts if each.outcome != "passed"] == []


@pytest.mark.vm
def test_the_repositorys_scripts_pass_on_a_kernel() -> None:
    verdicts = play.play(SCRIPTS, play.machine("6.12"))
    assert [each.words() for each in verdicts if each.outcome != "passed"] == []


def test_times_packets_and_calls_are_read_as_packetdrills_grammar_says() -> None:
    script = parser.parse(
        "a.pkt",
        """--tolerance_usecs=7000 // a comment
        # another
        0.5 > [ect0] PE. 1:1001(1000) ack 5 win 9 <nop,nop,TS val 3 ecr 4,sack 1:2 5:6>
        +.01~+.02 < S 0:0(0) win 65535 <...>  /* a comment
        of two lines */
        * > . 1:1(0) ack 2
        +0...0.3 setsockopt(3, SOL_SOCKET, SO_LINGER, {onoff=1, linger=0}, 8) = -1 EINVAL (No)
        """,
    )
    assert script.options == {"tolerance_usecs": "7000"}
    times = [event.time for event in script.events]
    assert times == [
        Time("start", 500_000),
        Time("before", 10_000, 20_000),
        Time("any"),
        Time("before", 0, 300_000),
    ]
    assert [event.line for event in script.events] == [3, 4, 6, 7]
    first, second, _, call = (event.action for event in script.events)
    assert isinstance(first, Packet) and isinstance(second, Packet) and isinstance(call, Call)
    assert (first.flags, first.sequence, first.bytes) == (0x58, 1, 1000)
    assert (first.ack, first.window, first.ecn) == (5, 9, (2,))
    assert first.options == [["nop"], ["nop"], ["ts", 3, 4], ["sack", [[1, 2], [5, 6]]]]
    assert second.is_inbound and second.options is None
    assert call.arguments == [3, "SOL_SOCKET", "SO_LINGER", {"fields": [1, 0]}, 8]
    assert (call.result, call.errno, call.blocks) == (-1, "EINVAL", True)


@pytest.mark.parametrize(
    ("event", "said"),
    [
        ("+0 > P. 1:1000(999) ack 1", "length: expected P. 1:1000(999) ack 1, but got P. 1:1001"),
        ("+0 > . 1:1001(1000) ack 1", "flags"),
        ("+0 > P. 1:1001(1000) ack 7", "ack: expected"),
        ("+0 > P. 1:1001(1000) ack 1 <nop,nop,TS val 1 ecr 2>", "options"),
        ("+0 > [ect0] P. 1:1001(1000) ack 1", "ECN codepoint"),
        ("+.1 > P. 1:1001(1000) ack 1", "timing error"),
        ("+0 %{ assert tcpi_unacked == 2 }%", "assert tcpi_unacked == 2: tcpi_unacked = 1"),
        ("+0 read(4, ..., 1) = 1", "does not return"),
        ("+0 fcntl(4, F_GETFL) = 7", "expected fcntl(4, F_GETFL) = 7, but got 2"),
    ],
)
def test_what_a_script_does_not_expect_is_said_with_its_line(
    event: str, said: str, tmp_path: Path
) -> None:
    text = f"{OPENING}+0 write(4, ..., 1000) = 1000\n{event}\n"
    found = verdict(tmp_path / "a.pkt", text)
    assert (found.outcome, found.line) == ("failed", LINES_OF_OPENING + 2)
    assert said in found.sentence
    assert found.words().startswith(f"{tmp_path}/a.pkt:{LINES_OF_OPENING + 2}: ")


def test_a_packet_that_does_not_come_is_said(tmp_path: Path) -> None:
    found = verdict(tmp_path / "a.pkt", f"{OPENING}+0 > P. 1:1001(1000) ack 1\n")
    assert found.outcome == "failed"
    assert "no packet came" in found.sentence


@pytest.mark.parametrize(
    ("event", "kind"),
    [
        ("+0 < udp (1000)", "UDP packets"),
        ("+0 > icmp unreachable", "ICMP packets"),
        ("+0 epoll_create(1) = 5", "epoll_create()"),
        ("+0 < P5. 1:1(0) ack 1 win 1", "accurate ECN (flags with a digit)"),
        ("+0 < . 1:1(0) ack 1 win 1 <FO 12>", "TCP option FO"),
        ("+0 setsockopt(4, SOL_TCP, TCP_NEW_THING, [1], 4) = 0", "symbol TCP_NEW_THING"),
        ("+0 `reboot`", "command reboot"),
        ("+0 %{ import os }%", "code with Import"),
        ("+0 < R. 1:1(0) ack 1 win 1", "RST of the peer"),
        ("+0 %{ assert tcpi_new_field == 2 }%", "field tcpi_new_field"),
    ],
)
def test_what_is_not_supported_is_named_with_its_line(
    event: str, kind: str, tmp_path: Path
) -> None:
    found = verdict(tmp_path / "a.pkt", f"{OPENING}{event}\n")
    assert (found.outcome, found.sentence) == ("not supported", kind)
    assert found.line == LINES_OF_OPENING + 1


@pytest.mark.parametrize(
    "text",
    [
        "",
        "hello\n",
        "0 socket(",
        "0 > S 0:1(0)\n",
        "+1 ~ 2 > S 0:0(0)\n",
        "0 close(3) = \n",
        f"0 f({'[' * 5000}) = 0\n",
        "0 %{ assert ( }%\n",
        f"0 %{{ assert {'(' * 3000}1 }}%\n",
        "\0\0\0",
        "`unended",
        "9" * 5000,
    ],
)
def test_a_text_that_is_no_script_is_refused_and_says_where(text: str, tmp_path: Path) -> None:
    found = verdict(tmp_path / "a.pkt", text)
    assert found.outcome in ("no script", "not supported")
    assert found.line is not None


@pytest.mark.parametrize(
    "text",
    [
        "__import__('os').system('true')",
        "assert ().__class__",
        "assert [x for x in (1,)]",
        "assert (lambda: 1)()",
        "assert open('/etc/passwd')",
        "assert 2 ** 9999999",
        "assert 1 << 9999999",
        "assert 'a' * 100000000",
        "assert '%999999999d' % 1",
        "assert f'{1}'",
    ],
)
def test_code_that_is_no_statement_about_fields_is_not_worked_out(text: str) -> None:
    with pytest.raises(ScriptError):
        Evaluator().run(text, {"rto": 1}, 3)


def test_code_keeps_its_variables_and_says_values_that_are_wrong() -> None:
    evaluator = Evaluator()
    evaluator.run("cwnd = tcpi_snd_cwnd + 1", {"snd_cwnd": 9}, 1)
    evaluator.run("cwnd += 1; assert cwnd == 11 and tcpi_rto > 5, 'text'", {"rto": 6}, 2)
    with pytest.raises(AssertionFailedError, match=r"cwnd = 11, tcpi_rto = 6 \(rto 6\)"):
        evaluator.run("assert cwnd == tcpi_rto, 'rto %d' % tcpi_rto", {"rto": 6}, 3)
    with pytest.raises(NotSupportedError, match="field tcpi_busy_time"):
        evaluator.run("assert tcpi_busy_time", {"rto": 6}, 4)


def test_settings_come_from_commands_and_from_the_file_of_defaults(tmp_path: Path) -> None:
    (tmp_path / "defaults.sh").write_text(
        "#!/bin/sh\nsysctl -q net.ipv4.tcp_ecn=0 > /dev/null 2>&1\n"
        'sysctl -q net.ipv4.tcp_rmem="4096 10 $((3*5))"\nip tcp_metrics flush all\n'
    )
    script = parser.parse(
        str(tmp_path / "a.pkt"),
        "`./defaults.sh\n ./set_sysctls.py /proc/sys/net/ipv4/tcp_timestamps=0 \\\n x=1`\n"
        + OPENING,
    )
    from fullpipe.packetdrill.program import build

    document = json.loads(build(script, "a").text)
    assert dict(document["sysctls"]) == {"tcp_timestamps": "0", "x": "1"}
    assert dict(document["defaults"]) == {"tcp_ecn": "0", "tcp_rmem": "4096 10 15"}


def test_the_exit_code_says_whether_scripts_passed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    passing = str(FOLDER / "fast_retransmit.pkt")
    failing, lacking = tmp_path / "failing.pkt", tmp_path / "lacking.pkt"
    failing.write_text(f"{OPENING}+0 > P. 1:1001(1000) ack 1\n")
    lacking.write_text("0 pipe(...) = 0\n")
    assert run(["packetdrill", passing], monkeypatch) == 0
    assert run(["packetdrill", passing, str(lacking)], monkeypatch) == 2
    assert "1 not supported: pipe()" in capsys.readouterr().out
    assert run(["packetdrill", passing, str(failing), str(lacking), "--json"], monkeypatch) == 1
    rows = json.loads(capsys.readouterr().out)
    assert [row["outcome"] for row in rows] == ["passed", "failed", "not supported"]
    assert run(["packetdrill", str(tmp_path / "none.pkt")], monkeypatch) == 2
    assert run(["packetdrill", passing, "--kernel", "5.0"], monkeypatch) == 2


def test_a_script_gives_the_same_answer_each_time(tmp_path: Path) -> None:
    failing = f"{OPENING}+0 write(4, ..., 1000) = 1000\n* > . 9:9(0) ack 1\n"
    assert verdict(tmp_path / "a.pkt", failing) == verdict(tmp_path / "a.pkt", failing)
