"""Output streams and table widths, with and without a terminal."""

from __future__ import annotations

import json
import re
import sys

import pytest
from rich.console import Console

from npukit.cli.terminal import STOPPED, Terminal, errors_as_lines
from npukit.errors import NpukitError


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


def narrow(monkeypatch: pytest.MonkeyPatch) -> None:
    """A terminal of 60 columns."""
    monkeypatch.setattr(
        "npukit.cli.terminal._console",
        lambda stderr, width=None: Console(file=sys.stdout, width=width or 60, force_terminal=True),
    )


HEADINGS = ("layer", "op", ">MACs", ">cycles", "CPU kernel", "why not accelerated")
NAME, KERNEL, REASON = "model/a_block_of_some_depth/conv2d_17_with_bias_and_relu", "gemm16, bytes", "no accelerator"
ROWS = [(NAME, "conv2d", "1,000", "20,000", KERNEL, REASON), ("short", "add", "7", "8", "", "")]


def test_long_texts_take_several_lines_of_their_column(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    narrow(monkeypatch)
    Terminal().table(HEADINGS, ROWS)
    lines = shown(capsys).splitlines()
    assert max(map(len, lines)) <= 60
    assert lines[-1].split() == ["short", "add", "7", "8"]
    head = next(number for number, line in enumerate(lines) if line.startswith("layer"))
    width = lines[head].index("op")
    assert "".join(line[:width].strip() for line in lines[head + 1 : -1]) == NAME


def test_wide_tables_have_all_columns_in_whole_lines(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    narrow(monkeypatch)
    few = ("layer", ">MACs", ">cycles")
    Terminal().table(HEADINGS, ROWS, few)
    assert shown(capsys).splitlines()[-1].split() == ["short", "7", "8"]
    Terminal(wide=True).table(HEADINGS, ROWS, few)
    _, first, _ = shown(capsys).splitlines()
    assert first.split() == [NAME, "conv2d", "1,000", "20,000", *KERNEL.split(), *REASON.split()]


def test_a_pipe_has_80_columns_and_loses_no_letter(capsys: pytest.CaptureFixture[str]) -> None:
    Terminal().table(["reason"], [["x" * 150]])
    Terminal().print("word " * 40)
    lines = capsys.readouterr().out.splitlines()
    assert max(map(len, lines)) <= 80
    assert ("".join(lines).count("x"), " ".join(lines).split().count("word")) == (150, 40)


def test_errors_are_whole_lines_in_a_pipe_and_whole_words_on_a_terminal(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    error = NpukitError("word " * 40, tries=["more " * 20])
    Terminal().error(error)
    assert len(capsys.readouterr().err.splitlines()) == 3
    narrow(monkeypatch)
    Terminal().error(error)
    lines = shown(capsys).splitlines()
    assert max(map(len, lines)) <= 60
    assert {word for line in lines for word in line.split()} == {"error:", "word", "Things", "to", "try:", "-", "more"}


def test_q_leaves_the_path_of_a_result(capsys: pytest.CaptureFixture[str]) -> None:
    quiet = Terminal(verbosity=-1)
    quiet.print("8 of 16 PEs")
    quiet.table(["board"], [["pico"]])
    quiet.made("out/digits", "built: out/digits")
    Terminal().made("out/digits", "built: out/digits")
    assert capsys.readouterr().out == "out/digits\nbuilt: out/digits\n"


def shown(capsys: pytest.CaptureFixture[str]) -> str:
    """The output without styles and without blanks at the ends of lines."""
    lines = re.sub(r"\x1b\[[0-9;]*m", "", capsys.readouterr().out).splitlines()
    return "\n".join(line.rstrip() for line in lines)


def test_ctrl_c_says_what_was_left(capsys: pytest.CaptureFixture[str]) -> None:
    terminal = Terminal(as_json=True)
    terminal.stage("plan for pe-mesh: best of 7 so far 99 cycles; at most 5 s more")
    with pytest.raises(SystemExit) as stopped, errors_as_lines(terminal, "no folder is written"):
        raise KeyboardInterrupt
    assert stopped.value.code == STOPPED
    told, said = (
        capsys.readouterr(),
        "stopped: plan for pe-mesh: best of 7 so far 99 cycles; no folder is written",
    )
    assert told.err.splitlines()[-1] == said
    assert json.loads(told.out)["error"] == {"message": said, "facts": [], "tries": [], "status": STOPPED}
