"""Files from outside, damaged at random: each is read, or refused in one or two lines that name
it. Anything else, a traceback above all, is a fault.

`make swarm` draws new examples (conftest.py), as many as FULLPIPE_FUZZ_EXAMPLES says; hypothesis
prints what repeats a failure.
"""

from __future__ import annotations

import bz2
import copy
import gzip
import itertools
import json
import os
import struct
import tomllib
from collections.abc import Callable
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import dpkt
import pytest
import tomli_w
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from flent_documents import flent_document
from fullpipe import _native
from fullpipe.base.errors import UserError
from fullpipe.flent import read_flent
from fullpipe.plan.resolve import resolve
from fullpipe.scenario import link_traces
from fullpipe.scenario.model import load_scenario, make_scenario
from fullpipe.scenario.traffic import captures, traces
from fullpipe.sweep.file import load_sweep
from generate import generate

pytestmark = pytest.mark.slow

fuzz = settings(
    max_examples=int(os.environ.get("FULLPIPE_FUZZ_EXAMPLES", 150)),
    suppress_health_check=list(HealthCheck),
)

#: What a value may become.
HOSTILE = st.one_of(
    st.sampled_from([
        "", " ", "0", "-1", "1e999", "nan", "inf", "1" * 400, "99999999999gbit", "-5ms", "1.5.2s",
        "5 ms", "ms", "1e300bdp", "0x10", "٣ms", "\x00", "\x1b[31m", "../etc/passwd", "/dev/zero",
        "a" * 5000, "cubic[", "cubic[beta=]", "cubic[beta=1e400]", "kernel:", "./x.py:Y", ".", "/",
        "CS0", "bbr3", "1pkt", "100%", "mawi", "websearch",
    ]),
    st.integers(-(2**70), 2**70),
    st.floats(),
    st.booleans(),
    st.text(max_size=12),
    st.sampled_from([[], {}, [[]], [{}], {"a": {}}, [1, "2", None], {"base": "cubic"}, {"": 1}]),
    st.lists(st.sampled_from(["1s", "2mbit", 0, -1, "x"]), max_size=4),
)  # fmt: skip


def _places(value: Any, at: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """The way to every value within a document."""
    found = [at] if at else []
    items: Any = ()
    if isinstance(value, dict):
        items = value.items()
    elif isinstance(value, list):
        items = enumerate(value)
    for key, item in items:
        found += _places(item, (*at, key))
    return found


@st.composite
def edits(draw: st.DrawFn, document: Any) -> Any:
    """A document with some of its values replaced, removed, renamed or copied elsewhere."""
    document = copy.deepcopy(document)
    for _ in range(draw(st.integers(1, 3))):
        places = _places(document)
        if not places:
            return document
        *way, key = draw(st.sampled_from(places))
        parent = document
        for step in way:
            parent = parent[step]
        kind = draw(st.sampled_from(["replace", "replace", "remove", "rename", "move", "nest"]))
        if kind == "replace":
            parent[key] = copy.deepcopy(draw(HOSTILE))
        elif kind == "remove":
            del parent[key]
        elif kind == "rename" and isinstance(parent, dict):
            parent[draw(st.sampled_from(["", "x", "rate", "kind", "__class__"]))] = parent.pop(key)
        elif kind == "move":
            *_, other = draw(st.sampled_from(places))
            if isinstance(parent, dict) and isinstance(other, str):
                parent[other] = copy.deepcopy(parent[key])
        else:
            parent[key] = [parent[key]] if draw(st.booleans()) else {"x": parent[key]}
    return document


@st.composite
def damage(draw: st.DrawFn, whole: bytes) -> bytes:
    """Content cut off, with bits flipped, bytes replaced, or a part repeated."""
    data = bytearray(whole)
    for _ in range(draw(st.integers(1, 4))):
        at = draw(st.integers(0, max(0, len(data) - 1)))
        kind = draw(st.sampled_from(["cut", "flip", "replace", "insert", "repeat", "length"]))
        if kind == "cut":
            del data[at:]
        elif kind == "flip" and data:
            data[at] ^= 1 << draw(st.integers(0, 7))
        elif kind == "replace":
            patch = draw(st.binary(max_size=8))
            data[at : at + len(patch)] = patch
        elif kind == "insert":
            data[at:at] = draw(st.binary(max_size=16))
        elif kind == "repeat":
            data[at:at] = data[at : at + draw(st.integers(1, 200))]
        else:
            data[at : at + 4] = draw(st.sampled_from([b"\xff" * 4, bytes(4), b"\xff\xff\xff\x7f"]))
    return bytes(data)


@cache
def _toml(seed: int) -> dict[str, Any]:
    """A scenario of the swarm, without files, as TOML holds it."""
    while generate(seed).files:
        seed += 1000
    return tomllib.loads(tomli_w.dumps(generate(seed).document))


def _written(document: Any) -> bytes:
    try:
        return tomli_w.dumps(document).encode("utf-8", "surrogatepass")
    except (TypeError, AttributeError, ValueError, RecursionError):
        return repr(document).encode("utf-8", "surrogatepass")


def _tried(read: Callable[[Path], Any], content: bytes, name: str, error: Any = UserError) -> Any:
    """What comes of reading a file with this content; None if it was refused as it should be."""
    with TemporaryDirectory() as folder:
        path = Path(folder) / name
        path.write_bytes(content)
        try:
            return read(path)
        except error as refusal:
            text = str(refusal)
            assert text.count("\n") < 2, text
            assert name in text, text
            assert len(text) < 3000, text
            assert text.isprintable() or "\n" in text, repr(text)
            return None


def _resolved(path: Path) -> Any:
    scenario = load_scenario(path)
    try:
        plan = resolve(scenario)
    except UserError as error:
        raise UserError(f"{path}: {error}") from None  # contradictions name keys, not the file
    json.dumps(plan, allow_nan=False)
    return scenario


@fuzz
@given(st.data())
def test_a_damaged_scenario_is_resolved_or_refused(data: st.DataObject) -> None:
    document = _toml(data.draw(st.integers(0, 60)))
    if data.draw(st.integers(0, 3)):
        content = _written(data.draw(edits(document)))
    else:
        content = data.draw(damage(_written(document)))
    scenario = _tried(_resolved, content, "damaged.toml")
    if scenario is not None:
        again = make_scenario(tomllib.loads(content.decode()))
        assert resolve(again) == resolve(scenario)


@fuzz
@given(st.data())
def test_a_damaged_sweep_is_read_or_refused(data: st.DataObject) -> None:
    document = {
        "scenario": {
            "duration": "2s",
            "path": {"rate": "10mbit", "rtt": "20ms", "buffer": "1bdp"},
            "flow": [{"cc": "cubic", "count": 2}, {"cc": "bbr3"}],
        },
        "axis": {
            "path.rate": ["1mbit", "10mbit"],
            "flow.0.cc": ["cubic", "reno"],
            "buffer": {"keys": ["path.buffer"], "values": ["1bdp", "2bdp"]},
        },
        "sweep": {"seeds": 3, "where": "path.rate != '1mbit'", "name": "swarm"},
    }
    if data.draw(st.integers(0, 3)):
        content = _written(data.draw(edits(document)))
    else:
        content = data.draw(damage(_written(document)))
    _tried(load_sweep, content, "damaged.toml")


@fuzz
@given(st.data())
def test_a_damaged_link_trace_is_read_or_refused(data: st.DataObject) -> None:
    rates = b"0\n1\n1\n4\n10\n20\n"
    delays = b"0 10\n100 31.5\n250 0.001\n1000 20\n"
    read, whole = data.draw(st.sampled_from([(link_traces.rate_trace, rates),
                                             (link_traces.delay_trace, delays)]))  # fmt: skip
    lines = st.lists(
        st.from_regex(r"-?[0-9]{0,25}[. eE#\t-]?[0-9]{0,9} ?[0-9.x]{0,8}\r?", fullmatch=True),
        max_size=8,
    )
    content = data.draw(
        st.one_of(damage(whole), lines.map(lambda found: "\n".join(found).encode()))
    )

    def value(path: Path) -> Any:
        return read(str(path)).value

    found = _tried(value, content, "damaged.trace", ValueError)
    assert found is None or 0 <= found <= 10**18


@cache
def _capture(kind: str) -> bytes:
    """A capture of some packets over IPv4 and IPv6, as pcap or pcapng."""
    with TemporaryDirectory() as folder:
        path = Path(folder) / "whole"
        with path.open("wb") as file:
            writer: Any = dpkt.pcap.Writer(file) if kind == "pcap" else dpkt.pcapng.Writer(file)
            for index in range(6):
                tcp = dpkt.tcp.TCP(sport=1000 + index % 2, dport=80, seq=index, data=b"x" * 40)
                udp = dpkt.udp.UDP(sport=53, dport=5353, ulen=28, data=b"y" * 20)
                packet: Any = dpkt.ip.IP(src=b"\n\0\0\1", dst=b"\n\0\0\2", p=6, data=tcp, len=80)
                if index % 3 == 2:
                    packet = dpkt.ip6.IP6(src=bytes(16), dst=b"\1" * 16, nxt=17, data=udp, plen=28)
                kind_of = 0x86DD if index % 3 == 2 else 0x0800
                frame = dpkt.ethernet.Ethernet(data=packet, type=kind_of)
                writer.writepkt(bytes(frame), ts=1e9 + index / 7)
        return path.read_bytes()


@fuzz
@given(st.data())
def test_a_damaged_capture_becomes_a_trace_or_is_refused(data: st.DataObject) -> None:
    whole = _capture(data.draw(st.sampled_from(["pcap", "pcapng"])))
    content = data.draw(st.one_of(damage(whole), st.binary(max_size=100)))
    captured = _tried(captures.read, content, "damaged.pcap")
    if captured is not None:
        columns = captured.columns
        # What was read is a trace that is written and read again.
        with TemporaryDirectory() as folder:
            path = Path(folder) / "again.csv"
            traces.write(columns, path)
            trace = traces.load(str(path))
        again = traces.columns_of(trace)
        assert int(again["bytes"].sum()) == int(columns["bytes"].sum())


@fuzz
@given(st.data())
def test_a_damaged_trace_of_flows_is_read_or_refused(data: st.DataObject) -> None:
    whole = b"flow,start_us,pause_us,bytes\n0,0,0,1000\n0,0,500,20\n1,77,0,5\n"
    content = data.draw(damage(whole))
    _tried(lambda path: traces.load(str(path)), content, "damaged.csv")


@fuzz
@given(st.data())
def test_a_damaged_flent_file_is_read_or_refused(data: st.DataObject) -> None:
    document = flent_document()
    if data.draw(st.booleans()):
        document = data.draw(edits(document))
    content = json.dumps(document).encode("utf-8", "surrogatepass")
    pack = data.draw(st.sampled_from([gzip.compress, bz2.compress, bytes]))
    content = pack(content)
    if data.draw(st.booleans()):
        content = data.draw(damage(content))
    ending = {gzip.compress: ".gz", bz2.compress: ".bz2"}.get(pack, "")
    _tried(read_flent, content, f"damaged.flent{ending}")


def _number(value: int) -> bytes:
    """Postcard's varint: seven bits a byte, the lowest first."""
    rest = bytearray()
    while value > 127:
        rest.append(value & 127 | 128)
        value >>= 7
    return bytes([*rest, value])


def _counted(content: bytes) -> bytes:
    return _number(len(content)) + content


def _frame(kind: str, *values: Any) -> bytes:
    """A frame (crates/fullpipe-plan/src/stream.rs): its length, and postcard's bytes of the kind's
    place in the enumeration and of its values."""
    coded = {int: _number, float: struct.Struct("<d").pack, bytes: _counted,
             str: lambda text: _counted(text.encode())}  # fmt: skip
    content = bytes([_KINDS[kind]]) + b"".join(coded[type(value)](value) for value in values)
    return struct.pack("<I", len(content)) + content


_KINDS = {
    "progress": 6,
    "fact": 7,
    "figure": 8,
    "problem": 9,
    "failure": 10,
    "end": 11,
    "trace": 12,
}
_TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=12)
_FRAMES = st.one_of(
    st.tuples(st.just("progress"), st.integers(0, 2**64 - 1)),
    st.tuples(st.just("fact"), _TEXT, _TEXT),
    st.tuples(st.just("figure"), _TEXT, st.floats(allow_nan=False)),
    st.tuples(st.just("problem"), _TEXT),
    st.tuples(st.just("failure"), _TEXT),
    st.just(("end",)),
    st.tuples(st.just("trace"), st.binary(max_size=20)),
)


def _said(frames: list[Any]) -> dict[str, Any]:
    """What a reader has of these frames."""
    of: dict[str, list[Any]] = {kind: [] for kind in _KINDS}
    for kind, *values in frames:
        of[kind].append(tuple(values) if len(values) > 1 else next(iter(values), None))
    return {
        "facts": of["fact"], "figures": of["figure"], "problems": of["problem"],
        "failure": next(reversed(of["failure"]), None), "complete": bool(of["end"]),
        "progress_ns": max(of["progress"], default=0), "trace": b"".join(of["trace"]),
    }  # fmt: skip


def _whole(coded: list[bytes], cut: int) -> int:
    """How many frames end at or before a cut."""
    return sum(end <= cut for end in itertools.accumulate(map(len, coded)))


@fuzz
@given(st.lists(_FRAMES, max_size=6), st.data())
def test_a_stream_of_frames_is_read_up_to_its_cut(frames: list[Any], data: st.DataObject) -> None:
    coded = [_frame(*frame) for frame in frames]
    content = b"".join(coded)
    cut = data.draw(st.integers(0, len(content)))
    whole = _whole(coded, cut)
    received, expected = _native.stream.decode(content[:cut]), _said(frames[:whole])
    assert {name: received[name] for name in expected} == expected
    progress = [values[0] for kind, *values in frames[:whole] if kind == "progress"]
    newest = progress[-1] if progress else None
    assert _native.stream.follow(content[:cut], 0) == (newest, len(b"".join(coded[:whole])))


@fuzz
@given(st.lists(_FRAMES, min_size=1, max_size=6), st.data())
def test_a_damaged_stream_of_frames_keeps_those_before_the_damage(
    frames: list[Any], data: st.DataObject
) -> None:
    coded = [_frame(*frame) for frame in frames]
    content = b"".join(coded)
    damaged = data.draw(damage(content))
    same = next((at for at, (one, other) in enumerate(zip(content, damaged, strict=False))
                 if one != other), min(len(content), len(damaged)))  # fmt: skip
    whole = _whole(coded, same)
    received, before = _native.stream.decode(damaged), _said(frames[:whole])
    for name in ("facts", "figures", "problems", "trace"):
        assert received[name][: len(before[name])] == before[name]
    assert received["complete"] or not before["complete"]
    assert received["progress_ns"] >= before["progress_ns"]
    _, offset = _native.stream.follow(damaged, 0)
    assert len(b"".join(coded[:whole])) <= offset <= len(damaged)
