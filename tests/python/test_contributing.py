"""What CONTRIBUTING.md says of a new algorithm is all that it takes."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.mark.slow
def test_a_header_and_its_lines_in_the_registry_make_a_kernel_algorithm(tmp_path: Path) -> None:
    for folder in ("cc", "bpf"):
        shutil.copytree(ROOT / folder, tmp_path / folder)
    header = (tmp_path / "cc" / "reno.h").read_text().replace("reno", "mine")
    (tmp_path / "cc" / "mine.h").write_text(header.replace("RENO", "MINE"))
    registry = tmp_path / "cc" / "registry.h"
    text = registry.read_text().replace('#include "reno.h"', '#include "reno.h"\n#include "mine.h"')
    text = re.sub(
        r"^(\tALGORITHM\(reno,)", r'\tALGORITHM(mine, "Mine", "here") \\\n\1', text, flags=re.M
    )
    text = re.sub(
        r'^(\tSET\("reno",)', r'\tSET("mine", mine, "fp_mine", "Mine", ) \\\n\1', text, flags=re.M
    )
    registry.write_text(text)
    subprocess.run([tmp_path / "bpf" / "build.sh", tmp_path / "out"], check=True)
    assert (tmp_path / "out" / "mine.bpf.o").stat().st_size > 10_000
