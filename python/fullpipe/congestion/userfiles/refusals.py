"""What an algorithm's C may not say, judged on the tokens that the compiler will read: the
preprocessor has replaced every macro. Lists name what is allowed, not what is known to be bad. Must
never run a compiler.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence, Set

from fullpipe.base.errors import UserError
from fullpipe.congestion.userfiles.tokens import Function, Token, closing, functions_of

_ATTRIBUTES = {
    "aligned",
    "always_inline",
    "cold",
    "const",
    "fallthrough",
    "flatten",
    "hot",
    "may_alias",
    "maybe_unused",
    "noinline",
    "nonnull",
    "nonstring",
    "packed",
    "preserve_access_index",
    "pure",
    "unused",
    "warn_unused_result",
}
_BUILTINS = {
    "abs",
    "add_overflow",
    "assume_aligned",
    "bswap16",
    "bswap32",
    "bswap64",
    "choose_expr",
    "clz",
    "clzl",
    "clzll",
    "constant_p",
    "ctz",
    "ctzl",
    "ctzll",
    "expect",
    "expect_with_probability",
    "ffs",
    "ffsl",
    "ffsll",
    "labs",
    "llabs",
    "memcmp",
    "memcpy",
    "memset",
    "mul_overflow",
    "object_size",
    "offsetof",
    "parity",
    "popcount",
    "popcountl",
    "popcountll",
    "preserve_access_index",
    "preserve_enum_value",
    "preserve_field_info",
    "preserve_type_info",
    "sub_overflow",
    "types_compatible_p",
    "unreachable",
}
#: What external.c and external.h say besides.
_OF_THE_CONTRACT = frozenset({"visibility", "setjmp", "frame_address"})
#: Pragmas by their words.
_PRAGMAS = re.compile(
    r"#\s*pragma\s+(once|pack|unroll|nounroll|(GCC|clang)\s+(diagnostic|unroll|ivdep)"
    r"|clang\s+loop)\b"
)
#: CC_STEP() of cc_types.h: no instruction.
_STEP = ("(", '""', ":", ":", ":", '"memory"', ")")
_ASM = {"asm", "__asm", "__asm__"}
_WORDS = {
    "__declspec": "__declspec",
    "__seg_fs": "a segment register",
    "__seg_gs": "a segment register",
    "__builtin_va_list": "a list of unknown arguments",
}
#: Letters of a number that a message repeats.
_SHOWN = 60
#: Floating-point constants (C11 section 6.4.4.2) and types. No kernel has either.
_FLOAT_NUMBER = re.compile(r"0[xX][0-9a-fA-F]*(?:\.|[pP]).*|(?!0[xX])[0-9]*(?:\.|[0-9][eE]).*")
_FLOAT_TYPE = re.compile(r"float|double|_Float\w+|__float\w+|__fp16|_Decimal\w+|_*[Cc]omplex_*")
_ALLOWED = ", ".join(sorted(_ATTRIBUTES))


def check_tokens(
    tokens: Sequence[Token], is_contract: Callable[[str], bool], computes_fractions: bool = False
) -> None:
    """Raises UserError for what no algorithm may say, with file and line. `is_contract`: whether a
    file is of the contract, which exports its symbol. `computes_fractions`: the compiler is told to
    refuse constants that it does not make integers of."""
    for index, token in enumerate(tokens):
        if token.kind == "directive":
            check_pragma(token.text, token.location)
        if (
            token.kind == "number"
            and not computes_fractions
            and _FLOAT_NUMBER.fullmatch(token.text)
        ):
            raise floating(token.location, token.text[:_SHOWN])
        if token.kind == "name":
            more = _OF_THE_CONTRACT if is_contract(token.file) else frozenset()
            _check_name(tokens, index, more)
        elif token.text == "[" and _text(tokens, index + 1) == "[":
            _check_attributes(tokens[index + 2 : closing(tokens, index + 1)], frozenset())
        elif token.text[0] == '"' and _text(tokens, index - 1)[-1:] == "R":
            raise UserError(f"{token.location}: a raw string: write an ordinary one")


#: What takes texts and values to print (cc/linux_print.h).
_PRINT = {"linux_print", "linux_warn", "linux_format"}


def floating(location: str, token: str) -> UserError:
    """The refusal of a floating-point constant or type."""
    return UserError(
        f"{location}: {token}: an algorithm has integers only; the kernel has no floating point. "
        "Write gains in 1/1024 (CC_ONE)"
    )


def check_pragma(line: str, location: str) -> None:
    """Raises UserError for a line of the preprocessor that is not one of the pragmas that change
    neither files nor code."""
    if not _PRAGMAS.match(line):
        raise UserError(
            f"{location}: {' '.join(line.split())[:60]}: an algorithm has no such line; pragmas "
            "are once, pack, unroll and diagnostic"
        )


def check_recursion(tokens: Sequence[Token]) -> None:
    """Raises UserError for functions that call themselves, directly or through others."""
    functions = {function.name: function for function in functions_of(tokens)}
    calls = {name: _mentioned(function, functions) for name, function in functions.items()}
    for name, function in functions.items():
        if not _calls_itself(function):
            calls[name].pop(name, None)
    done: set[str] = set()
    for first in functions:
        circle = _circle(first, calls, done)
        if circle:
            location = calls[circle[-2]][circle[-1]].location
            raise UserError(
                f"{location}: {' calls '.join(f'{name}()' for name in circle)}: recursion; the "
                "kernel refuses it. Write a loop with a bound"
            )


def check_files(tokens: Iterable[Token], is_known: Callable[[str], bool]) -> None:
    """Raises UserError for tokens of files that are neither the algorithm's nor the contract's."""
    for token in tokens:
        if token.file and not is_known(token.file):
            raise UserError(
                f"{token.file}: was included; an algorithm consists of the contract's headers and "
                "of files in its own folder"
            )


def location_of(tokens: Iterable[Token], name: str) -> str | None:
    """`file:line` where a name stands first."""
    return next((token.location for token in tokens if token.text == name), None)


def _check_name(tokens: Sequence[Token], index: int, more: Set[str]) -> None:
    token = tokens[index]
    if token.text in _ASM:
        after = index + 1 + (_text(tokens, index + 1) in ("volatile", "__volatile__"))
        if tuple(following.text for following in tokens[after : after + len(_STEP)]) != _STEP:
            raise UserError(
                f"{token.location}: {token.text}: an algorithm has no inline assembly; it runs on "
                "every processor and in eBPF"
            )
    elif token.text in ("__attribute__", "__attribute"):
        if _text(tokens, index + 1) == "(":
            _check_attributes(tokens[index + 3 : closing(tokens, index + 1) - 1], more)
    elif token.text.startswith("__builtin_"):
        if token.text.removeprefix("__builtin_") not in _BUILTINS | more:
            raise UserError(
                f"{token.location}: {token.text}: not among the compiler's functions that an "
                "algorithm may call, which only compute"
            )
    elif _FLOAT_TYPE.fullmatch(token.text):
        raise floating(token.location, token.text)
    elif token.text in _WORDS:
        raise UserError(f"{token.location}: {_WORDS[token.text]}: nothing for an algorithm")


def _check_attributes(tokens: Sequence[Token], more: Set[str]) -> None:
    """Those between the brackets: names, some with arguments, separated by commas."""
    index = 0
    while index < len(tokens):
        token = tokens[index]
        if token.text == "(":
            index = closing(tokens, index)
        elif token.kind == "name" and _text(tokens, index + 1) != ":":  # of gnu::name the last
            name = token.text.removeprefix("__").removesuffix("__")
            if name not in _ATTRIBUTES | more:
                raise UserError(
                    f"{token.location}: attribute {name}: an algorithm has none that changes how "
                    f"it is loaded, called or linked; allowed are {_ALLOWED}"
                )
        index += 1


def _text(tokens: Sequence[Token], index: int) -> str:
    return tokens[index].text if 0 <= index < len(tokens) else ""


def _mentioned(function: Function, functions: Iterable[str]) -> dict[str, Token]:
    """The functions that a body calls or passes on, each with its first mention."""
    names = set(functions)
    mentioned: dict[str, Token] = {}
    for index, token in enumerate(function.body):
        if token.kind == "name" and token.text in names:
            before = _text(function.body, index - 1)
            if before not in (".", "->", "struct", "union", "enum", "goto"):
                mentioned.setdefault(token.text, token)
    return mentioned


def _calls_itself(function: Function) -> bool:
    """Whether a body calls its own function, or gives it to a variable or another function. To
    print its address calls nothing."""
    body = function.body
    inside = {
        at
        for index, token in enumerate(body)
        if token.text in _PRINT and _text(body, index + 1) == "("
        for at in range(index, closing(body, index + 1))
    }
    return any(
        token.text == function.name and (at not in inside or _text(body, at + 1) == "(")
        for at, token in enumerate(body)
    )


def _circle(first: str, calls: dict[str, dict[str, Token]], done: set[str]) -> list[str] | None:
    """A row of functions that call each other from the first to itself; none from `first` if
    None. `done`: functions from which none leads, filled here."""
    path: list[str] = []
    waiting = [(first, iter(calls[first]))]
    while waiting:
        name, callees = waiting[-1]
        if len(path) < len(waiting):
            path.append(name)
        following = next(callees, None)
        if following is None:
            done.add(name)
            waiting.pop()
            path.pop()
        elif following in path:
            return [*path[path.index(following) :], following]
        elif following not in done:
            waiting.append((following, iter(calls[following])))
    return None
