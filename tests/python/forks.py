"""Commands and runs in processes that have loaded the program already: forks of a server that has.
They cost what they do, not the import of libraries."""

from __future__ import annotations

import multiprocessing
import os
import sys
import tempfile
from collections.abc import Mapping, Sequence
from functools import cache
from multiprocessing import forkserver
from multiprocessing.context import ForkServerContext
from pathlib import Path

from fullpipe import cli
from fullpipe.congestion.userfiles import pool
from fullpipe.engines.child import without_main

#: What the commands and runs that tests call load in their bodies. Arrow loads pandas where it is
#: installed.
_LOADED = [
    "fullpipe.cli.app", "fullpipe.agreement", "fullpipe.authoring",
    "fullpipe.congestion.userfiles.classes", "fullpipe.congestion.userfiles.native",
    "fullpipe.engines.runner", "fullpipe.engines.sim", "fullpipe.engines.spool",
    "fullpipe.engines.tables", "fullpipe.experiments.runner",
    "fullpipe.expr", "fullpipe.metrics", "fullpipe.plan.resolve", "fullpipe.plots",
    "fullpipe.scenario.model", "fullpipe.scenario.traffic.traces", "fullpipe.statistics",
    "fullpipe.sweep.worker", "numpy.random",
    "pandas", "pyarrow.pandas_compat", "pydantic.dataclasses",
]  # fmt: skip


def command(words: Sequence[str], folder: Path, environment: Mapping[str, str]) -> tuple[int, str]:
    """The exit status of `fullpipe WORDS` in a folder, and what it says on both outputs. Negative:
    the signal that ended it."""
    with tempfile.NamedTemporaryFile() as output, without_main():
        given = ["fullpipe", *words], str(folder), dict(environment), output.name
        process = server().Process(target=_run, args=given)
        process.start()
        process.join()
        assert process.exitcode is not None
        return process.exitcode, output.read().decode(errors="replace")


@cache
def server() -> ForkServerContext:
    """The server, one for each process of the tests, started with the settings that the command
    line makes before it loads more."""
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(_LOADED)
    ours = dict(os.environ)
    cli.set_environment()
    forkserver.ensure_running()
    os.environ.clear()
    os.environ.update(ours)
    return context


def _run(words: list[str], folder: str, environment: dict[str, str], output: str) -> None:
    os.environ.clear()
    os.environ.update(environment)
    os.chdir(folder)
    tempfile.tempdir = None
    sys.argv[:] = words
    said, nothing = os.open(output, os.O_WRONLY | os.O_APPEND), os.open(os.devnull, os.O_RDONLY)
    for number, descriptor in enumerate((nothing, said, said)):
        os.dup2(descriptor, number)
    try:
        cli.main()
    finally:
        pool.end_all()  # no exit handlers run in these processes
