"""Writes the file that makes a congestion control of a Linux kernel an algorithm of the contract
(cc/linux_host.h). The kernel's file stays as it is. Must never compile it.
"""

from __future__ import annotations

import re
from pathlib import Path

from fullpipe.authoring.new import check_name
from fullpipe.base.errors import UserError
from fullpipe.base.installed import shipped
from fullpipe.congestion import userfiles
from fullpipe.congestion.userfiles.kernel_files import KernelFile, Parameter, read_kernel_file
from fullpipe.congestion.userfiles.source import CONTRACT_VERSION, MAX_NAME, blanked
from fullpipe.congestion.userfiles.tokens import functions_of, tokens_of

#: The file, with @WORDS for what an import fills in.
_TEMPLATE = Path(__file__).with_name("kernel_file.h.in")
#: What get_info() may tell, and what it never does.
_OF_GET_INFO = frozenset({"bw", "max_bw", "min_rtt", "pacing_gain", "cwnd_gain"})
_INFO = frozenset({
    "phase", "bw_shortterm", "inflight_longterm", "inflight_shortterm", "extra_acked",
    "round_count",
})  # fmt: skip
_MACRO = re.compile(r"^#define (\w+)", re.M)


def import_kernel_file(path: Path, name: str | None, folder: Path) -> tuple[Path, str]:
    """Writes NAME.h into a folder, with copies of the kernel's files if they lie elsewhere; returns
    its path, and the kernel's name. Raises UserError, and leaves nothing, if the file has no
    congestion control of a kernel or needs what the contract cannot give, or if something is there
    already."""
    found = read_kernel_file(path)
    chosen = name.removesuffix(".h") if name is not None else _name_of(found)
    check_name(chosen)
    out = folder / f"{chosen}.h"
    if out.exists() or out.name in found.files:
        raise UserError(f"{out}: exists already; choose another name with --as")
    written = {out: _wrapper(found, chosen)}
    for file, text in found.files.items():
        copy = folder / file
        if not copy.exists():
            written[copy] = text
        elif copy.read_bytes() != text.encode():
            raise UserError(f"{copy}: exists already and is another file than {path}")
    try:
        for copy, text in written.items():
            copy.write_text(text, encoding="utf-8", newline="")
        userfiles.describe(userfiles.read(out))
    except OSError as error:
        raise UserError(f"{out}: cannot be written: {error.strerror}") from None
    except UserError:
        for copy in written:
            copy.unlink()
        raise
    return out, found.name


def never_set(algorithm: str) -> frozenset[str]:
    """The variables of CC_INFO_STATE (cc/state.h) that an algorithm, as plans name it, never has a
    value of, because linux_info() (cc/linux_host.h) fills them from the kernel file's get_info().
    Empty unless `import_kernel_file` wrote its file."""
    if not userfiles.is_external(algorithm) or userfiles.is_class(algorithm):
        return frozenset()
    source = userfiles.source_of(algorithm)
    if not source.is_kernels:
        return frozenset()
    text = source.files[source.main]
    return _INFO if "#define LINUX_GET_INFO " in text else _INFO | _OF_GET_INFO


def _name_of(found: KernelFile) -> str:
    """The kernel's name for it; with linux_ in front where the contract has a header of it."""
    name = re.sub(r"\W", "_", found.name)
    name = f"linux_{name}" if (shipped("cc") / f"{name}.h").exists() else name
    return name[:MAX_NAME]


def _wrapper(found: KernelFile, name: str) -> str:
    own = f"k_{name}"[:MAX_NAME]
    first = ["#define LINUX_SKB_MSTAMP\n"] if found.is_before_4_13 else []
    types = [
        f"#define LINUX_{member.upper()} {found.members[member]}\n"
        for member in ("pkts_acked", "cong_control", "get_info")
        if re.fullmatch(r"\w+", found.members.get(member, ""))
    ]
    includes = [f'#include "{unit}"' for unit in found.units]
    start = [f"\t{one.variable} = ({one.kind})p->{one.name};\n" for one in found.parameters]
    start += [f"\t(void){function}();\n" for function in found.starts]
    if not found.starts:
        start.append(f"\tlinux_registered = &{found.variable};\n")
    words = {
        "NAME": name, "OWN": own, "MAIN": found.path.name, "VERSION": str(CONTRACT_VERSION),
        "TITLE": f"{found.name} of {found.path.name}", "FLAGS": " | ".join(found.flags),
        "PARAMETERS": "".join(f" \\\n\t{_parameter(one, found)}" for one in found.parameters),
        "FIRST": "".join(first), "OWNED": "".join(_owned(found)),
        "INCLUDES": "\n".join(includes), "TYPES": "".join(types), "START": "".join(start),
    }  # fmt: skip
    template = _TEMPLATE.read_text(encoding="utf-8")
    return re.sub(r"@([A-Z]+)", lambda match: words[match[1]], template)


def _owned(found: KernelFile) -> list[str]:
    """Makes way for the file's own functions where cc/linux_*.h have one of that name: files bring
    copies of what a kernel keeps to itself."""
    given = "\n".join(_blanked_header(name) for name in ("linux_base.h", "linux_tcp.h"))
    functions = {function.name for function in functions_of(tokens_of(given))}
    macros = set(_MACRO.findall(given))
    return [
        f"#undef {name}\n" if name in macros else f"#define {name} own_{name}\n"
        for name in found.functions if name in functions | macros
    ]  # fmt: skip


def _blanked_header(name: str) -> str:
    return blanked((shipped("cc") / name).read_text(encoding="utf-8"))


def _parameter(one: Parameter, found: KernelFile) -> str:
    meaning = re.sub(r'[\\"]', "'", one.meaning)
    return (f'P({one.name}, (u32)({one.value}), 0, {one.most}u, 1, "(the module\'s own unit)", '
            f'"as the module takes it", "{found.path.name}", "{meaning}")')  # fmt: skip
