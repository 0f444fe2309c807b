"""Output streams and table widths, with and without a terminal."""

from __future__ import annotations

import json
import re
import sys

import pytest
from rich.console import Console

from npukit.cli.terminal import STOPPED, Terminal, errors_as_lines


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


def narrow(monkeypatch: pytest.MonkeyPatch) -> None:
    """A terminal of 60 columns."""
    monkeypatch.setattr(
        "npukit.cli.terminal._console", lambda stderr: Console(file=sys.stdout, width=60, force_terminal=True)
    )


def test_60_columns_lose_no_name(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    narrow(monkeypatch)
    name, kernel = "model/a_block_of_some_depth/conv2d_17_with_bias_and_relu", "gemm16 to pixels, bytes"
    headings = ("layer", "op", ">MACs", ">predicted cycles", ">of the frame", "CPU kernel", "why not accelerated")
    Terminal().table(headings, [(name, "conv2d", "1,000", "20,000", "20,000", kernel, "the board has no accelerator")])
    lines = re.sub(r"\x1b\[[0-9;]*m", "", capsys.readouterr().out).splitlines()
    assert lines[0] == name
    assert max(map(len, lines)) <= 60
    assert " ".join(line.strip() for line in lines[1:]) == (
        f"op conv2d; MACs 1,000; predicted cycles 20,000; of the frame 20,000; CPU kernel {kernel};"
        " why not accelerated the board has no accelerator"
    )


def test_a_table_that_a_terminal_has_room_for_stays_one(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    narrow(monkeypatch)
    Terminal().table(("board", ">PEs", "clock"), [("pe-mesh", "16", "300 MHz"), ("mps2-an386", "1", "25 MHz")])
    assert len(capsys.readouterr().out.splitlines()) == 3


def test_60_columns_cut_no_heading_of_numbers(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Six narrow columns, each slightly compressible: no heading loses a letter."""
    narrow(monkeypatch)
    headings = ("", ">core awake", ">accelerator", ">waiting", ">port moves data", ">instructions")
    Terminal().table(headings, [("PE 0", "844", "1,053", "0", "54", "564"), ("PE 1", "396", "882", "562", "58", "242")])
    shown = capsys.readouterr().out
    assert all(word in shown for heading in headings for word in heading.lstrip(">").split())


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
