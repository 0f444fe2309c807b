"""A line of output stays a single line for any characters in a name."""

from __future__ import annotations

import pytest

from npukit.cli.terminal import Terminal
from npukit.errors import NpukitError

NAME = "a\nerror: b\r\x1b[2Jc\u202e\u2028d"


def test_errors_are_lines() -> None:
    error = NpukitError(f"{NAME} is not a model", facts=[NAME], tries=[f"without {NAME}"])
    for text in (error.message, *error.facts, *error.tries):
        assert text.isprintable()
        assert r"a\nerror: b\r\x1b[2Jc" in text


@pytest.mark.parametrize("tell", ["print", "note", "stage"])
def test_what_a_verb_tells_is_a_line(tell: str, capsys: pytest.CaptureFixture[str]) -> None:
    getattr(Terminal(), tell)(NAME)
    said = "".join(capsys.readouterr())
    assert said.strip().isprintable()


def test_a_row_is_a_line(capsys: pytest.CaptureFixture[str]) -> None:
    Terminal().table(["name"], [[NAME], ["other"]])
    assert len(capsys.readouterr().out.splitlines()) == 3
