"""A run's key: a hash of all that decides its result, and of nothing else.

That is the resolved plan with its seed, the warm-up, the engine with the options that decide, and
the code. Of the code only what the plan uses: the simulator says what each of its parts was
compiled from (`_native.sim.components()`), so a new build reruns a cell only where the core, one
of its algorithms or one of its queue disciplines has other sources. Knows nothing of stores.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from fullpipe import _native
from fullpipe._native import named_parts, sha256, to_json
from fullpipe.engines.assets import objects_folder
from fullpipe.engines.base import engine

#: Of a SHA-256, which has 64.
KEY_DIGITS = 32


#: Where a trace of a link or of traffic lies does not matter; what it holds does.
_TRACE_PATH = re.compile(rb'"(?:path|file)":"(?:[^"\\]|\\.)*",(?="sha256")')


class Piece(NamedTuple):
    """A piece of a plan's JSON, which ends between keys of the plan; the parts of the code that it
    uses; and what of it the key is of."""

    text: bytes
    parts: frozenset[str]
    keyed: bytes


def piece(text: bytes) -> Piece:
    """Reads a piece. In its text: walking the plan would take longer than making it."""
    parts = named_parts(text)
    keyed = _TRACE_PATH.sub(b"", text) if b'"sha256"' in text else text
    return Piece(text, parts, keyed)


def run_key(
    pieces: Sequence[Piece], engine_name: str, warmup_ns: int, version: int,
    options: Mapping[str, str],
) -> str:  # fmt: skip
    """The key of the run of a plan (its JSON without a name, in one piece or several), measured as
    `version` says (measures.version_of)."""
    used = frozenset[str]().union(*(one.parts for one in pieces))
    given = tuple(sorted(options.items()))
    beside = beside_plan(used, engine_name, warmup_ns, version, given)
    (key,) = sha256(b"".join(one.keyed for one in pieces), [beside], KEY_DIGITS)
    return key


def beside_plan(
    parts: frozenset[str], engine_name: str, warmup_ns: int, version: int,
    options: tuple[tuple[str, str], ...],
) -> bytes:  # fmt: skip
    """What beside its plan, which uses these parts of the code, decides the result of a run."""
    code = _simulated(parts) if engine_name == "sim" else _measured(parts, engine_name)
    given = to_json(dict(options)).decode()
    return f"|{code}|{engine_name}|{warmup_ns}|{version}|{given}".encode()


@functools.cache
def _simulated(parts: frozenset[str]) -> str:
    """A hash of the simulator's code that decides a result."""
    components: dict[str, str] = _native.sim.components()
    used = {"core", *parts} & components.keys()
    return _digest(f"{name}={components[name]}" for name in sorted(used))


@functools.cache
def _measured(parts: frozenset[str], engine_name: str) -> str:
    """Of engines that run a kernel: the agent, the objects it loads, what the engine adds."""
    algorithms = sorted(part[3:] for part in parts if part.startswith("cc:"))
    files = [Path("fullpipe-agent"), *(Path(f"{name}.bpf.o") for name in algorithms)]
    paths = [objects_folder() / file for file in files]
    digests = [_digest_of(path) for path in paths if path.is_file()]
    own = getattr(engine(engine_name), "code_version", None)
    return _digest([*digests, own() if own else ""])


@functools.cache
def _digest_of(path: Path) -> str:
    return sha256(b"", [path.read_bytes()])[0]


def _digest(texts: Any) -> str:
    return sha256(b"", [" ".join(texts).encode()])[0]
