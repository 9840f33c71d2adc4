"""Flent, as often as asked: it takes longer to load than to draw a plot, and is loaded once here.
Run by Flent's own interpreter, with the path of its program. Each line of stdin is a list of
arguments (JSON), with which the program runs in a child of its own; the answer is a line with its
exit status, stdout and stderr.
"""

from __future__ import annotations

import importlib
import json
import os
import runpy
import sys
import tempfile
import traceback
from pathlib import Path


def main(program: str) -> None:
    """Loads, and then runs once for each line."""
    sys.path.insert(0, str(Path(program).resolve().parent))
    for name in ("flent.batch", "flent.plotters", "matplotlib.pyplot", "pkg_resources"):
        importlib.import_module(name)
    for line in sys.stdin:
        with tempfile.TemporaryFile("w+") as output, tempfile.TemporaryFile("w+") as messages:
            child = os.fork()
            if child == 0:
                os.dup2(output.fileno(), 1)
                os.dup2(messages.fileno(), 2)
                sys.argv = [program, *json.loads(line)]
                os._exit(status_of(program))
            status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
            said = []
            for file in (output, messages):
                file.seek(0)
                said.append(file.read())
            print(json.dumps([status, *said]), flush=True)


def status_of(program: str) -> int:
    """Of the program, run to its end."""
    status: object = None
    try:
        runpy.run_path(program, run_name="__main__")
    except SystemExit as ended:
        status = ended.code
    except Exception:
        traceback.print_exc()
        status = 1
    if not sys.stdout.closed:  # as a summary leaves it
        sys.stdout.flush()
    return status if isinstance(status, int) else int(status is not None)


if __name__ == "__main__":
    main(sys.argv[1])
