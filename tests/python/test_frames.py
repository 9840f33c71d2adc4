"""What a worker sends is read by one decoder, which refuses what no worker sends."""

from __future__ import annotations

import random
import struct
from typing import Any

import pytest

from fullpipe.congestion.userfiles import frames, limits
from fullpipe.congestion.userfiles.frames import ForgedError, Frames, counts, unpacked
from fullpipe.congestion.userfiles.protocol import Bounds, Job
from fullpipe.congestion.userfiles.worker import message, packed

END_NS = 10**9
U64 = struct.pack("<2Q", 1, 2)


def raw(text: bytes, blobs: bytes = b"", claimed: int | None = None) -> bytes:
    """A frame: bytes of text and of columns (u32, u64, little-endian), then both."""
    return struct.pack("<IQ", len(text), len(blobs) if claimed is None else claimed) + text + blobs


def sent(content: dict[str, Any], *blobs: bytes) -> bytes:
    return b"".join(message(content, blobs))


def read(data: bytes, **bounds: Any) -> list[frames.Frame]:
    return Frames(**{"end_ns": END_NS, **bounds}).add(data)


def test_what_a_worker_sends_arrives_however_the_pipe_cuts_it() -> None:
    blobs: list[bytes] = []
    tables = {"t": {"a": ("u64", U64), "b": ("text", ["x", "y"]),
                    "c": ("opt_f64", (U64, b"\1\0"))}}  # fmt: skip
    rows = {"rows": packed(tables, blobs)}
    data = sent({"ready": ["files"]}) + sent({"progress": 5}) + sent(rows, *blobs)
    decoder = Frames(end_ns=END_NS)
    found = [frame for byte in data for frame in decoder.add(bytes([byte]))]
    assert [(frame.kind, frame.value) for frame in found[:2]] == [
        ("ready", ["files"]), ("progress", 5),
    ]  # fmt: skip
    assert unpacked(found[2].value, found[2].blobs) == tables
    assert [frame.kind for frame in read(data)] == ["ready", "progress", "rows"]


@pytest.mark.parametrize("value", ["Infinity", "NaN", "-1", "1.5", "true", "null", '"1"', "[]",
                                   str(2**64), str(END_NS + 1), "9" * 5000])  # fmt: skip
def test_progress_is_a_whole_number_of_ns_up_to_the_end(value: str) -> None:
    with pytest.raises(ForgedError):
        read(raw(b'{"progress": %s, "blobs": []}' % value.encode()))


def test_a_job_without_simulated_time_makes_no_progress() -> None:
    with pytest.raises(ForgedError):
        read(sent({"progress": 0}), end_ns=None)


@pytest.mark.parametrize("content", [
    b"", b"{", b"[]", b"1", b"null", b"\xff", b"[" * 100_000, b'{"blobs": []}',
    b'{"progress": 1}', b'{"progress": 1, "blobs": {}}', b'{"progress": 1, "blobs": [0.0]}',
    b'{"progress": 1, "blobs": [-1, 1]}', b'{"progress": 1, "done": 1, "blobs": []}',
    b'{"other": 1, "blobs": []}', b'{"error": 1, "blobs": []}', b'{"error": null, "blobs": []}',
    b'{"bases": [], "blobs": []}', b'{"bases": {"a": "b"}, "blobs": []}',
    b'{"bases": {"a": Infinity}, "blobs": []}', b'{"ready": ["all"], "blobs": []}',
    b'{"ready": [[]], "blobs": []}', b'{"ready": 1, "blobs": []}', b'{"rows": [], "blobs": []}',
    b'{"rows": {"t": 1}, "blobs": []}', b'{"rows": {"t": {"c": 1}}, "blobs": []}',
])  # fmt: skip
def test_what_is_no_frame_is_refused(content: bytes) -> None:
    with pytest.raises(ForgedError):
        read(raw(content))


@pytest.mark.parametrize("data", [
    raw(b"")[:4].replace(b"\0\0\0\0", b"\xff\xff\xff\xff") + bytes(8),
    raw(b'{"rows": {}, "blobs": [2621440000]}', claimed=2500 << 20),
    raw(b'{"done": {}, "blobs": [2621440000]}', claimed=2500 << 20),
    raw(b'{"progress": 1, "blobs": [8]}', claimed=8),
    raw(b'{"progress": 1, "blobs": [18446744073709551615]}', claimed=2**64 - 1),
])  # fmt: skip
def test_a_frame_beyond_its_bound_is_refused_before_its_content_comes(data: bytes) -> None:
    with pytest.raises(ForgedError, match="at most"):
        read(data)


def test_the_words_of_an_error_have_a_bound() -> None:
    (frame,) = read(sent({"error": "x" * 900_000, "kind": "user"}))
    assert len(frame.value) < frames.MAX_WORDS + 100 and not frame.is_simulators


@pytest.mark.parametrize(("layout", "blobs"), [
    ([], []), ({"t": {"c": "u64"}}, []), ({"t": {"c": "opt_u64"}}, [U64]), ({}, [U64]),
    ({"t": {"c": "u64"}}, [U64[:-1]]), ({"t": {"c": "u64", "d": "f64"}}, [U64, U64[:8]]),
    ({"t": {"c": "u8"}}, [U64]), ({"t": {"c": "text"}}, [b"[1]"]), ({"t": {"c": "text"}}, [b"{"]),
    ({"t": {"c": "text"}}, [b"[" * 100_000]), ({"t": {"c": "opt_u64"}}, [U64, b"\1"]),
])  # fmt: skip
def test_tables_that_do_not_fit_their_columns_are_refused(layout: Any, blobs: Any) -> None:
    with pytest.raises(ForgedError):
        unpacked(layout, blobs)


@pytest.mark.parametrize("value", [None, [], {"a": -1}, {"a": float("inf")}, {"a": []},
                                   {"a": True}])  # fmt: skip
def test_counts_are_whole_numbers(value: Any) -> None:
    assert counts({"dropped": 3}) == {"dropped": 3}
    with pytest.raises(ForgedError):
        counts(value)


def test_no_bytes_raise_anything_else() -> None:
    random_ = random.Random(54)
    whole = sent({"rows": {"t": {"a": "u64"}}}, U64) + sent({"progress": 7}) + sent(
        {"done": {"tables": {}, "health": {}}}
    )  # fmt: skip
    refused = 0
    for _ in range(3000):
        data = bytearray(whole)
        for _ in range(random_.randint(1, 4)):
            place = random_.randrange(len(data))
            data[place : place + random_.choice([0, 1])] = random_.randbytes(random_.choice([0, 1]))
        try:
            for frame in read(bytes(data)):
                if frame.kind == "rows":
                    unpacked(frame.value, frame.blobs)
        except ForgedError:
            refused += 1
    assert refused > 1000


def test_steps_of_a_nanosecond_do_not_restart_the_clock_of_stalls() -> None:
    """Of a run of 1 s, 1 ms has to pass: 1000 limits are the most that it takes."""
    job = Job(2**31 - 1, Bounds(end_ns=END_NS))
    job.advance(1)
    job.clock.stalled_s = 1.0
    for done_ns in range(2, 1000):
        job.advance(done_ns)
    assert job.clock.stalled_s == 1.0
    job.advance(1_000_001)
    assert job.clock.stalled_s == 0.0


def test_rows_without_simulated_time_have_a_bound() -> None:
    job = Job(2**31 - 1, Bounds(end_ns=END_NS))
    job.count_rows(1 << 30)
    with pytest.raises(ForgedError, match="no time passes"):
        job.count_rows(1)


def test_rows_of_a_run_have_a_bound_whatever_time_passes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(limits.OUTPUT_MIB, "2")
    job = Job(2**31 - 1, Bounds(end_ns=END_NS))
    for done_ns in (END_NS // 2, END_NS):
        job.advance(done_ns)
        job.count_rows(1 << 20)
    with pytest.raises(ForgedError, match=r"more than 2 MiB of output \(FULLPIPE_ALGORITHM_OUTPUT"):
        job.count_rows(1)
