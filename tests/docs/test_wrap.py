"""Markdown at 100 columns, and the wrapping tool."""

from __future__ import annotations

from pathlib import Path

import pytest

from docs.wrap import WIDTH, pages, wide_lines, wrapped
from helpers import CHECKOUT

WORDS = " ".join(["words"] * 40)


@pytest.mark.parametrize("page", pages(), ids=lambda page: str(page.relative_to(CHECKOUT)))
def test_a_page_has_no_wide_lines(page: Path) -> None:
    assert not wide_lines(page.read_text()), "wrap it: python tests/docs/wrap.py"


@pytest.mark.parametrize("text", [WORDS, f"- {WORDS}", f"12. {WORDS}", f"  - {WORDS}", f"{WORDS}\nand more"])
def test_prose_is_wrapped_and_loses_no_word(text: str) -> None:
    assert wide_lines(text)
    done = wrapped(text)
    assert max(map(len, done.splitlines())) <= WIDTH
    assert done.split() == text.split()
    assert not wide_lines(done)


@pytest.mark.parametrize(
    "text",
    [
        f"| a | {WORDS} |\n",
        f"    $ a command\n    {WORDS}\n",
        f"    a drawing\n     of {WORDS}\n",
        f"```\n{WORDS}\n```\n",
        f"# {WORDS}\n",
        f"`{WORDS}`\n",
        "short\nlines\nstay\n",
    ],
)
def test_what_is_not_wrapped(text: str) -> None:
    assert wrapped(text) == text


def test_the_lines_of_an_item_stand_under_its_text() -> None:
    done = wrapped(f"Before:\n\n1. {WORDS}\n2. short\n").splitlines()
    assert [line[:3] for line in done] == ["Bef", "", "1. ", "   ", "   ", "2. "]


def test_no_line_begins_with_what_would_be_an_item() -> None:
    for filler in range(80, 98):
        done = wrapped("x" * filler + " - " + "y" * 60 + " 1. " + "z" * 60)
        assert not any(line.startswith(("- ", "1. ")) for line in done.splitlines())
