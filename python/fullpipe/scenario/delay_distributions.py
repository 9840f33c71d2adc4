"""Distributions of a link's delay: tables of numbers as netem takes them.

tc's tables of these names have the inverse of a distribution function at 4096 even steps, times
8192 (iproute2, netem/normal.c, pareto.c, paretonormal.c). They are made here from the formulas; a
file in tc's format may hold another.
"""

from __future__ import annotations

from pathlib import Path
from statistics import NormalDist

from fullpipe.base.supplied import open_regular

#: NETEM_DIST_SCALE and NETEM_DIST_MAX of the kernel.
_SCALE, _MOST = 8192, 16384
_STEPS = 4096
_MOST_FILE_BYTES = 1 << 20
NAMES = ("uniform", "normal", "pareto", "paretonormal")


def table_of(distribution: str) -> list[int]:
    """The table of a distribution, by its name or its file; empty for netem's uniform one. Raises
    ValueError for a file that holds no table."""
    if distribution == "uniform":
        return []
    if distribution not in NAMES:
        return _read(Path(distribution))
    normal = [round(_SCALE * NormalDist().inv_cdf((k + 1 / 8) / _STEPS)) for k in range(_STEPS)]
    # Its mean, 1.5, is taken off; the factor is tc's, with which the deviation is not quite 1.
    pareto = [
        min(32767, round(_SCALE * 4 / 3 * ((1 - k / _STEPS) ** (-1 / 3) - 1.5)))
        for k in range(_STEPS)
    ]
    if distribution == "normal":
        return [max(-32768, number) for number in normal]
    if distribution == "pareto":
        return pareto
    # A quarter of the one, three of the other; C's division rounds towards 0.
    return [
        min(32767, int((from_normal + 3 * from_pareto) / 4))
        for from_normal, from_pareto in zip(normal, pareto, strict=True)
    ]


def _read(path: Path) -> list[int]:
    """A file as tc reads it: whole numbers, and comments from a # to the end of the line."""
    try:
        with open_regular(path) as file:
            content = file.read(_MOST_FILE_BYTES + 1)
    except (OSError, ValueError):
        raise ValueError(
            f"{path}: cannot be read; write {', '.join(NAMES)}, or a file of tc's"
        ) from None
    if len(content) > _MOST_FILE_BYTES:
        raise ValueError(f"{path}: is larger than 1 MiB")
    numbers = []
    for number, line in enumerate(content.decode("utf-8-sig", "replace").splitlines(), 1):
        for word in line.partition("#")[0].split():
            try:
                value = int(word)
            except ValueError:
                raise ValueError(
                    f"{path}: line {number}: {word[:20]!r} is no whole number"
                ) from None
            if not -32768 <= value <= 32767:
                raise ValueError(f"{path}: line {number}: {value} is not from -32768 to 32767")
            numbers.append(value)
    if not 1 <= len(numbers) <= _MOST:
        raise ValueError(f"{path}: has {len(numbers)} numbers; must be from 1 to {_MOST}")
    return numbers
