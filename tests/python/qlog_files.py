"""What judges a qlog file: the data model of another project (quiche's crate `qlog`), and a JSON
schema from the drafts' CDDL (tests/qlog/schema.json)."""

from __future__ import annotations

import functools
import json
import re
import subprocess
from pathlib import Path
from typing import Any

from jsonschema import Draft202012Validator

from helpers import RUN_AS_TESTS

ROOT = Path(__file__).parents[2]
_SCHEMA = json.loads((ROOT / "tests/qlog/schema.json").read_text())


def records(file: Path) -> list[dict[str, Any]]:
    """The header and the events. Each begins with RFC 7464's separator and ends with a line
    feed."""
    texts = file.read_text().split("\x1e")
    assert texts[0] == ""
    assert all(text.endswith("\n") for text in texts[1:])
    return [json.loads(text) for text in texts[1:]]


def events_of_the_model(file: Path) -> dict[str, int]:
    """How many events of each name the other project's reader finds; it must know them all."""
    done = subprocess.run(
        [*RUN_AS_TESTS, "fullpipe-qlog-check", "--", str(file)],
        cwd=ROOT, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    found = re.findall(r"^QuicEventType\((\w+)\) (\d+)$", done.stdout, re.MULTILINE)
    return {name: int(count) for name, count in found}


@functools.cache
def _validator(definition: str) -> Draft202012Validator:
    return Draft202012Validator({**_SCHEMA, "$ref": f"#/$defs/{definition}"})


def check_by_the_schema(file: Path) -> None:
    """Raises jsonschema's ValidationError where a record is not as the schema says."""
    header, *events = records(file)
    _validator("header").validate(header)
    for event in events:
        assert event["time"] >= 0
        assert event["name"] in _SCHEMA["$defs"]["data"]
        _validator(f"data/{event['name']}").validate(event["data"])
