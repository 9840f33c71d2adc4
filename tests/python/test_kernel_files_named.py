"""A kernel's file named where algorithms are named: its facts follow its text."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

from external_files import run
from fullpipe.authoring.kernel_import import import_kernel_file
from fullpipe.base.errors import UserError
from fullpipe.congestion import userfiles
from fullpipe.congestion.registry import cc_set
from fullpipe.congestion.userfiles.kernel_files import read_kernel_file
from fullpipe.scorecard.git_files import check_out, commit_of
from kernel_files import PLAIN, write

#: A copy of the operations that halves nothing, and is registered after the first.
SECOND = """static u32 second_ssthresh(struct sock *sk)
{
	return max(tcp_snd_cwnd(tcp_sk(sk)) - 1, 2U);
}

static struct tcp_congestion_ops second __read_mostly = {
	.ssthresh	= second_ssthresh,
	.cong_avoid	= plain_cong_avoid,
	.undo_cwnd	= tcp_reno_undo_cwnd,
	.owner		= THIS_MODULE,
	.name		= "second",
};

static int __init"""
REGISTER = "return tcp_register_congestion_control(&plain);"


@pytest.fixture(autouse=True)
def own_cache(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path_factory.mktemp("cache")))


def changed(*pairs: tuple[str, str]) -> str:
    text = PLAIN
    for old, new in pairs:
        assert text.count(old) == 1
        text = text.replace(old, new)
    return text


def two() -> str:
    return changed(
        ("static int __init", SECOND),
        (REGISTER, f"tcp_register_congestion_control(&second);\n\t{REGISTER}"),
    )


def test_a_kernels_file_runs_as_it_is(tmp_path: Path) -> None:
    path = write(tmp_path, "plain", PLAIN)
    assert run(str(path))["flows"] == run("reno")["flows"]
    assert [file.name for file in tmp_path.iterdir()] == ["tcp_plain.c"]
    source = userfiles.read(path)
    assert (source.stem, source.path) == ("tcp_plain", path)


def test_a_changed_default_of_a_parameter_counts_in_the_next_run(tmp_path: Path) -> None:
    path = write(tmp_path, "plain", PLAIN)
    reno = run(str(path))["flows"]
    for keep in (870, 256, 512):
        path.write_text(changed(("__read_mostly = HALF;", f"__read_mostly = {keep};")))
        assert run(str(path))["flows"] == run("reno", cc={"reno": {"beta": keep / 1024}})["flows"]
    assert run(str(path))["flows"] == reno


def test_an_operation_that_was_added_is_called(tmp_path: Path) -> None:
    path = write(tmp_path, "plain", PLAIN)
    run(str(path))
    path.write_text(changed(
        ("	.ssthresh	= plain_ssthresh,\n",
         "	.ssthresh	= plain_ssthresh,\n	.in_ack_event	= plain_in_ack_event,\n"),
        ("static struct tcp_congestion_ops plain",
         "static void plain_in_ack_event(struct sock *sk, u32 flags)\n"
         "{\n\ttcp_sk(sk)->snd_cwnd = 5;\n}\n\n"
         "static struct tcp_congestion_ops plain"),
    ))  # fmt: skip
    assert run(str(path))["flows"] != run("reno")["flows"]


def test_a_written_file_whose_kernels_file_changed_is_refused_until_it_is_written_again(
    tmp_path: Path,
) -> None:
    path = write(tmp_path, "plain", PLAIN)
    made, _ = import_kernel_file(path, "mine", tmp_path)
    path.write_text(changed(("tcp_cong_avoid_ai(tp, tcp_snd_cwnd(tp), acked)", "(void)acked")))
    assert run(str(made))["flows"] != run("reno")["flows"], "what no fact says runs on"
    path.write_text(changed(("__read_mostly = HALF;", "__read_mostly = 870;")))
    with pytest.raises(UserError, match=r"mine\.h: tcp_plain\.c says something else today .*870"):
        userfiles.read(made)
    with pytest.raises(UserError, match="--force"):
        import_kernel_file(path, "mine", tmp_path)
    import_kernel_file(path, "mine", tmp_path, force=True)
    assert run(str(made))["flows"] == run("reno", cc={"reno": {"beta": 870 / 1024}})["flows"]


def test_a_value_beyond_32_bits_stays_what_the_file_says(tmp_path: Path) -> None:
    # 2^32 + 512 cut to 32 bits would leave half; whole, the window never shrinks.
    text = changed(
        ("static int keep __read_mostly = HALF;", "static ulong keep __read_mostly = 4294967808;"),
        ("module_param(keep, int, 0644);", "module_param(keep, ulong, 0644);"),
        ('pr_info("plain: keeps %d\\n", keep);', ""),
        ("(u64)tcp_snd_cwnd(tp) * keep >> shift",
         "keep > 0xffffffff ? (u64)tcp_snd_cwnd(tp) * 870 >> shift : 2"),
    )  # fmt: skip
    path = write(tmp_path, "plain", text)
    assert run(str(path))["flows"] == run("reno", cc={"reno": {"beta": 870 / 1024}})["flows"]
    assert userfiles.describe(userfiles.read(path))["params"] == []


KEEP = "static int keep __read_mostly = HALF;"


def test_a_first_value_of_64_bits_that_is_no_number_is_not_cut(tmp_path: Path) -> None:
    firsts = {
        "sum": ("5UL * 1000 * 1000 * 1000", "ulong"), "shifted": ("1UL << 40", "ulong"),
        "big": ("BIG", "ulong"), "least": ("LONG_MIN", "long"),
    }  # fmt: skip
    in_c = {"ulong": "unsigned long", "long": "long"}
    declared = "\n".join(
        f"static {in_c[kind]} {name} = {first};\nmodule_param({name}, {kind}, 0644);"
        for name, (first, kind) in firsts.items()
    )
    are_first = " && ".join(
        f"{name} == ({in_c[kind]})({first})" for name, (first, kind) in firsts.items()
    )
    path = write(tmp_path, "plain", changed(
        (KEEP, f"#define BIG 5000000000UL\n{KEEP}\n{declared}"),
        ("* keep >> shift", f"* ({are_first} ? 870 : 1) >> shift"),
    ))  # fmt: skip
    gentle = run("reno", cc={"reno": {"beta": 870 / 1024}})["flows"]
    assert run(str(path))["flows"] == gentle
    for name in firsts:
        assert run(f"{path}[{name}=3]")["flows"] != gentle, name


def test_a_parameter_of_any_kind_has_the_files_value(tmp_path: Path) -> None:
    #: A declaration, and what is 870 if the parameter has its value.
    kinds = {
        "static struct { int x, y; } a = { 7, 870 };\nmodule_param_named(k, a.y, int, 0);": "a.y",
        "static int b[] = { 7, 870 };\nmodule_param_array(b, int, NULL, 0);": "b[1]",
        "static int other = 5, c = 870;\nmodule_param(c, int, 0);": "c",
        "static int d = 870, another;\nmodule_param_unsafe(d, int, 0);": "d + another",
        "static u8 e = 200;\nmodule_param(e, byte, 0);": "e + 670",
        "static bool f = true;\nmodule_param(f, bool, 0);": "870 * f",
        "static bool g;\nmodule_param(g, invbool, 0);": "870 * !g",
        "static short h = -870;\nmodule_param_hw(h, short, other, 0);": "-h",
    }
    are_870 = " && ".join(f"({used}) == 870" for used in kinds.values())
    text = changed((KEEP, "\n".join(["static int keep = HALF;", *kinds])),
                   ("* keep >> shift", f"* ({are_870} ? 870 : 1) >> shift"))  # fmt: skip
    gentle = run("reno", cc={"reno": {"beta": 870 / 1024}})["flows"]
    assert run(str(write(tmp_path, "plain", text)))["flows"] == gentle


@pytest.mark.parametrize(
    ("declared", "change"),
    [
        ("", "static u32 count; count++;"),
        ("static struct { u32 count; } all;", "all.count++;"),
        ("static u32 first, second;", "second = 1;"),
        ("#define MANY 4\nstatic u32 all[MANY];", "all[1] = 1;"),
        ("static atomic_t all = ATOMIC_INIT(0);", "atomic_inc(&all);"),
    ],
)
def test_a_variable_that_outlives_a_call_and_changes_is_refused(
    declared: str, change: str, tmp_path: Path
) -> None:
    text = changed(
        (KEEP, f"{KEEP}\n{declared}"),
        ("	return max((u32)", f"	{change}\n	return max((u32)"),
    )
    path = write(tmp_path, "plain", text)
    with pytest.raises(UserError, match=r"tcp_plain\.c:\d+: \w+: plain_ssthresh\(\) changes a"):
        userfiles.read(path)


def test_a_parameter_below_zero_is_a_constant(tmp_path: Path) -> None:
    text = changed(
        ("static int keep __read_mostly = HALF;", "static int keep __read_mostly = -870;"),
        ("(u64)tcp_snd_cwnd(tp) * keep >> shift", "(u64)tcp_snd_cwnd(tp) * -keep >> shift"),
    )
    path = write(tmp_path, "plain", text)
    assert run(str(path))["flows"] == run("reno", cc={"reno": {"beta": 870 / 1024}})["flows"]
    half = run(f"{path}[keep=-512]")["flows"]
    assert {key: one for key, one in half.items() if key != "cc"} == {
        key: one for key, one in run("reno")["flows"].items() if key != "cc"
    }


def test_a_constant_has_the_values_of_its_parameters_type(tmp_path: Path) -> None:
    types = [
        ("int", "int", "-(1)", -(2**31), 2**31 - 1),
        ("short", "short", "-0x10", -(2**15), 2**15 - 1),
        ("long", "long", "-5", -(2**31), 2**31 - 1),
        ("long", "long", "3000000000", 0, 2**32 - 1),
        ("ushort", "unsigned short", "-1", 0, 2**16 - 1),
        ("uint", "unsigned int", "-1", 0, 2**32 - 1),
        ("byte", "unsigned char", "7", 0, 2**8 - 1),
    ]
    declared = [
        f"static {in_c} k{place} = {first};\nmodule_param(k{place}, {kind}, 0644);\n"
        for place, (kind, in_c, first, *_) in enumerate(types)
    ]
    path = write(tmp_path, "plain", changed((KEEP, f"{''.join(declared)}{KEEP}")))
    *params, keep = cc_set(str(path)).params
    assert keep.name == "keep"
    for param, (_, _, first, least, most) in zip(params, types, strict=True):
        stored = [param.value(one) for one in (param.default, param.min, param.max)]
        unsigned = most + 1 if least == 0 and first.startswith("-") else 0
        assert stored == [eval(first) + unsigned, least, most]
        assert [param.shortest(param.stored(one)) for one in (least, most)] == [
            f"{least}", f"{most}",
        ]  # fmt: skip


@pytest.mark.parametrize(
    ("declared", "given"),
    [
        ("", "struct plain *ca;\n\n\tca = inet_csk_ca(sk);"),
        ("", "struct plain *ca = (struct plain *)inet_csk(sk)->icsk_ca_priv;"),
        ("static struct plain *of(struct sock *sk)\n{\n\treturn inet_csk_ca(sk);\n}",
         "struct plain *ca = of(sk);"),
        ("#define CA(sk) ((struct plain *)inet_csk_ca(sk))", "struct plain *ca = CA(sk);"),
    ],
)  # fmt: skip
def test_the_connections_structure_is_known_however_it_is_reached(
    declared: str, given: str, tmp_path: Path
) -> None:
    path = write(tmp_path, "plain", changed(
        (KEEP, f"{KEEP}\nstruct plain {{\n\tu32 reductions;\n}};\n{declared}"),
        ("	const struct tcp_sock *tp = tcp_sk(sk);\n\n	return",
         f"	const struct tcp_sock *tp = tcp_sk(sk);\n	{given}\n\n	ca->reductions++;\n	return"),
    ))  # fmt: skip
    found = read_kernel_file(path)
    assert found.private == ["struct plain"]
    assert [one.name for one in found.fields[1]] == ["reductions"]


@pytest.mark.parametrize(("words", "fits"), [(13, True), (14, False)])
def test_state_larger_than_a_kernel_gives_is_refused(
    words: int, fits: bool, tmp_path: Path
) -> None:
    text = changed((
        "static u32 plain_ssthresh(struct sock *sk)\n{\n",
        f"struct plain {{\n\tu64 words[{words}];\n}};\n\n"
        "static u32 plain_ssthresh(struct sock *sk)\n{\n"
        "	struct plain *ca = inet_csk_ca(sk);\n",
    ), ("	return max((u32)", "	ca->words[0]++;\n	return max((u32)"))  # fmt: skip
    path = write(tmp_path, "plain", text)
    if fits:
        assert run(str(path))["flows"] == run("reno")["flows"]
    else:
        with pytest.raises(UserError, match="struct plain is larger than ICSK_CA_PRIV_SIZE"):
            userfiles.describe(userfiles.read(path))


def test_operations_that_a_macro_or_an_included_file_makes_are_seen(tmp_path: Path) -> None:
    begin = PLAIN.index("static struct tcp_congestion_ops")
    end = PLAIN.index("};", begin) + 2
    operations = PLAIN[begin:end]
    macro = "#define OPERATIONS(n) " + operations.replace("ops plain", "ops n").replace(
        '"plain"', "#n"
    ).replace("\n", " \\\n")
    by_macro = PLAIN.replace(operations, f"{macro}\nOPERATIONS(plain);")
    reno = run("reno")["flows"]
    assert run(str(write(tmp_path, "macro", by_macro)))["flows"] == reno
    (tmp_path / "core.c").write_text(PLAIN)
    assert run(str(write(tmp_path, "shell", '#include "core.c"\n')))["flows"] == reno


OPERATIONS = PLAIN[
    PLAIN.index("static struct tcp_congestion_ops") : PLAIN.index("static int __init")
]
SHORT = OPERATIONS.replace("\t.ssthresh	= plain_ssthresh,\n", "")


@pytest.mark.parametrize(
    "text",
    [
        PLAIN.replace(OPERATIONS, re.sub(r"\.(\w+)\s*= ", r"\1: ", OPERATIONS)),
        PLAIN.replace(OPERATIONS, "typedef struct tcp_congestion_ops ops;\n" + OPERATIONS.replace(
            "struct tcp_congestion_ops", "ops")),
        PLAIN.replace(OPERATIONS, SHORT).replace(
            REGISTER, f"plain.ssthresh = plain_ssthresh;\n\t{REGISTER}"),
    ],
    ids=["colons", "typedef", "start"],
)  # fmt: skip
def test_operations_are_read_in_each_way_to_write_them(text: str, tmp_path: Path) -> None:
    assert text.count("plain_ssthresh") == 2
    assert run(str(write(tmp_path, "plain", text)))["flows"] == run("reno")["flows"]


def test_an_array_of_operations_is_refused(tmp_path: Path) -> None:
    text = changed(("ops plain __read_mostly = {", "ops plain[1] = { {"), ("};", "} };"))
    with pytest.raises(UserError, match=r"tcp_plain\.c:\d+: plain: is an array of struct tcp_con"):
        userfiles.read(write(tmp_path, "plain", text))


@pytest.mark.parametrize("words", ["*(volatile u32 *)tp = 1 / (shift - shift);",
                                   "*(u32 *volatile)NULL = 3;"])  # fmt: skip
def test_a_fault_names_its_line_in_a_files_first_function_too(words: str, tmp_path: Path) -> None:
    text = changed(("	return max((u32)", f"	{words}\n	return max((u32)"))
    line = text[: text.index(words)].count("\n") + 1
    path = write(tmp_path, "plain", text.replace("const struct tcp_sock", "struct tcp_sock", 1))
    with pytest.raises(UserError, match=rf"tcp_plain\.c:{line}: "):
        run(str(path))


def test_of_several_operations_one_must_be_named(tmp_path: Path) -> None:
    path = write(tmp_path, "plain", two())
    with pytest.raises(UserError, match=r"name one: tcp_plain\.c:\w+, tcp_plain\.c:\w+"):
        userfiles.read(path)
    assert run(f"{path}:plain")["flows"] == run("reno")["flows"]
    assert run(f"{path}:second")["flows"] != run("reno")["flows"]
    with pytest.raises(UserError, match="no struct tcp_congestion_ops third; there are"):
        userfiles.read(f"{path}:third")


ZERO = ("max((u32)((u64)tcp_snd_cwnd(tp) * keep >> shift), 2U)", "0")


def test_a_threshold_of_0_stalls_as_in_a_kernel(tmp_path: Path) -> None:
    path = write(tmp_path, "plain", changed(ZERO))
    link = {"rate": "10mbit", "rtt": "40ms", "buffer": "1bdp"}
    (delivered,) = run(str(path), duration="8s", path=link)["flows"]["bytes_delivered"]
    # Linux 6.12.117 with the file's own module: 7.00 Mbit/s.
    assert delivered * 8 / 8e6 == pytest.approx(7.00, rel=0.02)


def test_growth_of_a_window_of_0_divides_by_it_as_in_a_kernel(tmp_path: Path) -> None:
    # Linux 6.12.117 dies of a divide error in tcp_cong_avoid_ai().
    path = write(tmp_path, "plain", changed(ZERO))
    with pytest.raises(UserError, match=r"tcp_plain\.c:\d+: division by zero"):
        run(str(path), path={"rate": "5mbit", "rtt": "20ms", "buffer": "1bdp"})


def test_a_commit_gives_a_kernels_file_with_what_lies_beside_it(tmp_path: Path) -> None:
    folder = tmp_path / "repository"
    folder.mkdir()
    path = write(folder, "shell", '#include "core.c"\n')
    (folder / "core.c").write_text(PLAIN)
    settings = ["-c", "user.name=a", "-c", "user.email=a@example.org"]
    for words in (["init", "-q"], ["add", "-A"], [*settings, "commit", "-q", "-m", "one"]):
        subprocess.run(["git", *words], cwd=folder, check=True)
    (folder / "core.c").write_text("")
    old = check_out(path, commit_of(path, "HEAD"), tmp_path / "old")
    assert userfiles.read(old).files["core.c"] == PLAIN


def test_a_program_for_ebpf_is_refused_with_where_it_runs(tmp_path: Path) -> None:
    path = tmp_path / "bpf_mine.c"
    path.write_text(
        '#include "vmlinux.h"\n#include <bpf/bpf_helpers.h>\n\nSEC("struct_ops")\n'
        "void BPF_PROG(mine_init, struct sock *sk) {}\n\n"
        'SEC(".struct_ops.link")\nstruct tcp_congestion_ops mine = {.name = "mine"};\n'
    )
    with pytest.raises(UserError, match=r"is an eBPF program .* --engine vm --module"):
        userfiles.read(path)


def test_a_fraction_that_the_compiler_makes_an_integer_of_is_allowed(tmp_path: Path) -> None:
    written = changed(("#define HALF (1024 / 2)", "#define HALF ((u32)(0.8496 * 1024))"),
                      ("BUILD_BUG_ON(HALF != 512);", ""), ("ilog2(2 * HALF)", "10"))  # fmt: skip
    path = write(tmp_path, "plain", written)
    assert run(str(path))["flows"] == run("reno", cc={"reno": {"beta": 869 / 1024}})["flows"]


@pytest.mark.parametrize("words", ["keep * 0.5", "(float)keep", "(int)(double)keep"])
def test_what_a_processor_would_compute_as_a_fraction_is_refused(
    words: str, tmp_path: Path
) -> None:
    path = write(tmp_path, "plain", changed(("keep >> shift)", f"(u32)({words}) >> shift)")))
    with pytest.raises(UserError, match=r"tcp_plain\.c:17: .*"):
        userfiles.describe(userfiles.read(path))


@pytest.mark.parametrize("edits", [3, pytest.param(10, marks=pytest.mark.slow)])
def test_each_edit_is_compiled_once_and_gives_its_own_answer(
    edits: int,
    tmp_path: Path,
    tmp_path_factory: pytest.TempPathFactory,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    cache = tmp_path_factory.mktemp("compiled")
    monkeypatch.setenv("XDG_CACHE_HOME", str(cache))
    path = write(tmp_path, "plain", PLAIN)
    values = (870, 256, 768, 512, 600, 700, 128, 900, 640, 333)
    for edit, keep in enumerate(values[:edits], 1):
        path.write_text(changed(("__read_mostly = HALF;", f"__read_mostly = {keep};")))
        wanted = run("reno", cc={"reno": {"beta": keep / 1024}})["flows"]
        assert [run(str(path))["flows"] for _ in range(2)] == [wanted, wanted]
        assert len(list(cache.rglob("native-*.so"))) == edit
