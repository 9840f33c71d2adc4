"""The catalogue: entries read from a folder, checked, and found by name.

This module must run nothing.
"""

from __future__ import annotations

import difflib
import re
from pathlib import Path

from pydantic import ValidationError

from fullpipe.base.errors import UserError
from fullpipe.base.installed import shipped
from fullpipe.base.refusals import explain
from fullpipe.experiments import measure
from fullpipe.experiments.entry import Entry
from fullpipe.experiments.validation import validate
from fullpipe.expr.language import ExpressionError, parse
from fullpipe.scenario.document import load_document

_FILE_NAME = re.compile(r"[a-z0-9_]+\.toml")


def default_folder() -> Path:
    """The folder of the shipped catalogue. Raises UserError if it is missing."""
    return shipped("experiments")


def load_catalogue(folder: Path) -> list[Entry]:
    """All entries of a folder, by name.

    Raises UserError if there is none, or naming file, key and what is allowed."""
    files = sorted(folder.glob("*.toml")) if folder.is_dir() else []
    if not files:
        raise UserError(f"{folder}: no experiments here; name a folder with --catalogue")
    return [load_entry(file) for file in files]


def pick(entries: list[Entry], names: list[str]) -> list[Entry]:
    """The entries of these names. A citation key stands for all entries of its paper, `PREFIX*`
    for all whose name begins so.

    Raises UserError naming the nearest for an unknown name."""
    picked: dict[str, Entry] = {}
    for name in names:
        stem = name.rstrip("*")
        matching = [
            entry
            for entry in entries
            if entry.id == name
            or (name.endswith("*") and entry.id.startswith(stem))
            or name == entry.paper
        ]
        if not matching:
            ids = [entry.id for entry in entries]
            near = difflib.get_close_matches(name, ids, 3)
            hint = f"did you mean {' or '.join(near)}" if near else f"known are {', '.join(ids)}"
            raise UserError(f"experiment {name!r} is not in the catalogue; {hint}")
        picked |= {entry.id: entry for entry in matching}
    return list(picked.values())


def load_entry(path: Path) -> Entry:
    """The entry in a file, with every cell's scenario and every expression checked.

    Raises UserError naming file, key and what is allowed."""
    if not _FILE_NAME.fullmatch(path.name):
        raise UserError(f"{path}: name it with a-z, 0-9 and _, such as bless2025_table1.toml")
    document = load_document(path)
    try:
        entry = Entry.model_validate({**document, "id": path.stem, "folder": path.parent})
    except ValidationError as error:
        raise UserError(f"{path.name}: {explain(error, Entry)}") from None
    _check_axes(entry)
    _check_expressions(entry)
    validate(entry)
    return entry


def _check_axes(entry: Entry) -> None:
    kinds = dict.fromkeys(entry.axes, "an axis")
    for kind, tables in (("metric", entry.metric), ("number", entry.number)):
        for name in tables:
            if name in kinds:
                raise UserError(f"{entry.source}: {kind}.{name}: {kinds[name]} has that name")
            kinds[name] = f"a {kind}"
    grids = [*entry.grids(), *entry.grids(entry.default), *entry.grids(entry.full)]
    first, *others = [[axis.name for axis in axes] for axes in grids] or [[]]
    for names in others:
        if names != first:
            raise UserError(
                f"{entry.source}: axis: {', '.join(names)} are not those of the first grid, "
                f"{', '.join(first)}"
            )
    if entry.comparison_file and not entry.compare_engines:
        raise UserError(f"{entry.source}: comparison_file: needs compare_engines = true")
    if entry.not_yet_runnable and entry.scenario:
        raise UserError(f"{entry.source}: not_yet_runnable: contradicts the scenario beside it")
    if not entry.not_yet_runnable and not entry.scenario and not entry.number:
        raise UserError(f"{entry.source}: needs [scenario], [number] or not_yet_runnable")


def _check_expressions(entry: Entry) -> None:
    for name, metric in entry.metric.items():
        text = re.sub(r"\{[^{}]*\}", "x", metric.value)
        try:
            measure.check(text)
        except ExpressionError as error:
            raise UserError(f"{entry.source}: metric.{name}.value: {error}") from None
    seen: set[str] = set()
    for index, claim in enumerate(entry.claim):
        if claim.id in seen:
            raise UserError(f"{entry.source}: claim.{index}.id: {claim.id!r} is used twice")
        seen.add(claim.id)
        for key, text_or_none in (("check", claim.check), ("value", claim.value)):
            try:
                parse(text_or_none or "0")
            except ExpressionError as error:
                raise UserError(f"{entry.source}: claim {claim.id}: {key}: {error}") from None
