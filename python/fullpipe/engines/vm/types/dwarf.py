"""Types in DWARF, which every module has that was built for a kernel with CONFIG_DEBUG_INFO, also
where BTF could not be made."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from elftools.dwarf.die import DIE
from elftools.elf.elffile import ELFFile

from fullpipe.engines.vm.types.model import Array, Member, Number, Structure, Type, named

_STRUCTURES = {"DW_TAG_structure_type": False, "DW_TAG_union_type": True}
_ALIASES = {
    "DW_TAG_typedef", "DW_TAG_const_type", "DW_TAG_volatile_type", "DW_TAG_restrict_type",
}  # fmt: skip
_OF_FUNCTIONS = {"DW_TAG_variable", "DW_TAG_formal_parameter"}
#: DW_ATE_boolean, _signed, _signed_char; the others are unsigned, or no integers.
_SIGNED = {5, 6}
_NO_INTEGERS = {3, 4, 9, 10}
_DEPTH = 16


def structures(elf: ELFFile, most_bytes: int) -> Iterator[tuple[Structure, bool]]:
    """The named structures of at most so many bytes that the module's own files define, and of each
    whether a variable of its functions points to it."""
    dwarf = elf.get_dwarf_info()
    for unit in dwarf.iter_CUs():
        top = unit.get_top_DIE()
        headers = _headers(dwarf.line_program_for_CU(unit))
        pointed = set(_pointed(top))
        for die in top.iter_children():
            size = _number(die, "DW_AT_byte_size")
            is_own = _number(die, "DW_AT_decl_file") not in headers
            if die.tag == "DW_TAG_structure_type" and is_own and 0 < size <= most_bytes:
                structure = _type(die, 0)
                if isinstance(structure, Structure) and structure.name:
                    yield structure, die.offset in pointed


def _headers(lines: Any) -> set[int]:
    """The numbers of a unit's files that are the kernel's headers: in a folder `include`."""
    if lines is None:
        return set()
    folders = [bytes(folder) for folder in lines["include_directory"]]
    # DWARF 5 counts folders and files from 0, and earlier ones from 1.
    first = 0 if lines["version"] >= 5 else 1
    return {
        number
        for number, file in enumerate(lines["file_entry"], first)
        if 0 <= file.dir_index - first < len(folders)
        and b"include" in folders[file.dir_index - first].split(b"/")
    }


def _pointed(top: DIE) -> Iterator[int]:
    """Where the structures are to which variables of the unit's functions point."""
    stack = [die for die in top.iter_children() if die.tag == "DW_TAG_subprogram"]
    while stack:
        die = stack.pop()
        stack += [child for child in die.iter_children() if child.has_children]
        for child in die.iter_children():
            if child.tag in _OF_FUNCTIONS:
                pointer = _bare(_referred(child))
                target = _bare(_referred(pointer)) if _is_pointer(pointer) else None
                if target is not None and target.tag == "DW_TAG_structure_type":
                    yield target.offset


def _is_pointer(die: DIE | None) -> bool:
    return die is not None and die.tag == "DW_TAG_pointer_type"


def _bare(die: DIE | None) -> DIE | None:
    """Without typedefs and qualifiers."""
    for _ in range(_DEPTH):
        if die is None or die.tag not in _ALIASES:
            break
        die = _referred(die)
    return die


def _type(die: DIE | None, depth: int) -> Type:
    if die is None or depth > _DEPTH:
        return None
    if die.tag in _ALIASES:
        inner = _type(_referred(die), depth + 1)
        return named(_text(die), inner) if die.tag == "DW_TAG_typedef" else inner
    bits = _number(die, "DW_AT_byte_size") * 8
    if die.tag == "DW_TAG_base_type":
        encoding = _number(die, "DW_AT_encoding")
        return None if encoding in _NO_INTEGERS else Number(bits, encoding in _SIGNED)
    if die.tag == "DW_TAG_enumeration_type":
        number = _type(_referred(die), depth + 1)
        return number if isinstance(number, Number) else Number(bits, is_signed=False)
    if die.tag == "DW_TAG_array_type":
        return _array(die, depth)
    if die.tag in _STRUCTURES:
        members = tuple(
            _member(child, depth) for child in die.iter_children() if child.tag == "DW_TAG_member"
        )
        name = _text(die)
        return named(name, Structure(name, bits // 8, _STRUCTURES[die.tag], members))
    return None


def _array(die: DIE, depth: int) -> Type:
    ranges = [child for child in die.iter_children() if child.tag == "DW_TAG_subrange_type"]
    element = _type(_referred(die), depth + 1)
    bare = _bare(_referred(die))
    if len(ranges) != 1 or bare is None:
        return None
    if "DW_AT_count" in ranges[0].attributes:  # as clang writes it
        count = _number(ranges[0], "DW_AT_count")
    elif "DW_AT_upper_bound" in ranges[0].attributes:
        count = _number(ranges[0], "DW_AT_upper_bound") + 1
    else:
        return None
    return Array(element, count, _number(bare, "DW_AT_byte_size") * 8)


def _member(die: DIE, depth: int) -> Member:
    bits = _number(die, "DW_AT_bit_size")
    at_bits = _number(die, "DW_AT_data_bit_offset")
    if "DW_AT_data_bit_offset" not in die.attributes:
        at_bits = _number(die, "DW_AT_data_member_location") * 8
    if "DW_AT_bit_offset" in die.attributes:
        # DWARF 3, 5.5.6: from the most significant bit of the storage that holds the field.
        bare = _bare(_referred(die))
        storage = _number(die, "DW_AT_byte_size") or (
            _number(bare, "DW_AT_byte_size") if bare else 0
        )
        at_bits += 8 * storage - _number(die, "DW_AT_bit_offset") - bits
    return Member(_text(die), at_bits, bits, _type(_referred(die), depth + 1))


def _referred(die: DIE | None) -> DIE | None:
    if die is None or "DW_AT_type" not in die.attributes:
        return None
    return die.get_DIE_from_attribute("DW_AT_type")


def _number(die: DIE, name: str) -> int:
    value: Any = die.attributes[name].value if name in die.attributes else 0
    return value if isinstance(value, int) else 0


def _text(die: DIE) -> str:
    value = die.attributes["DW_AT_name"].value if "DW_AT_name" in die.attributes else b""
    return bytes(value).decode("utf-8", "replace")
