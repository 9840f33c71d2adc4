"""The page on the environment, beside the code; and the command that shows and clears the cache."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from typer.testing import CliRunner

from fullpipe.cli import cache
from fullpipe.cli.app import app
from fullpipe.engines.vm import debian, kernels

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs/reference/environment.md").read_text(encoding="utf-8")
#: Set by one part of fullpipe for another; no user's.
INTERNAL = {"FULLPIPE_SHARED", "FULLPIPE_HOLD", "FULLPIPE_SHIPPED", "FULLPIPE_CC", "FULLPIPE_CC_"}


def test_every_variable_that_the_code_reads_is_on_the_page() -> None:
    sources = [*(ROOT / "python/fullpipe").rglob("*.py"), *(ROOT / "crates").rglob("src/**/*.rs")]
    read = {
        name
        for path in sources
        for name in re.findall(r"\"(FULLPIPE_[A-Z_]+)\"", path.read_text(encoding="utf-8"))
    }
    assert read >= {debian.MIRROR_VARIABLE, "FULLPIPE_TOKEN"}
    listed = set(re.findall(r"^\| `(FULLPIPE_[A-Z_]+)`", PAGE, re.MULTILINE))
    assert read - INTERNAL == listed


def test_the_page_lists_every_kernel_that_is_pinned() -> None:
    for row in debian.table()["kernel"]:
        assert re.search(rf"\b{re.escape(row['version'])}\b", PAGE), row["version"]
    for name in kernels.VERSIONS:
        pinned = kernels.pinned(name)
        assert pinned is not None
        assert re.search(
            rf"^\| `{re.escape(name)}`.* \| {re.escape(pinned.version)} \|", PAGE, re.M
        )


def test_every_folder_of_the_cache_is_named() -> None:
    text = "\n".join(
        path.read_text(encoding="utf-8") for path in (ROOT / "python/fullpipe").rglob("*.py")
    )
    folders = set(re.findall(r"user_cache\(\) / \"([a-z-]+)\"", text))
    assert folders >= {"kernels", "snapshots", "cc"}
    assert folders <= set(cache.PARTS)


def test_the_cache_is_listed_and_cleared_by_part(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    for name in ("cc", "kernels", "unknown"):
        (tmp_path / "fullpipe" / name).mkdir(parents=True)
        (tmp_path / "fullpipe" / name / "file").write_bytes(b"x" * 2_000_000)
    run = CliRunner().invoke
    listed = run(app, ["cache"])
    assert listed.exit_code == 0
    assert re.search(r"^cc +2\.0 ", listed.output, re.MULTILINE)
    assert run(app, ["cache", "--clear", "cc"]).exit_code == 0
    assert sorted(path.name for path in (tmp_path / "fullpipe").iterdir()) == ["kernels", "unknown"]
    refused = run(app, ["cache", "--clear", "../kernels"])
    assert "must be all or one of kernels, unknown" in str(refused.exception)
    assert run(app, ["cache", "--clear", "all"]).exit_code == 0
    assert list((tmp_path / "fullpipe").iterdir()) == []
