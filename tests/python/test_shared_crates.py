"""The Python module, the static agent and Rust's tests are made of the same compiled crates. Cargo
compiles a crate again where a feature or the profile of it, or of anything below it, differs."""

import json
import re
import subprocess
import tomllib
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
MAKEFILE = (ROOT / "Makefile").read_text()


def others(*selection: str) -> set[str]:
    """Crates of others in what is selected, with their versions and features."""
    command = [
        "cargo", "tree", "--locked", "--no-dedupe", "--prefix", "none", "--format", "{p} [{f}]",
        *selection,
    ]  # fmt: skip
    tree = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True).stdout
    return {crate for crate in tree.splitlines() if crate and not crate.startswith("fullpipe-")}


def profiles_of_the_tests() -> dict[str, dict[str, Any]]:
    """What Rust's tests change of the release profile, for each crate."""
    changes = tomllib.loads((ROOT / ".cargo/tests.toml").read_text())
    assert changes.keys() == {"profile"} and changes["profile"].keys() == {"release"}
    assert changes["profile"]["release"].keys() == {"package"}
    of_crates: dict[str, dict[str, Any]] = changes["profile"]["release"]["package"]
    return of_crates


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


def test_rusts_tests_are_made_of_the_crates_of_others_that_module_and_agent_were_made_of() -> None:
    selection = re.search(r"^RUST_TESTS :=.*?(--workspace .*?) \\$", MAKEFILE, re.MULTILINE)
    assert selection is not None
    built = others("--edges", "normal", "--package", "fullpipe-py")
    built |= others("--edges", "normal", "--package", "fullpipe-agent")
    tested = others("--edges", "normal,dev", *selection[1].split())
    assert any(crate.startswith("pyo3 ") for crate in built)
    assert built <= tested
    # Only crates that neither of them has may be compiled with another profile.
    changed = {name for name in profiles_of_the_tests() if not name.startswith("fullpipe-")}
    assert changed <= {crate.split()[0] for crate in tested - built}


def test_rusts_tests_detect_overflows_in_every_crate_of_fullpipe() -> None:
    command = ["cargo", "metadata", "--locked", "--no-deps", "--format-version", "1"]
    metadata = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True).stdout
    profiles = profiles_of_the_tests()
    for package in json.loads(metadata)["packages"]:
        assert profiles[package["name"]]["overflow-checks"] is True
        assert profiles[package["name"]]["debug-assertions"] is True
        assert profiles[package["name"]]["opt-level"] < 2
