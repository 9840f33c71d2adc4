"""No module of a Rust crate imports one that imports it, directly or through others, and no crate
imports one that docs/architecture.md puts below it.

`lint-imports` checks the same of Python's packages. A path counts as an import of the innermost
module that it names; a module's own tests do not count.
"""

import re
import tomllib
from collections.abc import Iterator, Mapping
from graphlib import CycleError, TopologicalSorter
from pathlib import Path
from typing import Any

import pytest

Module = tuple[str, ...]
ROOT = Path(__file__).parents[2]
USE = re.compile(r"^\s*(?:pub(?:\([^)]*\))? )?use ([^;]+);", re.MULTILINE)
CRATES = sorted(folder.parent.name for folder in ROOT.glob("crates/*/src"))


def modules_of(source: Path) -> dict[Module, Path]:
    """Module -> its file, without tests; the crate's root is the empty tuple."""
    found = {}
    for file in source.rglob("*.rs"):
        parts = file.relative_to(source).with_suffix("").parts
        if "tests" not in parts:
            found[parts[:-1] if parts[-1] in ("mod", "lib", "main") else parts] = file
    return found


def paths_of(text: str) -> Iterator[list[str]]:
    """The paths that a file names: those of its `use` items, and others from `crate` or `super`."""
    code = re.sub(r"//[^\n]*", "", text).partition("#[cfg(test)]\nmod tests {")[0]
    code = re.sub(r"\bpub\(in [\w:]+\)", "", code)  # visibility is no import
    for tree in USE.findall(code):
        yield from branches(tree)
    for path in re.findall(r"\b(?:crate|super)(?:::\w+)+", USE.sub("", code)):
        yield path.split("::")


def branches(tree: str) -> Iterator[list[str]]:
    """The paths of a use tree: `a::{b, c::d}` is `a::b` and `a::c::d`."""
    head, brace, rest = tree.partition("{")
    names = re.findall(r"\w+", head)
    if not brace:
        yield names
        return
    depth, begin = 0, 0
    inner = rest[: rest.rindex("}")] + ","
    for place, letter in enumerate(inner):
        depth += {"{": 1, "}": -1}.get(letter, 0)
        if letter == "," and depth == 0:
            if inner[begin:place].strip():
                yield from ([*names, *path] for path in branches(inner[begin:place]))
            begin = place + 1


def target(path: list[str], module: Module, modules: dict[Module, Path]) -> Module:
    """The module of its crate to which a path leads from a module; that itself for other crates."""
    if path[0] == "crate":
        base, rest = (), path[1:]
    elif path[0] in ("self", "super"):
        ups = sum(name == "super" for name in path)
        base, rest = (
            module[: len(module) - ups],
            [name for name in path if name not in ("self", "super")],
        )
    elif (*module, path[0]) in modules:
        base, rest = module, path
    else:
        return module
    while rest and (*base, rest[0]) in modules:
        base, rest = (*base, rest[0]), rest[1:]
    return base


@pytest.mark.parametrize("crate", CRATES)
def test_modules_of_a_crate_do_not_import_each_other_in_circles(crate: str) -> None:
    modules = modules_of(ROOT / "crates" / crate / "src")
    imports = {
        module: {target(path, module, modules) for path in paths_of(file.read_text())} - {module}
        for module, file in modules.items()
    }
    try:
        TopologicalSorter(imports).prepare()
    except CycleError as error:
        circle = " <- ".join("::".join(module) or "the root" for module in error.args[1])
        pytest.fail(f"{crate}: {circle}")


def test_the_reader_of_paths_sees_nested_imports_and_parents() -> None:
    text = "use crate::a::{b, c::{d, e as f}};\nlet x = super::g::H;\n// use crate::no;"
    assert list(paths_of(text)) == [
        ["crate", "a", "b"], ["crate", "a", "c", "d"], ["crate", "a", "c", "e", "as", "f"],
        ["super", "g", "H"],
    ]  # fmt: skip
    modules = {(): Path(), ("a",): Path(), ("a", "c"): Path(), ("g",): Path()}
    assert target(["crate", "a", "c", "d"], ("g",), modules) == ("a", "c")
    assert target(["super", "g", "H"], ("a", "c"), modules) == ("a",)
    assert target(["super", "super", "g", "H"], ("a", "c"), modules) == ("g",)


def order_of(page: str) -> list[str]:
    """The crates of the table in docs/architecture.md, from its top to its bottom."""
    table = page.partition("| crate | what it is |")[2].partition("\n\n")[0]
    return re.findall(r"^\| `(fullpipe-[\w-]+)` \|", table, re.MULTILINE)


def imports_of(manifest: Mapping[str, Any]) -> set[str]:
    """The crates of fullpipe that a manifest names, for tests and single systems too."""
    kinds = ("dependencies", "dev-dependencies", "build-dependencies")
    tables = [manifest, *manifest.get("target", {}).values()]
    names = {name for table in tables for kind in kinds for name in table.get(kind, {})}
    return {name for name in names if (ROOT / "crates" / name).is_dir()}


def wrongly_imported(crate: str, imports: set[str], order: list[str]) -> set[str]:
    """The imports of a crate that are not above it."""
    return imports - set(order[: order.index(crate)])


def test_the_table_of_crates_names_each_of_them_once() -> None:
    order = order_of((ROOT / "docs" / "architecture.md").read_text())
    assert sorted(order) == CRATES


@pytest.mark.parametrize("crate", CRATES)
def test_a_crate_imports_only_crates_above_it_in_the_table(crate: str) -> None:
    order = order_of((ROOT / "docs" / "architecture.md").read_text())
    manifest = tomllib.loads((ROOT / "crates" / crate / "Cargo.toml").read_text())
    assert not wrongly_imported(crate, imports_of(manifest), order)


def test_an_import_from_below_is_seen_whatever_kind_of_dependency_it_is() -> None:
    name, order = "fullpipe-sim", ["fullpipe-net", "fullpipe-plan", "fullpipe-sim"]
    linux = 'cfg(target_os = "linux")'
    for manifest in (
        {"dependencies": {name: {}}},
        {"dev-dependencies": {name: {}}},
        {"build-dependencies": {name: {}}},
        {"target": {linux: {"dependencies": {name: {}, "serde": {}}}}},
    ):
        assert imports_of(manifest) == {name}
    assert wrongly_imported("fullpipe-plan", {name, "fullpipe-net"}, order) == {name}
    assert wrongly_imported(name, {"fullpipe-net", "fullpipe-plan"}, order) == set()
