"""Kinds of kernel files that a kernel's build takes, or a kernel refuses: so does the simulator."""

from __future__ import annotations

from pathlib import Path

import pytest

from external_files import run
from fullpipe.base.errors import UserError
from fullpipe.congestion.userfiles.kernel_files import read_kernel_file
from kernel_files import PLAIN, write
from test_kernel_files_logs import log_of

OPERATIONS = "\t.cong_avoid	= plain_cong_avoid,\n\t.undo_cwnd	= tcp_reno_undo_cwnd,\n"
LIMITED = "	if (!tcp_is_cwnd_limited(sk))\n"
REGISTER = "return tcp_register_congestion_control(&plain);"


def changed(folder: Path, *pairs: tuple[str, str]) -> Path:
    text = PLAIN
    for old, new in pairs:
        assert text.count(old) == 1
        text = text.replace(old, new)
    return write(folder, "plain", text)


def growing(folder: Path, code: str, *pairs: tuple[str, str]) -> Path:
    return changed(folder, (LIMITED, f"{code}\n{LIMITED}"), *pairs)


def test_members_that_a_macro_of_the_file_makes_count(tmp_path: Path) -> None:
    macro = "#define FIELD(a, b) .a = b,\nFIELD(x, y)"
    text = PLAIN.replace("#define HALF", "#define FIELD(a, b) .a = b,\n#define HALF")
    text = text.replace(OPERATIONS, "FIELD(cong_avoid, plain_cong_avoid) "
                        "FIELD(undo_cwnd, tcp_reno_undo_cwnd)\n")  # fmt: skip
    assert macro not in text
    path = write(tmp_path, "plain", text)
    members = read_kernel_file(path).members
    assert members["cong_avoid"] == "plain_cong_avoid"
    assert members["undo_cwnd"] == "tcp_reno_undo_cwnd" and members["ssthresh"] == "plain_ssthresh"


def test_a_byte_order_mark_is_no_part_of_a_file(tmp_path: Path) -> None:
    plain = run(str(write(tmp_path, "plain", PLAIN)))["flows"]
    path = write(tmp_path, "marked", "")
    path.write_bytes(b"\xef\xbb\xbf" + PLAIN.encode())
    assert run(str(path))["flows"] == plain


def test_static_keys_choose_as_the_file_says(tmp_path: Path) -> None:
    keys = (
        "static int shift",
        "static DEFINE_STATIC_KEY_TRUE(soft);\nDEFINE_STATIC_KEY_FALSE(hard);\nstatic int shift",
    )
    chosen = "static_branch_likely(&soft) && !static_branch_unlikely(&hard) ? keep : 1"
    path = changed(tmp_path, keys, ("* keep >>", f"* ({chosen}) >>"))
    (tmp_path / "first").mkdir()
    assert run(str(path))["flows"] == run(str(write(tmp_path / "first", "plain", PLAIN)))["flows"]
    switched = growing(tmp_path, "	static_branch_enable(&hard);", keys)
    with pytest.raises(UserError, match=r"plain_cong_avoid\(\) switches a static key"):
        read_kernel_file(switched)
    # The module's start may.
    started = (REGISTER, f"static_branch_enable(&hard);\n\t{REGISTER}")
    read_kernel_file(changed(tmp_path, keys, started))


@pytest.mark.parametrize(
    ("pairs", "said"),
    [
        ([("\t.undo_cwnd	= tcp_reno_undo_cwnd,\n", "")], "has no undo_cwnd"),
        ([('\t.name		= "plain",\n', "")], "has no name"),
        ([(REGISTER, "return 0;")], "in a kernel no socket could use plain"),
        ([("static int shift", "static DEFINE_PER_CPU(u32, n);\nstatic int shift")],
         r"plain\.c:\d+: DEFINE_PER_CPU: connections of a processor share"),
    ],
)  # fmt: skip
def test_what_a_kernel_would_not_register_or_connections_share_is_refused(
    pairs: list[tuple[str, str]], said: str, tmp_path: Path
) -> None:
    with pytest.raises(UserError, match=said):
        read_kernel_file(changed(tmp_path, *pairs))


def test_a_file_of_before_4_10_needs_no_undo(tmp_path: Path) -> None:
    pairs = [("\t.undo_cwnd	= tcp_reno_undo_cwnd,\n", ""),
             ("static int shift", "static struct skb_mstamp *none;\nstatic int shift")]  # fmt: skip
    assert "undo_cwnd" not in read_kernel_file(changed(tmp_path, *pairs)).members


def test_a_function_without_a_prototype_is_refused_as_by_a_kernels_build(tmp_path: Path) -> None:
    old = ("plain_ssthresh(struct sock *sk)", "plain_ssthresh(sk)\n\tstruct sock *sk;")
    with pytest.raises(UserError, match=r"\.c:\d+: function declaration isn.t a prototype"):
        run(str(changed(tmp_path, old)))


def test_bug_on_is_told_as_one_with_its_line(tmp_path: Path) -> None:
    path = growing(tmp_path, "	BUG_ON(tcp_snd_cwnd(tp) > 20);")
    with pytest.raises(UserError, match=r"tcp_plain\.c:\d+: BUG\(\) or BUG_ON\(\): a kernel would"):
        run(str(path))


def test_sleeping_is_told_waiting_is_not_and_a_functions_own_address_may_be_printed(
    tmp_path: Path,
) -> None:
    code = '	msleep(1);\n	udelay(1);\n	printk_once("at %pS, %u\\n", plain_cong_avoid, 7);'
    path = growing(tmp_path, code)
    line = path.read_text()[: path.read_text().index("msleep")].count("\n") + 1
    assert [told.partition("] ")[2] for told in log_of(path, seconds=1).splitlines()[1:]] == [
        f"BUG: sleeping function called from invalid context at tcp_plain.c:{line}",
        "at (____ptrval____), 7",
    ]


def test_a_call_of_itself_among_what_is_printed_is_one(tmp_path: Path) -> None:
    path = growing(tmp_path, '	printk("%d\\n", (plain_cong_avoid(sk, ack, acked), 7));')
    with pytest.raises(UserError, match="recursion"):
        run(str(path))
