"""The cost of cc/fixed.h and cc/minmax.h: the instructions that clang makes of each function for
eBPF, as a table. None keeps a loop, so that no call costs more.

Usage: `.venv/bin/python benches/bench_fixed.py`, for docs/reference/fixed-point.md.
"""

from __future__ import annotations

import re
import subprocess
import tempfile
from pathlib import Path

ROOT = Path(__file__).parents[1]

#: Function -> its result's type, and its arguments.
FUNCTIONS = {
    "cc_log2": ("u32", "u64 a", "a"),
    "cc_log2_q16": ("u32", "u64 a", "a"),
    "cc_exp2_q16": ("u64", "u32 a", "a"),
    "cc_sqrt": ("u32", "u64 a", "a"),
    "cc_cbrt": ("u32", "u64 a", "a"),
    "cc_div_s64": ("s64", "s64 a, s64 b", "a, b"),
    "cc_div_s32": ("s32", "s32 a, s32 b", "a, b"),
    "cc_mul_shift": ("u64", "u64 a, u32 b, u32 c", "a, b, c"),
    "cc_mul_shift_u32": ("u32", "u64 a, u32 b, u32 c", "a, b, c"),
    "cc_ewma": ("u64", "u64 a, u64 b, u32 c", "a, b, c"),
    "cc_random_start": ("u32", "u32 a", "a"),
    "cc_random_below": ("u32", "u32 *a, u32 b", "a, b"),
    "cc_max_update": ("void", "struct cc_minmax *m, u32 a, u32 b, u32 c", "m, a, b, c"),
    "cc_min_update": ("void", "struct cc_minmax *m, u32 a, u32 b, u32 c", "m, a, b, c"),
}
_INSTRUCTION = re.compile(r"^\s+\d+:\s+(?:[0-9a-f]{2}\s)+\s*(.*)$", re.M)


def counted(name: str) -> tuple[int, int, int]:
    """Instructions of one function, and how many of them are divisions and branches."""
    kind, declared, passed = FUNCTIONS[name]
    result = "" if kind == "void" else "return "
    text = (
        f'#include "{ROOT}/cc/fixed.h"\n#include "{ROOT}/cc/minmax.h"\n'
        f"{kind} f({declared}) {{ {result}{name}({passed}); }}\n"
    )
    with tempfile.TemporaryDirectory() as folder:
        source, made = Path(folder, "f.c"), Path(folder, "f.o")
        source.write_text(text)
        build = ["clang", "-O2", "-target", "bpf", "-mcpu=v3", "-c", str(source), "-o", str(made)]
        subprocess.run(build, check=True)
        listing = subprocess.run(
            ["llvm-objdump", "-d", str(made)], check=True, capture_output=True, text=True
        ).stdout
    lines = _INSTRUCTION.findall(listing)
    divisions = sum("/=" in line for line in lines)
    branches = sum(line.startswith("if ") for line in lines)
    return len(lines) - 1, divisions, branches


def main() -> None:
    print("| function | instructions | of those divisions | branches |\n|---|---|---|---|")
    for name in FUNCTIONS:
        print(f"| `{name}` | " + " | ".join(map(str, counted(name))) + " |")


if __name__ == "__main__":
    main()
