"""The manual's tutorial and how-to guides do what they say: every command and snippet is run.

A page's files are blocks with a caption, its commands `console` blocks, its programs `python`
blocks. The chapters of the tutorial share a folder, as they do for a reader; a how-to guide has its
own. A block after `<!-- not run: REASON -->` is left out.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

DOCS = Path(__file__).parents[2] / "docs"
CHAPTERS = re.findall(r"^([a-z-]+)$", (DOCS / "tutorial/index.md").read_text(), re.M)
COMPARISON = DOCS / "tutorial/compare.md"
GUIDES = sorted(path for path in (DOCS / "howto").glob("*.md") if path.name != "index.md")
#: Other pages that have a guide.
PAGES_WITH_GUIDES = [
    DOCS / name
    for name in (
        "background/l4s.md",
        "background/live.md",
        "background/models.md",
        "background/wifi.md",
        "reference/applications.md",
        "reference/conformance.md",
        "reference/flent.md",
        "reference/kernel-files.md",
        "reference/scorecard.md",
        "reference/tune.md",
    )
]
#: Why a block is not run. Anything else is a mistake.
REASONS = {
    "changes the host's kernel",
    "needs a network interface of the reader's",
    "needs a second host",
    "needs the crates of QUIC stacks",  # `make test-quic` builds the example
    "needs the module of QUIC stacks",  # `make test-quic` runs stacks
    "needs the published package",
    "needs root",
    "downloads the source of a kernel",
    "runs until it is stopped",
}
MOST_GUIDE_LINES = 60

_BLOCK = re.compile(
    r"(?:<!-- not run: (?P<reason>[^\n]*) -->\n)?"
    r"^```(?P<kind>[^\n]*)\n(?P<body>.*?)^```$",
    re.M | re.S,
)
_CAPTION = re.compile(r":caption: (\S+)\n\n?")


@dataclass(frozen=True)
class Block:
    """A fenced block of a page: `kind` as written, the file's name if it has a caption."""

    kind: str
    body: str
    file: str | None
    reason: str | None


def blocks_of(page: Path) -> Iterator[Block]:
    """The page's fenced blocks in order."""
    for match in _BLOCK.finditer(page.read_text(encoding="utf-8")):
        body, caption = match["body"], _CAPTION.match(match["body"])
        if caption:
            body = body[caption.end() :]
        yield Block(match["kind"], body, caption and caption[1], match["reason"])


def follow(page: Path, folder: Path) -> dict[str, str]:
    """Does what the page says, in the folder. Gives what each command printed."""
    program = ""
    printed = {}
    for block in blocks_of(page):
        if block.reason is not None:
            assert block.reason in REASONS, f"{page}: {block.reason}"
        elif block.file:
            (folder / block.file).write_text(block.body, encoding="utf-8")
        elif block.kind == "console":
            commands = re.findall(r"^\$ ((?:.*\\\n)*.*)", block.body, re.M)
            assert commands, f"{page}: a console block without a command"
            for command in commands:
                what = f"{page.name}: {command}"
                printed[command] = _run(["bash", "-c", command], folder, what)
        elif block.kind == "python":
            program += block.body
    if program:
        (folder / "program.py").write_text(program, encoding="utf-8")
        _run([sys.executable, "program.py"], folder, f"{page.name}: its program")
    return printed


def check_comparison(printed: dict[str, str]) -> None:
    """The figures of the page on comparing are those that its commands print."""
    alone, together, settled, harm = (
        next(text for command, text in printed.items() if folder in command)
        for folder in ("--out duel", "--out contest", "--out settled", "--out harm")
    )
    shown = [block.body for block in blocks_of(COMPARISON) if block.kind == "text"]
    for text, body in zip((alone, together), shown, strict=True):
        rest = iter([line.rstrip() for line in text.splitlines()])
        for line in body.splitlines():
            assert line in ("...", "") or line in rest, line
    prose = " ".join(COMPARISON.read_text(encoding="utf-8").split())
    assert f"CUBIC {_shares(together)[0]}, BBRv3 {_shares(together)[1]}." in prose
    assert f"CUBIC gets {_shares(settled)[0]}, BBRv3 {_shares(settled)[1]}:" in prose
    found = re.search(r"harm: goodput .* 5 +(0\.\d+) +(0\.\d+) to (0\.\d+)", harm)
    assert found is not None, harm
    mean, low, high = (f"{float(text):.2f}" for text in found.groups())
    assert f"the harm is {mean}, with a 95 % interval from {low} to {high}:" in prose


def _shares(printed: str) -> list[str]:
    """Of CUBIC and of BBRv3, as a comparison of both on one path prints them."""
    _, _, rows = printed.partition("share of goodput")
    return [f"{100 * float(s):.0f} %" for s in re.findall(r"(?:cubic|bbr3) +5 +(0\.\d+)", rows)][:2]


def excerpts(body: str) -> dict[str, list[str]]:
    """The commands of a block that shows what they print -> the lines that it shows."""
    shown: dict[str, list[str]] = {}
    for line in body.splitlines():
        if line.startswith("$ "):
            shown[line[2:].partition(" #")[0].strip()] = lines = []
        elif line.strip() not in ("", "..."):
            lines.append(line.rstrip())
    return shown


def check_shown(shown: dict[str, list[str]], folder: Path, page: Path) -> None:
    """What a page shows of what its commands print is there, in this order. Commands of which it
    shows nothing are not run: the tutorial runs them."""
    for command, lines in [(command, lines) for command, lines in shown.items() if lines]:
        printed = _run(["bash", "-c", command], folder, f"{page.name}: {command}").splitlines()
        rest = iter([line.rstrip() for line in printed])
        for line in lines:
            assert line in rest, f"{page.name}: {command}: does not print {line!r}"


def _run(words: list[str], folder: Path, what: str) -> str:
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    answer = subprocess.run(
        words, cwd=folder, env={**os.environ, "PATH": path}, capture_output=True, text=True
    )
    assert answer.returncode == 0, f"{what}\n{answer.stdout[-2000:]}\n{answer.stderr[-2000:]}"
    return answer.stdout


@pytest.mark.slow
@pytest.mark.vm
def test_the_tutorial_can_be_followed_from_its_first_page_to_its_last(tmp_path: Path) -> None:
    assert len(CHAPTERS) >= 7
    printed: dict[str, str] = {}
    for chapter in CHAPTERS:
        printed |= follow(DOCS / f"tutorial/{chapter}.md", tmp_path)
    check_comparison(printed)


@pytest.mark.slow
@pytest.mark.vm  # several have a kernel judge
@pytest.mark.parametrize("guide", [*GUIDES, *PAGES_WITH_GUIDES], ids=lambda path: path.stem)
def test_a_how_to_guide_can_be_followed(guide: Path, tmp_path: Path) -> None:
    follow(guide, tmp_path)


def test_the_readme_shows_what_its_commands_print(tmp_path: Path) -> None:
    (tmp_path / "scenarios").symlink_to(DOCS.parent / "scenarios")
    readme = DOCS.parent / "README.md"
    (block,) = [block for block in blocks_of(readme) if block.body.startswith("$ ")]
    check_shown(excerpts(block.body), tmp_path, readme)


def test_the_first_page_shows_what_its_commands_print(tmp_path: Path) -> None:
    page = DOCS / "index.md"
    scenario, commands = [block for block in blocks_of(page) if block.file or "$ " in block.body]
    assert scenario.file is not None
    (tmp_path / scenario.file).write_text(scenario.body, encoding="utf-8")
    check_shown(excerpts(commands.body), tmp_path, page)


@pytest.mark.parametrize("guide", GUIDES, ids=lambda path: path.stem)
def test_a_how_to_guide_is_short(guide: Path) -> None:
    assert len(guide.read_text(encoding="utf-8").splitlines()) <= MOST_GUIDE_LINES
