"""Rate traces of a hunt's paths, generated once each into a folder by the generators of `fullpipe
trace generate`. Must never run a path.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path as FilePath

from fullpipe.hunt.space import Path, kind_of
from fullpipe.scenario.link_trace_generators import Shape, generate


@dataclass(frozen=True)
class Rates:
    """Trace files in a folder, named by their parameters."""

    folder: FilePath

    def file(self, path: Path) -> str | None:
        """The absolute path of this path's rate trace; None if the rate is constant."""
        kind = kind_of(path)
        if kind is None:
            return None
        shape = _shape(path)
        name = f"{kind}-{shape.rate_bps}-{shape.duration_s:g}-{shape.low:g}.trace"
        file = self.folder / name
        if not file.exists():
            file.write_text(text_of(path), encoding="ascii")
        return str(file)


def text_of(path: Path) -> str:
    """The lines of a path's trace."""
    kind = kind_of(path)
    return generate(kind, _shape(path)).rate_text() if kind else ""


def words_of(path: Path, file: str) -> Sequence[str]:
    """The command that generates a path's trace; only the rates of a leo trace are used."""
    shape = _shape(path)
    return [
        "fullpipe",
        "trace",
        "generate",
        str(kind_of(path)),
        file,
        "--rate",
        f"{path['rate_mbit']:g}mbit",
        "--duration",
        f"{shape.duration_s:g}s",
        "--period",
        f"{shape.period_s:g}s",
        "--low",
        f"{shape.low:g}",
    ]


def _shape(path: Path) -> Shape:
    seconds = path["trace_s"]
    return Shape(round(path["rate_mbit"] * 1e6), seconds, 1, seconds, path["trace_low"])
