"""What goes where when nobody sits at a terminal."""

from __future__ import annotations

import json

import pytest

from npukit.cli.terminal import Terminal


def test_with_json_the_text_is_left_out(capsys: pytest.CaptureFixture[str]) -> None:
    terminal = Terminal(as_json=True)
    terminal.result({"a": 1})
    terminal.print("for people")
    terminal.table(["x"], [["y"]])
    assert json.loads(capsys.readouterr().out) == {"a": 1}


def test_without_json_the_value_is_left_out(capsys: pytest.CaptureFixture[str]) -> None:
    Terminal().result({"a": 1})
    assert capsys.readouterr().out == ""


def test_names_that_look_like_markup_stay_as_they_are(capsys: pytest.CaptureFixture[str]) -> None:
    terminal = Terminal()
    terminal.print("conv[bold]1[/bold]")
    terminal.table(["layer"], [["conv[0]"]])
    assert capsys.readouterr().out.split() == ["conv[bold]1[/bold]", "layer", "conv[0]"]


def test_progress_is_a_plain_line_when_piped_and_nothing_with_q(capsys: pytest.CaptureFixture[str]) -> None:
    assert list(Terminal(as_json=True).track([1, 2], "bench")) == [1, 2]
    Terminal().stage("plan")
    Terminal(verbosity=-1).stage("plan")
    told = capsys.readouterr()
    assert (told.out, told.err) == ("", "bench\nplan\n")


def test_q_leaves_out_what_stands_beside_the_result(capsys: pytest.CaptureFixture[str]) -> None:
    Terminal(verbosity=-1).note("next: npukit validate")
    Terminal(verbosity=0).note("report: out/report.html")
    assert capsys.readouterr().err == "report: out/report.html\n"


def test_a_pipe_cuts_no_column(capsys: pytest.CaptureFixture[str]) -> None:
    Terminal().table(["reason"], [["x" * 150]])
    assert "x" * 150 in capsys.readouterr().out
