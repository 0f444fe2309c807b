"""Markdown at 100 columns: `python tests/docs/wrap.py` wraps every wider paragraph.

Tables, code blocks, HTML comments and words wider than a line stay unchanged.
"""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

CHECKOUT = Path(__file__).parents[2]
WIDTH = 100

_WORD = re.compile(r"(?:`[^`]+`|\S)+")
"""A word, or a code span with the characters adjacent to it. Neither is split."""
_ITEM = re.compile(r"(?:[-*]|\d+\.) +")
_FENCE = re.compile(r"\s*(```|~~~)")
_AS_IT_IS = re.compile(r"\||#|<!--|    |\s*$")
"""A table's row, a heading, a comment, a line of code, an empty line."""
_NOT_FIRST = re.compile(r"(?:[-+*>|]|#+|\d+[.)])$")
"""A word with a different meaning in Markdown at the beginning of a line."""


def pages() -> list[Path]:
    """Every Markdown file tracked by git."""
    listed = subprocess.run(["git", "ls-files", "*.md"], cwd=CHECKOUT, capture_output=True, text=True, check=True)
    return [CHECKOUT / name for name in listed.stdout.split()]


def wrapped(text: str) -> str:
    """The text with every paragraph and list item wider than WIDTH wrapped."""
    return "".join(f"{line}\n" for block in _blocks(text) for line in block.wrapped())


def wide_lines(text: str) -> list[str]:
    """Lines of the paragraphs changed by `wrapped`."""
    return [line for block in _blocks(text) if block.wrapped() != block.lines for line in block.lines]


@dataclass(frozen=True)
class _Block:
    """The lines of a paragraph or list item, or a single other line."""

    lines: list[str]
    prose: bool

    def wrapped(self) -> list[str]:
        if not self.prose or all(len(line) <= WIDTH for line in self.lines):
            return self.lines
        first = self.lines[0]
        margin = first[: len(first) - len(first.lstrip())]
        item = _ITEM.match(first.lstrip())
        mark = item[0] if item else ""
        words = _words(" ".join([first[len(margin) + len(mark) :], *self.lines[1:]]))
        return list(_filled(words, margin + mark, margin + " " * len(mark)))


def _blocks(text: str) -> Iterator[_Block]:
    lines: list[str] = []
    for line, prose in _lines(text):
        if lines and (not prose or _ITEM.match(line.lstrip())):
            yield _Block(lines, prose=True)
            lines = []
        if prose:
            lines.append(line)
        else:
            yield _Block([line], prose=False)
    if lines:
        yield _Block(lines, prose=True)


def _lines(text: str) -> Iterator[tuple[str, bool]]:
    """Each line, and True if it is prose."""
    fenced, prose = False, False
    for line in text.splitlines():
        fence = bool(_FENCE.match(line))
        prose = not (fenced or fence or (_AS_IT_IS.match(line) and not (prose and line.startswith("    "))))
        fenced ^= fence
        yield line, prose


def _words(text: str) -> list[str]:
    """Words. A word not allowed at the beginning of a line is joined to the word before it."""
    words: list[str] = []
    for word in _WORD.findall(text):
        if words and _NOT_FIRST.match(word):
            words[-1] += f" {word}"
        else:
            words.append(word)
    return words


def _filled(words: Iterable[str], first: str, rest: str) -> Iterator[str]:
    line, empty = first, True
    for word in words:
        if not empty and len(line) + 1 + len(word) > WIDTH:
            yield line
            line, empty = rest, True
        line, empty = line + word if empty else f"{line} {word}", False
    yield line


if __name__ == "__main__":
    for page in pages():
        page.write_text(wrapped(page.read_text()))
