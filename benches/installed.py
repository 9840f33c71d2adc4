"""Of the benchmarks that time whole commands: the program as an installation leaves it."""

from __future__ import annotations

import compileall
from pathlib import Path

import fullpipe


def compile_modules() -> None:
    """Compiles the package's modules, as an installer does with those of a wheel. A checkout's may
    be compiled at each start instead (PYTHONDONTWRITEBYTECODE), a tenth of a second and more."""
    compileall.compile_dir(Path(fullpipe.__file__).parent, quiet=1)
