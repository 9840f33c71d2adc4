"""What a hosting service and a citation manager read, held against the schemas that they publish
(copies come with check-jsonschema). It must not know how the files are made."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
from ruamel.yaml import YAML

ROOT = Path(__file__).parents[2]
GITHUB = ROOT / ".github"
WORKFLOWS = sorted((GITHUB / "workflows").glob("*.yml"))
FORMS = sorted(
    set((GITHUB / "ISSUE_TEMPLATE").glob("*.yml")) - {GITHUB / "ISSUE_TEMPLATE/config.yml"}
)
#: Where only the owner knows what belongs.
MARK = "FILL-IN"


@pytest.mark.parametrize(
    ("schema", "files"),
    [
        ("vendor.github-workflows", WORKFLOWS),
        ("custom.github-workflows-require-timeout", WORKFLOWS),
        ("vendor.github-issue-forms", FORMS),
        ("vendor.github-issue-config", [GITHUB / "ISSUE_TEMPLATE/config.yml"]),
        ("vendor.dependabot", [GITHUB / "dependabot.yml"]),
        ("vendor.citation-file-format", [ROOT / "CITATION.cff"]),
    ],
)
def test_the_file_is_one_that_its_reader_accepts(schema: str, files: list[Path]) -> None:
    assert files
    command = [
        sys.executable,
        "-m",
        "check_jsonschema",
        "--builtin-schema",
        schema,
        *map(str, files),
    ]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize("file", WORKFLOWS, ids=lambda file: file.stem)
def test_a_workflow_runs_what_the_checkout_has(file: Path) -> None:
    text = file.read_text(encoding="utf-8")
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.M))
    for target in re.findall(r"\bmake ([a-z][a-z-]*)", _commands(file)):
        assert target in targets, target
    for script in re.findall(
        r"(?<![\w/])(?:\./)?(scripts/\w+\.\w+|demo|test)\b(?=[\s\n])", _commands(file)
    ):
        assert (ROOT / script).exists(), script
    for called in re.findall(r"uses: \./(\S+)", text):
        assert (ROOT / called).is_file(), called


@pytest.mark.parametrize("file", [*WORKFLOWS, ROOT / "action.yml"], ids=lambda file: file.stem)
def test_actions_of_others_are_pinned_to_a_commit(file: Path) -> None:
    """A tag can be moved to other code (GitHub's guide to hardening). The index's own action is
    used by its branch, as its manual says."""
    for used in re.findall(r"uses: ([^.\s]\S*)", file.read_text(encoding="utf-8")):
        name, _, place = used.partition("@")
        if name == "pypa/gh-action-pypi-publish":
            assert place == "release/v1"
        else:
            assert re.fullmatch(r"[0-9a-f]{40}", place), used


def test_the_citation_names_the_version_that_is_built() -> None:
    built = tomllib.loads((ROOT / "Cargo.toml").read_text(encoding="utf-8"))["workspace"]["package"]
    cited = YAML(typ="safe").load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))
    assert cited["version"] == built["version"]


def test_contributing_lists_every_place_that_the_owner_fills_in() -> None:
    found = subprocess.run(
        ["git", "-C", str(ROOT), "grep", "--name-only", MARK],
        capture_output=True,
        text=True,
        check=True,
    ).stdout.split()
    places = {
        name
        for name in found
        if name not in ("CONTRIBUTING.md", "tests/python/test_release_files.py")
    }
    text = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    section = text[text.index("## Places to fill in") :].split("\n## ", 2)[0]
    assert set(re.findall(r"^\| `([^`]+)` \|", section, re.M)) == places


def _commands(file: Path) -> str:
    """What a workflow's steps run, and what its matrix brings into them."""
    jobs = YAML(typ="safe").load(file.read_text(encoding="utf-8"))["jobs"].values()
    runs = [step["run"] for job in jobs for step in job.get("steps", ()) if "run" in step]
    rows = [
        row for job in jobs for row in job.get("strategy", {}).get("matrix", {}).get("include", ())
    ]
    return "\n".join([*runs, *(str(row["command"]) for row in rows if "command" in row), ""])


def test_the_page_of_the_package_index_has_whole_links(tmp_path: Path) -> None:
    """The index shows README.md where no file lies beside it."""
    for name in ("experiments", "flent_tests", "scorecard", "cc", "bpf", "module", "examples"):
        (tmp_path / name).mkdir()
    (tmp_path / "scripts").mkdir()
    script = tmp_path / "scripts/with_sources.sh"
    script.write_bytes((ROOT / "scripts/with_sources.sh").read_bytes())
    written = (ROOT / "README.md").read_text(encoding="utf-8")
    (tmp_path / "README.md").write_text(written, encoding="utf-8")

    def git(*words: str) -> str:
        identity = ("-c", "user.name=a", "-c", "user.email=a@a.example")
        command = ["git", *identity, *words]
        return subprocess.run(
            command, cwd=tmp_path, capture_output=True, text=True, check=True
        ).stdout.strip()

    git("init", "--quiet")
    git("add", "--all")
    git("commit", "--quiet", "--message", "all")
    built = subprocess.run(
        ["sh", str(script), "cat", "README.md"], capture_output=True, text=True, check=True,
        env={**os.environ, "GITHUB_SERVER_URL": "https://a.example", "GITHUB_REPOSITORY": "b/c"},
    ).stdout  # fmt: skip
    links = re.findall(r"(!?)\[[^]]*\]\(([^)]+)\)", written)
    assert len([link for _, link in links if "://" not in link]) > 5
    for image, link in links:
        kind = "raw" if image else "blob"
        whole = f"https://a.example/b/c/{kind}/{git('rev-parse', 'HEAD')}/{link}"
        assert f"]({link if '://' in link else whole})" in built
    assert (tmp_path / "README.md").read_text(encoding="utf-8") == written
