"""`cc/fuzz.c` judges what an algorithm decides: faults that do nothing undefined in C, each planted
in a built-in algorithm or the template, are found."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from fullpipe.authoring.new import write_new
from fullpipe.base.errors import UserError
from fullpipe.base.installed import shipped
from fullpipe.congestion import userfiles
from fullpipe.congestion.userfiles import fuzzing

needs_clang = pytest.mark.skipif(shutil.which("clang") is None, reason="needs clang")

WRAPS = "a product of 32 bits wraps"
#: Name -> (file, text, its replacement, message).
PLANTED = {
    "cwnd * beta in 32 bits": (
        "mine.h",
        "(u32)((u64)ctl->cwnd * p->beta / CC_ONE)", "ctl->cwnd * p->beta / CC_ONE", WRAPS,
    ),
    "cwnd - losses that wraps": (
        "mine.h",
        "cc_additive_increase(conn, ctl, ctl->cwnd, left);",
        "ctl->cwnd = ctl->cwnd + left - (conn->lost & 63);",
        "a window below 0",
    ),
    "a BDP in 32 bits": (
        "bbr3_model.h",
        "cc_min_u64((u64)bw * s->min_rtt_us, (u64)CC_CWND_MAX << BBR3_BW_SHIFT)",
        "bw * s->min_rtt_us", WRAPS,
    ),
    "a ProbeRTT that never ends": (
        "bbr3.h",
        "conn->now_us <= s->probe_rtt_done_us", "conn->now_us >= s->probe_rtt_done_us",
        "it stays in the phase ProbeRTT",
    ),
    "a ProbeRTT of BBRv1 whose round is never over": (
        "bbr1.h",
        "s->probe_rtt_round_done = 1;", "s->probe_rtt_round_done = 0;",
        "it stays in the phase ProbeRTT",
    ),
    "a rate that divides first": (
        "tarn.h",
        "cc_max_u64((rate >> 4) / rtt_us, 1)", "(rate >> 4) / rtt_us / 1000 / 1000",
        "a pacing rate of 0 after a rate",
    ),
    "no floor of ssthresh": (
        "mine.h",
        "cc_max_u32((u32)((u64)ctl->cwnd * p->beta / CC_ONE), 2)",
        "(u32)((u64)ctl->cwnd * p->beta / CC_ONE)", "it sets ssthresh to 0",
    ),
    "no floor of cwnd": (
        "mine.h",
        "cc_additive_increase(conn, ctl, ctl->cwnd, left);", "ctl->cwnd /= left > 100 ? 4 : 1;",
        "it sets cwnd to 0",
    ),
}  # fmt: skip

#: What is judged through the whole of the fuzzer in every run of the tests.
FIRST = "cwnd * beta in 32 bits"


@pytest.fixture(autouse=True)
def own_cache(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path_factory.mktemp("cache")))


def _file(folder: Path, name: str) -> Path:
    """The algorithm to which a file belongs, with its parts, in a folder."""
    algorithm = name.partition(".")[0].partition("_")[0]
    if algorithm == "mine":
        return write_new("mine", None, folder)
    for part in shipped("cc").glob(f"{algorithm}*.h"):
        shutil.copy(part, folder)
    return folder / f"{algorithm}.h"


def _planted(fault: str, folder: Path) -> userfiles.Source:
    name, old, new, _ = PLANTED[fault]
    path = _file(folder, name)
    part = folder / name
    text = part.read_text()
    assert text.count(old) == 1
    part.write_text(text.replace(old, new))
    return userfiles.read(path)


def _assert_found(fault: str, finding: str) -> None:
    name, _, _, said = PLANTED[fault]
    assert said in finding
    assert name in finding or "of connection" in finding


@pytest.mark.parametrize("fault", PLANTED)
def test_a_planted_fault_of_a_decision_is_found(fault: str, tmp_path: Path) -> None:
    """By the program without sanitizers, which take five times as long to compile."""
    clang = shutil.which("clang")
    if clang is None:
        pytest.skip("needs clang")
    source = _planted(fault, tmp_path)
    with pytest.raises(UserError) as finding:
        program = fuzzing.build(source, tmp_path, fuzzing.PRODUCTS, clang)
        fuzzing.drive(source, program, 1, 300)
    _assert_found(fault, str(finding.value))


@needs_clang
@pytest.mark.parametrize(
    "fault",
    [pytest.param(fault, marks=() if fault == FIRST else pytest.mark.slow) for fault in PLANTED],
)
def test_the_fuzzer_finds_a_planted_fault_of_a_decision(fault: str, tmp_path: Path) -> None:
    with pytest.raises(UserError) as finding:
        userfiles.fuzz(_planted(fault, tmp_path), connections=300)
    _assert_found(fault, str(finding.value))


@needs_clang
@pytest.mark.slow
@pytest.mark.parametrize("name", ["reno", "cubic", "dctcp", "prague", "bbr1", "bbr3", "tarn"])
def test_no_built_in_algorithm_is_accused(name: str, tmp_path: Path) -> None:
    source = userfiles.read(_file(tmp_path, f"{name}.h"))
    assert userfiles.fuzz(source) == "2,000,000 calls of 2,000 connections"
