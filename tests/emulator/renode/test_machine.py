"""Renode as a transport, with a stand-in for Renode, and the error without Renode."""

from __future__ import annotations

import os
import resource
import shutil
import stat
import sys
import tempfile
import time
from pathlib import Path

import pytest

from npukit.board.board import Board, load_board
from npukit.emulator.renode.machine import RENODE_VARIABLE, RenodeMachine, find_renode
from npukit.errors import NpukitError
from npukit.host.budget import EMULATOR
from npukit.project.images.image import Image

FAKE = Path(__file__).with_name("fake_renode.py")


@pytest.fixture
def board() -> Board:
    return load_board("pe-mesh")


def install(folder: Path, behaviour: str, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Install a stand-in `renode` of this behaviour as the only one. Temporary folders go beside it."""
    shutil.copyfile(FAKE, folder / FAKE.name)
    program = folder / "renode"
    program.write_text(f'#!/bin/sh\n"{sys.executable}" "{folder / FAKE.name}" {behaviour} "$@"\n')
    program.chmod(program.stat().st_mode | stat.S_IXUSR)
    monkeypatch.setenv(RENODE_VARIABLE, str(folder))
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    return folder


def images(folder: Path) -> list[Image]:
    return [Image(folder / "image.elf", (0,))]


def ends(pid: int) -> bool:
    """Within two seconds."""
    for _ in range(40):
        try:
            state = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0]
        except OSError:
            return True
        if state == "Z":
            return True
        time.sleep(0.05)
    return False


def test_bytes_go_there_and_back(tmp_path: Path, board: Board, monkeypatch: pytest.MonkeyPatch) -> None:
    with RenodeMachine(board, images(install(tmp_path, "echo", monkeypatch))) as machine:
        assert machine.read(0.01) == b""
        machine.write(b"ab\0c")
        received = b""
        while len(received) < 4:
            received += machine.read(5)
        assert received == b"AB\0C"


@pytest.mark.skipif(sys.platform != "linux", reason="the kernel bounds other processes on Linux")
def test_renode_has_a_budget_of_memory(tmp_path: Path, board: Board, monkeypatch: pytest.MonkeyPatch) -> None:
    """The budget applies to Renode's child processes, too."""
    with RenodeMachine(board, images(install(tmp_path, "echo", monkeypatch))):
        child = int((tmp_path / "child").read_text())
        assert resource.prlimit(child, resource.RLIMIT_DATA) == (EMULATOR, EMULATOR)


def test_closing_leaves_nothing_behind(tmp_path: Path, board: Board, monkeypatch: pytest.MonkeyPatch) -> None:
    RenodeMachine(board, images(install(tmp_path, "echo", monkeypatch))).close()
    assert ends(int((tmp_path / "child").read_text()))
    assert not list(tmp_path.glob("npukit-renode-*"))


def test_renode_listens_to_nobody_else(tmp_path: Path, board: Board, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without --console the Monitor would be open to the network. Renode ends with its host."""
    RenodeMachine(board, images(install(tmp_path, "echo", monkeypatch))).close()
    arguments = (tmp_path / "arguments").read_text().split("\n")
    assert "--console" in arguments
    commands = arguments[arguments.index("-e") + 1].split("; ")
    assert commands[1] == "$leave=true"
    assert commands[-1] == "start"
    assert "Loopback" in (Path(__file__).parents[3] / "templates/renode/LinkTerminal.cs").read_text()


def test_a_link_that_breaks_is_said(tmp_path: Path, board: Board, monkeypatch: pytest.MonkeyPatch) -> None:
    with RenodeMachine(board, images(install(tmp_path, "deaf", monkeypatch))) as machine:
        machine.write(b"x")
        with pytest.raises(NpukitError, match="Renode ended: it hung up"):
            machine.read(5)


def test_what_renode_complains_of_is_passed_on(tmp_path: Path, board: Board, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(NpukitError, match=r"did not start the board: There was an error .* No such thing"):
        RenodeMachine(board, images(install(tmp_path, "error", monkeypatch)))
    assert ends(int((tmp_path / "child").read_text()))


def test_a_renode_that_ends_at_once_is_said(tmp_path: Path, board: Board, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(NpukitError, match="did not start the board: it says nothing"):
        RenodeMachine(board, images(install(tmp_path, "gone", monkeypatch)))


def test_absence_is_said_with_the_way_out(board: Board, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv(RENODE_VARIABLE, raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(NpukitError, match="renode is not on PATH") as caught:
        RenodeMachine(board, images(tmp_path))
    assert "https://github.com/renode/renode/releases" in caught.value.tries[0]
    monkeypatch.setenv(RENODE_VARIABLE, str(tmp_path / "nowhere"))
    with pytest.raises(NpukitError, match=f"{RENODE_VARIABLE} is .*nowhere, and there is no renode"):
        find_renode()


def test_the_variable_names_the_folder_or_the_program(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    install(tmp_path, "gone", monkeypatch)
    assert find_renode() == tmp_path / "renode"
    monkeypatch.setenv(RENODE_VARIABLE, str(tmp_path / "renode"))
    assert find_renode() == tmp_path / "renode"
    assert os.access(find_renode(), os.X_OK)


def test_a_board_that_renode_cannot_be_is_refused_before_renode_is_looked_for(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(NpukitError, match="board mps2-an386 does not run on Renode"):
        RenodeMachine(load_board("mps2-an386"), images(tmp_path))
