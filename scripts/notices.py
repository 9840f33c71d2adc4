#!/usr/bin/env python3
"""Writes THIRD-PARTY-NOTICES.txt: the licences of what the wheel contains beside fullpipe itself.

That is the Rust crates of the Python module and the agent, from Cargo.lock as `cargo metadata`
resolves it, with the texts that the crates ship; and the C libraries in the agent. With --check:
exit status 1 if the file is not what this machine would write.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from textwrap import fill
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
FILE = ROOT / "THIRD-PARTY-NOTICES.txt"
#: What a wheel's programs are built from.
ROOTS = ("fullpipe-py", "fullpipe-agent")
RULE = "=" * 100
TEXTS = ("LICENSE*", "LICENCE*", "COPYING*", "NOTICE*", "UNLICENSE*")
HEAD = """\
Third-party software in fullpipe's wheel. Made by scripts/notices.py.

C libraries that python/fullpipe/assets/fullpipe-agent is linked with, statically, as Debian 12 has
them. Their complete sources are Debian's source packages of the same name, kept for ever at
https://snapshot.debian.org. The agent's own source and build script are in fullpipe's source
distribution, so that it can be linked again with other versions of them.

  glibc      LGPL-2.1-or-later                     source package glibc
  libelf     LGPL-3.0-or-later OR GPL-2.0-or-later source package elfutils
  zlib       Zlib                                  source package zlib
  libbpf     LGPL-2.1-only OR BSD-2-Clause         in the crate libbpf-sys, below

Reports (HTML) contain Plotly.js, (c) Plotly Inc., MIT, from the Python package plotly.

The texts of the GPL and LGPL are at https://www.gnu.org/licenses/; GPL-2.0 is among the licence
files of this package.
"""


def main() -> int:
    third = list(packages())
    text = HEAD + f"\n{RULE}\nRust crates\n\n" + "".join(map(title, third)) + texts_of(third)
    if "--check" in sys.argv[1:]:
        if FILE.read_text(encoding="utf-8") != text:
            print(f"{FILE.name} is not up to date: scripts/notices.py writes it", file=sys.stderr)
            return 1
        return 0
    FILE.write_text(text, encoding="utf-8")
    return 0


def packages() -> Iterator[dict[str, Any]]:
    """Third-party crates that the programs link, by name and version; not those that only build
    or test."""
    command = ["cargo", "metadata", "--format-version=1", "--locked",
               "--filter-platform=x86_64-unknown-linux-gnu"]  # fmt: skip
    out = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True).stdout
    metadata = json.loads(out)
    by_id = {package["id"]: package for package in metadata["packages"]}
    nodes = {node["id"]: node for node in metadata["resolve"]["nodes"]}
    todo = [key for key, package in by_id.items() if package["name"] in ROOTS]
    linked: set[str] = set()
    while todo:
        key = todo.pop()
        if key in linked:
            continue
        linked.add(key)
        todo += [
            dependency["pkg"]
            for dependency in nodes[key]["deps"]
            if any(kind["kind"] is None for kind in dependency["dep_kinds"])
        ]
    third = [by_id[key] for key in linked if by_id[key]["source"] is not None]
    yield from sorted(third, key=lambda package: (package["name"], package["version"]))


def title(package: dict[str, Any]) -> str:
    where = package["repository"] or ""
    return f"  {package['name']} {package['version']}: {package['license']} {where}\n"


def texts_of(third: list[dict[str, Any]]) -> str:
    """The texts that crates ship. One that many crates have, but for layout, stands once."""
    shared: dict[str, tuple[str, list[str]]] = {}
    for package in third:
        folder = Path(package["manifest_path"]).parent
        for path in sorted({path for name in TEXTS for path in folder.glob(name)}):
            if path.is_file():
                text = path.read_text(encoding="utf-8", errors="replace").strip()
                _, names = shared.setdefault(" ".join(text.split()), (text, []))
                names.append(f"{package['name']} {package['version']}")
    return "".join(
        f"\n{RULE}\n{fill(', '.join(dict.fromkeys(names)), 100)}\n\n{text}\n"
        for text, names in shared.values()
    )


if __name__ == "__main__":
    sys.exit(main())
