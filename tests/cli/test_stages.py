"""Progress on a terminal: the running stage is animated, a finished stage is a line. A log gets plain lines."""

from __future__ import annotations

import os
import pty
import re
import subprocess
import sys

import pytest

CODE = """
from npukit.cli.terminal import Terminal
from npukit.cli.options import open_terminal
from npukit.errors import NpukitError
import time
with open_terminal(False, {verbosity}, False) as terminal:
    terminal.stage("import net")
    time.sleep(0.3)
    for number in range(3):
        terminal.stage(f"link image-{{number}}")
    list(terminal.track(range(3), "compile"))
    terminal.print("the result")
    terminal.stage("measure")
    raise NpukitError("no board")
"""


def on_a_terminal(code: str) -> list[str]:
    """Lines left on a terminal at the end."""
    main, other = pty.openpty()
    environment = {**os.environ, "TERM": "xterm", "COLUMNS": "100"}
    with subprocess.Popen([sys.executable, "-c", code], stdout=other, stderr=other, env=environment):
        os.close(other)
        seen = b""
        try:
            while piece := os.read(main, 4096):
                seen += piece
        except OSError:  # the other end is closed
            pass
    os.close(main)
    return _rows(seen.decode())


def _rows(text: str) -> list[str]:
    """The rows of a terminal that supports line ends, one line up, and erasing a line."""
    rows, row = [""], 0
    for piece in re.findall(r"\x1b\[[0-9;?]*[A-Za-z]|\n|\r|[^\x1b\n\r]+", text):
        if piece == "\n":
            row += 1
            rows += [""] * (row + 1 - len(rows))
        elif piece == "\x1b[1A":
            row -= 1
        elif piece in ("\x1b[2K", "\r"):
            rows[row] = "" if piece == "\x1b[2K" else rows[row]
        elif not piece.startswith("\x1b"):
            rows[row] += piece
    return [each.strip() for each in rows if each.strip()]


def test_on_a_terminal_stages_that_are_done_are_a_line_each() -> None:
    shown = on_a_terminal(CODE.format(verbosity=0))
    assert re.fullmatch(r"import net  \d\.\d s", shown[0])
    assert [re.sub(r"  \d+\.\d s$", "", line) for line in shown[1:]] == [
        "link image-2",
        "compile",
        "the result",
        "measure",
        "error: no board",
    ]


@pytest.mark.parametrize(("verbosity", "links"), [(0, 1), (1, 3)])
def test_in_a_log_they_are_plain_lines(verbosity: int, links: int) -> None:
    done = in_a_log(verbosity)
    assert done.returncode == 1
    assert done.stderr.splitlines() == [
        "import net",
        *(f"link image-{number}" for number in range(links)),
        "compile",
        "measure",
        "error: no board",
    ]
    assert done.stdout == "the result\n"


def test_quiet_is_quiet() -> None:
    done = in_a_log(-1)
    assert (done.stdout, done.stderr) == ("", "error: no board\n")


def in_a_log(verbosity: int) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", CODE.format(verbosity=verbosity)]
    return subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
