"""The fields behind inet_csk_ca(sk) of the kernel's own congestion controls, by the types that
compilers wrote: against the compiler, the kernel's TCP_CC_INFO and the same file in the
simulator."""

from __future__ import annotations

import io
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from elftools.elf.elffile import ELFFile

from fullpipe.engines.sim import SimEngine
from fullpipe.engines.vm import VmEngine, hardware, headers, kernels, private_state
from fullpipe.engines.vm.private_state import Field, _chosen, layouts
from fullpipe.engines.vm.types import btf, dwarf
from fullpipe.engines.vm.types.model import Member, Number, Structure
from fullpipe.plan.resolve import resolve
from fullpipe.recording.recording import TABLES
from fullpipe.scenario.model import make_scenario
from test_kernel_files_logs import with_structure

needs_machine = pytest.mark.skipif(not hardware.is_there(), reason="QEMU is not installed")
#: What structures of congestion controls have in them.
TYPES = """
typedef unsigned char u8; typedef unsigned short u16; typedef unsigned int u32;
typedef unsigned long long u64; typedef long long ktime_t;
enum mode { STARTUP, DRAIN = 3 };
struct minmax_sample { u32 t, v; };
struct minmax { struct minmax_sample s[3]; };
struct part { u16 low; short high; };
struct mine {
	u32 plain;
	signed char negative;
	u32 low:3, wide:20, sign:1;
	int narrow:5;
	u64 crossing:40, rest:24;
	struct minmax best;
	struct part part;
	u16 row[6];
	union { struct { u32 first; }; u64 whole; };
	enum mode mode;
	_Bool is_late;
	u32 cwnd;
	void *pointer;
	ktime_t when;
	u8 unused;
};
"""
VALUES = """{ .plain = 4000000000u, .negative = -7, .low = 5, .wide = 1000000, .sign = 1,
	.narrow = -16, .crossing = 1000000000000ull, .rest = 9, .best = { { { 1, 77 } } },
	.part = { 65535, -300 }, .row = { 1, 2, 3, 65535, 5 }, .whole = 5000000000ull, .mode = DRAIN,
	.is_late = 1, .cwnd = 12, .pointer = 0, .when = 3 }"""
#: By C's rules: of an array four elements, of the union both.
WANTED = {
    "plain": 4000000000, "negative": -7, "low": 5, "wide": 1000000, "sign": 1, "narrow": -16,
    "crossing": 10**12, "rest": 9, "best": 77, "part_low": 65535, "part_high": -300, "row_0": 1,
    "row_1": 2, "row_2": 3, "row_3": 65535, "first": 5000000000 % 2**32, "whole": 5000000000,
    "mode": 3, "is_late": 1, "mine_cwnd": 12,
}  # fmt: skip


def compiled(folder: Path, *command: str, text: str) -> bytes:
    (folder / "x.c").write_text(TYPES + text)
    words = [*command, "-g", "-c", "x.c", "-o", "x.o"]
    subprocess.run(words, cwd=folder, check=True, capture_output=True)
    return (folder / "x.o").read_bytes()


def module(folder: Path) -> bytes:
    code = "extern void *state(void);\nu32 f(void) { struct mine *ca = state(); return ca->low; }\n"
    return compiled(folder, "gcc", "-O1", text=code)


def state(folder: Path) -> np.ndarray[Any, np.dtype[np.uint8]]:
    """What the compiler makes of the values, as the guest sends it."""
    name = ".state"
    code = f'struct mine s __attribute__((section("{name}"))) = {VALUES};\n'
    section = ELFFile(io.BytesIO(compiled(folder, "gcc", text=code))).get_section_by_name(name)
    content = section.data()
    return np.frombuffer(content.ljust(private_state.STATE_BYTES, b"\0"), np.uint8).reshape(1, -1)


def read(fields: list[Field], states: np.ndarray[Any, np.dtype[np.uint8]]) -> dict[str, float]:
    return {field.column: field.values(states)[0] for field in fields}


def test_fields_by_dwarf_have_the_values_that_the_compiler_wrote(tmp_path: Path) -> None:
    known = layouts(["mine"], {"mine": module(tmp_path)}, tmp_path / "x.o")
    assert known.missing == []
    assert read(known.fields["kernel:mine"], state(tmp_path)) == WANTED
    assert known.described()["kernel:mine"]["plain"]["meaning"] == "field of struct mine"


def test_btf_and_dwarf_say_the_same(tmp_path: Path) -> None:
    bpf = compiled(tmp_path, "clang", "-target", "bpf", "-O1", text="int f(struct mine *s) "
                   "{ return s->plain; }\n")  # fmt: skip
    section = ELFFile(io.BytesIO(bpf)).get_section_by_name(".BTF")
    (tmp_path / "vmlinux").write_bytes(bpf)
    known = layouts(["mine"], {}, tmp_path / "vmlinux")
    assert read(known.fields["kernel:mine"], state(tmp_path)) == WANTED
    types = btf.Btf(section.data())
    by_btf = dict(types.structures(private_state.STATE_BYTES))
    elf = ELFFile(io.BytesIO(module(tmp_path)))
    by_dwarf = dict(dwarf.structures(elf, private_state.STATE_BYTES))
    (ours,) = (one for one in by_dwarf if one.name == "mine")
    assert by_dwarf[ours]
    assert by_btf.get(ours)


def structure(name: str, *parts: Structure, size: int = 8) -> Structure:
    members = [Member(f"m{at}", 64 * at, 0, part) for at, part in enumerate(parts)]
    return Structure(name, size, False, (*members, Member("n", 0, 0, Number(32, False))))


@pytest.mark.parametrize(
    ("candidates", "wanted"),
    [
        ([], None),
        ([("pair", True), ("vegas", True)], "vegas"),
        ([("hstcp_table", False), ("hstcp", True)], "hstcp"),
        ([("tcpnv", True), ("longer", True)], "tcpnv"),
    ],
)
def test_the_state_is_what_something_points_to_and_is_called_alike(
    candidates: list[tuple[str, bool]], wanted: str | None
) -> None:
    listed = [(structure(name), points) for name, points in candidates]
    chosen = _chosen({"vegas": "vegas", "tcpnv": "nv"}.get(wanted or "", "x"), listed)
    assert (chosen.name if chosen else None) == wanted


def test_a_part_of_another_is_not_the_state() -> None:
    vegas = structure("vegas")
    chosen = _chosen("ya", [(vegas, True), (structure("yeah", vegas, size=40), True)])
    assert chosen and chosen.name == "yeah"


@pytest.mark.parametrize(
    ("content", "said"),
    [(b"\x7fELF", "kernel:x: "), (b"\x1f", "kernel:x: ")],
)
def test_what_has_no_types_has_no_variables_and_says_so(
    content: bytes, said: str, tmp_path: Path
) -> None:
    (tmp_path / "vmlinux").write_bytes(b"no kernel")
    known = layouts(["reno", "x"], {"x": content}, tmp_path / "vmlinux")
    assert known.fields == {} and known.facts()["no variables"].startswith(said)


@pytest.mark.parametrize("content", [b"", b"\x9f\xeb\x01\x00", bytes(64)])
def test_damaged_types_are_refused(content: bytes) -> None:
    with pytest.raises(ValueError, match="BTF"):
        btf.Btf(content)


def run(*ccs: str, **options: str) -> Any:
    path = {"rate": "10mbit", "rtt": "40ms", "buffer": "1bdp"}
    flows = [{"cc": cc} for cc in ccs]
    plan = resolve(make_scenario({"duration": "4s", "path": path, "flow": flows}))
    engine = VmEngine() if options else SimEngine()
    return engine.run(plan, lambda _done: True, options)


@pytest.mark.vm
@pytest.mark.slow
@needs_machine
def test_bbr_and_cubic_show_their_own_fields(tmp_path: Path) -> None:
    """TCP_CC_INFO gives BBR's minimum RTT, TCP_INFO the window that CUBIC started from."""
    result = run("kernel:bbr", "kernel:cubic", kernel="6.12")
    table = result.tables["cc_samples"]
    rows = [row for row in table.to_pylist() if row["flow_id"] == 0]
    assert all(row["cnt"] is None for row in rows)
    told = [row for row in rows if row["min_rtt_us"]]
    assert told and all(row["bbr_min_rtt_us"] == row["min_rtt_us"] for row in told)
    assert {row["lt_use_bw"] for row in rows} <= {0, 1} and {row["mode"] for row in rows} >= {0, 2}
    others = [row for row in table.to_pylist() if row["flow_id"] == 1]
    assert max(row["last_max_cwnd"] for row in others) > 10 and others[-1]["mode"] is None
    assert "struct bictcp" in result.metadata["variables"]["kernel:cubic"]["cnt"]["meaning"]


@pytest.mark.vm
@pytest.mark.slow
@needs_machine
def test_a_module_of_the_users_has_the_fields_that_the_simulator_shows(tmp_path: Path) -> None:
    path = with_structure(tmp_path)
    (tmp_path / "Makefile").write_text("obj-m := tcp_plain.o\n")
    tree = headers.tree(kernels.find("6.12", None))
    words = ["make", "-s", "-C", str(tree), f"M={tmp_path}", "CONFIG_DEBUG_INFO_BTF_MODULES="]
    subprocess.run([*words, "modules"], check=True, capture_output=True)
    module = str(tmp_path / "tcp_plain.ko")
    there = run("kernel:plain", kernel="6.12", module=module).tables["cc_samples"]
    here = run(str(path)).tables["cc_samples"]
    assert set(there.column_names) == set(here.column_names)
    for name in there.column_names:
        if name in ("reductions", "negative", "mode", "pair_1", "best", "whole", "plain_cwnd"):
            assert there[name][-1] == here[name][-1], name


def test_a_run_without_such_states_keeps_its_table() -> None:
    table = TABLES["cc_samples"].empty_table()
    assert private_state.with_states(table, {"flows": []}, b"", private_state.NONE) is table
