"""Congestion controls that are Python classes (`fullpipe.Controller`), registered with the
simulator. A class comes from a file, `./mine.py:Mine`, or is passed by a program. Must never know
an engine.

`read` and `hand_over` are for the front end. A class of a file is executed by a worker only
(pool.py), a new one for every run, so that no state outlives one. A class that a program
passes is used as it is, in that program's process.
"""

from __future__ import annotations

import ast
import difflib
import hashlib
import inspect
import linecache
import re
import sys
import traceback
from collections.abc import Iterator
from pathlib import Path
from types import CodeType, ModuleType
from typing import TYPE_CHECKING, Any

from fullpipe import _native
from fullpipe.base.errors import UserError
from fullpipe.congestion.controller import (
    Constant,
    Controller,
    Variable,
    constants_of,
    variables_of,
)
from fullpipe.congestion.userfiles.source import (
    CONTRACT_VERSION,
    MAX_FILES,
    TOO_LARGE,
    Source,
    folder_of,
    keep,
    read_text,
    source_of,
)

if TYPE_CHECKING:
    from fullpipe._native import Conn, Ctl

#: `mine.py:Mine`, or `mine.py` with one class in it.
_NAMED = re.compile(r"(.*\.py)(?::([A-Za-z_]\w*))?")
_MAX_NAME = 40
_KNOWN_FLAGS = (
    Controller.OWNS_CWND
    | Controller.WANTS_RING
    | Controller.WANTS_ECN
    | Controller.WANTS_RTT
    | Controller.WANTS_ACKS
    | Controller.ECHOES_CE
    | Controller.SEND_IS_PURE
    | Controller.WANTS_TIMER
    | Controller.WANTS_DETAILS
    | Controller.HOST_RECOVERS
    | Controller.WANTS_EVERY_RTT
)

_METHODS = ("init", "on_ack", "on_event", "on_send", "info")
#: How alike a mistyped name is to the right one (difflib's ratio).
_NEARLY = 0.8
#: Attributes of a class that the simulator reads, beside constants and variables.
_SETTINGS = ("flags", "title")
#: The package in the names of classes' modules; there is none.
_PACKAGE = "fullpipe_user"
#: What Python says of an attribute that a class of fullpipe has not.
_NO_ATTRIBUTE = re.compile(r"'(?:fullpipe\.)?(\w+)'(?: object)? has no attribute '(\w+)'")
#: What other programs call methods for what `on_event` is told here.
_ELSEWHERE = dict.fromkeys(("on_loss", "on_timeout", "on_rto", "on_ecn", "on_rtt"), "on_event")

#: Classes that runs of this process use, by id.
_current: dict[str, type[Controller]] = {}


def is_class_name(name: str) -> bool:
    """Whether a congestion control is named as a class in a file."""
    return _NAMED.fullmatch(name) is not None


def read(name: str) -> Source:
    """The class that `mine.py:Mine` names, kept in the cache; nothing of it is run. Raises
    UserError if the file cannot be read, or does not say which class."""
    match = _NAMED.fullmatch(name)
    assert match is not None
    path, wanted = Path(match[1]), match[2]
    folder = path.parent.resolve()
    files: dict[str, str] = {}
    _collect(path, folder, files)
    if wanted is None:
        classes = _defined(files, path.name)
        if len(classes) != 1:
            raise UserError(
                f"{path}: defines {', '.join(classes) or 'no class'} of fullpipe.Controller; name "
                f"one, such as {path}:{classes[0] if classes else 'Mine'}"
            )
        wanted = classes[0]
    source = Source(folder, path.name, wanted, "", files, _contract(), is_class=True)
    keep(source)
    return source


def hand_over(controller: type[Controller]) -> str:
    """Makes a class usable by this process's runs; returns what a flow's `cc` then says. Raises
    UserError if it cannot run."""
    _check(controller, controller.__name__)
    files, folder, main = _text_of(controller)
    contract = f"{_contract()} {_code_of(controller)}"
    source = Source(folder, main, controller.__name__, "", files, contract, True, True)
    keep(source)
    _current[source.id] = controller
    return source.id


def describe(identity: str) -> dict[str, Any]:
    """Makes it known to the simulator of this process, reloaded if it comes from a file; returns
    what `_native.cc.algorithms` says of one. Raises UserError if the class cannot run."""
    source = source_of(identity)
    controller = _renewed(source)
    params = [_row(controller, *item) for item in constants_of(controller).items()]
    title = controller.title or source.name
    variables = [
        {"name": name, "unit": variable.unit, "meaning": variable.meaning}
        for name, variable in variables_of(controller).items()
    ]

    def make(values: list[int], conn: Conn, ctl: Ctl) -> list[Any]:
        wanted = _current[identity]
        instance = wanted.__new__(wanted)
        instance.conn, instance.ctl = conn, ctl
        for value, (name, constant) in zip(values, constants_of(wanted).items(), strict=True):
            instance.__dict__[name] = (value - _origin(constant)) / constant.scale
        instance.__init__()  # type: ignore[misc]
        # Methods that the class does not override do nothing, and are not called.
        methods = [
            None if getattr(wanted, name) is getattr(Controller, name) else getattr(instance, name)
            for name in _METHODS
        ]
        names = list(variables_of(wanted))
        return [*methods, (lambda: [getattr(instance, name) for name in names]) if names else None]

    registered = _native.controller.register(
        identity, title, controller.flags, params, variables, make
    )
    return {**registered, "params": params, "sources": str(source.path)}


def _renewed(source: Source) -> type[Controller]:
    if source.is_handed:
        if source.id in _current:
            return _current[source.id]
        raise UserError(
            f"{source.id}: a program handed this class over, and only that program can run it; "
            f"name its file instead: {source.main}:{source.name}"
        )
    module = _execute(source.folder, source.main, source.files, folder_of(source.id) / "source")
    controller = getattr(module, source.name, None)
    if not _is_ours(controller, module):
        raise UserError(
            f"{source.path}: has no class {source.name} of fullpipe.Controller; write "
            f"class {source.name}(fullpipe.Controller)"
        )
    assert isinstance(controller, type)
    _check(controller, f"{source.path}: {source.name}")
    _current[source.id] = controller
    return controller


def explain(identity: str, error: BaseException) -> str:
    """Describes an exception of a class: `file:line: in on_ack: ZeroDivisionError: ...`."""
    source = source_of(identity)
    return _explained(error, source.path.parent, source.files, str(source.path))


def _explained(error: BaseException, folder: Path, files: dict[str, str], otherwise: str) -> str:
    described = traceback.TracebackException.from_exception(error)
    described.__notes__ = None  # Lines after the message, which would hide it.
    words = list(described.format_exception_only())[-1].strip() + _cure(error)
    frames = traceback.extract_tb(error.__traceback__)
    user_frames = [frame for frame in frames if Path(frame.filename).name in files] or frames[-1:]
    if isinstance(error, SyntaxError) and error.filename:
        return f"{folder / Path(error.filename).name}:{error.lineno}: {words}"
    if not user_frames:
        return f"{otherwise}: {words}"
    last = user_frames[-1]
    line = f" ({last.line})" if last.line else ""
    path = Path(last.filename)
    shown = folder / path.name if path.name in files else path
    return f"{shown}:{last.lineno}: in {last.name}{line}: {words}"


def _cure(error: BaseException) -> str:
    """What would be right, where an exception is of a kind that classes often raise; else empty."""
    if isinstance(error, PermissionError | FileNotFoundError) and error.filename:
        return (
            "; a class has no right to read files: write what it needs into a module beside it, "
            "such as weights.py, and import that"
        )
    if isinstance(error, ModuleNotFoundError) and error.name:
        if error.name.startswith(_PACKAGE):
            return "; a module beside it has no package: from weights import W, without a point"
        return "; a class may import what is installed and files beside it, no folders"
    if isinstance(error, AttributeError) and (missing := _NO_ATTRIBUTE.search(str(error))):
        owner = Controller if missing[1] == "Controller" else getattr(_native, missing[1], None)
        near = difflib.get_close_matches(missing[2], dir(owner), 1)
        return f"; did you mean {near[0]}?" if near else ""
    if isinstance(error, TypeError) and "'float' object cannot be interp" in str(error):
        return "; a decision is a whole number, such as int(...)"
    if isinstance(error, OverflowError) and "integral type conversion" in str(error):
        return "; a decision is at least 0, and a window less than 2**32"
    return ""


def _execute(folder: Path, main: str, files: dict[str, str], beside_folder: Path) -> ModuleType:
    """Runs a file as a separate module. Modules that lie beside it in the cache
    (`beside_folder`) are reloaded, then unloaded."""
    module = ModuleType(f"{_PACKAGE}.{Path(main).stem}")
    path = folder / main
    module.__file__ = str(path)
    beside = {Path(name).stem for name in files if name != main}
    hidden = {name: sys.modules.pop(name) for name in beside if name in sys.modules}
    entry = str(beside_folder)
    sys.path.insert(0, entry)
    sys.modules[module.__name__] = module
    # A worker cannot read the user's folder, and errors show the line.
    linecache.cache[str(path)] = (0, None, files[main].splitlines(keepends=True), str(path))
    try:
        exec(compile(files[main], str(path), "exec"), vars(module))
    except BaseException as error:  # of code that ends its program, too
        raise UserError(_explained(error, folder, files, str(path))) from error
    finally:
        sys.path.remove(entry)
        for name in beside:
            sys.modules.pop(name, None)
        sys.modules |= hidden
    return module


def _defined(files: dict[str, str], main: str) -> list[str]:
    """The classes of `main` that name Controller, or another such class of these files, as their
    base."""
    defined = {
        name: [node for node in ast.parse(text).body if isinstance(node, ast.ClassDef)]
        for name, text in files.items()
    }
    controllers = {"Controller"}
    while True:
        more = {
            node.name
            for nodes in defined.values()
            for node in nodes
            if any(_last(base) in controllers for base in node.bases)
        }
        if more <= controllers:
            return [node.name for node in defined[main] if node.name in more]
        controllers |= more


def _last(name: ast.expr) -> str:
    return name.attr if isinstance(name, ast.Attribute) else getattr(name, "id", "")


def _collect(path: Path, folder: Path, files: dict[str, str]) -> None:
    """Collects the file, and those of its folder that it imports."""
    if len(files) >= MAX_FILES:
        raise UserError(f"{path}: {TOO_LARGE}")
    text = files[path.name] = read_text(path, "a class in Python")
    try:
        tree = ast.parse(text, str(path))
    except SyntaxError as error:
        raise UserError(f"{path}:{error.lineno}: {error.msg}") from None
    except (ValueError, RecursionError, MemoryError):
        raise UserError(f"{path}: Python cannot read it") from None
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.level == 0 and node.module:
            names = [node.module]
        else:
            continue
        for name in names:
            beside = folder / f"{name}.py"
            if "." not in name and beside.is_file() and beside.name not in files:
                _collect(beside, folder, files)


def _is_ours(value: Any, module: ModuleType) -> bool:
    return (
        isinstance(value, type)
        and issubclass(value, Controller)
        and value is not Controller
        and value.__module__ == module.__name__
    )


def _check(controller: type[Controller], called: str) -> None:
    flags = controller.flags
    if not isinstance(flags, int) or flags & ~_KNOWN_FLAGS:
        raise UserError(f"{called}.flags: {flags!r}: a sum of Controller.OWNS_CWND and the others")
    if flags & Controller.WANTS_RING and not flags & Controller.OWNS_CWND:
        raise UserError(f"{called}.flags: WANTS_RING needs OWNS_CWND")
    if len(controller.__name__) > _MAX_NAME:
        raise UserError(f"{called}: a name has at most {_MAX_NAME} characters")
    _check_names(controller, called)
    for name in constants_of(controller):
        _row(controller, name, constants_of(controller)[name])


def _check_names(controller: type, called: str) -> None:
    """Raises UserError for what nothing calls or reads, and whose name is nearly one of the
    contract's, or what such a method is called elsewhere."""
    bases = [vars(base) for base in controller.__mro__ if base is not Controller]
    own = {name: value for members in bases for name, value in members.items()}
    methods = {name: value for name, value in own.items() if inspect.isfunction(value)}
    used = {name for method in methods.values() for name in _names_in(method.__code__)}
    for name in sorted(own.keys() - used - {*dir(Controller)}):
        if name in methods:
            near = difflib.get_close_matches(name.lower().strip("_"), _METHODS, 1, _NEARLY)
            meant = _ELSEWHERE.get(name) or (near[0] if near else None)
            if meant:
                raise UserError(
                    f"{called}.{name}: nothing calls this method; did you mean {meant}? "
                    f"The simulator calls {', '.join(_METHODS)}"
                )
        elif isinstance(own[name], int | str):
            near = difflib.get_close_matches(name.lower(), _SETTINGS, 1, _NEARLY)
            if near:
                raise UserError(f"{called}.{name}: nothing reads it; did you mean {near[0]}?")


def _names_in(code: CodeType) -> Iterator[str]:
    """The names that a function's code uses, and functions within it."""
    yield from code.co_names
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _names_in(constant)


def _row(controller: type[Controller], name: str, constant: Constant) -> dict[str, Any]:
    try:
        stored = [
            round(value * constant.scale) + _origin(constant)
            for value in (constant.default, constant.least, constant.most)
        ]
        fits = 0 <= stored[1] <= stored[0] <= stored[2] < 2**32 and 1 <= constant.scale < 2**32
    except (TypeError, ValueError, OverflowError):
        fits = False
    if not fits:
        raise UserError(
            f"{controller.__name__}.{name}: a constant is Constant(default, least, most) with "
            "least <= default <= most, and (most - least) * scale below 2**32"
        )
    return {
        "name": name,
        "unit": constant.unit,
        "zero": "0",
        "source": constant.source or "mine",
        "meaning": constant.meaning,
        "default": stored[0],
        "min": stored[1],
        "max": stored[2],
        "scale": constant.scale,
        "origin": _origin(constant),
    }


def _origin(constant: Constant) -> int:
    """What 0 is stored as: above 0 where values below it are allowed."""
    return max(0, -round(constant.least * constant.scale))


def _text_of(controller: type[Controller]) -> tuple[dict[str, str], Path, str]:
    """(files, folder, main) of a class that a program passes: its whole file, or in a notebook the
    text of the class and its bases; empty if Python has no source for it."""
    module = sys.modules.get(controller.__module__)
    path = Path(getattr(module, "__file__", None) or "")
    if path.suffix == ".py" and path.is_file():
        files: dict[str, str] = {}
        _collect(path, path.parent.resolve(), files)
        return files, path.parent.resolve(), path.name
    texts = []
    for base in reversed(controller.__mro__):
        if issubclass(base, Controller) and base is not Controller:
            try:
                texts.append(inspect.getsource(base))
            except (OSError, TypeError):
                continue
    main = f"{controller.__name__}.py"
    return ({main: "\n".join(texts)} if texts else {}), Path.cwd(), main


def _code_of(controller: type[Controller]) -> str:
    """A hash of a class's bytecode and constants, so that a changed class gets a new id."""
    parts: list[str] = [str(controller.flags)]
    for base in controller.__mro__[:-1]:
        for name, value in sorted(vars(base).items()):
            if isinstance(value, Constant | Variable):
                parts.append(f"{name} {vars(value)}")
            code = getattr(value, "__code__", None)
            if code is not None:
                parts.append(f"{name} {code.co_code.hex()} {code.co_consts!r} {code.co_names}")
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()


def _contract() -> str:
    return f"class {CONTRACT_VERSION}"
