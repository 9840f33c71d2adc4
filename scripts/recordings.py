"""Writes docs/reference/recordings.md: the tables of a recording, from the comments of the
Rust rows that engines write, and the variables of the built-in algorithms.

python scripts/recordings.py
"""

from __future__ import annotations

import re
import textwrap
from pathlib import Path

from fullpipe import _native
from fullpipe.recording.recording import FORMAT_VERSION, OPTIONAL_TABLES, TABLES

ROOT = Path(__file__).parent.parent
PAGE = ROOT / "docs" / "reference" / "recordings.md"
ROWS = ROOT / "crates" / "fullpipe-plan" / "src" / "rows.rs"

_HEAD = f"""# Recordings

A run leaves a folder. `python scripts/recordings.py` writes this page.

| file | content |
|---|---|
| `scenario.toml` | the scenario as it was given |
| `metadata.json` | the plan, the random seed, every constant, the engine, the health of the run |
| `TABLE.parquet` | one file for each table below |
| `report.html` | the report, unless `--no-report` was given |

`fullpipe.load(FOLDER)` reads them in [Python](python.md); any Parquet reader does. Times count from
the start of the run. A column's name ends with its unit; a column without one counts, or is a name.
The format's version is {FORMAT_VERSION}; it is in `metadata.json`, and grows when a table loses or
renames a column.
"""
_VARIABLES = """
Behind these a recording has a column for every other variable that an algorithm of it declares
(`NAME_STATE` in [C](own-algorithms.md#the-file), `Variable` in [Python](python.md)): a real number,
null for flows of other algorithms and where it has no value. `variables` in `metadata.json` has
units and meanings. In the virtual machine the kernel's own have the fields behind
`inet_csk_ca(sk)`, named by the BTF or DWARF of kernel and module. The built-in algorithms declare:

| column | algorithm | meaning |
|---|---|---|
"""
_TYPES = {
    "U64": "integer",
    "OptU64": "integer or null",
    "F64": "real number",
    "Text": "text",
}
_ROW = re.compile(r"^row! \{\n(.*?)^\}", re.M | re.S)
_NAME = re.compile(r'(?P<docs>(?:    ///[^\n]*\n)+)    \w+, "(?P<name>\w+)", \{')
_COLUMN = re.compile(r"(?P<docs>(?:        ///[^\n]*\n)+)        (?P<name>\w+): (?P<type>\w+),")


def page() -> str:
    """The page as Markdown."""
    parts = [_HEAD]
    for row in _ROW.finditer(ROWS.read_text(encoding="utf-8")):
        table = _NAME.search(row[1])
        assert table is not None
        only = " Only where the run has them." if table["name"] in OPTIONAL_TABLES else ""
        about = textwrap.fill(_text(table["docs"]) + only, 100)
        parts.append(f"\n## `{table['name']}`\n\n{about}\n\n")
        parts.append("| column | type | meaning |\n|---|---|---|\n")
        for column in _COLUMN.finditer(row[1]):
            what = _text(column["docs"])
            parts.append(f"| `{column['name']}` | {_TYPES[column['type']]} | {what} |\n")
        if table["name"] == "cc_samples":
            parts.append(_variables())
    return "".join(parts)


def _variables() -> str:
    rows = [
        f"| `{one['column']}` | {algorithm['title']} | {one['meaning']} |\n"
        for algorithm in _native.cc.algorithms()
        for one in algorithm["variables"]
        if one["column"] not in TABLES["cc_samples"].names
    ]
    return f"{_VARIABLES}{''.join(rows)}"


def _text(docs: str) -> str:
    return " ".join(line.strip().removeprefix("///").strip() for line in docs.splitlines())


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
