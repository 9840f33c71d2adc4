"""Damaged and hostile Flent files: refused with one clear line, within bounds, never a crash."""

from __future__ import annotations

import bz2
import copy
import gzip
import json
import os
import random
import struct
import subprocess
import sys
import zlib
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from flent_documents import MEASURED, flent_document, measured_document, write_document
from fullpipe.flent import FlentError, read_flent
from fullpipe.flent.container import MAX_BYTES, MAX_CONTAINERS, MAX_KEYS, MAX_VALUES

#: What a value may become. The last are written by hand: JSON has no such numbers.
WRONG: list[Any] = [
    None, True, "", "text", "nan", "1e999", "\ud800", "\x1b[31m[bold]", -1, -1e-300, 1e308, -1e308,
    2**63, 10**300, 0, 4.5, [], {}, [[]], [None], {"t": 1}, [{"t": "x"}], [{"t": 1, "val": []}],
    "@NaN@", "@Infinity@", "@1e999@", "@" + "9" * 400 + "@", "@" + "9" * 5_000 + "@",
    "@" + "[" * 50_000 + "]" * 50_000 + "@",
]  # fmt: skip


def run_child(paths: Sequence[Path]) -> tuple[list[dict[str, Any]], int]:
    """What became of each file, and the peak memory of the process in bytes."""
    child = subprocess.run(
        [sys.executable, str(Path(__file__).with_name("flent_child.py"))],
        input="\n".join(map(str, paths)), capture_output=True, text=True, check=False,
        env={**os.environ, "PYTHONIOENCODING": "utf-8", "OPENBLAS_NUM_THREADS": "1"},
    )  # fmt: skip
    assert child.returncode == 0, child.stderr[-3000:]
    lines = [json.loads(line) for line in child.stdout.splitlines()]
    assert len(lines) == len(paths) + 1
    return lines[:-1], lines[-1]["peak_kib"] * 1024


def places(value: Any, at: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """The way to every value within a document; of long lists only some."""
    found = [at] if at else []
    if isinstance(value, dict):
        for key, item in value.items():
            found += places(item, (*at, key))
    elif isinstance(value, list):
        for index in sorted({0, 1, len(value) // 2, len(value) - 1} & set(range(len(value)))):
            found += places(value[index], (*at, index))
    return found


def edited(document: dict[str, Any], rng: random.Random, edit: Callable[[Any, Any], None]) -> str:
    """The text of the document with one place edited."""
    document = copy.deepcopy(document)
    *way, last = rng.choice(places(document))
    parent: Any = document
    for key in way:
        parent = parent[key]
    edit(parent, last)
    text = json.dumps(document)
    for wrong in WRONG:
        if isinstance(wrong, str) and wrong.startswith("@"):
            text = text.replace(f'"{wrong}"', wrong.strip("@"))
    return text


def mutated(seed: int, document: dict[str, Any]) -> bytes:
    """A file made from the document by one of nine ways to damage it."""
    rng = random.Random(seed)
    text = json.dumps(document).encode()
    packed = gzip.compress(text, mtime=0)

    def flipped(data: bytes) -> bytes:
        out = bytearray(data)
        for _ in range(rng.choice([1, 1, 3, 20])):
            out[rng.randrange(len(out))] ^= 1 << rng.randrange(8)
        return bytes(out)

    def replace(parent: Any, key: Any) -> None:
        parent[key] = copy.deepcopy(rng.choice(WRONG))

    def remove(parent: Any, key: Any) -> None:
        del parent[key]

    def rename(parent: Any, key: Any) -> None:
        if isinstance(parent, dict):
            parent[rng.choice(["", "TCP upload", "t", "x" * 600, "\ud800"])] = parent.pop(key)
        else:
            parent.insert(key, copy.deepcopy(parent[key]))

    ways: list[Callable[[], bytes]] = [
        lambda: packed[: rng.randrange(len(packed))],
        lambda: flipped(packed),
        lambda: gzip.compress(flipped(text), mtime=0),
        lambda: gzip.compress(text[: rng.randrange(len(text))], mtime=0),
        lambda: gzip.compress(edited(document, rng, replace).encode(), mtime=0),
        lambda: gzip.compress(edited(document, rng, replace).encode(), mtime=0),
        lambda: gzip.compress(edited(document, rng, remove).encode(), mtime=0),
        lambda: gzip.compress(edited(document, rng, rename).encode(), mtime=0),
        lambda: packed + rng.randbytes(rng.randrange(1, 100)),
        lambda: rng.randbytes(rng.randrange(1, 2000)),
    ]
    return ways[seed % len(ways)]()


def check(outcomes: list[dict[str, Any]]) -> None:
    """Each file was imported, or refused in one printable line that names it."""
    for outcome in outcomes:
        said = outcome["outcome"]
        assert said == "imported" or said.startswith("refused: "), outcome
        if said != "imported":
            assert said.isprintable() and len(said) < 600, said
            assert outcome["file"] in said


def test_200_mutated_files_never_crash(tmp_path: Path) -> None:
    documents = [flent_document(), older_document()]
    paths = []
    for seed in range(200):
        path = tmp_path / f"mutated-{seed:03d}.flent.gz"
        path.write_bytes(mutated(seed, documents[seed % 3 == 0]))
        paths.append(path)
    outcomes, peak = run_child(paths)
    check(outcomes)
    refused = [one for one in outcomes if one["outcome"] != "imported"]
    assert 100 < len(refused) < 200  # neither harmless nor hopeless mutations alone
    assert peak < 1e9


def test_mutated_files_of_other_tests_never_crash(tmp_path: Path) -> None:
    paths = []
    for seed, run in enumerate(MEASURED * 4):
        path = tmp_path / f"measured-{seed:03d}.flent.gz"
        path.write_bytes(mutated(seed + 1000, measured_document(run)))
        paths.append(path)
    outcomes, peak = run_child(paths)
    check(outcomes)
    assert peak < 1e9


def older_document() -> dict[str, Any]:
    """A version 1 file: raw values within SERIES_META."""
    document = flent_document()
    for name, values in document.pop("raw_values").items():
        document["metadata"]["SERIES_META"].setdefault(name, {})["RAW_VALUES"] = values
    del document["version"]
    return document


def bomb(first: bytes, block: bytes, blocks: int) -> bytes:
    """A gzip file of `first` and then so many times `block`: packed once, since after a full flush
    what a block is packed to does not depend on what was before."""
    packer = zlib.compressobj(9, wbits=-zlib.MAX_WBITS)
    head = packer.compress(first) + packer.flush(zlib.Z_FULL_FLUSH)
    middle = packer.compress(block) + packer.flush(zlib.Z_FULL_FLUSH)
    checksum = zlib.crc32(first)
    for _ in range(blocks):
        checksum = zlib.crc32(block, checksum)
    size = (len(first) + blocks * len(block)) % 2**32
    header = gzip.compress(b"", mtime=0)[:10]
    return b"".join((header, head, *([middle] * blocks), packer.flush(),
                     struct.pack("<II", checksum, size)))  # fmt: skip


def test_compression_bombs_are_refused_before_they_unfold(tmp_path: Path) -> None:
    megabyte = b"0" * 2**20
    makers = {
        "zeros": bomb(b'{"x_values": [', megabyte, 600),
        "nested": bomb(b'{"x_values": ', b"[" * 2**20, 600),
        "spaces": bomb(b"{", b" " * 2**20, 600),
        "bz2": bz2.compress(b"[" + megabyte * 100),
        "members": gzip.compress(b"", mtime=0) * 100_000,
    }
    paths = []
    for name, data in makers.items():
        paths.append(tmp_path / f"{name}.flent.gz")
        paths[-1].write_bytes(data)
    outcomes, peak = run_child(paths)
    check(outcomes)
    for outcome in outcomes[:4]:
        assert "unpacks to more than 48 MiB" in outcome["outcome"]
    assert "compressed members" in outcomes[4]["outcome"]
    assert peak < 5e8


def worst_texts() -> dict[str, str]:
    """Within every bound of container.py, what costs the most memory to parse."""
    head = '{"version": 4, "metadata": {"NAME": "x", "SERIES_META": {}}, "x_values": [], '
    keys = min(MAX_KEYS, MAX_VALUES) - 100
    names = ",".join(f'"{i:x}":0' for i in range(keys))
    lists = ",".join(["[]"] * (MAX_CONTAINERS - 100))
    objects = ",".join(['{"t":1}'] * (MAX_CONTAINERS - 100))
    floats = ",".join(f"{i}.5" for i in range(MAX_VALUES - 100))
    half = ",".join(f"{i}.5" for i in range(MAX_CONTAINERS - 100))
    entries = ",".join(f'{{"t":{i},"val":1}}' for i in range(MAX_CONTAINERS // 1000 - 10))
    more = '"b": {' + names + "}}"
    wide = "\N{GRINNING FACE}" + "a" * (MAX_BYTES - 40_000_000)
    return {
        "keys": head + '"results": {}, "raw_values": {}, "more": {' + names + "}}",
        "series": head + '"results": {' + names + '}, "raw_values": {}}',
        "lists": head + '"results": {}, "raw_values": {"a": [' + lists + "]}}",
        "objects": head + '"results": {}, "raw_values": {"Ping (ms) a": [' + objects + "]}}",
        "floats": head.replace("[]", f"[{floats}]") + '"results": {}, "raw_values": {}}',
        "wide": head + '"results": {}, "raw_values": {}, "a": "' + wide + '", ' + more,
        "oldest": '{"metadata": {"NAME": "x", "TIME": "2026-01-01T00:00:00"}, "x_values": ['
        + half + '], "results": {"TCP upload": [' + half + "]}}",
        "flows": head + '"results": {}, "raw_values": {'
        + ",".join(f'"TCP upload::{i}":[{entries}]' for i in range(1000)) + "}}",
    }  # fmt: skip


@pytest.mark.slow
def test_the_worst_text_within_the_bounds_stays_below_a_gigabyte(tmp_path: Path) -> None:
    for name, text in worst_texts().items():
        assert len(text.encode()) <= MAX_BYTES, name
        path = tmp_path / f"{name}.flent.gz"
        path.write_bytes(gzip.compress(text.encode(), compresslevel=1))
        outcomes, peak = run_child([path])
        assert outcomes[0]["outcome"] == "imported" or "refused" in outcomes[0]["outcome"]
        assert peak < 1e9, (name, peak)


def test_what_is_no_file_is_refused_without_waiting(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.flent.gz")
    for path, message in (
        (tmp_path / "pipe.flent.gz", "is a pipe, not a regular file"),
        (tmp_path, "is a folder, not a regular file"),
        (tmp_path / "absent.flent.gz", "No such file"),
    ):
        with pytest.raises(FlentError, match=message):
            read_flent(path)


def test_many_series_are_refused(tmp_path: Path) -> None:
    document = flent_document()
    document["raw_values"] |= {f"TCP upload::{n}": [] for n in range(2000)}
    with pytest.raises(FlentError, match="more than 1000 flows, probes or qdiscs"):
        read_flent(write_document(tmp_path / "many.flent.gz", document))


def test_a_probe_that_skips_far_ahead_is_refused(tmp_path: Path) -> None:
    document = flent_document()
    document["raw_values"]["Ping (ms) ICMP"][-1]["seq"] = 1e12
    path = write_document(tmp_path / "far.flent.gz", document)
    outcomes, _ = run_child([path])
    assert "numbers are missing" in outcomes[0]["outcome"]
