"""A style file: how all figures of a paper look, in TOML. Must know no recording."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Annotated

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field

from fullpipe.base.model_files import read_model
from fullpipe.base.units import UnitError
from fullpipe.plots.look import Legend, Look

_INCHES = {"in": 1.0, "cm": 1 / 2.54, "mm": 1 / 25.4, "pt": 1 / 72.27}


def inches(length: object) -> float:
    """A width in inches. Raises UnitError."""
    match = re.fullmatch(r"(\d+(?:\.\d+)?)\s*(in|cm|mm|pt)", str(length).strip())
    width_in = float(match[1]) * _INCHES[match[2]] if match else 0.0
    if not 1 <= width_in <= 40:
        raise UnitError(f"{length!r}: is no length from 1in to 40in, such as 3.3in or 84mm")
    return width_in


class _Style(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)

    width: Annotated[float, BeforeValidator(inches)] | None = None
    font_size: float = Field(Look.font_pt, ge=4, le=30)
    title: bool = True
    log_x: bool = False
    log_y: bool = False
    legend: Legend = "auto"


def read_style(path: Path) -> Look:
    """The look that a file describes. Raises UserError naming file and key."""
    style = read_model(_Style, path)
    return Look(
        width_in=style.width,
        font_pt=style.font_size,
        title=style.title,
        log_x=style.log_x,
        log_y=style.log_y,
        legend=style.legend,
    )
