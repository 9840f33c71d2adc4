"""What a file of the Linux kernel says of its congestion control: struct tcp_congestion_ops, module
parameters, how the module starts, and the files that it needs. Must never compile or write.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from fullpipe.base.errors import UserError
from fullpipe.congestion.userfiles.kernel_fields import Field, fields_of
from fullpipe.congestion.userfiles.kernel_macros import expanded
from fullpipe.congestion.userfiles.source import blanked, directives_of, read_text
from fullpipe.congestion.userfiles.tokens import Token, closing, functions_of, tokens_of

#: Types of module parameters (linux/moduleparam.h) whose values are numbers: in C, the least and
#: the largest value that a constant of 32 bits has of them.
_NUMBERS = {
    "bool": ("bool", 0, 1),
    "byte": ("unsigned char", 0, 2**8 - 1),
    "short": ("short", -(2**15), 2**15 - 1),
    "ushort": ("unsigned short", 0, 2**16 - 1),
    "int": ("int", -(2**31), 2**31 - 1),
    "uint": ("unsigned int", 0, 2**32 - 1),
    "hexint": ("unsigned int", 0, 2**32 - 1),
    "long": ("long", -(2**31), 2**31 - 1),
    "ulong": ("unsigned long", 0, 2**32 - 1),
}
#: Macros that make a parameter, and how many arguments they have: name, variable, type, mode.
_PARAMETERS = {
    "module_param": 3,
    "module_param_named": 4,
    "module_param_unsafe": 3,
    "module_param_named_unsafe": 4,
}
_STARTS = {"module_init", "late_initcall", "subsys_initcall", "fs_initcall", "device_initcall"}
#: A member that a macro of the file makes.
_MADE = "(made by a macro)"
_PER_CPU = re.compile(r"(DEFINE|DECLARE)_PER_CPU\w*|alloc_percpu\w*")
_SWITCHES = {
    f"static_{kind}_{change}"
    for kind, changes in (("branch", "enable disable inc dec"), ("key", "enable disable"))
    for change in changes.split()
}
_REGISTRY = "tcp_register_congestion_control"
#: A program or a table of programs for eBPF, as libbpf names their sections.
_STRUCT_OPS = re.compile(r'\bSEC\s*\(\s*"\.?struct_ops')
_TEXT = re.compile(r'"((?:\\.|[^"\\])*)"')
_LOCAL = re.compile(r'"([^"]+)"\s*$')
_LITERAL = re.compile(r"(-?) ?((?:0[xX][0-9a-fA-F]+|[1-9][0-9]*|0))[uUlL]*")
#: What inet_csk_ca() gives: to a variable where it is declared or later, by a cast, by a function.
_CA = r"(?:inet_csk_ca\s*\(|inet_csk\s*\(\s*\w+\s*\)\s*->\s*icsk_ca_priv\b)"
_POINTER = r"\b(struct\s+\w+|\w+)\s*\*\s*"
_PRIVATE = re.compile(
    rf"{_POINTER}(?:const\s+)?\w+\s*=\s*(?:\([^()]*\)\s*)?{_CA}"
    rf"|\(\s*(?:const\s+)?{_POINTER}\)\s*\(?\s*{_CA}"
    rf"|{_POINTER}\w+\s*\([^()]*\)\s*\{{\s*return\s+(?:\([^()]*\)\s*)?{_CA}"
)
_NO_STRUCTURES = {"void", "char", "u8", "u32", "u64", "int", "return"}
_LATER = re.compile(rf"(?<=[;{{}})])\s*(\w+)\s*=\s*(?:\([^()]*\)\s*)?{_CA}")
_SYSTEM = re.compile(r"<([^>]+)>\s*$")


class Parameter(NamedTuple):
    """A module parameter: its name for users, the variable, its type in C, its first value as the
    file writes it, the least and the largest value, and what the file says of it."""

    name: str
    variable: str
    kind: str
    value: str
    least: int
    most: int
    meaning: str


@dataclass(frozen=True)
class KernelFile:
    """A congestion control of the kernel in a file."""

    path: Path
    name: str  # as the kernel knows it, such as illinois
    variable: str  # its struct tcp_congestion_ops
    members: dict[str, str]  # of that: member -> function or value
    parameters: list[Parameter]
    starts: list[str]  # functions of module_init(), those of needed files first
    files: dict[str, str] = field(repr=False)  # its own files by name
    units: list[str] = field(repr=False)  # files to compile, the named one last

    @property
    def private(self) -> list[str]:
        """The types that inet_csk_ca() points to."""
        return sorted({kind for name in self.units for kind in _private(self.files[name])})

    @property
    def fields(self) -> tuple[str, list[Field]]:
        """The structure that the named file's operations keep there, and its fields."""
        for kind in _private(self.files[self.path.name]):
            if kind.startswith("struct "):
                name = kind.removeprefix("struct ")
                return name, fields_of(name, self.files)
        return "", []

    @property
    def functions(self) -> list[str]:
        """Functions that it defines whatever a kernel's version and options are."""
        names = []
        for name in self.units:
            text = blanked(self.files[name])
            inside = _conditional(text)
            for function in functions_of(tokens_of(text)):
                # A macro in front of a variable looks like one.
                begins = re.search(rf"\b{function.name}\s*\([^;{{}}]*\)\s*\{{", text)
                if begins and function.body[0].line not in inside:
                    names.append(function.name)
        return names

    @property
    def is_before_4_13(self) -> bool:
        """Whether times of packets are `struct skb_mstamp` to it, and to no other version."""
        words = self._words
        return "skb_mstamp" in words and not words & {"LINUX_VERSION_CODE", "KERNEL_VERSION"}

    @property
    def _words(self) -> set[str]:
        return set(re.findall(r"\w+", " ".join(blanked(text) for text in self.files.values())))

    @property
    def flags(self) -> list[str]:
        """NAME_FLAGS of the contract."""
        flags = ["CC_WANTS_DETAILS", "CC_MAY_CLOSE"]
        if "cong_control" in self.members:
            flags.append("CC_OWNS_CWND")
        if "pkts_acked" in self.members:
            flags += ["CC_WANTS_RTT", "CC_WANTS_EVERY_RTT"]
        if "in_ack_event" in self.members:
            flags.append("CC_WANTS_ACKS")
        words = self._words
        if "cong_control" in self.members and words & {"tx_in_flight", "skb_marked_lost"}:
            flags.append("CC_WANTS_RING")
        if "TCP_CONG_NEEDS_ECN" in self.members.get("flags", ""):
            flags.append("CC_WANTS_ECN")
            if "CA_EVENT_ECN_IS_CE" in words:
                flags.append("CC_ECHOES_CE")
        return flags


def read_kernel_file(path: Path, operations: str | None = None) -> KernelFile:
    """What a file of the kernel defines. `operations`: the struct tcp_congestion_ops that is meant,
    by its variable or the kernel's name for it. Raises UserError if the file has none, several
    without a choice, or one that the kernel itself would not register."""
    files: dict[str, str] = {}
    if _STRUCT_OPS.search(read_text(path, "a congestion control of a kernel in C")):
        raise UserError(
            f"{path}: is an eBPF program of its own (struct_ops), which runs in kernels alone: "
            "compile it (`clang -g -O2 -target bpf -c`) and name the object, --engine vm --module "
            "FILE.o --cc kernel:NAME"
        )
    units = _collect(path, files)
    tokens = {name: tokens_of(blanked(files[name])) for name in units}
    main_tokens = tokens.get(path.name) or tokens_of(blanked(files[path.name]))
    if any(function.name == _REGISTRY for function in functions_of(main_tokens)):
        raise UserError(
            f"{path}: defines {_REGISTRY}(): it is the kernel's registry of congestion controls; "
            "its Reno is fullpipe's `reno`"
        )
    ops = _operations(path, main_tokens)
    is_made = not ops and "tcp_congestion_ops" in " ".join(files.values())
    if is_made or any(_MADE in members for members in ops.values()):
        main_tokens = tokens[path.name] = tokens_of(expanded(path, files))
        ops = _operations(path, main_tokens)
    if not ops:
        raise UserError(
            f"{path}: defines no struct tcp_congestion_ops; name a congestion control of a kernel, "
            "such as net/ipv4/tcp_illinois.c"
        )
    if path.name not in units:
        raise UserError(f"{path}: must be named *.c, as the kernel's congestion controls are")
    registered = [name for name in ops if _is_registered(main_tokens, name)] or list(ops)
    variable = _chosen(path, {name: ops[name] for name in registered}, ops, operations)
    members = ops[variable]
    _refuse_unregistered(path, variable, members, files)
    shown = _TEXT.match(members.get("name", ""))
    every = [token for name in units for token in tokens[name]]
    parameters = [parameter for name in units for parameter in _parameters(tokens[name])]
    _check_variables(path.parent, tokens, ops)
    name = shown[1] if shown else variable
    starts = _starts(every)
    return KernelFile(path, name, variable, members, parameters, starts, files, units)


def _refuse_unregistered(
    path: Path, variable: str, members: dict[str, str], files: dict[str, str]
) -> None:
    """Raises UserError for operations that a kernel would not register, or is not asked to."""
    words = set(re.findall(r"\w+", " ".join(blanked(text) for text in files.values())))
    for needed, operation in (
        ("ssthresh", "ssthresh"),
        ("cong_avoid cong_control", "cong_avoid or cong_control"),
        ("name", "name"),
        ("undo_cwnd", "undo_cwnd (of Reno: tcp_reno_undo_cwnd)"),
    ):
        is_older = needed == "undo_cwnd" and bool(words & {"skb_mstamp", "LINUX_VERSION_CODE"})
        if not set(needed.split()) & set(members) and not is_older:
            raise UserError(
                f"{path}: {variable} has no {operation}; the kernel would refuse to register it "
                f"({_REGISTRY}())"
            )
    if _REGISTRY not in words:
        raise UserError(
            f"{path}: calls {_REGISTRY}() nowhere; in a kernel no socket could use {variable}"
        )


def _private(text: str) -> list[str]:
    """The types that inet_csk_ca() points to in a file, in the order of the text."""
    text = blanked(text)
    declared_kinds = [
        (match.start(), match[1] or match[2] or match[3]) for match in _PRIVATE.finditer(text)
    ]
    for match in _LATER.finditer(text):
        declared = re.findall(
            rf"(?<=[;{{(,])\s*(?:const\s+)?{_POINTER}{match[1]}\b", text[: match.start()]
        )
        declared_kinds += [(match.start(), declared[-1])] if declared else []
    kinds = dict.fromkeys(" ".join(kind.split()) for _, kind in sorted(declared_kinds))
    return [kind for kind in kinds if kind not in _NO_STRUCTURES]


def _chosen(
    path: Path,
    registered: dict[str, dict[str, str]],
    every: dict[str, dict[str, str]],
    operations: str | None,
) -> str:
    """The variable of the operations that are meant: of those that the file registers, if no name
    chooses among all."""
    if operations is None:
        if len(registered) == 1:
            return next(iter(registered))
        names = ", ".join(f"{path.name}:{name}" for name in registered)
        raise UserError(f"{path}: has several struct tcp_congestion_ops; name one: {names}")
    for variable, members in every.items():
        shown = _TEXT.match(members.get("name", ""))
        if operations in (variable, shown[1] if shown else None):
            return variable
    raise UserError(
        f"{path}: has no struct tcp_congestion_ops {operations}; there are {', '.join(every)}"
    )


def included(text: str) -> Iterable[str]:
    """The kernel's headers that a file includes, such as linux/module.h."""
    for directive in directives_of(text):
        match = _SYSTEM.match(directive.text) if directive.name == "include" else None
        if match:
            yield match[1]


def _collect(path: Path, files: dict[str, str]) -> list[str]:
    """Reads a file, the headers beside it, and NAME.c for each header NAME.h that is not its own:
    tcp_yeah.c calls functions of tcp_vegas.c. Returns what is to be compiled."""
    text = files[path.name] = read_text(path, "a congestion control of a kernel in C")
    units: list[str] = []
    for directive in directives_of(text):
        match = _LOCAL.match(directive.text) if directive.name == "include" else None
        if match is None or match[1] in files or "/" in match[1]:
            continue
        header = path.with_name(match[1])
        if not header.is_file():
            raise UserError(f'{path}:{directive.line}: #include "{match[1]}": is not beside it')
        if path.suffix == ".c" and header.suffix == ".h":
            unit = header.with_suffix(".c")
            if unit.name != path.name and unit.is_file() and _declares(header, unit):
                units += _collect(unit, files)
        if header.name not in files:
            _collect(header, files)
    return [*units, path.name] if path.suffix == ".c" else units


def _declares(header: Path, unit: Path) -> bool:
    """Whether a header announces functions of a file."""
    announced = set(re.findall(r"\w+", blanked(read_text(header, "a header in C"))))
    code = tokens_of(blanked(read_text(unit, "a congestion control of a kernel in C")))
    return bool(announced & {function.name for function in functions_of(code)})


def _conditional(text: str) -> set[int]:
    """Lines between #if and #endif."""
    lines: set[int] = set()
    begins: list[int] = []
    for directive in directives_of(text):
        if directive.name in ("if", "ifdef", "ifndef"):
            begins.append(directive.line)
        elif directive.name == "endif" and begins:
            lines.update(range(begins.pop(), directive.line))
    return lines


def _operations(path: Path, tokens: Sequence[Token]) -> dict[str, dict[str, str]]:
    """Every struct tcp_congestion_ops with a value: its name, and its members, those that a
    function of the file sets among them."""
    ops = {}
    kinds = _kinds(tokens)
    for index in range(1, len(tokens) - 2):
        if tokens[index].text not in kinds:
            continue
        at = index + 1
        while at < len(tokens) and tokens[at].text not in ("=", ";", "(", ")", "{", ","):
            at += 1
        if at + 1 < len(tokens) and tokens[at].text == "=" and tokens[at + 1].text == "{":
            name = tokens[index + 1]
            if tokens[index + 2].text == "[":
                raise UserError(
                    f"{path}:{name.line}: {name.text}: is an array of struct tcp_congestion_ops; "
                    "give each a variable of its own"
                )
            body = tokens[at + 2 : closing(tokens, at + 1)]
            ops[name.text] = dict(_members(body))
    for index, token in enumerate(tokens[:-4]):
        texts = [other_token.text for other_token in tokens[index + 1 : index + 5]]
        if token.text in ops and [texts[0], texts[2]] == [".", "="]:
            ops[token.text].setdefault(texts[1], texts[3])
    return ops


def _kinds(tokens: Sequence[Token]) -> set[str]:
    """Names of the type tcp_congestion_ops."""
    texts = [token.text for token in tokens]
    aliases = {
        texts[at + 3]
        for at in range(len(texts) - 3)
        if texts[at : at + 3] == ["typedef", "struct", "tcp_congestion_ops"]
    }
    return aliases | {"tcp_congestion_ops"}


def _members(body: Sequence[Token]) -> Iterable[tuple[str, str]]:
    """`.member = value`, and the older `member: value`."""
    for member in _between_commas([token for token in body if token.kind != "directive"]):
        texts = [token.text for token in member]
        if texts[:1] == ["."] and texts[2:3] == ["="]:
            yield texts[1], " ".join(texts[3:])
        elif texts[1:2] == [":"]:
            yield texts[0], " ".join(texts[2:])
        elif texts[1:2] == ["("] or len(texts) == 1:
            yield _MADE, " ".join(texts)


def _is_registered(tokens: Sequence[Token], name: str) -> bool:
    return any(
        token.text == _REGISTRY
        and name in [argument.text for argument in tokens[index + 1 : closing(tokens, index + 1)]]
        for index, token in enumerate(tokens[:-1])
        if tokens[index + 1].text == "("
    )


def _arguments(tokens: Sequence[Token], opening: int) -> list[list[Token]]:
    return _between_commas(tokens[opening + 1 : closing(tokens, opening)])


def _calls(
    tokens: Sequence[Token], names: Iterable[str]
) -> Iterable[tuple[str, list[list[Token]]]]:
    wanted = set(names)
    for index, token in enumerate(tokens[:-1]):
        if token.text in wanted and tokens[index + 1].text == "(":
            yield token.text, _arguments(tokens, index + 1)


def _starts(tokens: Sequence[Token]) -> list[str]:
    return [arguments[0][0].text for _, arguments in _calls(tokens, _STARTS) if arguments[0]]


def _parameters(tokens: Sequence[Token]) -> Iterable[Parameter]:
    """The module parameters that are numbers."""
    meanings = {}
    for _, arguments in _calls(tokens, ["MODULE_PARM_DESC"]):
        texts = [_TEXT.match(token.text) for argument in arguments[1:] for token in argument]
        meanings[arguments[0][0].text] = "".join(text[1] for text in texts if text)
    values = _first_values(tokens)
    for macro, arguments in _calls(tokens, _PARAMETERS):
        words = ["".join(token.text for token in argument) for argument in arguments]
        if len(words) != _PARAMETERS[macro] or not words[-3].isidentifier():
            continue  # a field or an element of a variable keeps its value
        name, variable, kind = words[0], words[-3], words[-2]
        value = values.get(variable, "0")
        if kind in _NUMBERS:
            in_c, least, most = _NUMBERS[kind]
            literal = _LITERAL.fullmatch(value)
            number = 0 if literal is None else int(f"{literal[1]}{literal[2]}", 0)
            if kind == "long" and number > most:
                least, most = 0, 2**32 - 1
            if kind in ("long", "ulong") and not least <= number <= most:
                continue  # a constant has 32 bits; the variable keeps its value
            yield Parameter(name, variable, in_c, value, least, most, meanings.get(name, name))


def _first_values(tokens: Sequence[Token]) -> dict[str, str]:
    """The first values of variables outside of functions."""
    values = {}
    for declaration in _declarations(tokens):
        for declarator in _between_commas(declaration):
            texts = [token.text for token in declarator]
            if "=" not in texts:
                continue
            at = texts.index("=")
            names = _names(declarator[:at])
            if names:
                values[names[-1]] = re.sub(
                    r"([<>&|=]) (?=[<>&|=])", r"\1", " ".join(texts[at + 1 :])
                )
    return values


def _names(tokens: Sequence[Token]) -> list[str]:
    """The names among these, without the compiler's own (`__attribute__`)."""
    return [
        token.text for token in tokens if token.kind == "name" and not token.text.startswith("__")
    ]


def _between_commas(tokens: Sequence[Token]) -> list[list[Token]]:
    """What stands between commas outside of brackets."""
    parts: list[list[Token]] = [[]]
    index = 0
    while index < len(tokens):
        last = closing(tokens, index) if tokens[index].text in ("(", "[", "{") else index
        if tokens[index].text == ",":
            parts.append([])
        else:
            parts[-1] += tokens[index : last + 1]
        index = last + 1
    return parts


def _declarations(tokens: Sequence[Token]) -> Iterable[list[Token]]:
    """What ends with a semicolon outside of functions."""
    index, begin = 0, 0
    code = [token for token in tokens if token.kind != "directive"]
    while index < len(code):
        token = code[index]
        if token.text in ("{", "(", "["):
            last = closing(code, index)
            texts = [earlier.text for earlier in code[begin:index]]
            is_body = token.text == "{" and "=" not in texts
            index = last + 1
            following = code[index].text if index < len(code) else ""
            is_structure = "struct" in {earlier.text for earlier in code[begin : begin + 2]}
            if is_body and following != ";" and not is_structure:
                begin = index  # a function's
            continue
        if token.text == ";":
            yield code[begin:index]
            begin = index + 1
        index += 1


def _check_variables(
    folder: Path,
    tokens: dict[str, list[Token]],
    operations: Iterable[str],
) -> None:
    """Raises UserError for a variable outside of inet_csk_ca(sk) that calls change: connections
    share it in a kernel."""
    for name, code in tokens.items():
        _check_processors(folder / name, code)
        shared = set(_variables(_declarations(code))) - set(operations)
        starts = set(_starts(code))
        for function in functions_of(code):
            if function.name in starts or function.name.endswith(("_exit", "_unregister")):
                continue
            body = function.body
            shared_here = shared | set(_variables(_statements(body)))
            for index, token in enumerate(body):
                if token.text in _SWITCHES:
                    raise UserError(
                        f"{folder / name}:{token.line}: {token.text}: {function.name}() switches a "
                        "static key that all connections share, and no replay could repeat a run"
                    )
                if token.text in shared_here and token.kind == "name" and _is_written(body, index):
                    raise UserError(
                        f"{folder / name}:{token.line}: {token.text}: {function.name}() changes a "
                        "variable that all connections share, and no replay could repeat a run; "
                        "what a connection learns belongs into inet_csk_ca(sk)"
                    )


def _check_processors(path: Path, tokens: Sequence[Token]) -> None:
    """Raises UserError for variables of processors."""
    for token in tokens:
        if _PER_CPU.fullmatch(token.text):
            raise UserError(
                f"{path}:{token.line}: {token.text}: connections of a processor share such a "
                "variable, and no replay could repeat a run; what a connection learns belongs into "
                "inet_csk_ca(sk)"
            )


def _variables(declarations: Iterable[Sequence[Token]]) -> Iterable[str]:
    """Those of `declarations` that outlive a call and may change."""
    for declaration in declarations:
        declarators = _between_commas(declaration)
        head = _until([token.text for token in declarators[0]], "=")
        if {"(", "typedef", "extern", "const"} & set(head) or "static" not in head:
            continue
        for declarator in declarators:
            texts = _until([token.text for token in declarator], "=", "[")
            names = _names(declarator[: len(texts)])
            if names:
                yield names[-1]


def _statements(body: Sequence[Token]) -> Iterable[Sequence[Token]]:
    """What begins with `static` in a function, up to its semicolon."""
    for index, token in enumerate(body):
        if token.text == "static":
            texts = [following.text for following in body[index:]]
            yield body[index : index + len(_until(texts, ";"))]


def _until(texts: Sequence[str], *ends: str) -> Sequence[str]:
    return texts[: next((at for at, text in enumerate(texts) if text in ends), len(texts))]


_BEFORE_ADDRESS = {"(", ","}
_ASSIGN = {"=", "+", "-", "*", "/", "%", "|", "&", "^", "<", ">"}


def _is_written(body: Sequence[Token], index: int) -> bool:
    """Whether the name at `index` is assigned to, in whole or in part, counted up or down, or its
    address given to a function, which may do so."""
    before = [token.text for token in body[max(index - 2, 0) : index]]
    if before[-1:] in (["."], ["->"]):
        return False
    if before[1:] == ["&"] and before[0] in _BEFORE_ADDRESS:
        return True
    if before in (["+", "+"], ["-", "-"]):
        return True
    after = index + 1
    while after < len(body) and body[after].text in ("[", ".", "->"):
        after = closing(body, after) + 1 if body[after].text == "[" else after + 2
    texts = [token.text for token in body[after : after + 3]]
    if texts[:2] in (["+", "+"], ["-", "-"]):
        return True
    if texts[:1] == ["="]:
        return texts[1:2] != ["="]
    if texts[:2] in (["<", "<"], [">", ">"]):
        return texts[2:3] == ["="]
    return bool(texts) and texts[0] in _ASSIGN - {"<", ">", "="} and texts[1:2] == ["="]
