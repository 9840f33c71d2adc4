"""Writes a template for a new congestion control: the smallest one, or a copy of a built-in one or
of an example under another name.
"""

from __future__ import annotations

import re
from contextlib import suppress
from pathlib import Path
from typing import Literal, get_args

from fullpipe.base.errors import UserError
from fullpipe.base.installed import shipped
from fullpipe.congestion.userfiles.source import CONTRACT_VERSION, MAX_NAME

#: What a new file can copy: the algorithms of cc/ and the examples.
Like = Literal[
    "reno",
    "cubic",
    "dctcp",
    "prague",
    "bbr1",
    "bbr3",
    "tarn",
    "aimd",
    "westwood",
    "vegas",
    "copa",
    "ledbat",
    "vivace",
]
LIKE = get_args(Like)

#: Keywords of C11 and C23, of GCC and clang, names that compilers define before a file begins
#: (`cc -std=gnu17 -dM -E -x c /dev/null`, and the same for eBPF), and the contract's types.
_KEYWORDS = {
    "alignas",
    "alignof",
    "asm",
    "auto",
    "bool",
    "break",
    "case",
    "char",
    "const",
    "constexpr",
    "continue",
    "default",
    "do",
    "double",
    "else",
    "enum",
    "extern",
    "false",
    "float",
    "for",
    "goto",
    "if",
    "inline",
    "int",
    "long",
    "nullptr",
    "register",
    "restrict",
    "return",
    "short",
    "signed",
    "sizeof",
    "static",
    "static_assert",
    "struct",
    "switch",
    "thread_local",
    "true",
    "typedef",
    "typeof",
    "typeof_unqual",
    "union",
    "unsigned",
    "void",
    "volatile",
    "while",
    "i386",
    "linux",
    "unix",
    "bpf",
    "s8",
    "s16",
    "s32",
    "s64",
    "u8",
    "u16",
    "u32",
    "u64",
    "main",
}
#: What clangd reads: how the files of a folder are compiled, an option a line.
FLAGS_FILE = "compile_flags.txt"
#: The smallest, with placeholders @ for its name and @V for the version of the contract.
_SMALLEST = Path(__file__).with_name("smallest.h.in")


def write_new(name: str, like: Like | None, folder: Path) -> Path:
    """Writes NAME.h into a folder: the smallest algorithm, or one like another; and, where there is
    none, compile_flags.txt, from which editors with clangd know the contract. Raises UserError if
    the name is none in C, or the file exists or cannot be written."""
    name = name.removesuffix(".h")
    check_name(name)
    path = folder / f"{name}.h"
    text = _smallest() if like is None else _renamed(like)
    try:
        with path.open("x", encoding="utf-8") as file:
            file.write(text.replace("@", name))
        with suppress(FileExistsError), (folder / FLAGS_FILE).open("x", encoding="utf-8") as file:
            file.write(_compile_flags())
    except FileExistsError:
        raise UserError(f"{path}: exists already; choose another name") from None
    except OSError as error:
        raise UserError(f"{path}: cannot be written: {error.strerror}") from None
    return path


def check_name(name: str) -> None:
    """Raises UserError for a name that no file of an algorithm may have."""
    if not re.fullmatch(r"[A-Za-z][A-Za-z0-9_]*", name) or len(name) > MAX_NAME:
        raise UserError(f"{name}: a name is 1 to {MAX_NAME} letters, digits and _, a letter first")
    is_header = (shipped("cc") / f"{name}.h").exists()
    if is_header and name in LIKE:
        raise UserError(f"{name}: is a built-in congestion control; choose another name")
    if name in _KEYWORDS or name.startswith("cc_"):
        raise UserError(f"{name}: has a meaning in C or in the contract; choose another name")
    if is_header:
        raise UserError(
            f"{name}: {name}.h is a header of the contract, which every file of this folder would "
            "then miss; choose another name"
        )


def _compile_flags() -> str:
    """As the simulator compiles, with the warnings of `fullpipe cc check`."""
    include = shipped("cc")
    options = [
        "-xc",
        "-std=c11",
        "-ffreestanding",
        f"-I{include}",
        "-Wall",
        "-Wextra",
        "-Wconversion",
        "-Wshadow",
        "-Wconditional-uninitialized",
        "-Wno-unused-parameter",
        "-Wno-unused-function",
    ]
    return "".join(f"{option}\n" for option in options)


def _smallest() -> str:
    return _SMALLEST.read_text(encoding="utf-8").replace("@V", str(CONTRACT_VERSION))


def _renamed(like: str) -> str:
    """An algorithm with its own headers in one file; `@` where its name was."""
    path = shipped("cc") / f"{like}.h"
    if not path.exists():
        path = shipped("examples") / "cc" / f"{like}.h"
    text = _merged(path, like, set())
    text = re.sub(rf"FULLPIPE_CC_{like.upper()}(\w*)_H\b", r"OWN_@\1_H", text)
    text = re.sub(rf"\b{like.upper()}_", "@_X_", text)
    text = re.sub(rf"\b{like}(?=[_\b])|(?<!-)\b{like}\b(?!\.)", "@", text)
    if "#define @_CONTRACT" in text:
        return text
    return text.replace(
        "#define @_FLAGS", f"#define @_CONTRACT {CONTRACT_VERSION}\n#define @_FLAGS", 1
    )


def _merged(path: Path, like: str, seen: set[str]) -> str:
    seen.add(path.name)

    def inner(match: re.Match[str]) -> str:
        name = match[1]
        if not name.startswith(f"{like}_"):
            return match[0]
        return "" if name in seen else _merged(path.parent / name, like, seen)

    text = path.read_text(encoding="utf-8")
    return re.sub(r'^#include "([^"]+)"$', inner, text, flags=re.M)
