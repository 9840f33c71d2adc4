"""A test that starts a virtual machine or a browser has the mark that says so, since tiers of tests
are chosen by marks. Any other test finds programs that refuse in their place, and fails."""

from __future__ import annotations

import os
import shlex
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

#: What a test with the mark may start. (User Mode Linux is started by its path, and is not seen.)
_PROGRAMS = {"vm": ("qemu-system-x86_64",), "browser": ("chromium", "chromedriver")}
#: Says a version, as `fullpipe doctor` asks for one, and starts nothing.
_REFUSES = """#!/bin/sh
case "$1" in --version) exec {program} "$@" ;; esac
echo "a test without the mark {mark} starts $0" | tee -a {told} >&2
exit 1
"""


class ProgramMarks:
    """The plugin. `folder`: where its programs lie."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._told = folder / "told"
        for mark, names in _PROGRAMS.items():
            (folder / mark).mkdir()
            for name in names:
                if program := shutil.which(name):
                    words = {"program": program, "mark": mark, "told": self._told}
                    quoted = {word: shlex.quote(str(value)) for word, value in words.items()}
                    (folder / mark / name).write_text(_REFUSES.format(**quoted))
                    (folder / mark / name).chmod(0o755)

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Iterator[None]:
        lacking = [str(self._folder / mark) for mark in _PROGRAMS
                   if item.get_closest_marker(mark) is None]  # fmt: skip
        before = os.environ["PATH"]
        os.environ["PATH"] = os.pathsep.join([*lacking, before])
        try:
            return (yield)
        finally:
            os.environ["PATH"] = before

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_teardown(self) -> Iterator[None]:
        result = yield
        if self._told.exists():
            told = self._told.read_text()
            self._told.unlink()
            pytest.fail(told, pytrace=False)
        return result
