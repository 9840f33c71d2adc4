"""What a kernel, or a kernel's file in the simulator, logged in a run, as a terminal shows it."""

from __future__ import annotations

import re

from fullpipe.base.units import counted

#: The first lines, and of the first warning with its calls so many.
_FIRST, _MOST_OF_WARNING = 10, 100
#: How a kernel frames a warning (kernel/panic.c, __warn()).
_BEGIN, _END = "[ cut here ]", "[ end trace "
#: What a kernel says of itself in every run.
_CHATTER = ("random: crng init done",)
#: What the log says of lines that it does not have.
_ABSENT = re.compile(r"^\((\d+) lines (?:more|lost)", re.M)


def shown(log: str) -> list[str]:
    """The first lines, the first warning whole, and how many lines there were."""
    lines = [line for line in log.splitlines() if not line.endswith(_CHATTER)]
    begin = next((at for at, line in enumerate(lines) if _BEGIN in line), len(lines))
    # A log that was cut off may lack the end.
    ends = (at for at, line in enumerate(lines) if at > begin and _END in line)
    end = next(ends, len(lines) - 1)
    end = min(end, begin + _MOST_OF_WARNING)
    told = lines[: min(_FIRST, begin)]
    if begin > _FIRST and begin < len(lines):
        told.append(f"({counted(begin - _FIRST, 'line')})")
    told += lines[begin : end + 1]
    hidden = len(lines) - min(_FIRST, begin) - len(lines[begin : end + 1])
    absent = sum(int(number) for number in _ABSENT.findall(log))
    rows = len(lines) - len(_ABSENT.findall(log))
    if hidden or absent:
        kept = f"of which {rows:,} are" if absent else "all"
        told.append(
            f"kernel log: {rows + absent:,} lines, {kept} in the report and the recording's facts"
        )
    return told
