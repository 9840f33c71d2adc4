"""A run's key: a hash of everything that decides its result, and of nothing else.

That is the resolved plan with its seed, the warm-up, the engine with the options that change
results, and the code. Of the code only the parts that the plan uses count: the simulator reports
the hash of each part's sources (`_native.sim.components()`), so a new build reruns a cell only if
the core, one of its algorithms or one of its queue disciplines changed. Knows nothing of stores.
"""

from __future__ import annotations

import functools
import hashlib
import re
from collections.abc import Iterable, Mapping
from pathlib import Path

from pydantic_core import to_json

from fullpipe import _native
from fullpipe.congestion import stacks
from fullpipe.engines.assets import objects_folder
from fullpipe.engines.base import engine

#: Hexadecimal digits of a SHA-256 that make a key.
_KEY_DIGITS = 32
#: The parts of the code that a plan names: algorithms, and whatever else has a kind.
_PARTS = re.compile(rb'"(algorithm|kind)":"([a-z0-9_]+)"')
#: Where a trace file lies does not matter; the hash behind its path does.
_TRACE_PATH = re.compile(rb'"(?:path|file)":"(?:[^"\\]|\\.)*",(?="sha256")')


def run_key(
    plan: bytes, engine_name: str, warmup_ns: int, version: str, options: Mapping[str, str]
) -> str:
    """The key of the run of a plan (compact JSON, its name empty), measured as `version` says
    (measures.VERSION, applications.VERSION)."""
    named = _PARTS.findall(plan)
    if engine_name == "sim":
        prefix = {b"algorithm": "cc", b"kind": "net"}
        code = _simulated(frozenset(f"{prefix[key]}:{name.decode()}" for key, name in named))
        code += "".join(map(stacks.sha256, stacks.modules_in(plan)))
    else:
        algorithms = (name.decode() for key, name in named if key == b"algorithm")
        code = _emulated(frozenset(algorithms), engine_name)
    options_json = to_json(dict(sorted(options.items()))).decode()
    context = f"|{code}|{engine_name}|{warmup_ns}|{version}|{options_json}"
    return hashlib.sha256(_TRACE_PATH.sub(b"", plan) + context.encode()).hexdigest()[:_KEY_DIGITS]


@functools.cache
def _simulated(parts: frozenset[str]) -> str:
    """A hash of the simulator's code that runs a plan with these parts."""
    components: dict[str, str] = _native.sim.components()
    used = {"core", *parts} & components.keys()
    return _digest(f"{name}={components[name]}" for name in sorted(used))


@functools.cache
def _emulated(algorithms: frozenset[str], engine_name: str) -> str:
    """A hash of what an engine with a kernel runs: the agent, the objects that it loads, and the
    engine's own `code_version`."""
    files = [Path("fullpipe-agent"), *(Path(f"{name}.bpf.o") for name in sorted(algorithms))]
    paths = [objects_folder() / file for file in files]
    digests = [hashlib.sha256(path.read_bytes()).hexdigest() for path in paths if path.is_file()]
    code_version = getattr(engine(engine_name), "code_version", None)
    return _digest([*digests, code_version() if code_version else ""])


def _digest(texts: Iterable[str]) -> str:
    return hashlib.sha256(" ".join(texts).encode()).hexdigest()
