"""The GitHub action's two scripts (action.yml): which release it installs, and which comment it
edits. A program of the name `gh` stands in for GitHub's; it keeps comments in a file."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]

GH = """#!{python}
import json, os, pathlib, re, sys
store = pathlib.Path(os.environ["COMMENTS"])
comments = json.loads(store.read_text())
words = sys.argv[1:]
if words[:2] == ["pr", "view"]:
    rule = words[words.index("--jq") + 1]
    marker = re.search(r'startswith\\("([^"]*)"\\)', rule)[1]
    chosen = [comment["id"] for comment in comments
              if comment["body"].startswith(marker)
              and (comment["viewerDidAuthor"] or "viewerDidAuthor" not in rule)]
    print(chosen[-1] if chosen else "")
elif words[:2] == ["pr", "comment"]:
    body = pathlib.Path(words[words.index("--body-file") + 1]).read_text()
    comments.append({{"id": f"C{{len(comments)}}", "viewerDidAuthor": True, "body": body}})
elif words[:2] == ["api", "graphql"]:
    given = dict(word.split("=", 1) for word in words if re.match("(id|body)=", word))
    comment = next(comment for comment in comments if comment["id"] == given["id"])
    comment["body"] = pathlib.Path(given["body"].removeprefix("@")).read_text()
else:
    sys.exit(f"gh: {{words}}")
store.write_text(json.dumps(comments))
"""


class PullRequest:
    """A pull request with its comments, and the action's script that comments on it."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        (folder / "bin").mkdir()
        gh = folder / "bin" / "gh"
        gh.write_text(GH.format(python=sys.executable))
        gh.chmod(0o755)
        self._store = folder / "comments.json"
        self._store.write_text("[]")

    def somebody_comments(self, body: str, account_is_ours: bool) -> None:
        self._write([*self._read(), {"id": f"X{len(self._read())}", "body": body,
                                     "viewerDidAuthor": account_is_ours}])  # fmt: skip

    def action_says(self, text: str, file: str = "cc/mine.h") -> None:
        said = self._folder / "summary.md"
        said.write_text(text)
        variables = {"PATH": f"{self._folder / 'bin'}:{os.environ['PATH']}",
                     "COMMENTS": str(self._store)}  # fmt: skip
        subprocess.run(
            [ROOT / "scripts/action_comment.sh", "https://example.org/pull/1", file, said],
            check=True, env={**os.environ, **variables},
        )  # fmt: skip

    @property
    def bodies(self) -> list[str]:
        return [comment["body"] for comment in self._read()]

    def _read(self) -> list[dict[str, Any]]:
        read: list[dict[str, Any]] = json.loads(self._store.read_text())
        return read

    def _write(self, comments: list[dict[str, Any]]) -> None:
        self._store.write_text(json.dumps(comments))


@pytest.fixture
def pull_request(tmp_path: Path) -> PullRequest:
    return PullRequest(tmp_path)


def test_a_later_run_edits_the_comment_of_the_same_file(pull_request: PullRequest) -> None:
    pull_request.action_says("worse by 7 %")
    pull_request.action_says("not worse")
    (body,) = pull_request.bodies
    assert body.endswith("\nnot worse") and "7 %" not in body


def test_a_comment_that_another_action_made_with_the_same_account_stays(
    pull_request: PullRequest,
) -> None:
    pull_request.action_says("worse by 7 %")
    pull_request.somebody_comments("coverage 93 %", account_is_ours=True)
    pull_request.action_says("not worse")
    first, second = pull_request.bodies
    assert first.endswith("\nnot worse") and second == "coverage 93 %"


def test_two_files_of_a_pull_request_have_a_comment_each(pull_request: PullRequest) -> None:
    pull_request.action_says("first", 'cc/mine".h')
    pull_request.action_says("second", "cc/other.h")
    pull_request.action_says("first again", 'cc/mine".h')
    assert [body.partition("\n")[2] for body in pull_request.bodies] == ["first again", "second"]


def test_a_stranger_who_copies_the_marker_gets_no_text_of_ours(pull_request: PullRequest) -> None:
    pull_request.action_says("worse by 7 %")
    (ours,) = pull_request.bodies
    pull_request.somebody_comments(ours.replace("worse by 7 %", "hello"), account_is_ours=False)
    pull_request.action_says("not worse")
    first, second = pull_request.bodies
    assert first.endswith("\nnot worse") and second.endswith("\nhello")


@pytest.mark.parametrize(
    ("version", "installed"), [("1.2.0", "fullpipe==1.2.0"), ("1.3.0-dev", None), ("", None)]
)
def test_the_action_installs_the_release_that_it_is_of(
    version: str, installed: str | None, tmp_path: Path
) -> None:
    """A commit of a release pins the program too; one between two releases has none to install."""
    (tmp_path / "scripts").mkdir()
    script = shutil.copy(ROOT / "scripts/action_release.sh", tmp_path / "scripts")
    line = f'version = "{version}"\n' if version else ""
    (tmp_path / "Cargo.toml").write_text(
        f'[workspace.package]\n{line}edition = "2021"\n[d]\nx = {{ version = "9.9.9" }}\n'
    )
    done = subprocess.run([script], capture_output=True, text=True, check=False)
    if installed is not None:
        assert (done.returncode, done.stdout) == (0, f"{installed}\n")
    else:
        assert done.returncode == 2 and done.stdout == ""
        assert "wheel" in done.stderr
