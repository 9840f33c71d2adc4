"""TOML from outside: what is nested too deeply is refused before anything is built of it."""

from __future__ import annotations

import tomllib
import tracemalloc

import pytest

from fullpipe.base.toml import parse_toml

DEEP = {
    "a dotted key": ".".join(["a"] * 16_000) + " = 1",
    "a table": "[" + ".".join(["a"] * 16_000) + "]",
    "an array of tables": "[[" + ".".join(["a"] * 16_000) + "]]",
    "quoted parts": " . ".join(['"a.b"'] * 16_000) + " = 1",
    "in an inline table": "x = { " + ".".join(["a"] * 16_000) + " = 1 }",
    "tables in tables": "x = " + "{a = " * 40 + "1" + "}" * 40,
    "arrays in arrays": "x = " + "[" * 40 + "]" * 40,
}


@pytest.mark.parametrize("kind", DEEP)
def test_deep_tables_are_refused_without_memory(kind: str) -> None:
    tracemalloc.start()
    try:
        with pytest.raises(tomllib.TOMLDecodeError, match="nested"):
            parse_toml(DEEP[kind])
        assert tracemalloc.get_traced_memory()[1] < 16 * 2**20
    finally:
        tracemalloc.stop()


def test_what_only_looks_deep_is_read() -> None:
    words = ".".join(["a"] * 100)
    text = f"# {words} = 1\ntitle = '{words} = 1'\na.b.c.d.e = 1.5\n[path]\nrate = '10mbit'\n"
    assert parse_toml(text)["title"] == f"{words} = 1"
    assert parse_toml('lines = """\n' + words + '\n"""')["lines"].startswith("a.a")
