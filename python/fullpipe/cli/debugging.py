"""How a debugger runs a command whose algorithms come from files. Must never start one."""

from __future__ import annotations

import re
import shlex
import shutil
import sys
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from fullpipe.base.errors import UserError
from fullpipe.congestion import userfiles
from fullpipe.plan.plan import Plan
from fullpipe.plan.senders import cc_choices


def how_gdb_runs_it(plan: Plan, words: Sequence[str]) -> str:
    """The command of gdb for a command of this program (`sys.argv`), with a breakpoint in each
    algorithm's on_ack. It records beside this command's --out and can be repeated. Raises UserError
    if no flow's algorithm is a file of C."""
    identities = {choice["algorithm"] for _, choice in cc_choices(plan)}
    names = sorted(
        userfiles.source_of(identity).name
        for identity in identities
        if userfiles.is_external(identity) and not userfiles.is_class(identity)
    )
    if not names:
        raise UserError(
            "--debug-cc: no flow has a file of C as its congestion control; a class in Python runs "
            "under pdb"
        )
    breaks = "".join(f" -ex 'break {name}_on_ack'" for name in names)
    program = shutil.which(words[0]) or words[0]
    command = shlex.join([sys.executable, program, *_elsewhere(words[1:])])
    return f"gdb -q -ex 'set breakpoint pending on'{breaks} -ex run --args {command}"


def _elsewhere(words: Sequence[str]) -> list[str]:
    """The words with --force, and with another folder behind --out: gdb's run may be killed, and
    then the recording that was there is not put back."""
    changed = list(words)
    for index, word in enumerate(changed):
        if word.startswith("--out="):
            changed[index] = f"{word.rstrip('/')}-gdb"
        elif word in ("--out", "-o") and index + 1 < len(changed):
            changed[index + 1] = f"{changed[index + 1].rstrip('/')}-gdb"
    return changed if "--force" in changed else [*changed, "--force"]


def is_debugged() -> bool:
    """Whether a debugger runs this process."""
    with suppress(OSError):
        status = Path("/proc/self/status").read_text(encoding="utf-8")
        return re.search(r"^TracerPid:\s*0$", status, re.M) is None
    return False
