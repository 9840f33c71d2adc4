"""What the benchmarks of the kernel engines share: many scenarios, a few at a time, into recordings
that the next start finds again. A folder is named by a hash of everything that decides its content.
"""

from __future__ import annotations

import hashlib
import json
import shutil
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import tomli_w

from fullpipe import _native
from fullpipe.engines import assets
from fullpipe.engines.runner import run_scenario
from fullpipe.plan.resolve import resolve
from fullpipe.recording.recording import Recording
from fullpipe.scenario.model import make_scenario

FOLDER = Path("build/bench")


def recordings(
    documents: Sequence[Mapping[str, Any]], engine: str, jobs: int = 2, **options: str
) -> list[Recording]:
    """One recording for each scenario, `jobs` at a time."""
    with ThreadPoolExecutor(jobs) as pool:
        return list(pool.map(lambda document: _recorded(document, engine, options), documents))


def _recorded(document: Mapping[str, Any], engine: str, options: Mapping[str, str]) -> Recording:
    scenario = make_scenario(dict(document))
    programs = (
        [Path(str(_native.__file__))]
        if engine == "sim"
        else sorted([assets.agent(), *assets.objects_folder().glob("*.bpf.o")])
    )
    parts = [json.dumps([resolve(scenario), engine, dict(options)], sort_keys=True).encode()]
    parts += [program.read_bytes() for program in programs]
    digest = hashlib.sha256(b"".join(parts)).hexdigest()[:16]
    folder = FOLDER / f"{engine}-{digest}"
    if not (folder / "metadata.json").exists():
        shutil.rmtree(folder, ignore_errors=True)
        outcome = run_scenario(scenario, tomli_w.dumps(document), [folder], engine, options)
        if outcome.failures:
            raise SystemExit(f"{scenario.name}: {'; '.join(outcome.failures)}")
    return Recording.open(folder)
