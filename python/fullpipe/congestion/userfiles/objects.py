"""What a compiled algorithm may contain: sections, symbols and, in eBPF, calls. Judged on the
object itself, which no trick of the source can hide. Must never load it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from elftools.common.exceptions import ELFError
from elftools.elf.constants import SH_FLAGS
from elftools.elf.elffile import ELFFile
from elftools.elf.sections import SymbolTableSection

from fullpipe.base.errors import UserError
from fullpipe.congestion.userfiles.source import Source

#: What a native object may ask for: what compilers call for copies (cc/external_memory.c).
_ASKED = re.compile(r"mem(cpy|set|move|cmp)|_GLOBAL_OFFSET_TABLE_")
_SECTIONS = re.compile(
    r"|\.(text|rodata|data|bss|tdata|tbss)(\..*)?|\.(comment|symtab|symtab_shndx|strtab|shstrtab"
    r"|eh_frame|group|llvm_addrsig)|\.(note|debug)[._].*|\.rela?\..*"
)
#: The symbols that a native object offers (external.c, linux_print.h).
_OFFERED = ("cc_external", "cc_layout", "linux_log")
_BPF_SECTIONS = re.compile(
    r"|\.text|struct_ops|\.struct_ops\.link|\.maps|license|\.(rodata|data|bss)(\..*)?"
    r"|\.BTF(\.ext)?|\.(symtab|strtab|shstrtab|llvm_addrsig)|\.debug_.*|\.rela?[.\w]*"
)
#: Helpers of the kernel that the glue calls (bpf/glue.h), by their numbers in linux/bpf.h.
_BPF_HELPERS = {
    7: "get_prandom_u32",
    107: "sk_storage_get",
    108: "sk_storage_delete",
    116: "tcp_send_ack",
    118: "jiffies64",
    130: "ringbuf_output",
}
_BPF_CALL = 0x85  # BPF_JMP | BPF_CALL


def check_native(source: Source, file: Path, location_of: Callable[[str], str | None]) -> None:
    """Raises UserError for an object of a user's file that asks for anything outside, has data that
    connections would share, or code that runs unasked. `location_of`: where a name stands in the
    source."""

    def where(name: str) -> str:
        return location_of(name) or str(source.path)

    with file.open("rb") as stream:
        elf = _opened(source, stream)
        for section in elf.iter_sections():
            if not _SECTIONS.fullmatch(section.name):
                raise UserError(
                    f"{source.path}: has a section {section.name}: an algorithm has code and "
                    "constants alone, and nothing that runs unasked"
                )
            executable = section["sh_flags"] & SH_FLAGS.SHF_EXECINSTR
            if executable and not section.name.startswith(".text"):
                raise UserError(
                    f"{source.path}: section {section.name} can be executed; a "
                    "function inside a function needs that"
                )
        for symbol in _symbols(elf):
            name, kind = symbol.name, symbol["st_info"]["type"]
            is_local = symbol["st_info"]["bind"] == "STB_LOCAL"
            shown = name.split(".")[0]
            if kind not in (
                "STT_NOTYPE",
                "STT_OBJECT",
                "STT_FUNC",
                "STT_SECTION",
                "STT_FILE",
                "STT_TLS",
                "STT_COMMON",
            ):
                raise UserError(f"{where(shown)}: {shown} is chosen when it is loaded (ifunc)")
            if symbol["st_shndx"] == "SHN_UNDEF":
                if name and not _ASKED.fullmatch(name):
                    raise UserError(
                        f"{where(name)}: {name}() is not there: an algorithm has no libc; it runs "
                        "in the kernel too"
                    )
                continue
            if not is_local and name not in _OFFERED and _is_seen(symbol, name):
                raise UserError(f"{where(name)}: {name} would replace a function of its host")
            # kernel_files.py judges the variables of a kernel's file.
            if not source.is_kernels and _is_shared(elf, symbol):
                raise UserError(
                    f"{where(shown)}: {shown} is a variable outside the state: connections would "
                    f"share it, and no replay could repeat it. Put it into struct {source.name}"
                )


def check_bpf(source: Source, file: Path) -> None:
    """Raises UserError for an eBPF object with programs, helpers or functions of the kernel that
    the glue does not have."""
    with file.open("rb") as stream:
        elf = _opened(source, stream)
        for section in elf.iter_sections():
            if not _BPF_SECTIONS.fullmatch(section.name):
                raise UserError(
                    f"{source.path}: has a section {section.name}: an algorithm is the one program "
                    "that its contract describes"
                )
            if section["sh_flags"] & SH_FLAGS.SHF_EXECINSTR:
                code = section.data()
                for at in range(0, len(code), 8):
                    helper = int.from_bytes(code[at + 4 : at + 8], "little")
                    is_call = code[at] == _BPF_CALL and code[at + 1] >> 4 == 0
                    if is_call and helper not in _BPF_HELPERS:
                        raise UserError(
                            f"{source.path}: calls the kernel's helper {helper}; an algorithm "
                            "calls nothing outside"
                        )
        for symbol in _symbols(elf):
            if symbol["st_shndx"] == "SHN_UNDEF" and symbol.name:
                raise UserError(
                    f"{source.path}: {symbol.name}() is not there: an algorithm calls "
                    "nothing outside"
                )


def _opened(source: Source, stream: Any) -> ELFFile:
    try:
        return ELFFile(stream)
    except ELFError as error:
        raise UserError(f"{source.path}: the compiler made no object file: {error}") from None


def _symbols(elf: ELFFile) -> Iterator[Any]:
    for section in elf.iter_sections():
        if isinstance(section, SymbolTableSection):
            yield from section.iter_symbols()


def _is_seen(symbol: Any, name: str) -> bool:
    """Whether others could link to it, or what compilers call would be something else."""
    return symbol["st_other"]["visibility"] == "STV_DEFAULT" or bool(_ASKED.fullmatch(name))


def _is_shared(elf: ELFFile, symbol: Any) -> bool:
    """Whether it is a variable that can be written."""
    if symbol["st_info"]["type"] in ("STT_TLS", "STT_COMMON") or symbol["st_shndx"] == "SHN_COMMON":
        return True
    if symbol["st_info"]["type"] != "STT_OBJECT" or not isinstance(symbol["st_shndx"], int):
        return False
    section = elf.get_section(symbol["st_shndx"])
    written = section["sh_flags"] & SH_FLAGS.SHF_WRITE
    return bool(written) and not section.name.startswith(".data.rel.ro")
