"""Questions to the agent about the running kernel, and its answers."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from fullpipe.base.errors import UserError
from fullpipe.engines import assets
from fullpipe.engines.child import die_with_parent

_PREFIX = "fullpipe-agent: "


def ask(verb: str, question: object) -> Any:
    """The agent's answer. Raises UserError with its sentence where it refuses."""
    with _agent(verb) as process:
        answer, words = process.communicate(json.dumps(question))
        _check(process, words)
    return json.loads(answer)


@contextmanager
def lasting(verb: str, question: object) -> Iterator[None]:
    """Keeps the agent's command running for as long as the context. Raises UserError with the
    agent's message if it refuses or fails."""
    with _agent(verb) as process:
        assert process.stdin and process.stdout and process.stderr
        try:
            process.stdin.write(json.dumps(question) + "\n")
            process.stdin.flush()
        except BrokenPipeError:
            pass  # stderr has the reason
        if not process.stdout.readline():
            _check(process, process.stderr.read())
        try:
            yield
        finally:
            words = process.communicate()[1]
        _check(process, words)


@contextmanager
def _agent(verb: str) -> Iterator[subprocess.Popen[str]]:
    # A separate session: an interrupt from the terminal must reach only this process.
    with subprocess.Popen(
        [str(assets.agent()), "kernel", verb],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=die_with_parent,
        start_new_session=True,
    ) as process:
        yield process


def _check(process: subprocess.Popen[str], words: str) -> None:
    if process.wait() != 0:
        raise UserError(words.strip().removeprefix(_PREFIX) or f"agent: {process.returncode}")
