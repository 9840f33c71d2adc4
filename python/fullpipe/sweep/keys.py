"""A run's key: a hash of all that decides its result, and of nothing else.

That is the resolved plan with its seed, the warm-up, the engine with the options that decide, and
the code. Of the code only what the plan uses: the simulator says what each of its parts was
compiled from (`_native.sim.components()`), so a new build reruns a cell only where the core, one
of its algorithms or one of its queue disciplines has other sources. Knows nothing of stores.
"""

from __future__ import annotations

import functools
import hashlib
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pydantic_core import to_json

from fullpipe import _native
from fullpipe.engines.assets import objects_folder
from fullpipe.engines.base import engine

#: Raised where the meaning of a stored column changes.
MEASURES_VERSION = 1

#: Algorithms of flows, and every `kind` at any depth: queue disciplines, links, jitter.
_ALGORITHM = re.compile(rb'"algorithm":"([a-z0-9_]+)"')
_KIND = re.compile(rb'"kind":"([a-z0-9_]+)"')


#: Where a trace of a link or of traffic lies does not matter; what it holds does.
_TRACE_PATH = re.compile(rb'"(?:path|file)":"(?:[^"\\]|\\.)*",(?="sha256")')


def run_key(
    plan_json: bytes, parts: str, engine_name: str, warmup_ns: int, options: Mapping[str, str]
) -> str:
    """The key of the run of a plan (its JSON without a name) by code with these `parts`."""
    facts = hashlib.sha256(_TRACE_PATH.sub(b"", plan_json))
    facts.update(f"|{parts}|{engine_name}|{warmup_ns}|{MEASURES_VERSION}|".encode())
    facts.update(to_json(dict(sorted(options.items()))))
    return facts.hexdigest()[:32]


def parts_of(plan_json: bytes, engine_name: str) -> str:
    """A hash of the code that decides the result of this plan (its JSON) on this engine."""
    # Found in the text: walking the plan would take longer than making it.
    algorithms = frozenset(found.decode() for found in _ALGORITHM.findall(plan_json))
    if engine_name == "sim":
        return _simulated(algorithms, frozenset(k.decode() for k in _KIND.findall(plan_json)))
    return _measured(algorithms, engine_name)


@functools.cache
def _simulated(algorithms: frozenset[str], kinds: frozenset[str]) -> str:
    components: dict[str, str] = _native.sim.components()
    used = {"core", *(f"cc:{name}" for name in algorithms), *(f"net:{kind}" for kind in kinds)}
    return _digest(f"{name}={components[name]}" for name in sorted(used & components.keys()))


@functools.cache
def _measured(algorithms: frozenset[str], engine_name: str) -> str:
    """Of engines that run a kernel: the agent, the objects it loads, what the engine adds."""
    files = [Path("fullpipe-agent"), *(Path(f"{name}.bpf.o") for name in sorted(algorithms))]
    paths = [objects_folder() / file for file in files]
    digests = [_digest_of(path) for path in paths if path.is_file()]
    own = getattr(engine(engine_name), "code_version", None)
    return _digest([*digests, own() if own else ""])


@functools.cache
def _digest_of(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def _digest(texts: Any) -> str:
    return hashlib.sha256(" ".join(texts).encode()).hexdigest()
