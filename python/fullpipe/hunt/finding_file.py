"""Writes a hunt's finding: a scenario that reproduces it, and the rate trace that it needs."""

from __future__ import annotations

import os
import shlex
from pathlib import Path

import tomli_w

from fullpipe.base.errors import UserError
from fullpipe.congestion.userfiles import is_file_name
from fullpipe.hunt.hunting import Finding
from fullpipe.hunt.rates import text_of, words_of
from fullpipe.hunt.space import TRACE, Worst, document


def write_finding(
    out: Path, stem: str, cc: str, worst: Worst, finding: Finding, words: str
) -> Path:
    """Writes STEM.toml, and STEM.trace where the rate is not constant, into a folder; `words` begin
    the scenario. Raises UserError if that is not possible."""
    path, trace = out / f"{stem}.toml", None
    comment = [words]
    if finding.path[TRACE.name] != TRACE.off:
        trace = out / f"{stem}.trace"
        command = shlex.join(words_of(finding.path, trace.name))
        comment.append(f"The rate is what `{command}` writes.")
    name = None if trace is None else trace.name
    toml = tomli_w.dumps(document(_seen_from(out, cc), worst, finding.path, name))
    try:
        out.mkdir(parents=True, exist_ok=True)
        if trace is not None:
            trace.write_text(text_of(finding.path), encoding="ascii")
        lines = "".join(f"# {line}\n" for line in comment)
        path.write_text(lines + toml, encoding="utf-8")
    except OSError as error:
        raise UserError(f"--out {out}: cannot be written: {error.strerror}") from None
    return path


def _seen_from(folder: Path, cc: str) -> str:
    """A congestion control's name, relative to a scenario in that folder."""
    name, bracket, constants = cc.partition("[")
    if not is_file_name(name) or Path(name).is_absolute():
        return cc
    return os.path.relpath(name, folder) + bracket + constants
