"""Claims of the documents: a table of figures names its measurement, the manual's figures equal the board file's, and
words are defined in docs/concepts.md."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from docs.wrap import pages
from helpers import CHECKOUT
from npukit import api
from npukit.project.manifest import Manifest

HOUSE_WORDS = r"\b(waves?|feeders?|findings?|rounds? of frames|somebody|nobody|everybody)\b"
MEASURED = r"(?i)measured at [0-9a-f]{7}.*`(?:(?:PYTHONPATH=\S+ )?python benchmarks/[\w/]+\.py|make [\w-]+)"
AT = r"\| (?:at|measured at) \|"
FIGURE = r"\b\d{1,3}(?:,\d{3})+\b"
"""A number of more than three digits, in the format of measured numbers."""
NO_MEASUREMENTS = {"65,000", "37,632"}
"""A limit of the protocol; 224 x 224 x 3 bytes over 4 bytes a cycle."""


def sections(text: str) -> Iterator[str]:
    return (section for section in re.split(r"(?m)^(?=#+ )", text) if section)


def unmeasured_tables(text: str) -> list[str]:
    """Headings of sections with a column of figures but no measurement in the page's head, the section or its rows."""
    if re.search(MEASURED, " ".join(next(sections(text), "").split())):
        return []
    found = (
        section
        for section in sections(re.sub(r"(?s)<!-- table:.*?<!-- end of table -->", "", text))
        if "--:" in section
    )
    return [
        each.splitlines()[0]
        for each in found
        if not re.search(MEASURED, " ".join(each.split())) and not re.search(AT, each)
    ]


def prose(text: str) -> str:
    """The text without code blocks, tables and code spans."""
    text = re.sub(r"(?ms)^```.*?^```|^(?: {4}|\|).*?$|<!--.*?-->", "", text)
    return re.sub(r"`[^`]*`", "", text)


@pytest.mark.parametrize("page", pages(), ids=lambda page: str(page.relative_to(CHECKOUT)))
def test_a_table_of_figures_says_by_what_and_when_it_was_measured(page: Path) -> None:
    assert not unmeasured_tables(page.read_text())


@pytest.mark.parametrize("page", pages(), ids=lambda page: str(page.relative_to(CHECKOUT)))
def test_measured_figures_stand_in_tables(page: Path) -> None:
    assert not {*re.findall(FIGURE, prose(page.read_text()))} - NO_MEASUREMENTS


@pytest.mark.parametrize("page", pages(), ids=lambda page: str(page.relative_to(CHECKOUT)))
def test_words_are_the_fields(page: Path) -> None:
    assert not re.findall(HOUSE_WORDS, prose(page.read_text()), re.IGNORECASE), "docs/concepts.md has the words"


def test_a_page_with_such_faults_is_found_out() -> None:
    table = "## It is fast\n\n| network | cycles |\n|---|--:|\n| a | 1,000 |\n"
    assert unmeasured_tables(table) == ["## It is fast"]
    assert not unmeasured_tables(
        table.replace("|\n|-", "|\n|-").replace("\n\n", "\n\nMeasured at 1234abc by `make it`.\n\n")
    )
    assert re.findall(FIGURE, prose("A frame takes 1,234 cycles.\n    not 5,678\n")) == ["1,234"]
    assert re.findall(HOUSE_WORDS, prose("Two waves."))


def test_the_manuals_figures_are_the_board_files() -> None:
    board = dict(_leaves(tomllib.loads((CHECKOUT / "boards/pe-mesh.toml").read_text())))
    told = re.findall(r"\*(\w+)\*\s+=\s+(\d+)", (CHECKOUT / "boards/pe-mesh.md").read_text())
    assert len(told) > 5
    assert not {name: value for name, value in told if int(value) not in board[name]}


def _leaves(table: Mapping[str, Any]) -> Iterator[tuple[str, list[int]]]:
    """Name and values of each integer in the file."""
    found: dict[str, list[int]] = {}
    stack: list[Any] = [table]
    while stack:
        each = stack.pop()
        if isinstance(each, list):
            stack += each
        elif isinstance(each, dict):
            stack += each.values()
            for name, value in each.items():
                if isinstance(value, int):
                    found.setdefault(name, []).append(value)
    yield from found.items()


def test_every_key_of_a_build_is_explained() -> None:
    page = (CHECKOUT / "docs/concepts.md").read_text()
    rows = re.findall(r"(?m)^\| ((?:`\w+`(?:, )?)+) \|", page)
    explained = {key for row in rows for key in re.findall(r"`(\w+)`", row)}
    assert {
        *Manifest.model_fields,
        *api.fit(CHECKOUT / "examples/digits/digits_int8.tflite", options=api.Options(pes=1)),
    } == explained
