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
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic_core import to_json

from fullpipe import _native
from fullpipe.engines.assets import objects_folder
from fullpipe.engines.base import engine

#: Raised where the meaning of a stored column changes. Runs without flows have their own since
#: their goodput is null: what an older build stored of them, 0, is not taken over.
MEASURES_VERSION = 1
_MEASURES_VERSION_FLOWLESS = 2

#: Algorithms of flows, and every `kind` at any depth: queue disciplines, links, jitter.
_ALGORITHM = re.compile(rb'"algorithm":"([a-z0-9_]+)"')
_KIND = re.compile(rb'"kind":"([a-z0-9_]+)"')


#: Where a trace of a link or of traffic lies does not matter; what it holds does.
_TRACE_PATH = re.compile(rb'"(?:path|file)":"(?:[^"\\]|\\.)*",(?="sha256")')


def run_key(
    plan_json: Sequence[bytes], parts: str, engine_name: str, warmup_ns: int,
    options: Mapping[str, str],
) -> str:  # fmt: skip
    """The key of the run of a plan (its JSON without a name, in one piece or several) by code with
    these `parts`."""
    text = b"".join(_piece(piece).without_places for piece in plan_json)
    version = _MEASURES_VERSION_FLOWLESS if b'"flows":[]' in text else MEASURES_VERSION
    facts = hashlib.sha256(text)
    facts.update(f"|{parts}|{engine_name}|{warmup_ns}|{version}|".encode())
    facts.update(to_json(dict(sorted(options.items()))))
    return facts.hexdigest()[:32]


def parts_of(plan_json: Sequence[bytes], engine_name: str) -> str:
    """A hash of the code that decides the result of this plan (its JSON, in one piece or several)
    on this engine."""
    found = [_piece(piece) for piece in plan_json]
    algorithms = frozenset[str]().union(*(piece.algorithms for piece in found))
    if engine_name == "sim":
        kinds = frozenset[str]().union(*(piece.kinds for piece in found))
        return _simulated(algorithms, kinds)
    return _measured(algorithms, engine_name)


@dataclass(frozen=True)
class _Piece:
    """What a piece of a plan's JSON says. Pieces end between keys of the plan."""

    algorithms: frozenset[str]
    kinds: frozenset[str]
    without_places: bytes


@functools.lru_cache(maxsize=64)
def _piece(text: bytes) -> _Piece:
    # Found in the text: walking the plan would take longer than making it.
    return _Piece(
        frozenset(found.decode() for found in _ALGORITHM.findall(text)),
        frozenset(found.decode() for found in _KIND.findall(text)),
        _TRACE_PATH.sub(b"", text),
    )


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
