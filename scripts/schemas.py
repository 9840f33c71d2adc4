"""Writes schema/scenario.json and schema/sweep.json, by which editors complete and check files.

python scripts/schemas.py
"""

from __future__ import annotations

import json
from pathlib import Path

from fullpipe.scenario.reference import json_schema as of_scenarios
from fullpipe.sweep.schema import json_schema as of_sweeps

FOLDER = Path(__file__).parent.parent / "schema"


def texts() -> dict[str, str]:
    """The text of each file."""
    schemas = {"scenario.json": of_scenarios(), "sweep.json": of_sweeps()}
    return {
        name: json.dumps(schema, indent=1, ensure_ascii=False) + "\n"
        for name, schema in schemas.items()
    }


if __name__ == "__main__":
    FOLDER.mkdir(exist_ok=True)
    for name, text in texts().items():
        (FOLDER / name).write_text(text, encoding="utf-8")
