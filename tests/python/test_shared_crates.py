"""The Python module and the static agent are made of the same compiled crates. Cargo compiles a
crate again where a feature of it, or of anything below it, differs."""

import re
import subprocess
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def crates_below(package: str, *features: str) -> dict[str, list[str]]:
    """For each crate of fullpipe in a package, all crates that it needs, with their features."""
    command = [
        "cargo", "tree", "--locked", "--no-dedupe", "--edges", "normal,build", "--prefix", "depth",
        "--format", " {p} [{f}]", "--package", package, *features,
    ]  # fmt: skip
    tree = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True).stdout
    rows = [
        (int(depth), crate) for depth, crate in (row.split(" ", 1) for row in tree.splitlines())
    ]
    below: dict[str, list[str]] = {}
    for first, (top, crate) in enumerate(rows):
        if crate.startswith("fullpipe-"):
            end = next((i for i, row in enumerate(rows) if i > first and row[0] <= top), len(rows))
            below[crate.split()[0]] = [f"{depth - top} {name}" for depth, name in rows[first:end]]
    return below


def test_the_agent_is_made_of_the_crates_that_the_module_was_made_of() -> None:
    script = (ROOT / "crates/fullpipe-agent/build-static.sh").read_text()
    features = re.findall(r"--features \S+", script)
    of_the_agent = crates_below("fullpipe-agent", *" ".join(features).split())
    of_the_module = crates_below("fullpipe-py")
    shared = of_the_module.keys() & of_the_agent.keys()
    assert {"fullpipe-cc", "fullpipe-net", "fullpipe-plan", "fullpipe-tcp"} <= shared
    for crate in shared:
        assert of_the_agent[crate] == of_the_module[crate]
    # What this test would see.
    without = crates_below("fullpipe-agent")
    assert without["fullpipe-plan"] != of_the_module["fullpipe-plan"]
