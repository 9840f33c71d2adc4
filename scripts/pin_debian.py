#!/usr/bin/env python3
"""Pins the Debian packages that fullpipe downloads (python/fullpipe/engines/vm/debian.toml): the
kernels that the archive has with the headers for modules, which of them the names 6.1, 6.12 and 7.3
stand for, and the sources of kernels. Kernels of an earlier table are kept, so that `--kernel
6.12.117` stays available from the snapshot archive.

The lists come from Debian's archive over HTTP; gpgv checks their signatures with Debian's keys.
Each package is downloaded once, since snapshot.debian.org names files by SHA-1, which the lists
leave out. Needs gpgv and the package debian-archive-keyring.
"""

from __future__ import annotations

import argparse
import hashlib
import lzma
import re
import subprocess
import sys
import tempfile
import tomllib
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import tomli_w

ROOT = Path(__file__).resolve().parents[1]
TABLE = ROOT / "python/fullpipe/engines/vm/debian.toml"
KEYS = "/usr/share/keyrings/debian-archive-keyring.gpg"
MIRROR = "http://deb.debian.org"
#: Suites of an archive.
SUITES = {
    "debian": ("bullseye", "bookworm", "bookworm-updates", "trixie", "trixie-backports", "sid"),
    "debian-security": ("bullseye-security", "bookworm-security"),
}
HEAD = """\
# Debian's packages that fullpipe downloads, made by scripts/pin_debian.py: where they lie in the
# archive, and what they must be. `name` has the release that each name of --kernel stands for.

"""


@dataclass(frozen=True)
class Kind:
    """Packages of kernels: the pattern of the image, whose first group is the release; those of its
    modules and of its headers."""

    image: str
    modules: tuple[str, ...] = ()
    headers: tuple[str, ...] = ()


HEADERS = ("linux-headers-{release}", "linux-headers-{common}-common")
KINDS = (
    Kind(
        r"linux-image-(6\.12\.\d+\+deb12-cloud-amd64)-unsigned",
        headers=(*HEADERS, "linux-kbuild-{common}"),
    ),
    Kind(
        r"linux-image-(6\.1\.0-\d+-cloud-amd64)-unsigned",
        headers=(*HEADERS, "linux-kbuild-6.1", "linux-compiler-gcc-12-x86"),
    ),
    Kind(
        r"linux-binary-(\d+\.\d+\.\d+\+deb13-cloud-amd64)",
        modules=("linux-modules-{release}", "linux-base-{release}"),
        headers=("linux-headers-{release}",),
    ),
)
#: Names of `--kernel`, which stand for the newest kernel. The first is the default.
NAMES = ("6.12", "6.1", "7.3")
SOURCE = re.compile(r"linux-source-(\d+\.\d+)")

Row = dict[str, Any]


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--mirror", default=MIRROR, help=f"of Debian's archives; {MIRROR}")
    mirror = parser.parse_args().mirror.rstrip("/")
    listed = [row for archive in SUITES for row in packages(mirror, archive)]
    before = tomllib.loads(TABLE.read_text()) if TABLE.exists() else {}
    pins = {row["sha256"]: row for row in before.get("package", [])}
    kernels = {row["release"]: row for kind in KINDS for row in kernels_of(kind, listed)}
    sources = source_rows(listed)
    for row in [row for made in [*kernels.values(), *sources] for row in made.pop("rows")]:
        if row["sha256"] not in pins:
            pins[row["sha256"]] = checked(mirror, row)
    for row in before.get("kernel", []):
        kernels.setdefault(row["release"], row)
    ordered = sorted(
        kernels.values(),
        key=lambda row: (numbers(row["version"]), numbers(row["release"])),
        reverse=True,
    )
    used = {
        file for row in [*ordered, *sources] for file in row["packages"] + row.get("headers", [])
    }
    table = {
        "name": {name: first(ordered, name) for name in NAMES},
        "kernel": ordered,
        "source": sources,
        "package": sorted(
            (row for row in pins.values() if row["file"] in used), key=lambda row: row["file"]
        ),
    }
    TABLE.write_text(HEAD + tomli_w.dumps(table), encoding="utf-8")
    return 0


def packages(mirror: str, archive: str) -> Iterator[Row]:
    """The packages for amd64 whose names begin with "linux-", of the suites of an archive."""
    for suite in SUITES[archive]:
        place = f"{mirror}/{archive}/dists/{suite}"
        sums = re.findall(r"^ ([0-9a-f]{64}) +\d+ (\S+)$", release(place), re.MULTILINE)
        hashes = {path: value for value, path in sums}
        path = "main/binary-amd64/Packages.xz"
        data = read(f"{place}/{path}")
        if hashlib.sha256(data).hexdigest() != hashes[path]:
            raise SystemExit(f"{place}/{path}: is not what the signed list names")
        for paragraph in lzma.decompress(data).decode().split("\n\n"):
            if paragraph.startswith("Package: linux-"):
                fields = dict(re.findall(r"^([A-Za-z0-9-]+): (.*)$", paragraph, re.MULTILINE))
                yield {"archive": archive, **fields}


def release(place: str) -> str:
    """The signed list of a suite's files. Raises SystemExit if the signature is not Debian's."""
    with tempfile.NamedTemporaryFile() as file:
        file.write(read(f"{place}/InRelease"))
        file.flush()
        done = subprocess.run(
            ["gpgv", "--keyring", KEYS, "--output", "-", file.name], capture_output=True, text=True
        )
    if done.returncode != 0:
        raise SystemExit(f"{place}/InRelease: {done.stderr.strip()}")
    return done.stdout


def kernels_of(kind: Kind, listed: list[Row]) -> Iterator[Row]:
    """The rows of all kernels of a kind whose modules are there."""
    for image in listed:
        match = re.fullmatch(kind.image, image["Package"])
        version = re.match(r"\d+\.\d+\.\d+", image["Version"])
        if match is None or version is None:
            continue
        names = {"release": match[1], "common": match[1].removesuffix("-cloud-amd64")}
        same = {row["Package"]: row for row in listed if row["Version"] == image["Version"]}
        modules = [same[name] for name in spelled(kind.modules, names) if name in same]
        headers = [same[name] for name in spelled(kind.headers, names) if name in same]
        if len(modules) < len(kind.modules):
            continue
        if len(headers) < len(kind.headers):
            headers = []
        yield {
            "version": version[0],
            "release": match[1],
            "packages": [file_of(row) for row in [image, *modules]],
            "headers": [file_of(row) for row in headers],
            "rows": [pin(row) for row in [image, *modules, *headers]],
        }


def spelled(names: tuple[str, ...], values: dict[str, str]) -> list[str]:
    return [name.format(**values) for name in names]


def source_rows(listed: list[Row]) -> list[Row]:
    """The rows of all sources of kernels, the newest package of each."""
    sources = [row for row in listed if SOURCE.fullmatch(row["Package"])]
    newest = {
        row["Package"]: row for row in sorted(sources, key=lambda row: numbers(row["Version"]))
    }
    return [
        {
            "version": row["Package"].removeprefix("linux-source-"),
            "packages": [file_of(row)],
            "rows": [pin(row)],
        }
        for row in sorted(newest.values(), key=lambda row: numbers(row["Package"]))
    ]


def first(kernels: list[Row], name: str) -> str:
    """The release of the newest kernel that a name stands for."""
    for row in kernels:
        if row["version"].startswith(f"{name}."):
            return str(row["release"])
    raise SystemExit(f"{name}: Debian has no such kernel")


def numbers(version: str) -> list[int]:
    """Orders versions of a package. `~` sorts before everything in Debian, so it is a -1."""
    return [-1 if part == "~" else int(part) for part in re.findall(r"\d+|~", version)]


def pin(row: Row) -> Row:
    return {
        "file": file_of(row),
        "archive": row["archive"],
        "path": row["Filename"],
        "size_bytes": int(row["Size"]),
        "sha256": row["SHA256"],
    }


def file_of(row: Row) -> str:
    return Path(row["Filename"]).name


def checked(mirror: str, row: Row) -> Row:
    """The row with the package's SHA-1. Raises SystemExit if the package is another."""
    print(f"{row['file']} ({row['size_bytes'] / 1e6:.0f} MB)", file=sys.stderr)
    data = read(f"{mirror}/{row['archive']}/{row['path']}")
    if hashlib.sha256(data).hexdigest() != row["sha256"]:
        raise SystemExit(f"{row['file']}: is not what the signed list names")
    return {**row, "sha1": hashlib.sha1(data).hexdigest()}


def read(address: str) -> bytes:
    with urllib.request.urlopen(address, timeout=300) as answer:
        return bytes(answer.read())


if __name__ == "__main__":
    sys.exit(main())
