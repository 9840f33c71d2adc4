"""One question to the agent about the running kernel, and its answer."""

from __future__ import annotations

import json
import subprocess
from typing import Any

from fullpipe.engines import assets
from fullpipe.engines.child import die_with_parent
from fullpipe.errors import UserError

_PREFIX = "fullpipe-agent: "


def ask(verb: str, question: object) -> Any:
    """The agent's answer. Raises UserError with its sentence where it refuses."""
    with subprocess.Popen(
        [str(assets.agent()), "kernel", verb],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=die_with_parent,
    ) as process:
        answer, words = process.communicate(json.dumps(question))
    if process.returncode != 0:
        raise UserError(words.strip().removeprefix(_PREFIX) or f"agent: {process.returncode}")
    return json.loads(answer)
