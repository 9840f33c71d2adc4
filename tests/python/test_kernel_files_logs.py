"""What a kernel's file prints in the simulator, and the fields behind inet_csk_ca(sk) as variables
of its recordings."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from external_files import plan
from fullpipe.congestion.registry import cc_set, variables_of
from fullpipe.congestion.userfiles.kernel_fields import fields_of
from fullpipe.engines.sim import SimEngine
from kernel_files import PLAIN, write

START = "[    0.000000] plain: keeps 512\n"


def run(path: Path, *more: str, seconds: int = 4) -> Any:
    flows = [{"cc": f"{path}{changes}"} for changes in ("", *more)]
    wanted = plan(str(path), duration=f"{seconds}s", flow=flows)
    return SimEngine().run(wanted, lambda _done: True, {})


def log_of(path: Path, *more: str, seconds: int = 4) -> str:
    facts = run(path, *more, seconds=seconds).metadata.get("facts", {})
    return str(facts.get("kernel log", ""))


def printing(folder: Path, *lines: str, name: str = "plain") -> Path:
    """The file with lines of C at the begin of what every ACK calls."""
    begin = "	struct tcp_sock *tp = tcp_sk(sk);\n\n	if (!tcp_is_cwnd_limited(sk))\n"
    assert PLAIN.count(begin) == 1
    body = begin.replace("\n\n", "\n\n	" + "\n	".join(lines) + "\n", 1)
    return write(folder, name, PLAIN.replace(begin, body))


def test_the_modules_start_prints_once_for_each_set_of_constants(tmp_path: Path) -> None:
    path = write(tmp_path, "plain", PLAIN)
    assert log_of(path) == START
    assert log_of(path, "[keep=870]") == START + START.replace("512", "870")
    assert log_of(path) == START, "a run has the log of its own"


def test_a_line_has_the_simulated_time(tmp_path: Path) -> None:
    path = printing(
        tmp_path, 'if (ktime_get_ns() > 2000000000)',
        '	pr_info_once("at %llu ns\\n", ktime_get_ns());',
    )  # fmt: skip
    (line,) = log_of(path).splitlines()[1:]
    found = re.fullmatch(r"\[ {4}(\d\.\d{6})\] at (\d+) ns", line)
    assert found and float(found[1]) == int(found[2]) // 1000 / 1e6 > 2


#: Format, arguments, what Documentation/core-api/printk-formats.rst and printf(3) say of them.
FORMATS = {
    "%d %i %u": ("-5, 7, -1", "-5 7 4294967295"),
    "%hd %hhu": ("65535, 511", "-1 255"),
    "%ld %lld %llu": ("-5L, -6LL, ~0ULL", "-5 -6 18446744073709551615"),
    "%zu": ("sizeof(u64)", "8"),
    "%x %X %#x %o": ("255, 255, 255, 8", "ff FF 0xff 10"),
    "[%5d] [%-5d] [%05d] [%+d]": ("42, 42, -42, 42", "[   42] [42   ] [-0042] [+42]"),
    "[%*d] [%.3d] [%5.2d]": ("4, 7, 7, 7", "[   7] [007] [   07]"),
    "%s [%6s] [%-6s] [%.2s]": ('"a", "bcd", "bcd", "bcd"', "a [   bcd] [bcd   ] [bc]"),
    "%c%%": ("'x'", "x%"),
    "%pI4": ("&sk->sk_daddr", "0.0.0.0"),
}


def test_formats_are_the_kernels(tmp_path: Path) -> None:
    prints = (f'printk_once(KERN_INFO "{w}\\n", {given});' for w, (given, _) in FORMATS.items())
    lines = log_of(printing(tmp_path, *prints), seconds=1).splitlines()[1:]
    assert [line.partition("] ")[2] for line in lines] == [shown for _, shown in FORMATS.values()]


def test_a_text_is_cut_where_its_buffer_ends(tmp_path: Path) -> None:
    path = printing(
        tmp_path, "char text[6];", 'int bytes = snprintf(text, sizeof(text), "%s-%d", "abcd", 17);',
        'int fits = scnprintf(text, sizeof(text), "%s-%d", "abcd", 17);',
        'pr_info_once("%s %d %d", text, bytes, fits);',
    )  # fmt: skip
    assert log_of(path, seconds=1).splitlines()[1].endswith("] abcd- 7 5")


def test_a_warning_names_file_line_and_function_and_has_the_conditions_value(
    tmp_path: Path,
) -> None:
    path = printing(
        tmp_path, "if (WARN_ON_ONCE(tcp_snd_cwnd(tp) > 10))", '	pr_info_once("larger\\n");',
        'WARN_ONCE(1, "cwnd is %u\\n", 10);',
    )  # fmt: skip
    lines = [line.partition("] ")[2] for line in log_of(path, seconds=1).splitlines()]
    first = PLAIN[: PLAIN.index("	if (!tcp_is_cwnd_limited(sk))")].count("\n") + 1
    assert sorted(lines[1:]) == sorted([
        f"WARNING: at tcp_plain.c:{first} plain_cong_avoid()", "larger", "cwnd is 10",
        f"WARNING: at tcp_plain.c:{first + 2} plain_cong_avoid()",
    ])  # fmt: skip


def test_what_is_limited_prints_ten_lines_in_five_seconds_and_a_flood_is_counted(
    tmp_path: Path,
) -> None:
    path = printing(tmp_path, 'pr_warn_ratelimited("often\\n");')
    times = [float(line[1:13]) for line in log_of(path, seconds=8).splitlines()[1:]]
    assert len(times) == 20
    assert times[9] - times[0] < 5 < times[10] - times[0]
    flood = log_of(printing(tmp_path, f'pr_info("{"x" * 100}\\n");', name="flood"), seconds=20)
    assert len(flood) < 66_000
    assert re.search(r"\n\(\d+ lines more\)\n$", flood)


def test_what_may_sleep_is_told_as_debug_atomic_sleep_tells_it(tmp_path: Path) -> None:
    calls = [
        "kfree(kmalloc(16, GFP_KERNEL | __GFP_ZERO));", "kfree(kcalloc(2, 8, GFP_NOFS));",
        "might_sleep();", "cond_resched();", "lock_sock(sk);",
    ]  # fmt: skip
    path = printing(tmp_path, *calls, "kfree(kmalloc(16, GFP_ATOMIC));")
    text = path.read_text()
    told = log_of(path, seconds=1).splitlines()[1:]
    assert [line.partition("] ")[2] for line in told] == [
        "BUG: sleeping function called from invalid context at "
        f"tcp_plain.c:{text[: text.index(call)].count(chr(10)) + 1}"
        for call in calls
    ]


def test_the_modules_start_may_sleep(tmp_path: Path) -> None:
    start = "shift = ilog2(2 * HALF);"
    text = PLAIN.replace(start, f"{start}\n	kfree(kmalloc(16, GFP_KERNEL));\n	might_sleep();")
    assert log_of(write(tmp_path, "plain", text), seconds=1) == START


def test_printing_changes_nothing(tmp_path: Path) -> None:
    quiet = run(write(tmp_path, "quiet", PLAIN.replace('"plain"', '"quiet"'))).tables
    loud = run(printing(tmp_path, 'pr_info("cwnd %u\\n", tcp_snd_cwnd(tp));')).tables
    for name in ("flow_samples", "queue_samples", "events"):
        assert loud[name].equals(quiet[name])


#: A structure with what kernels' files have in theirs.
STRUCTURE = """struct inner {
	u32 low, high;
};
struct plain {
	u32	reductions;	/* how often ssthresh() was asked */
	s32	negative;
	u32	mode:3,
		flag:1,
		unused:28;
	u16	pair[2];
	struct minmax best;
	struct inner inner;
	union {
		struct { u32 first; };
		u64 whole;
	};
	u32	*pointer;
#if 0
	u32	absent;
#endif
	bool	is_late;
	u32	cwnd;
};

"""
CHANGES = """	struct plain *ca = inet_csk_ca(sk);

	ca->reductions++;
	ca->negative = -7;
	ca->mode = 5;
	ca->flag = 1;
	ca->pair[1] = 300;
	ca->best.s[0].v = 77;
	ca->inner.high = 9;
	ca->first = 11;
	ca->is_late = true;
	ca->cwnd = 12;
"""


def with_structure(folder: Path) -> Path:
    begin = "static u32 plain_ssthresh(struct sock *sk)\n{\n"
    return write(folder, "plain", PLAIN.replace(begin, STRUCTURE + begin + CHANGES))


def test_the_fields_of_a_connection_are_variables(tmp_path: Path) -> None:
    path = with_structure(tmp_path)
    found = {one.column: one.meaning for one in variables_of(cc_set(str(path)).algorithm)}
    assert found["reductions"] == "how often ssthresh() was asked"
    assert not {"unused", "pointer", "absent", "cwnd"} & set(found)
    table = run(path).tables["cc_samples"]
    last = {name: table[name][-1].as_py() for name in table.column_names}
    reductions = table["reductions"].to_pylist()
    assert reductions[0] == 0 < reductions[-1] == max(reductions)
    wanted = {
        "negative": -7, "mode": 5, "flag": 1, "pair_0": 0, "pair_1": 300, "best": 77,
        "inner_low": 0, "inner_high": 9, "first": 11, "whole": 11, "is_late": 1, "plain_cwnd": 12,
    }  # fmt: skip
    assert {name: last[name] for name in wanted} == wanted


def test_a_structure_that_no_file_defines_has_no_fields() -> None:
    assert fields_of("other", {"x.c": STRUCTURE}) == []
    assert [one.name for one in fields_of("inner", {"x.c": STRUCTURE})] == ["low", "high"]
