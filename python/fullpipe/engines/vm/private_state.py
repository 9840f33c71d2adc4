"""The private state of the kernel's own congestion controls, which is behind inet_csk_ca(sk): its
fields by the types with which module or kernel were compiled, as variables of recordings.
"""

from __future__ import annotations

import io
import struct
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from elftools.common.exceptions import DWARFError, ELFError
from elftools.elf.elffile import ELFFile

from fullpipe import _native
from fullpipe.congestion.userfiles.kernel_fields import FILLER, MOST_ELEMENTS, MOST_FIELDS
from fullpipe.congestion.userfiles.kernel_wrapper import column_of
from fullpipe.engines.vm.types import btf, dwarf
from fullpipe.engines.vm.types.model import Array, Number, Structure, Type
from fullpipe.plan.plan import Plan

#: What the guest sends of each (bpf/sockets.bpf.c).
STATE_BYTES = 144
#: Structures of what kernels have built in, where they are not called as the congestion control.
_BUILT_IN = {"cubic": "bictcp"}
#: What readers of types raise for damaged ones: pyelftools trusts what it reads.
_DAMAGED = (
    ValueError, LookupError, AssertionError, TypeError, RecursionError, struct.error, ELFError,
    DWARFError,
)  # fmt: skip
#: Congestion controls without a state.
_STATELESS = {"reno"}
#: The value of a filter over a window (minmax_get()) is its first sample.
_READ_WITH = {"minmax": ("s_0_v", "")}


@dataclass(frozen=True)
class Field:
    """A number in a state."""

    column: str
    at_bits: int
    bits: int
    is_signed: bool
    structure: str

    def values(self, states: npt.NDArray[np.uint8]) -> npt.NDArray[np.float64]:
        """Those of states, one a row."""
        first, last = self.at_bits // 8, (self.at_bits + self.bits - 1) // 8
        whole = np.zeros(len(states), np.uint64)
        for byte in range(first, min(last, first + 7) + 1):
            whole |= states[:, byte].astype(np.uint64) << np.uint64(8 * (byte - first))
        whole >>= np.uint64(self.at_bits - 8 * first)
        whole &= np.uint64(2**self.bits - 1)
        if not self.is_signed:
            return whole.astype(np.float64)
        spare = np.uint64(64 - self.bits)
        return ((whole << spare).view(np.int64) >> spare.astype(np.int64)).astype(np.float64)


Layout = list[Field]


@dataclass(frozen=True)
class Layouts:
    """The fields of each congestion control, by the name that flows have for it (`kernel:vegas`),
    and why others have none."""

    fields: dict[str, Layout]
    missing: list[str]

    def facts(self) -> dict[str, str]:
        """What a recording says of those that have none."""
        return {"no variables": "; ".join(self.missing)} if self.missing else {}

    def described(self) -> dict[str, dict[str, dict[str, str]]]:
        """What metadata says of the variables."""
        return {
            name: {
                field.column: {"unit": "", "meaning": f"field of struct {field.structure}"}
                for field in layout
            }
            for name, layout in self.fields.items()
        }


NONE = Layouts({}, [])


def layouts(names: Iterable[str], modules: Mapping[str, bytes], kernel: Path) -> Layouts:
    """Those of congestion controls by the kernel's names. `modules`: the contents of those that are
    no part of the kernel, whose unpacked image is `kernel`."""
    fields: dict[str, Layout] = {}
    missing = []
    for name in names:
        if name in _STATELESS:
            continue
        try:
            structure = _structure(name, modules.get(name), kernel)
        except _DAMAGED as error:
            missing.append(f"kernel:{name}: its types are damaged: {str(error)[:100]}")
            continue
        listed = _fields(structure, "", 0, structure.name) if structure else ()
        if layout := list({field.column: field for field in listed}.values()):
            fields[f"kernel:{name}"] = layout[:MOST_FIELDS]
    return Layouts(fields, missing)


def with_states(table: pa.Table, plan: Plan, stream: bytes, layouts: Layouts) -> pa.Table:
    """`cc_samples` with the columns of the states that came in the stream."""
    if not layouts.fields:
        return table
    states: dict[int, list[tuple[int, bytes]]] = {}
    for flow_id, t_us, state in _native.stream.private_states(stream):
        states.setdefault(flow_id, []).append((t_us, state))
    columns: dict[str, npt.NDArray[np.float64]] = {}
    flow_ids, times = (table[name].to_numpy() for name in ("flow_id", "t_us"))
    for flow_id, flow in enumerate(plan["flows"]):
        layout, sent = layouts.fields.get(flow["cc"]["name"]), states.get(flow_id)
        rows = np.flatnonzero(flow_ids == flow_id)
        if not layout or not sent or times[rows].tolist() != [t_us for t_us, _ in sent]:
            continue
        raw = np.frombuffer(b"".join(state for _, state in sent), np.uint8)
        raw = raw.reshape(len(sent), -1)
        for field in layout:
            column = columns.setdefault(field.column, np.full(len(table), np.nan))
            column[rows] = field.values(raw)
    for name, values in columns.items():
        array = pa.array(values, mask=np.isnan(values))
        if name in table.column_names:  # of an algorithm's file beside it
            position = table.column_names.index(name)
            both = np.where(np.isnan(values), table[name].to_numpy(), values)
            table = table.set_column(position, name, pa.array(both, mask=np.isnan(both)))
        else:
            table = table.append_column(name, array)
    return table


def _structure(name: str, module: bytes | None, kernel: Path) -> Structure | None:
    """The structure that a congestion control keeps for a connection. Raises ValueError where
    nothing says."""
    elf = None if module is None else ELFFile(io.BytesIO(module))
    if elf is not None and elf.has_dwarf_info():
        return _chosen(name, dwarf.structures(elf, STATE_BYTES))
    if elf is not None and elf.header.e_machine == "EM_BPF":
        raise ValueError("its eBPF programs have no DWARF (clang -g)")
    of_kernel = _section(kernel.read_bytes())
    if of_kernel is None:
        raise ValueError("the kernel has no BTF that could be read here")
    if module is None:
        return btf.kernels(of_kernel).structure(_BUILT_IN.get(name, name))
    of_module = _section(module)
    if of_module is None:
        raise ValueError("its module has neither BTF nor DWARF (CONFIG_DEBUG_INFO)")
    return _chosen(name, btf.Btf(of_module, btf.kernels(of_kernel)).structures(STATE_BYTES))


def _section(content: bytes) -> bytes | None:
    if not content.startswith(b"\x7fELF"):
        return None
    section = ELFFile(io.BytesIO(content)).get_section_by_name(".BTF")
    return section.data() if section else None


def _chosen(name: str, candidates: Iterable[tuple[Structure, bool]]) -> Structure | None:
    """The structure that something points to, that no other of them contains and whose name is most
    like the congestion control's; then the largest."""
    listed = list(dict(candidates).items())
    inner = {part for structure, _ in listed for part in _parts(structure)}
    whole = [pair for pair in listed if pair[0].name not in inner]
    pointed = [structure for structure, is_pointed in whole if is_pointed]
    return max(
        pointed or [structure for structure, _ in whole],
        key=lambda each: (each.name == name, name in each.name or each.name in name, each.bytes),
        default=None,
    )


def _parts(structure: Structure) -> Iterator[str]:
    for member in structure.members:
        type_ = member.type.element if isinstance(member.type, Array) else member.type
        if isinstance(type_, Structure):
            yield type_.name
            yield from _parts(type_)


def _fields(type_: Type, path: str, at_bits: int, structure: str, bits: int = 0) -> Iterator[Field]:
    """The numbers in a type that begins there."""
    if isinstance(type_, Number):
        width = bits or type_.bits
        if 0 < width <= 64:
            yield Field(column_of(path, structure), at_bits, width, type_.is_signed, structure)
    elif isinstance(type_, Array):
        for index in range(min(type_.count, MOST_ELEMENTS)):
            element_bits = at_bits + index * type_.element_bits
            yield from _fields(type_.element, f"{path}_{index}", element_bits, structure)
    elif isinstance(type_, Structure):
        value = _READ_WITH.get(type_.name)
        for field in _members(type_, path, at_bits, structure):
            if value is None:
                yield field
            elif field.column == column_of(f"{path}_{value[0]}", structure):
                column = column_of(path, structure)
                yield Field(column, field.at_bits, field.bits, field.is_signed, structure)


def _members(type_: Structure, path: str, at_bits: int, structure: str) -> Iterator[Field]:
    for member in type_.members:
        if FILLER.fullmatch(member.name):
            continue
        name = "_".join(part for part in (path, member.name) if part)
        yield from _fields(member.type, name, at_bits + member.at_bits, structure, member.bits)
