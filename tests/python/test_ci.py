"""`fullpipe ci` over a git repository, and the action that runs it."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree

import pytest

from fullpipe import cli
from fullpipe.authoring.new import write_new
from fullpipe.base.errors import UserError
from fullpipe.base.installed import checkout
from fullpipe.scorecard.git_files import check_out, commit_of, usual_baseline

_ITEM = "rfc9743-5.1.3"


def _git(folder: Path, *words: str) -> str:
    settings = ("-c", "user.name=a", "-c", "user.email=a@example.org", "-c", "commit.gpgsign=false")
    done = subprocess.run(
        ["git", *settings, *words], cwd=folder, check=True, capture_output=True, text=True
    )
    return done.stdout.strip()


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """A repository whose main branch holds an algorithm in a folder, with a branch checked out."""
    folder = tmp_path / "repository" / "cc"
    folder.mkdir(parents=True)
    _git(folder.parent, "init", "--quiet", "--initial-branch=main")
    place = write_new("mine", "cubic", folder)
    _git(folder.parent, "add", "-A")
    _git(folder.parent, "commit", "--quiet", "-m", "one")
    _git(folder.parent, "checkout", "--quiet", "-b", "change")
    _git(folder.parent, "commit", "--quiet", "--allow-empty", "-m", "something else")
    return place


def _weaken(file: Path) -> None:
    """Changes the multiplicative decrease from 0.7 to 0.3."""
    text = file.read_text()
    assert text.count("P(beta, 717,") == 1
    file.write_text(text.replace("P(beta, 717,", "P(beta, 307,"))


def _ci(monkeypatch: pytest.MonkeyPatch, folder: Path, *words: str) -> int:
    monkeypatch.chdir(folder)
    monkeypatch.setattr(sys, "argv", ["fullpipe", "ci", *words])
    with pytest.raises(SystemExit) as ended:
        cli.main()
    return int(ended.value.code or 0)


def _options(tmp_path: Path, *others: str) -> list[str]:
    return ["--only", _ITEM, "--jobs", "2", "--store", str(tmp_path / "store"),
            "--out", str(tmp_path / "out"), *others]  # fmt: skip


@pytest.mark.slow
def test_a_worsening_since_the_merge_base_fails_and_all_outputs_say_so(
    file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    commit = _git(file.parent, "rev-parse", "main")
    _weaken(file)
    words = _options(tmp_path, "mine.h")
    assert _ci(monkeypatch, file.parent, *words) == 1
    printed = capsys.readouterr().out
    out = tmp_path / "out"
    document = json.loads((out / "scorecard.json").read_text())
    name = f"{_ITEM}.utilisation"
    assert name in document["comparison"]["failing"]
    assert document["subjects"] == ["mine", f"mine@{commit[:10]}"]
    (change,) = [one for one in document["comparison"]["changes"] if one["id"] == name]
    assert change["worse_low"] > 0 and change["seeds"] == [10, 10]
    for text in (printed, (out / "summary.md").read_text(), (out / "scorecard.html").read_text()):
        assert _ITEM in text and f"mine@{commit[:10]}" in text
    root = ElementTree.parse(out / "junit.xml").getroot()
    failing = len(document["comparison"]["failing"])
    assert len(root.findall("testsuite/testcase/failure")) == failing
    allow = tmp_path / "allow.toml"
    allow.write_text(f'[[allow]]\nitem = "{_ITEM}"\nreason = "wanted"\n')
    assert _ci(monkeypatch, file.parent, *words, "--allow", str(allow)) == 0
    assert _ci(monkeypatch, file.parent, *words, "--fail-if", f"{name} > 90%") == 0
    assert _ci(monkeypatch, file.parent, *words, "--fail-if", "item > 2%") == 1


@pytest.mark.slow
def test_an_unchanged_file_passes(
    file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert _ci(monkeypatch, file.parent, *_options(tmp_path, "mine.h")) == 0
    assert "0 worse, 0 better, 2 not changed" in capsys.readouterr().out


def test_a_new_file_passes_without_a_run(
    file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    other = write_new("other", None, file.parent)
    assert _ci(monkeypatch, file.parent, *_options(tmp_path, other.name)) == 0
    assert "no earlier version" in capsys.readouterr().out
    words = _options(tmp_path, other.name, "--baseline", "HEAD")
    assert _ci(monkeypatch, file.parent, *words) == 0
    assert "no earlier version" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["nothing.h"], "nothing.h"),
        (["cubic"], "file"),
        (["mine.h", "--baseline", "v99"], "v99"),
        (["mine.h", "--baseline", "./lost.h"], "lost.h"),
        (["mine.h", "--baseline", "--help"], "--help"),
        (["mine.h", "--seeds", "2"], "seeds"),
        (["mine.h", "--fail-if", "nothing > 1%"], "nothing"),
        (["mine.h", "--allow", "none.toml"], "none.toml"),
    ],
)
def test_what_cannot_be_compared_is_the_users_error(
    file: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    words: list[str],
    said: str,
) -> None:
    assert _ci(monkeypatch, file.parent, *_options(tmp_path), *words) == 2
    error = capsys.readouterr().err
    assert said in error and "Traceback" not in error


def test_a_commit_gives_the_file_with_what_it_includes(file: Path, tmp_path: Path) -> None:
    (file.parent / "parts").mkdir()
    (file.parent / "parts" / "part.h").write_text("/* first */\n")
    (file.parent / "link.h").symlink_to("/etc/passwd")
    _git(file.parent, "add", "-A")
    _git(file.parent, "commit", "--quiet", "-m", "parts")
    kept = file.read_text()
    commit = commit_of(file, "HEAD")
    _weaken(file)
    (file.parent / "parts" / "part.h").write_text("/* second */\n")
    found = check_out(file, commit, tmp_path / "old")
    assert found.read_text() == kept
    assert (found.parent / "parts" / "part.h").read_text() == "/* first */\n"
    assert not (found.parent / "link.h").exists()
    assert _git(file.parent, "status", "--porcelain").splitlines()[0].endswith("mine.h")


def test_on_the_main_branch_the_baseline_is_the_commit_before(file: Path) -> None:
    _git(file.parent, "checkout", "--quiet", "main")
    assert usual_baseline(file) is None  # there is one commit only
    first = _git(file.parent, "rev-parse", "HEAD")
    _git(file.parent, "commit", "--quiet", "--allow-empty", "-m", "two")
    assert usual_baseline(file) == first
    _weaken(file)
    assert usual_baseline(file) == _git(file.parent, "rev-parse", "HEAD")


def test_a_file_outside_of_git_needs_a_baseline(tmp_path: Path) -> None:
    place = write_new("mine", None, tmp_path)
    with pytest.raises(UserError, match="git"):
        usual_baseline(place)


def test_the_action_is_one_that_github_reads() -> None:
    top = checkout()
    assert top is not None
    checked = [sys.executable, "-m", "check_jsonschema", "--builtin-schema",
               "vendor.github-actions", str(top / "action.yml")]  # fmt: skip
    done = subprocess.run(checked, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_actions_scripts_hold_no_text_of_a_pull_request() -> None:
    """An expression in a script would be run as a part of it (GitHub's guide to hardening)."""
    top = checkout()
    assert top is not None
    lines = (top / "action.yml").read_text(encoding="utf-8").splitlines()
    script = False
    for line in lines:
        indent = len(line) - len(line.lstrip())
        if line.strip().startswith("run:"):
            script, begin = True, indent
        elif script and line.strip() and indent <= begin:
            script = False
        assert not (script and "${{" in line), line
