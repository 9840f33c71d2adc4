"""Marks are right: a test without `vm` or `browser` cannot start what they stand for."""

from __future__ import annotations

from pathlib import Path

import pytest

from program_marks import ProgramMarks

pytest_plugins = ["pytester"]

_TESTS = """
import shutil, subprocess, pytest

def run(*words):
    return subprocess.run(["{program}", *words], capture_output=True, text=True)

def test_one_without_the_mark():
    run("-display", "none", "-machine", "none", "-S")

@pytest.mark.vm
def test_one_with_the_mark():
    assert shutil.which("{program}") == "{path}"

def test_a_question_for_the_version():
    assert run("--version").returncode == 0

@pytest.fixture(scope="module")
def machine():
    run("-display", "none", "-machine", "none", "-S")

@pytest.mark.browser
def test_one_whose_fixture_starts_it(machine):
    pass
"""
_PROGRAM = "qemu-system-x86_64"


def test_a_test_that_starts_a_machine_without_its_mark_fails(
    pytester: pytest.Pytester, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With a program in the place of QEMU."""
    programs = tmp_path / "programs"
    programs.mkdir()
    (programs / _PROGRAM).write_text("#!/bin/sh\nexit 0\n")
    (programs / _PROGRAM).chmod(0o755)
    monkeypatch.setenv("PATH", str(programs), prepend=":")
    (tmp_path / "marks").mkdir()
    pytester.makeini("[pytest]\nmarkers =\n  vm: a machine\n  browser: a browser\n")
    pytester.makepyfile(_TESTS.format(program=_PROGRAM, path=programs / _PROGRAM))
    done = pytester.runpytest_inprocess(plugins=[ProgramMarks(tmp_path / "marks")])
    done.assert_outcomes(passed=4, errors=2)
    done.stdout.fnmatch_lines(["*a test without the mark vm starts *"])
