"""No file of version 4 of the contract decides otherwise today.

`tests/data/contract_4` has files as they were before version 5, with the digests of their
decisions that the headers of version 4 gave.
"""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from external_files import run
from fullpipe.base.installed import shipped

TESTS = Path(__file__).parents[1]
FILES = TESTS / "data" / "contract_4"
DIGESTS = {
    "aimd": "b2443237352205a8",
    "bbr1": "f46a971af0db6318",
    "copa": "e772f213ff8a4f4d",
    "cubic": "39a530e32f2cb47a",
    "dctcp": "522e2d86f717ac3a",
    "vegas": "d01050e7d4aad361",
}


def test_every_file_has_a_digest() -> None:
    assert {path.stem for path in FILES.glob("*.h")} == {*DIGESTS}


@pytest.mark.parametrize("name", DIGESTS)
def test_a_file_of_version_4_decides_as_it_did_with_the_headers_of_version_4(
    name: str, tmp_path: Path
) -> None:
    include, program = shipped("cc"), tmp_path / "calls"
    build = [
        os.environ.get("CC", "cc"), "-std=c11", "-w", "-O1", f"-I{FILES}", f"-I{include}",
        f"-DCC_NAME={name}", f'-DCC_SOURCE="{FILES / name}.h"', '-DCC_TITLE=""',
        str(include / "external.c"), str(TESTS / "cc" / "contract_4.c"), "-o", str(program),
    ]  # fmt: skip
    subprocess.run(build, check=True)
    said = subprocess.run([program], capture_output=True, text=True, check=True).stdout
    assert said.strip() == DIGESTS[name]


@pytest.mark.parametrize("name", ["aimd", "copa", "vegas"])
def test_a_file_of_version_4_leaves_the_recording_of_todays_form(name: str) -> None:
    old, new = run(str(FILES / f"{name}.h")), run(str(shipped("examples") / "cc" / f"{name}.h"))
    for table in ("flows", "flow_samples", "queue_samples", "events"):
        assert old[table] == new[table], table
