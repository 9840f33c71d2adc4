"""The files that a search leaves: its trials, what constants are worth, the held-out look.

`held_out.json` is written once for a choice of constants: paths that were looked at and then tuned
on are training paths. Must never run anything.
"""

from __future__ import annotations

import datetime
import json
import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import fullpipe
from fullpipe.base.errors import UserError
from fullpipe.base.supplied import read_regular
from fullpipe.base.writing import write_text
from fullpipe.congestion.registry import choose
from fullpipe.tune.file import Search
from fullpipe.tune.searching import Found
from fullpipe.tune.settings import Result, Setting

_MOST_BYTES = 64 << 20

#: Increased when a document's content changes its meaning.
FORMAT = 1
_TUNE, _HELD_OUT = "tune.json", "held_out.json"


def document_of(wanted: Search, outcome: Found) -> dict[str, Any]:
    """A search as a document that JSON can hold (docs/reference/tune.md describes it)."""
    best = outcome.best
    return {
        "format": FORMAT,
        "fullpipe_version": fullpipe.__version__,
        "file": wanted.source,
        "cc": wanted.options.cc,
        "minimise": wanted.options.minimise,
        "seed": wanted.options.seed,
        "parameters": {
            parameter.name: {
                "from": parameter.low,
                "to": parameter.high,
                "scale": "log" if parameter.logarithmic else "linear",
                "default": wanted.defaults[parameter.name],
                "unit": parameter.param.unit,
            }
            for parameter in wanted.parameters
        },
        "default": None if outcome.default is None else _result(outcome.default),
        "best": None if best is None else {"setting": best.setting, **_result(best.result)},
        "variants": [
            {
                "change": variant.name,
                "kind": variant.kind,
                "setting": variant.setting,
                **_result(variant.result),
            }
            for variant in outcome.variants
        ],
        "trials": [{"setting": trial.setting, **_result(trial.result)} for trial in outcome.trials],
    }


def write_search(document: Mapping[str, Any], folder: Path) -> Path:
    """Writes a search's document. Raises UserError where it cannot."""
    file = folder / _TUNE
    write_text(file, json.dumps(document, allow_nan=False, indent=1) + "\n")
    return file


def read_best(folder: Path, wanted: Search) -> dict[str, str]:
    """The setting that a search in this folder found for this file's constants.

    Raises UserError where there is none, or where it is of other constants."""
    document = _read(folder / _TUNE)
    best = None if document is None else document.get("best")
    if not isinstance(best, dict) or not isinstance(best.get("setting"), dict):
        raise UserError(f"{folder}: holds no search yet; run `fullpipe tune FILE --out DIR` first")
    names = {parameter.name for parameter in wanted.parameters}
    if set(best["setting"]) != names or document is None or document["cc"] != wanted.options.cc:
        raise UserError(f"{folder / _TUNE}: is of another search; name another folder with --out")
    return {
        parameter.name: parameter.written(_plain_value(best["setting"][parameter.name]))
        for parameter in wanted.parameters
    }


def looked_at(folder: Path, wanted: Search, setting: Setting) -> dict[str, Any] | None:
    """What the held-out paths said of this setting; None before they have run.

    Raises UserError where they were looked at for another setting."""
    document = _read(folder / _HELD_OUT)
    if document is None:
        return None
    seed = wanted.options.held_out_seed
    if document.get("held_out_seed") == seed and document.get("setting") != dict(setting):
        raise UserError(
            f"{folder / _HELD_OUT}: the paths of held_out_seed = {seed} were looked at on "
            f"{document.get('date')} for other constants, so they are no longer held out; choose "
            "another held_out_seed"
        )
    return document if document.get("held_out_seed") == seed else None


def write_held_out(
    folder: Path, wanted: Search, setting: Setting, results: Sequence[Result]
) -> dict[str, Any]:
    """Writes what the held-out paths said, the setting first; gives the document. Raises UserError
    where it cannot."""
    document = {
        "format": FORMAT,
        "fullpipe_version": fullpipe.__version__,
        "date": datetime.datetime.now(datetime.UTC).date().isoformat(),
        "held_out_seed": wanted.options.held_out_seed,
        "setting": dict(setting),
        "results": [_result(result) for result in results],
    }
    write_text(folder / _HELD_OUT, json.dumps(document, allow_nan=False, indent=1) + "\n")
    return document


def _result(result: Result) -> dict[str, Any]:
    return {
        "cc": choose(result.name, {}).name,
        "objective": _plain(result.objective),
        "values": {name: _plain(value) for name, value in result.values.items()},
        "intervals": {
            name: [_plain(low), _plain(high)] for name, (low, high) in result.intervals.items()
        },
    }


def _plain(value: float) -> float | None:
    return float(f"{value:.6g}") if math.isfinite(value) else None


def _plain_value(written: object) -> float | str:
    """A constant's value in JSON: text, which is a number unless it names a choice."""
    try:
        return float(str(written))
    except ValueError:
        return str(written)


def _read(file: Path) -> dict[str, Any] | None:
    try:
        document = json.loads(read_regular(file, _MOST_BYTES))
    except FileNotFoundError:
        return None
    except OSError as error:
        raise UserError(f"{file}: cannot be read: {error.strerror}") from None
    except (ValueError, RecursionError) as error:
        raise UserError(f"{file}: damaged: {error}; delete it and search again") from None
    if not isinstance(document, dict):
        raise UserError(f"{file}: damaged: holds no document; delete it and search again")
    return document
