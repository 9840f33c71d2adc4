"""Files of scripts with a kernel's answers: a line that says where they are from, then a line for
each script; packed if the name ends in .gz. They can be compared with the model without a machine.
"""

from __future__ import annotations

import gzip
import json
import zlib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fullpipe.base.errors import UserError
from fullpipe.base.supplied import read_regular
from fullpipe.differential.machine import MODELS
from fullpipe.differential.subjects import SUBJECTS, TCP, Subject

_PACKED = ".gz"
_MOST_BYTES = 256 << 20


@dataclass(frozen=True)
class Recorded:
    """Scripts and a kernel's answers to them."""

    #: `kernel` (a name of `machine.MODELS`), `subject` (of `SUBJECTS`; none: TCP), `release`,
    #: `seed` and whatever else was noted.
    origin: dict[str, Any]
    scripts: list[str]
    answers: list[str]

    @property
    def subject(self) -> Subject:
        """What the scripts are played to."""
        return SUBJECTS[self.origin.get("subject", TCP.name)]


def write(path: Path, recorded: Recorded) -> None:
    """Writes a file."""
    lines = [json.dumps(recorded.origin)]
    for script, answer in zip(recorded.scripts, recorded.answers, strict=True):
        lines.append(f'{{"script":{script},"answer":{answer}}}')
    content = ("\n".join(lines) + "\n").encode()
    # Without a time the same content gives the same file.
    path.write_bytes(gzip.compress(content, mtime=0) if path.suffix == _PACKED else content)


def read(path: Path) -> Recorded:
    """Reads a file. Raises UserError if it is none."""
    try:
        content = read_regular(path, _MOST_BYTES)
        text = gzip.decompress(content) if path.suffix == _PACKED else content
        origin, *rows = map(json.loads, text.decode().splitlines())
        scripts = [json.dumps(row["script"]) for row in rows]
        recorded = Recorded(dict(origin), scripts, [json.dumps(row["answer"]) for row in rows])
    except OSError as error:
        raise UserError(f"{path}: {error.strerror or error}") from None
    except (ValueError, KeyError, TypeError, EOFError, zlib.error) as error:
        raise UserError(f"{path}: is no file of answers: {error}") from None
    if str(recorded.origin.get("kernel")) not in MODELS:
        raise UserError(
            f"{path}: its first line names no kernel: must have one of {', '.join(MODELS)}"
        )
    if str(recorded.origin.get("subject", TCP.name)) not in SUBJECTS:
        raise UserError(f"{path}: its first line: subject must be one of {', '.join(SUBJECTS)}")
    return recorded
