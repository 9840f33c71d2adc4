"""What people write instead of what a scenario has: each refusal says what would be right."""

from __future__ import annotations

from pathlib import Path

import pytest

from fullpipe.base.errors import UserError
from fullpipe.scenario.model import load_scenario

GOOD = (
    'duration = "5s"\n[path]\nrate = "20mbit"\nrtt = "40ms"\nbuffer = "1bdp"\nqdisc = "fifo"\n'
    '[[flow]]\ncc = "cubic"\ndirection = "up"\n'
)


@pytest.mark.parametrize(
    ("right", "written", "cure"),
    [
        ("20mbit", "20 megabit", "as a rate it is 20mbit"),
        ("20mbit", "1Gibit", "a Gibit is 1073741824bit"),
        ("20mbit", "300/20", "these are two rates"),
        ("40ms", "400\N{GREEK SMALL LETTER MU}s", "as a time it is 400us"),
        ("5s", "1m", "as a time it is 1min"),
        ("5s", "0:30", "as a time it is 30s"),
        ("5s", "1h", "an hour is 60min"),
        ("1bdp", "64k", "write 64KB"),
        ("1bdp", "2xBDP", "write 2bdp"),
        ("1bdp", "64m", "write 64MB"),
        ('"20mbit"', "20mbit", 'text has quotes: rate = "20mbit"'),
        ('"20mbit"', "\N{LEFT DOUBLE QUOTATION MARK}20mbit\N{RIGHT DOUBLE QUOTATION MARK}",
         "write straight quotes"),
        ("rate =", "rate:", "write key = value, with an equals sign"),
        ("rate =", "bandwidth =", "path.bandwidth: unknown key; write rate"),
        ("rate =", "Rate =", "path.Rate: unknown key; did you mean rate?"),
        ("rtt =", "delay =", "path.delay: unknown key; write rtt"),
        ("cc =", "congestion_control =", "flow.0.congestion_control: unknown key; write cc"),
        ("cc =", "count = 2\nparallel = 4\ncc =", "flow.0.parallel: unknown key; write count"),
        ("cc =", 'duration = "3s"\ncc =', "flow.0.duration: unknown key; write stop"),
        ("[[flow]]", "[flow]", "write [[flow]], in double brackets"),
        ("[path]", "[[path]]", "write [path], in single brackets"),
        ("[[flow]]", "[[flows]]", "flows: unknown key; write [[flow]]"),
        ('"fifo"', '"droptail"', "did you mean 'fifo'?"),
        ('"up"', '"download"', "did you mean 'down'?"),
        ("cubic", "vegas", "kernel:vegas, with --engine vm"),
        ("cubic", "tcp_bbr", "did you mean"),
        ("duration", 'engine = "vm"\nduration', "engine: unknown key; say --engine"),
        (GOOD, '{"duration": "5s"}', "this is JSON"),
    ],
)  # fmt: skip
def test_a_word_of_another_tool_is_answered_with_the_one_here(
    right: str, written: str, cure: str, tmp_path: Path
) -> None:
    assert right in GOOD
    path = tmp_path / "scenario.toml"
    path.write_text(GOOD.replace(right, written, 1), encoding="utf-8")
    with pytest.raises(UserError) as refused:
        load_scenario(path)
    assert cure in str(refused.value)


def test_a_file_in_utf_16_is_named_as_that(tmp_path: Path) -> None:
    path = tmp_path / "scenario.toml"
    for encoding in ("utf-16", "utf-16-le", "utf-16-be"):
        path.write_text(GOOD, encoding=encoding)
        with pytest.raises(UserError, match="is in UTF-16; save it as UTF-8"):
            load_scenario(path)


@pytest.mark.parametrize(
    "line", ["x = 010", "x = .5", "x = 1 y = 2", 'duration = "6s"', "x = "], ids=repr
)
def test_what_is_no_text_gets_no_quotes(line: str, tmp_path: Path) -> None:
    file = tmp_path / "scenario.toml"
    file.write_text(f"{GOOD.partition(chr(10))[0]}\n{line}\n")
    with pytest.raises(UserError) as raised:
        load_scenario(file)
    assert "text has quotes" not in str(raised.value)


def test_a_comment_does_not_make_another_tools_file_of_a_scenario(tmp_path: Path) -> None:
    file = tmp_path / "scenario.toml"
    for words in ("Summary of the runs", "Responsiveness: how fast", "Connecting to host a"):
        file.write_text(f"# {words}\n{GOOD}")
        assert load_scenario(file).path is not None
