"""Programs of scripts/ and benches/ as modules, for tests of what they write."""

from __future__ import annotations

import importlib
import importlib.util
import sys
from pathlib import Path
from types import ModuleType

ROOT = Path(__file__).resolve().parents[2]
SCRIPTS, BENCHES = ROOT / "scripts", ROOT / "benches"


def script(name: str) -> ModuleType:
    """The script of that name, loaded again each time: a test may change its constants. Scripts
    import one another by their names, as benchmarks do."""
    _look_in(SCRIPTS)
    spec = importlib.util.spec_from_file_location(name, SCRIPTS / f"{name}.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def bench(name: str) -> ModuleType:
    """The benchmark of that name."""
    _look_in(BENCHES)
    return importlib.import_module(name)


def _look_in(folder: Path) -> None:
    if str(folder) not in sys.path:
        sys.path.append(str(folder))
