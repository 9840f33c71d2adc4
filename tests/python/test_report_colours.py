"""Colours of the reports can be told apart by every reader."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import numpy.typing as npt
import pytest

from fullpipe.plots.style import CC_COLOURS, PHASE_COLOURS

Vector = npt.NDArray[np.float64]

#: Machado, Oliveira and Fernandes 2009, table 1, severity 1: what is seen without one kind of cone.
SEEN_BY = {
    "all cones": [[1, 0, 0], [0, 1, 0], [0, 0, 1]],
    "no long waves": [
        [0.152286, 1.052583, -0.204868], [0.114503, 0.786281, 0.099216],
        [-0.003882, -0.048116, 1.051998],
    ],
    "no middle waves": [
        [0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413],
        [-0.011820, 0.042940, 0.968881],
    ],
    "no short waves": [
        [1.255528, -0.076749, -0.178779], [-0.078411, 0.930809, 0.147602],
        [0.004733, 0.691367, 0.303900],
    ],
}  # fmt: skip
#: IEC 61966-2-1, linear sRGB to XYZ under D65, over the white point.
TO_XYZ = np.array([[0.4124, 0.3576, 0.1805], [0.2126, 0.7152, 0.0722], [0.0193, 0.1192, 0.9505]])
WHITE = np.array([0.9505, 1.0, 1.089])


def lab(colour: str, seen: list[list[float]]) -> Vector:
    """CIE L*a*b* 1976 of a colour such as #0072b2."""
    coded = np.array([int(colour[i : i + 2], 16) for i in (1, 3, 5)]) / 255
    linear = np.where(coded <= 0.04045, coded / 12.92, ((coded + 0.055) / 1.055) ** 2.4)
    ratio = TO_XYZ @ np.clip(np.array(seen) @ linear, 0, 1) / WHITE
    x, y, z = np.where(ratio > 0.008856, np.cbrt(ratio), 7.787 * ratio + 16 / 116)
    return np.array([116 * y - 16, 500 * (x - y), 200 * (y - z)])


@pytest.mark.parametrize("reader", SEEN_BY)
@pytest.mark.parametrize("colours", [CC_COLOURS, PHASE_COLOURS], ids=["controls", "phases"])
def test_no_two_colours_look_alike(colours: dict[str, str], reader: str) -> None:
    # A difference of 2.3 is just noticeable side by side (Mahy and others 1994); a line on its own
    # needs several times that.
    points = {name: lab(colour, SEEN_BY[reader]) for name, colour in colours.items()}
    nearest = min(
        (float(np.linalg.norm(points[a] - points[b])), a, b) for a, b in combinations(points, 2)
    )
    assert nearest[0] > 8, nearest


#: The filter of dark pages in colours.css: invert(.9), then hue-rotate(180deg), whose matrix is in
#: Filter Effects Module Level 1, 8.4.
TURNED = np.array([[-0.574, 1.43, 0.144], [0.426, 0.43, 0.144], [0.426, 1.43, -0.856]])
LUMINANCE = TO_XYZ[1]


def luminance(coded: Vector) -> float:
    """WCAG 2.2's relative luminance of a colour from 0 to 1."""
    linear = np.where(coded <= 0.04045, coded / 12.92, ((coded + 0.055) / 1.055) ** 2.4)
    return float(LUMINANCE @ linear)


@pytest.mark.parametrize(("page", "is_dark"), [("#ffffff", False), ("#16181b", True)])
def test_lines_stand_out_from_the_page(page: str, is_dark: bool) -> None:
    def coded(colour: str) -> Vector:
        return np.array([int(colour[i : i + 2], 16) for i in (1, 3, 5)]) / 255

    for name, colour in CC_COLOURS.items():
        shown = np.clip(TURNED @ (0.9 - 0.8 * coded(colour)), 0, 1) if is_dark else coded(colour)
        low, high = sorted((luminance(shown), luminance(coded(page))))
        # WCAG 2.2, 1.4.11: graphics have a contrast of at least 3:1.
        assert (high + 0.05) / (low + 0.05) >= 3, name
