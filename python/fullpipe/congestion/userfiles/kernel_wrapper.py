"""The file of the contract that carries a congestion control of a Linux kernel (cc/linux_host.h),
made of what the kernel's file says. Must never compile or write.
"""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

from fullpipe.base.errors import UserError
from fullpipe.base.installed import shipped
from fullpipe.congestion.userfiles.kernel_fields import STRUCTURE
from fullpipe.congestion.userfiles.kernel_files import KernelFile, Parameter, read_kernel_file
from fullpipe.congestion.userfiles.source import (
    CONTRACT_VERSION,
    KERNEL_INCLUDE,
    MAX_NAME,
    Source,
    blanked,
    read_source,
)
from fullpipe.congestion.userfiles.tokens import functions_of, tokens_of
from fullpipe.recording.recording import TABLES

#: The file, with @WORDS for what the kernel's file says.
_TEMPLATE = Path(__file__).with_name("kernel_file.h.in")
#: Columns of tables that are something else: of recordings, and of calls (fullpipe-plan, calls.rs).
_TAKEN = frozenset(
    {
        *TABLES["cc_samples"].names,
        "call",
        "cc",
        "connection",
        "cwnd",
        "cwnd_cnt",
        "enters_cwr",
        "is_scalable",
        "pacing_rate_Bps",
        "sequence",
        "sndbuf_factor",
        "ssthresh",
        "timer_us",
        "tso_most",
        "tso_segs",
    }
)
_MACRO = re.compile(r"^#define (\w+)", re.M)
_UNIT = re.compile(r'^#include "([^"]+\.c)"', re.M)
#: Lines of a wrapper that say what the kernel's file says: constants and their starts, members.
_FACTS = re.compile(
    r"^\tP\(.*|^\t\w+ = .*p->.*|^\t\(void\)\w+\(\);|^#define LINUX_\w+ .*"
    r"|^\tlinux_registered = .*|^\tlinux_begin_start\(\);",
    re.M,
)


def read_kernel(path: Path) -> Source:
    """The source of a kernel's file, `tcp_NAME.c`, or `tcp_NAME.c:OPERATIONS` for one of several
    struct tcp_congestion_ops. Raises UserError as `read_kernel_file` and `read_source` do."""
    file, _, operations = path.name.partition(":")
    kernel_file = read_kernel_file(path.with_name(file), operations or None)
    name = name_of(kernel_file)
    while f"{name}.h" in kernel_file.files:
        name = f"k{name}"[:MAX_NAME]
    main = kernel_file.path.with_name(f"{name}.h")
    return read_source(main, {main.name: wrapper(kernel_file, name)}, named=path.name)


def check_current(source: Source) -> None:
    """Raises UserError for a file that `fullpipe cc import` wrote if the kernel's file beside it
    says something else today: a parameter's first value, an operation."""
    text = source.files[source.main]
    units = _UNIT.findall(text)
    if KERNEL_INCLUDE not in text or not units:
        return
    kernel_file = read_kernel_file(source.folder / units[-1])
    here, there = (
        set(_FACTS.findall(words)) for words in (text, wrapper(kernel_file, source.stem))
    )
    if here == there:
        return
    changed = " ".join(sorted(there - here or here - there)[0].split())
    raise UserError(
        f"{source.path}: {units[-1]} says something else today ({changed}); name {units[-1]} "
        f"itself, or write this file again: fullpipe cc import {units[-1]} --as {source.stem} "
        "--force"
    )


def name_of(kernel_file: KernelFile) -> str:
    """The kernel's name for it; with linux_ in front where the contract has a header of it."""
    name = re.sub(r"\W", "_", kernel_file.name)
    name = f"linux_{name}" if (shipped("cc") / f"{name}.h").exists() else name
    return name[:MAX_NAME]


def wrapper(kernel_file: KernelFile, name: str) -> str:
    """The text of NAME.h for a kernel's file."""
    prefix = f"k_{name}"[:MAX_NAME]
    first = ["#define LINUX_SKB_MSTAMP\n"] if kernel_file.is_before_4_13 else []
    if "CC_WANTS_RING" in kernel_file.flags:
        first.append("#define LINUX_PRIVATE_WORDS 18\n")
    types = [
        f"#define LINUX_{member.upper()} {kernel_file.members[member]}\n"
        for member in ("pkts_acked", "cong_control", "get_info")
        if re.fullmatch(r"\w+", kernel_file.members.get(member, ""))
    ]
    includes = [f'#include "{unit}"' for unit in kernel_file.units]
    start = [_set(parameter) for parameter in kernel_file.parameters]
    start += [f"\t(void){function}();\n" for function in kernel_file.starts]
    # A start registers all operations of its file.
    start.append(f"\tlinux_registered = &{kernel_file.variable};\n")
    words = {
        "NAME": name,
        "OWN": prefix,
        "MAIN": kernel_file.path.name,
        "VERSION": str(CONTRACT_VERSION),
        "TITLE": f"{kernel_file.name} of {kernel_file.path.name}",
        "FLAGS": " | ".join(kernel_file.flags),
        "PARAMETERS": "".join(
            f" \\\n\t{_parameter(parameter, kernel_file)}" for parameter in kernel_file.parameters
        ),
        "FIRST": "".join(first),
        "OWNED": "".join(_owned(kernel_file)),
        "INCLUDES": "\n".join(includes),
        "TYPES": "".join(types),
        "START": "".join(start),
        "CHECKS": "".join(_checks(kernel_file)),
        "VARIABLES": _variables(kernel_file, prefix),
    }
    template = _TEMPLATE.read_text(encoding="utf-8")
    return re.sub(r"@([A-Z]+)", lambda match: words[match[1]], template)


def _variables(kernel_file: KernelFile, prefix: str) -> str:
    """The list of the fields behind inet_csk_ca(sk)."""
    structure, fields = kernel_file.fields
    if not fields:
        return ""
    rows = []
    for field in fields:
        name = column_of(field.name, structure)
        meaning = re.sub(r'[\\"]', "'", field.meaning)
        rows.append(f' \\\n\tS({name}, "", 1, {field.value}, "{meaning}")')
    return (
        f"#define {STRUCTURE} ((const struct {structure} *)LINUX_PRIVATE(s))\n"
        f"#define {prefix}_MORE_STATE(S){''.join(rows)}\n\n"
    )


def column_of(name: str, structure: str) -> str:
    """The variable of a structure's field: its name, unless tables have something else of it."""
    return f"{structure}_{name}" if name in _TAKEN else name


def _checks(kernel_file: KernelFile) -> list[str]:
    """What a kernel's build refuses."""
    return [
        f"_Static_assert(sizeof({kind}) <= ICSK_CA_PRIV_SIZE,\n"
        f'\t       "{kind} is larger than ICSK_CA_PRIV_SIZE, and kernels have no room for it");\n'
        for kind in kernel_file.private
    ]


def _owned(kernel_file: KernelFile) -> list[str]:
    """Makes way for the file's own functions where cc/linux_*.h have one of that name: files bring
    copies of what a kernel keeps to itself."""
    functions, macros = _names_of_headers()
    return [
        f"#undef {name}\n" if name in macros else f"#define {name} own_{name}\n"
        for name in kernel_file.functions
        if name in functions | macros
    ]


@cache
def _names_of_headers() -> tuple[frozenset[str], frozenset[str]]:
    """The functions and macros of cc/linux_*.h, which do not change while a program runs."""
    files = (shipped("cc") / name for name in ("linux_base.h", "linux_tcp.h"))
    text = "\n".join(blanked(file.read_text(encoding="utf-8")) for file in files)
    functions = frozenset(function.name for function in functions_of(tokens_of(text)))
    return functions, frozenset(_MACRO.findall(text))


def _parameter(parameter: Parameter, kernel_file: KernelFile) -> str:
    meaning = re.sub(r'[\\"]', "'", parameter.meaning)
    origin = f", {-parameter.least}u" if parameter.least else ""
    return (
        f"P({parameter.name}, {_first(parameter)}, 0, {parameter.most - parameter.least}u, 1, "
        f'"(the module\'s own unit)", "as the module takes it", "{kernel_file.path.name}", '
        f'"{meaning}"{origin})'
    )


def _set(parameter: Parameter) -> str:
    """Gives a variable the value of its constant, which is stored as its distance from the
    least. A first value of 64 bits, which a constant cannot hold, stays as long as the constant
    does."""
    stored = f"p->{parameter.name}"
    value = f"(int)({stored} - {-parameter.least}u)" if parameter.least else stored
    value = f"({parameter.kind}){value}"
    if parameter.kind.endswith("long"):
        value = f"{stored} == {_first(parameter)} ? ({parameter.kind})({parameter.value}) : {value}"
    return f"\t{parameter.variable} = {value};\n"


def _first(parameter: Parameter) -> str:
    """The first value as the constant stores it."""
    return f"(u32)({parameter.kind})({parameter.value})" + (
        f" + {-parameter.least}u" if parameter.least else ""
    )
