"""The source of a congestion control in C: its name, its files, and the rules of the contract that
can be checked without a compiler. Must never compile.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import NamedTuple

from fullpipe.base.cache import user_cache
from fullpipe.base.errors import UserError
from fullpipe.base.installed import shipped
from fullpipe.base.supplied import NotRegularError, open_regular
from fullpipe.base.writing import atomic_file
from fullpipe.congestion.userfiles.refusals import check_pragma, floating

#: CC_CONTRACT_VERSION of cc/cc.h; the changes of each version, for authors of older files; and the
#: earliest version whose files still run, because later ones only added something. Examples of
#: versions 4 and 5 state 2.
CONTRACT_VERSION = 5
CONTRACT_CHANGES = {
    2: "the events LOST, TLP_RECOVERY and ACK, the flags CC_WANTS_ACKS and CC_ECHOES_CE",
    3: "age_us of an ACK",
    4: "the flag CC_SEND_IS_PURE",
    5: "the flags CC_WANTS_TIMER, CC_WANTS_DETAILS and CC_HOST_RECOVERS",
}
CONTRACT_OLDEST = 2

#: Prefix of the id of a class that a program passed.
HANDED = "this."

MAX_FILE_BYTES = 2**20
MAX_FILES = 32
TOO_LARGE = f"more than {MAX_FILES} files or 1 MiB; that is no algorithm"
#: Letters of a name that a message repeats.
_SHOWN = 60
#: The kernel limits `name@hash` to 31 characters.
MAX_NAME = 15

_PARTS = ("init", "on_ack", "on_event")
_FLAGS = re.compile(r"^[ \t]*#[ \t]*define[ \t]+([A-Za-z_]\w*)_FLAGS\b", re.M)
_INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]*(?:"([^"\n]+)"|<([^>\n]+)>)', re.M)
_INCLUDED = re.compile(r'(?:"([^"]+)"|<([^>]*)>)\s*$')
#: Preprocessor lines of algorithms; "" is a lone #. What a pragma may say: refusals.py.
_DIRECTIVES = {
    "",
    "define",
    "undef",
    "if",
    "ifdef",
    "ifndef",
    "elif",
    "elifdef",
    "elifndef",
    "else",
    "endif",
    "error",
    "include",
    "pragma",
    "warning",
}
_DIRECTIVE = re.compile(r"\s*(?:#|%:)\s*(\w*)(.*)")
#: A line that goes on in the next (GCC: also with spaces behind the backslash), and what stands for
#: its end here, a character that no C file has.
_JOINED = re.compile(r"\\[ \t\f\v\r]*\n")
_MARK = "\0"
_LINE = re.compile(r"[\n\0]")
_TRIGRAPH = re.compile(r"\?\?[=/]")
#: What a file says that carries one of the Linux kernel (linux_host.h), and what stands for each of
#: the headers that the kernel's file includes.
KERNEL_INCLUDE = '#include "linux_tcp.h"'
_PROBES = re.compile(r"__has_(include|embed)\w*")
#: Headers of the contract, which a file beside an algorithm would hide from it. Those of version 5
#: (bytes.h, fixed.h, losses.h, recovery.h) are not among them: authors of older files may have used
#: these names.
_HEADERS = {
    "cc.h",
    "cc_types.h",
    "defaults.h",
    "external.h",
    "linux_base.h",
    "linux_host.h",
    "linux_print.h",
    "linux_tcp.h",
    "minmax.h",
    "native.h",
    "params.h",
    "registry.h",
    "ring.h",
    "start.h",
    "start_hystartpp.h",
    "start_params.h",
    "start_rapid.h",
    "start_resume.h",
    "start_search.h",
    "table.h",
    "window.h",
}
#: Names, and what puts names together; the contract's macros that do it for their users (flags.h).
_NAME = re.compile(r"([A-Za-z_$]\w*)")
_PASTE = re.compile(r"##|%:%:")
_PASTING = {"CC_JOIN", "CC_JOIN_VALUE"}
_FLOAT = re.compile(r"\b(float|double|_Complex)\b")
#: Comments, texts and characters; what lacks its closing quote ends with its line.
_BLANKED = re.compile(
    r"""/\*.*?\*/|//[^\n]*|"(?:\\[^\n]|[^"\\\n])*"?|'(?:\\[^\n]|[^'\\\n])*'?""", re.S
)


@dataclass(frozen=True)
class Source:
    """A congestion control's source: `files` by name relative to `folder`; `main` is the file that
    the user named."""

    folder: Path
    main: str
    name: str  # what it defines: struct NAME, NAME_init(), ...
    title: str
    files: dict[str, str]
    contract_sha256: str
    is_class: bool = False  # of Python (classes.py); `name` is the class's
    is_handed: bool = False  # a class that a program passed
    named: str = ""  # the kernel's file that the user named, of which `main` was made

    @property
    def stem(self) -> str:
        """Its name for users: the file's name without its ending, or the class's name."""
        return self.name if self.is_class else Path(self.named or self.main).stem

    @property
    def is_kernels(self) -> bool:
        """Whether it carries a file of the Linux kernel (cc/linux_host.h)."""
        return KERNEL_INCLUDE in self.files[self.main]

    @property
    def path(self) -> Path:
        """The file that was named."""
        return self.folder / (self.named or self.main)

    @property
    def sha256(self) -> str:
        """A hash of the files and their names."""
        text = json.dumps([self.main, self.files], sort_keys=True)
        return _sha256(text)

    @property
    def id(self) -> str:
        """Its id in plans and traces: the name, and a hash of the files and of the contract's
        headers."""
        text = self.sha256 + self.contract_sha256 + (self.name if self.is_class else "")
        kind = (f"py:{HANDED}" if self.is_handed else "py:") if self.is_class else ""
        return f"{kind}{self.name}@{_sha256(text)[:12]}"

    def with_user_paths(self, text: str) -> str:
        """A compiler's message with the user's paths in place of the cache's."""
        cached = str(folder_of(self.id) / "source")
        shown = str(self.folder) if self.folder != Path.cwd() else ""
        return text.replace(cached + os.sep, shown + os.sep if shown else "").replace(cached, shown)


def is_file_name(name: str) -> bool:
    """Whether a congestion control's name is a file: a path, a name that ends in .h, .c or .py, a
    class in a file (mine.py:Mine) or operations in one (tcp_mine.c:mine_ops)."""
    return not name.startswith("kernel:") and (
        name.endswith((".h", ".c", ".py")) or "/" in name or ".py:" in name or ".c:" in name
    )


def is_class(identity: str | None) -> bool:
    """Whether a plan's algorithm is a Python class."""
    return identity is not None and identity.startswith("py:")


def is_handed(identity: str | None) -> bool:
    """Whether it is a class that a program passed: only that program can run it."""
    return is_class(identity) and (identity or "").startswith(f"py:{HANDED}")


def read_source(
    path: Path, made: Mapping[str, str] = MappingProxyType({}), named: str = ""
) -> Source:
    """The source in a file of the contract, with the files beside it that it includes. `made`:
    texts of files that are not on the disk; `named`: the file of which they were made.

    Raises UserError if it cannot be read, defines no congestion control or more than one, was
    written for another version of the contract, or breaks a rule that can be seen without a
    compiler; the message names file and line."""
    folder = path.parent.resolve()
    files: dict[str, str] = {}
    _collect(path, folder, path.name, files, made)
    names = {name for text in files.values() for name in _FLAGS.findall(blanked(text))}
    defined = {name for name in _FLAGS.findall(blanked(files[path.name]))} or names
    if not defined:
        raise UserError(
            f"{path}: defines no congestion control: it needs #define NAME_FLAGS, struct NAME, "
            "NAME_PARAMS, NAME_STATE and the functions NAME_init, NAME_on_ack, NAME_on_event; "
            "`fullpipe cc new NAME` writes a file to start from"
        )
    if len(defined) > 1:
        raise UserError(f"{path}: defines {' and '.join(sorted(defined))}; a file defines one")
    name = defined.pop()
    if len(name) > MAX_NAME:
        raise UserError(f"{path}: {name} has more than {MAX_NAME} characters")
    _check_contract(path, name, files)
    _check_pasting(folder, files)
    _check_parts(path, name, files)
    for file, text in files.items():
        _check_rules(folder / file if file != path.name else path, text)
    title = re.search(
        rf'^#define[ \t]+{name}_TITLE[ \t]+"([^"\n]*)"', "\n".join(files.values()), re.M
    )
    return Source(
        folder, path.name, name, title[1] if title else path.name, files, _contract(), named=named
    )


def source_of(identity: str) -> Source:
    """The source that is kept in the cache under an id of a plan. Raises UserError if it is not
    there, or not what the id says."""
    folder = folder_of(identity)
    try:
        about = json.loads((folder / "about.json").read_text(encoding="utf-8"))
        files = {
            name: (folder / "source" / name).read_text(encoding="utf-8") for name in about["files"]
        }
        source = Source(
            Path(about["folder"]),
            about["main"],
            about["name"],
            about["title"],
            files,
            about["contract_sha256"],
            about.get("is_class", False),
            about.get("is_handed", False),
            about.get("named", ""),
        )
        if source.id != identity:
            raise ValueError("damaged")
        return source
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError):
        raise UserError(
            f"{identity}: this congestion control came from a file and is not in this host's cache "
            "any more; name the file"
        ) from None


def keep(source: Source) -> Path:
    """Puts the files into the cache, where compilers read them; returns the folder. What is said
    of them names the folder of `source`, also where another one had the same files before. Raises
    UserError if the cache cannot be written."""
    folder = folder_of(source.id)
    try:
        try:
            cached = source_of(source.id)
        except UserError:  # it is not there, or damaged
            if folder.is_dir():
                import shutil

                shutil.rmtree(folder)
            _put(source, folder)
        else:
            if cached.folder != source.folder:
                _write_about(source, folder)
    except OSError as error:
        raise UserError(
            f"{folder.parent}: what is compiled of {source.path} cannot be kept there: "
            f"{error.strerror}; XDG_CACHE_HOME names another place for caches"
        ) from None
    return folder


def _put(source: Source, folder: Path) -> None:
    partial = folder.with_name(f".{folder.name}.{os.getpid()}")
    (partial / "source").mkdir(parents=True, exist_ok=True)
    for name, text in source.files.items():
        path = partial / "source" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    _write_about(source, partial)
    try:
        partial.rename(folder)
    except OSError:  # another process was first
        import shutil

        shutil.rmtree(partial, ignore_errors=True)


def _write_about(source: Source, folder: Path) -> None:
    about = {
        "folder": str(source.folder),
        "main": source.main,
        "name": source.name,
        "title": source.title,
        "files": sorted(source.files),
        "contract_sha256": source.contract_sha256,
        "is_class": source.is_class,
        "is_handed": source.is_handed,
        "named": source.named,
    }
    with atomic_file(folder / "about.json") as partial:
        partial.write_text(json.dumps(about), encoding="utf-8")


def is_external(algorithm: str | None) -> bool:
    """Whether a plan's algorithm came from a file."""
    return algorithm is not None and "@" in algorithm


def folder_of(identity: str) -> Path:
    """The cache's folder for an id."""
    return user_cache() / "cc" / identity


def blanked(text: str) -> str:
    """C code with comments and string literals blanked; line numbers are unchanged."""
    return _BLANKED.sub(
        lambda match: match[0] if match[0][0] != "/" else re.sub(r"[^\n]", " ", match[0]),
        text,
    )


def _sha256(text: str) -> str:
    import hashlib  # loads OpenSSL, which most programs do not need

    return hashlib.sha256(text.encode()).hexdigest()


def _contract() -> str:
    import hashlib

    digest = hashlib.sha256()
    for folder in (shipped("cc"), shipped("bpf")):
        for file in sorted(folder.glob("*.[ch]")):
            digest.update(file.name.encode() + b"\0" + file.read_bytes())
    return digest.hexdigest()


def read_text(path: Path, wanted: str) -> str:
    """The text of a user's file. Raises UserError if it is none, or larger than a file of an
    algorithm may be; never reads a device or waits for a pipe."""
    try:
        with open_regular(path) as file:
            content = file.read(MAX_FILE_BYTES + 1)
    except NotRegularError:
        raise UserError(f"{path}: not a file; name {wanted}") from None
    except OSError as error:
        raise UserError(f"{path}: cannot be read: {error.strerror}") from None
    except ValueError:
        raise UserError(f"{str(path)!r}: not a file's name") from None
    if len(content) > MAX_FILE_BYTES:
        raise UserError(f"{path}: {TOO_LARGE}")
    try:
        text = content.decode("utf-8-sig")  # compilers skip a byte-order mark, too
    except UnicodeDecodeError:
        text = "\0"
    if "\0" in text:
        raise UserError(f"{path}: not a text file; name {wanted} in UTF-8")
    # Once, here: hashes, caches and compilers then see the same lines.
    return text.replace("\r\n", "\n").replace("\r", "\n")


def _collect(
    path: Path, folder: Path, name: str, files: dict[str, str], made: Mapping[str, str]
) -> None:
    if len(files) >= MAX_FILES:
        raise UserError(f"{path}: {TOO_LARGE}")
    text = files[name] = made.get(name) or read_text(path, "an algorithm in C")
    if path.name in _HEADERS:
        raise UserError(f"{path}: has the name of a header of the contract; name it otherwise")
    for directive in _directives(path, text):
        location = f"{path}:{directive.line}"
        if directive.name != "include":
            continue
        included = _INCLUDED.match(directive.text)
        if included is None:
            raise UserError(f"{location}: #include {directive.text}: name the file, in quotes")
        if included[2] and KERNEL_INCLUDE in next(iter(files.values())):
            files[included[2]] = f"{KERNEL_INCLUDE}\n"
            continue
        if included[2]:
            raise UserError(
                f"{location}: #include <{included[2]}>: an algorithm has no libc; it runs in the "
                "kernel too. What there is: cc.h, cc_more.h, params.h, state.h, window.h, "
                "fixed.h, minmax.h, losses.h"
            )
        beside = path.parent / included[1]
        try:
            inner = str(beside.resolve().relative_to(folder))
            is_file = beside.is_file()
        except OSError as error:  # a name that no file can have
            shown = included[1][:_SHOWN]
            raise UserError(f'{location}: #include "{shown}...": {error.strerror}') from None
        except (ValueError, RuntimeError):  # outside, or links in a circle
            raise UserError(
                f'{location}: #include "{included[1]}": lies outside the algorithm\'s folder'
            ) from None
        if is_file:
            if inner not in files:
                _collect(beside, folder, inner, files, made)
        elif beside.exists():
            raise UserError(f'{location}: #include "{included[1]}": not a file')
        elif not _is_contracts(included[1]):
            raise UserError(
                f'{location}: #include "{included[1]}": is neither in {path.parent} nor a header '
                "of the contract, such as cc.h, params.h, window.h, fixed.h, minmax.h, losses.h"
            )


def _directives(path: Path, text: str) -> list[Directive]:
    trigraph = _TRIGRAPH.search(text)
    if trigraph:
        raise UserError(
            f"{path}:{_line(text, trigraph)}: {trigraph[0]}: a trigraph, which only some compilers "
            "replace; write the character that it stands for"
        )
    directives = directives_of(text)
    for directive in directives:
        location = f"{path}:{directive.line}"
        if directive.name not in _DIRECTIVES:
            raise UserError(
                f"{location}: #{directive.name}: an algorithm has no such line; known are "
                f"{', '.join(sorted(_DIRECTIVES - {''}))}"
            )
        if directive.name == "pragma":
            check_pragma(f"#pragma {directive.text}", location)
        probe = _PROBES.search(directive.text)
        if probe:
            raise UserError(f"{location}: {probe[0]}: an algorithm asks for no files")
    return directives


def _is_contracts(header: str) -> bool:
    return "/" not in header and (shipped("cc") / header).is_file()


class Directive(NamedTuple):
    """A line of C for the preprocessor: its name without #, what follows, and its line."""

    name: str
    text: str
    line: int


def directives_of(text: str) -> list[Directive]:
    """The preprocessor's lines as C's translation phases 2 to 4 find them (C11 section 5.1.1.2):
    with lines joined at a backslash, comments as blanks, and digraphs."""
    joined = _JOINED.sub(_MARK, text)
    bare = _BLANKED.sub(
        lambda match: (
            match[0] if match[0][0] != "/" else " " + _MARK * len(_LINE.findall(match[0]))
        ),
        joined,
    )
    directives = []
    line = 1
    for words in bare.split("\n"):
        match = _DIRECTIVE.match(words.replace(_MARK, ""))
        if match:
            directives.append(Directive(match[1], match[2].strip(), line))
        line += 1 + words.count(_MARK)
    return directives


def _check_contract(path: Path, name: str, files: dict[str, str]) -> None:
    for text in files.values():
        match = re.search(rf"^[ \t]*#[ \t]*define[ \t]+{name}_CONTRACT[ \t]+(\d+)", text, re.M)
        if match and not CONTRACT_OLDEST <= int(match[1]) <= CONTRACT_VERSION:
            version = int(match[1])
            since = [
                f"{number}: {change}"
                for number, change in CONTRACT_CHANGES.items()
                if number > version
            ]
            why = "; since then, " + "; ".join(since) if since else "; a later fullpipe reads it"
            raise UserError(
                f"{path}: written for version {version} of the contract, this is "
                f"{CONTRACT_VERSION}{why}"
            )


def _check_pasting(folder: Path, files: Mapping[str, str]) -> None:
    """Refuses a name that a condition puts together: it could be one that asks for a file."""
    directives = [
        (file, directive) for file, text in files.items() for directive in directives_of(text)
    ]
    macros = [
        (defined[1], directive.text[defined.end() :])
        for _, directive in directives
        if directive.name == "define" and (defined := _NAME.match(directive.text))
    ]
    users: dict[str, list[str]] = {}
    for name, body in macros:
        for used in {*_NAME.findall(body)}:
            users.setdefault(used, []).append(name)
    waiting = [*_PASTING, *(name for name, body in macros if _PASTE.search(body))]
    pasting: set[str] = set()
    while waiting:
        name = waiting.pop()
        if name not in pasting:
            pasting.add(name)
            waiting += users.get(name, ())
    for file, directive in directives:
        if directive.name not in ("if", "elif"):
            continue
        pasted = pasting & {*_NAME.findall(directive.text)}
        if pasted:
            raise UserError(
                f"{folder / file}:{directive.line}: #{directive.name}: {min(pasted)} puts "
                "names together (##), which a condition of an algorithm may not: they could ask "
                "for a file"
            )


def _check_parts(path: Path, name: str, files: dict[str, str]) -> None:
    text = "\n".join(blanked(text) for text in [*files.values(), *_headers(files.values())])
    if not re.search(rf"\bstruct\s+{name}\s*\{{", text):
        raise UserError(f"{path}: struct {name} is missing: its state (it may not be empty)")
    if not re.search(rf"#[ \t]*define[ \t]+{name}_PARAMS\s*\(", text):
        raise UserError(f"{path}: {name}_PARAMS(P) is missing: its constants (params.h)")
    if not re.search(rf"#[ \t]*define[ \t]+{name}_STATE\s*\(|\b{name}_info\s*\(", text):
        raise UserError(
            f"{path}: {name}_STATE(S) is missing: its variables for recordings (state.h)"
        )
    for part in _PARTS:
        if not re.search(rf"\b{name}_{part}\s*\(", text):
            raise UserError(f"{path}: {name}_{part}() is missing; cc.h lists the functions")


def _headers(texts: Iterable[str]) -> list[str]:
    """The headers of `cc/` that these texts include, directly or not."""
    folder = shipped("cc")
    headers: dict[str, str] = {}
    waiting = list(texts)
    while waiting:
        for name, _ in _INCLUDE.findall(waiting.pop()):
            if name not in headers and "/" not in name and (folder / name).is_file():
                headers[name] = (folder / name).read_text(encoding="utf-8")
                waiting.append(headers[name])
    return list(headers.values())


def _check_rules(path: Path, text: str) -> None:
    bare = re.sub(r'"[^"\n]*"', lambda match: " " * len(match[0]), blanked(text))
    match = _FLOAT.search(bare)
    if match:
        raise floating(f"{path}:{_line(text, match)}", match[1])


def _line(text: str, match: re.Match[str]) -> int:
    return text.count("\n", 0, match.start()) + 1
