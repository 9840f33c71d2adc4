"""FIFOs in strict priority: sch_prio."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import Field, model_validator

from fullpipe.base import units
from fullpipe.scenario.qdiscs.options import Options, Port


class Prio(Options):
    """FIFOs in strict priority (sch_prio), each of which may hold `buffer`."""

    bands: int = Field(3, ge=1, le=16, description="number of FIFOs; band 0 goes first")
    default_band: int = Field(1, ge=0, le=15, description="band of the DSCPs not listed")
    dscp: dict[str, Annotated[int, Field(ge=0, le=15)]] = Field(
        {"EF": 0, "CS6": 0, "CS7": 0, "CS1": 2, "LE": 2}, description="bands by DSCP"
    )

    @model_validator(mode="after")
    def _bands_exist(self) -> Prio:
        if self.default_band >= self.bands:
            raise ValueError(f"default_band: must be below bands, {self.bands}")
        for name, band in self.dscp.items():
            try:
                units.parse_dscp(name)
            except units.UnitError as error:
                raise ValueError(f"dscp: {error}") from None
            if not 0 <= band < self.bands:
                raise ValueError(f"dscp: {name}: band {band} is not one of 0 to {self.bands - 1}")
        return self

    def parameters(self, port: Port) -> dict[str, Any]:
        return {
            "bands": self.bands,
            "default_band": self.default_band,
            "filters": sorted((units.parse_dscp(dscp), band) for dscp, band in self.dscp.items()),
        }
