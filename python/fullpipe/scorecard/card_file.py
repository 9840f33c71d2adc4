"""A scorecard's document that an earlier `--out` left: read and checked before it is compared with.
Must never run anything.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator

from fullpipe.base.errors import UserError
from fullpipe.base.refusals import explain
from fullpipe.base.supplied import read_regular
from fullpipe.scorecard.card import FORMAT

_MAX_BYTES = 2**28
_Number = Annotated[float, Field(allow_inf_nan=False)]


class _Part(BaseModel):
    model_config = ConfigDict(extra="ignore", strict=True)


class _Values(_Part):
    values: list[list[_Number | Literal["never"] | None]]

    @field_validator("values")
    @classmethod
    def _is_table(cls, values: list[list[Any]]) -> list[list[Any]]:
        if not values or not values[0] or len({len(row) for row in values}) != 1:
            raise ValueError("must be rows of equal length, one for each cell")
        return values


class _Measure(_Part):
    id: str
    subjects: dict[str, _Values]


class _Item(_Part):
    id: str
    cells: list[str] = []
    measures: list[_Measure]


class _Card(_Part):
    format: Literal[2]
    scorecard: str
    engine: str
    quick: bool
    overrides: list[str]
    until_settled: bool = False
    items: list[_Item]


def read_card(folder: Path) -> dict[str, Any]:
    """What a comparison needs of the scorecard in a folder.

    Raises UserError if there is none that this program reads, naming file and key."""
    path = folder / "scorecard.json"
    try:
        document = json.loads(read_regular(path, _MAX_BYTES))
    except (OSError, ValueError, RecursionError) as error:
        raise UserError(f"--baseline {path}: cannot be read: {error}") from None
    if not isinstance(document, dict) or "items" not in document:
        raise UserError(f"--baseline {path}: is no scorecard")
    if document.get("format") != FORMAT:
        raise UserError(
            f"--baseline {path}: its format is {document.get('format')!r}, not {FORMAT}: another "
            "fullpipe made it; make it again"
        )
    try:
        card = _Card.model_validate(document)
    except ValidationError as error:
        raise UserError(f"--baseline {path}: {explain(error, _Card)}") from None
    for item in card.items:
        for measure in item.measures:
            if card.scorecard not in measure.subjects:
                raise UserError(
                    f"--baseline {path}: items.{item.id}.{measure.id}: lacks {card.scorecard}"
                )
            for values in measure.subjects.values():
                if len(values.values) != len(item.cells):
                    raise UserError(
                        f"--baseline {path}: items.{item.id}.{measure.id}: has other cells than "
                        "the item"
                    )
    return card.model_dump()
