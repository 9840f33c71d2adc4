"""What the benchmarks of the kernel engines share: many scenarios, a few at a time, into recordings
that the next start finds again, and the same on two engines. A folder is named by a hash of
everything that decides its content.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import shutil
from collections.abc import Callable, Mapping, Sequence
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

FOLDER = Path(__file__).resolve().parents[1] / "build/bench"


def recordings(
    documents: Sequence[Mapping[str, Any]], engine: str, jobs: int = 2, **options: str
) -> list[Recording]:
    """One recording for each scenario, `jobs` at a time."""
    with ThreadPoolExecutor(jobs) as pool:
        return list(pool.map(lambda document: _recorded(document, engine, options), documents))


def pair(
    document: Callable[[str, int], Mapping[str, Any]],
    seeds: tuple[int, int],
    jobs: int,
    kernel_engine: str = "vm",
    **options: str,
) -> tuple[list[Recording], list[Recording]]:
    """Recordings of the simulator and of a kernel engine, with so many seeds of each, of
    `document(engine, seed)`; `options` are the kernel engine's."""
    sim, kernel = (
        recordings([document(name, seed + 1) for seed in range(count)], name, jobs, **chosen)
        for name, count, chosen in (
            ("sim", seeds[0], {}),
            (kernel_engine, seeds[1], options),
        )
    )
    return sim, kernel


def arguments(about: str | None, seeds: int, vm_seeds: int) -> argparse.ArgumentParser:
    """The options of a comparison of engines; the numbers are their defaults."""
    parser = argparse.ArgumentParser(
        description=about, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--only", default="", help="paths whose names contain this")
    parser.add_argument("--seeds", type=int, default=seeds)
    parser.add_argument("--vm-seeds", type=int, default=vm_seeds)
    parser.add_argument("--jobs", type=int, default=1)
    return parser


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
