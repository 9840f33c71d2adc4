"""Untrusted text reaches a terminal as text alone, and not without end."""

from __future__ import annotations

import io
import unicodedata
from pathlib import Path
from typing import Any

import pytest
from rich.table import Table
from rich.text import Text

from fullpipe import cli
from fullpipe.base.printable import MAX_MESSAGE, message_of, printable
from fullpipe.cli import output

#: Sets a window's title, clears it, colours (ECMA-48), a C1 control, and reverses what follows.
EVIL = "\x1b]0;pwned\x07\x1b[2J\x1b[31m\x9b1mEVIL\u202e\u2066\x7f\r\x08\ud800"


def orders(text: str) -> set[str]:
    """Characters that are none to look at, but line ends and tabs."""
    return {one for one in text if one not in "\n\t"
            and unicodedata.category(one) in ("Cc", "Cf", "Cs", "Zl", "Zp")}  # fmt: skip


def test_every_character_that_is_seen_stays_and_no_other() -> None:
    everything = "".join(map(chr, range(0x110000)))
    shown = printable(everything, len(everything))
    assert len(shown) == len(everything) and not orders(shown)
    assert {ord(old) for old, new in zip(everything, shown, strict=True) if old != new} == {
        ord(one) for one in orders(everything)
    }


def test_a_message_has_a_bound_and_says_what_it_left_out() -> None:
    shown = printable("x" * 60_000_000)
    assert len(shown) < MAX_MESSAGE + 50 and "60000000 characters" in shown


def test_a_second_line_does_not_look_like_a_message() -> None:
    assert message_of(ValueError("a\nfullpipe: all is well")) == "a\n  fullpipe: all is well"


def _table() -> Table:
    table = output.text_table(EVIL, right=[EVIL])
    table.add_row(EVIL, Text(EVIL))
    return table


@pytest.mark.parametrize("what", [EVIL, Text(EVIL), _table()])
def test_consoles_print_no_sequences_of_others(what: Any) -> None:
    file = io.StringIO()
    output._Console(file=file, markup=False, highlight=False, emoji=False).print(what)
    assert "EVIL" in file.getvalue() and not orders(file.getvalue())


def test_consoles_keep_their_own_colours() -> None:
    file = io.StringIO()
    console = output._Console(file=file, force_terminal=True, color_system="standard")
    console.print("red", style="red")
    assert file.getvalue() == "\x1b[31mred\x1b[0m\n"


def _said(capsys: pytest.CaptureFixture[str], *words: str) -> str:
    with pytest.MonkeyPatch.context() as patch, pytest.raises(SystemExit):
        patch.setattr("sys.argv", ["fullpipe", *words])
        cli.main()
    said = capsys.readouterr()
    return said.out + said.err


def test_an_unknown_key_is_named_without_its_orders(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "s.toml"
    file.write_text(
        'duration = "1s"\npath = { rate = "10mbit", rtt = "20ms" }\n'
        '[[flow]]\ncc = "cubic"\n"\\u001b]0;EVIL\\u0007" = 1\n'
    )
    said = _said(capsys, "run", str(file))
    assert "EVIL" in said and not orders(said)
