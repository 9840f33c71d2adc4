"""Figures beside their targets."""

from __future__ import annotations


class Targets:
    """Prints figures and counts the missed targets."""

    def __init__(self) -> None:
        self.missed = 0

    def hold(self, text: str, is_met: bool) -> None:
        """A line of its own, with a mark where the target is missed."""
        self.missed += not is_met
        print(f"{text}{'' if is_met else '  MISSED'}", flush=True)

    def at_most(self, name: str, value: float, unit: str, most: float) -> None:
        """A figure that a target bounds."""
        self.hold(f"{name}: {value:.3g} {unit} (at most {most:g})", value <= most)

    def at_least(self, name: str, value: float, unit: str, least: float) -> None:
        """A figure that has to reach a target."""
        self.hold(f"{name}: {value:.3g} {unit} (at least {least:g})", value >= least)

    @property
    def status(self) -> int:
        """The exit status: 1 where a target was missed."""
        return int(self.missed > 0)
