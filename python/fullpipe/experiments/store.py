"""Where runs are kept: one folder a run, named by a hash of all that decides its result.

That is the resolved plan with its seed, the engine, and the code: the native module (simulator and
algorithms; their parameters are in the plan), or the agent and the eBPF objects. A folder holds
`run.json` (metrics, distributions for plots, health) and, where they are kept, the recording.
Never knows an entry.
"""

from __future__ import annotations

import functools
import hashlib
import json
import math
import os
import secrets
import shutil
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from fullpipe import _native, metrics
from fullpipe.cache import user_cache
from fullpipe.engines.assets import objects_folder
from fullpipe.engines.base import engine
from fullpipe.errors import UserError
from fullpipe.experiments import measure, quantities
from fullpipe.recording import Recording

_FORMAT = 1


@dataclass(frozen=True)
class StoredRun:
    """What is known of a run. `metrics`: expression -> value."""

    seed: int
    metrics: dict[str, float]
    distributions: dict[str, list[float]]
    problems: list[str] = field(default_factory=list)


class Store:
    """Runs in a folder; writes are whole or not at all, so that runs can end at any moment."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def key(self, plan: Mapping[str, Any], engine_name: str) -> str:
        """The name of a run of this plan by today's code."""
        facts = {"plan": plan, "engine": engine_name, "code": code_version(engine_name)}
        text = json.dumps(facts, sort_keys=True, separators=(",", ":"))
        return hashlib.sha256(text.encode()).hexdigest()[:32]

    def path(self, key: str) -> Path:
        """The folder of a run."""
        return self.folder / "runs" / key[:2] / key

    def read(self, key: str, expressions: Mapping[str, str]) -> StoredRun | None:
        """The run with these expressions, measured again from a kept recording where the stored
        numbers lack one; None where the run is not there."""
        document = self._document(self.path(key) / "run.json")
        if document is None:
            return None
        if document["metrics_version"] != metrics_version():
            document = self._again(key, document, {})
            if document is None:
                return None
        lacking = {text: text for text in expressions.values() if text not in document["metrics"]}
        if lacking:
            document = self._again(key, document, {**_same(document["metrics"]), **lacking})
        if document is None:
            return None
        known = {text: _number(value) for text, value in document["metrics"].items()}
        return StoredRun(document["seed"], known, document["distributions"], document["problems"])

    def write(
        self, key: str, recording: Recording, expressions: Mapping[str, str], keep: bool
    ) -> None:
        """Measures a recording that lies in `workplace(key)` and stores what is asked for."""
        document = _measured(recording, {text: text for text in expressions.values()})
        folder = self.path(key)
        folder.mkdir(parents=True, exist_ok=True)
        if keep:
            shutil.rmtree(folder / "recording", ignore_errors=True)
            recording.path.rename(folder / "recording")
        else:
            shutil.rmtree(recording.path, ignore_errors=True)
        self._save(folder / "run.json", document)

    def prepare(self) -> None:
        """Makes the folder where it is missing. Raises UserError where it cannot be written."""
        try:
            (self.folder / "work").mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise UserError(f"--store {self.folder}: cannot be written: {error.strerror}") from None

    def workplace(self, key: str) -> Path:
        """A folder that does not exist yet, for a recording to be written into."""
        self.prepare()
        return self.folder / "work" / f"{key[:12]}-{os.getpid()}-{secrets.token_hex(4)}"

    def read_fact(self, kind: str, key: str) -> Any:
        """A stored document that is no run (a model's prediction); None where it is not there."""
        try:
            return json.loads((self.folder / kind / f"{key}.json").read_text(encoding="utf-8"))
        except (OSError, ValueError):
            return None

    def write_fact(self, kind: str, key: str, document: Any) -> None:
        """Stores such a document."""
        folder = self.folder / kind
        folder.mkdir(parents=True, exist_ok=True)
        self._save(folder / f"{key}.json", document)

    def _again(
        self, key: str, document: dict[str, Any], expressions: Mapping[str, str]
    ) -> dict[str, Any] | None:
        kept = self.path(key) / "recording"
        if not kept.is_dir():
            return None
        wanted = expressions or _same(document["metrics"])
        fresh = _measured(Recording.open(kept), wanted)
        self._save(self.path(key) / "run.json", fresh)
        return fresh

    def _document(self, path: Path) -> dict[str, Any] | None:
        try:
            document = json.loads(path.read_text(encoding="utf-8"))
        except (OSError, ValueError):
            return None
        usable = isinstance(document, dict) and document.get("format") == _FORMAT
        return document if usable else None

    def _save(self, path: Path, document: Any) -> None:
        partial = path.with_name(f".{path.name}.{secrets.token_hex(4)}")
        partial.write_text(json.dumps(document, allow_nan=False), encoding="utf-8")
        partial.rename(path)


def default_store() -> Path:
    """`experiments` in the user's cache."""
    return user_cache() / "experiments"


@functools.cache
def code_version(engine_name: str) -> str:
    """A hash of the code that decides an engine's results: of the compiled module for the
    simulator; of the agent and the eBPF objects for those that run a kernel; and of what the
    engine says in its own `code_version()` where it has one."""
    files = [Path(_native.__file__)] if engine_name == "sim" else sorted(objects_folder().glob("*"))
    digests = [hashlib.sha256(file.read_bytes()).hexdigest() for file in files if file.is_file()]
    own = getattr(engine(engine_name), "code_version", None)
    return hashlib.sha256(" ".join([*digests, own() if own else ""]).encode()).hexdigest()


@functools.cache
def metrics_version() -> str:
    """A hash of the sources that turn a recording into numbers."""
    folder = Path(metrics.__file__).parent
    files = [*sorted(folder.glob("*.py")), Path(measure.__file__), Path(quantities.__file__)]
    return hashlib.sha256(b"\0".join(file.read_bytes() for file in files)).hexdigest()


def _measured(recording: Recording, expressions: Mapping[str, str]) -> dict[str, Any]:
    values = measure.measure(expressions, recording)
    return {
        "format": _FORMAT,
        "metrics_version": metrics_version(),
        "seed": recording.metadata["seed"],
        "metrics": {name: _plain(value) for name, value in values.items()},
        "distributions": measure.distributions(recording),
        "problems": list(recording.metadata.get("health", {}).get("problems", [])),
    }


def _same(names: Mapping[str, Any]) -> dict[str, str]:
    return {name: name for name in names}


def _plain(value: float) -> float | str | None:
    if math.isnan(value):
        return None
    return value if math.isfinite(value) else "inf"


def _number(value: float | str | None) -> float:
    return math.nan if value is None else float(value)
