"""Identifies the congestion control that ran, and compares it with the file's label.

A kernel's name for an algorithm is only the name of a module: `bbr` has been BBRv1 and BBRv3, and
`bbr3` BBRv3 and BBR-n+. The gains in the socket statistics tell them apart.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from fullpipe.flent.document import FlentFile, Floats, clean

#: Gains that only one algorithm sets, in the kernel's units of 1/256 (tcp_bbr_info): BBRv1 (Linux
#: tcp_bbr.c bbr_high_gain, bbr_pacing_gain), which BBRv2 shares; BBRv3 (Google's v3 branch
#: tcp_bbr.c); BBR-n+ as its authors' own files show it.
_PACING = {
    739: "bbr1 or bbr2",
    192: "bbr1 or bbr2",
    710: "bbr3",
    232: "bbr3",
    738: "bbrnplus",
    384: "bbrnplus",
}
_CWND = {739: "bbr1 or bbr2", 576: "bbr3", 640: "bbrnplus"}

#: What a label may say, the longer names first. "bbr" alone may be any version.
_CLAIMS = [
    ("bbrnplus", r"bbr[-_ ]?n(?:[-_ ]?plus|[+_])"),
    ("bbr3", r"bbr(?:[-_ ]?v)?3"),
    ("bbr2", r"bbr(?:[-_ ]?v)?2"),
    ("bbr1", r"bbr(?:[-_ ]?v)?1"),
    ("bbr", r"bbr"),
    *(
        (name, name)
        for name in (
            "cubic",
            "reno",
            "dctcp",
            "vegas",
            "westwood",
            "illinois",
            "htcp",
            "hybla",
            "scalable",
            "highspeed",
            "veno",
            "yeah",
            "bic",
            "cdg",
            "lp",
            "ledbat",
            "nv",
        )
    ),
]
_CLAIM = re.compile(
    "|".join(f"(?P<{name}>(?<![a-z]){text}(?![a-z0-9]))" for name, text in _CLAIMS), re.IGNORECASE
)


@dataclass(frozen=True)
class Identity:
    """The congestion control of a flow: the kernel's name (empty if netperf could not read it), and
    the algorithm to which its gains belong (None if to none)."""

    series: str
    cong_control: str
    by_gains: str | None

    @property
    def name(self) -> str:
        """The best that is known: by gains, else the kernel's name, else `unknown`."""
        return self.by_gains or self.cong_control or "unknown"


def identify(file: FlentFile) -> list[Identity]:
    """What ran in each flow of `file.flows`, in that order."""
    identities = []
    for series, _ in file.flows:
        value = file.series_meta(series).get("CONG_CONTROL")
        raw = file.raw.get(series)
        pacing = _gains(raw.column("tcp_bbr_pacing_gain")) if raw else ()
        cwnd = _gains(raw.column("tcp_bbr_cwnd_gain")) if raw else ()
        identities.append(
            Identity(
                clean(series),
                clean(value) if isinstance(value, str) else "",
                _by_gains(pacing, cwnd),
            )
        )
    return identities


def mislabelled(file: FlentFile, identities: Iterable[Identity]) -> list[str]:
    """Sentences on what the title and the file names say that did not run, and on flows that ran
    something that they do not say; empty if all agree or cannot be checked."""
    identities = list(identities)
    warnings: dict[str, str] = {}
    for source, text in (
        ("the title", file.title),
        ("DATA_FILENAME", file.text("DATA_FILENAME")),
        ("the file name", file.path.name),
    ):
        claims = _claims(text)
        odd = [identity for identity in identities if claims and not _fits(identity, claims)]
        idle = [c for c in claims if not any(_fits(identity, [c]) for identity in identities)]
        if odd:
            ran = ", ".join(
                f"{_described(example)} in {count} of {len(identities)} flows "
                f"(such as {example.series})"
                for example, count in _counted(odd)
            )
            warnings.setdefault(f"{' and '.join(claims)}, but {ran}", source)
        elif idle and identities:
            warnings.setdefault(f"{' and '.join(idle)}, which no flow ran", source)
    return [f"{source} says {sentence}" for sentence, source in warnings.items()]


def _claims(text: str) -> list[str]:
    return list(dict.fromkeys(m.lastgroup for m in _CLAIM.finditer(text) if m.lastgroup))


def _fits(identity: Identity, claims: Iterable[str]) -> bool:
    return any(_agrees(identity, claim) for claim in claims)


def _agrees(identity: Identity, claim: str) -> bool:
    if not identity.cong_control and identity.by_gains is None:
        return True  # unknown, so no contradiction
    if identity.by_gains is not None:
        return claim == "bbr" or claim in identity.by_gains.split(" or ")
    if claim.startswith("bbr"):
        return identity.cong_control.startswith("bbr")
    return identity.cong_control == claim


def _by_gains(pacing: tuple[float, ...], cwnd: tuple[float, ...]) -> str | None:
    votes = Counter(
        table[round(gain * 256)]
        for table, gains in ((_PACING, pacing), (_CWND, cwnd))
        for gain in gains
        if round(gain * 256) in table
    )
    return votes.most_common(1)[0][0] if votes else None


def _gains(values: Floats) -> tuple[float, ...]:
    """The distinct gains; kernels set a handful, so more than 20 are damage and cut."""
    gains = values[~np.isnan(values) & (values >= 0) & (values < 1000)]
    return tuple(float(gain) for gain in np.unique(gains)[:20])


def _described(identity: Identity) -> str:
    name = identity.cong_control or "an unnamed algorithm"
    if identity.by_gains is None or identity.by_gains == identity.cong_control:
        return f"{name} ran"
    return f"{name} ran with the gains of {identity.by_gains}"


def _counted(odd: Iterable[Identity]) -> list[tuple[Identity, int]]:
    """Flows that ran the same, one of them and how many."""
    same: dict[tuple[str, str | None], list[Identity]] = {}
    for identity in odd:
        same.setdefault((identity.cong_control, identity.by_gains), []).append(identity)
    return [(group[0], len(group)) for group in same.values()]
