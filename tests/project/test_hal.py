"""A board outside the package: the C file lies beside the board file, and errors name missing functions."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from end_to_end.builds import DIGITS
from helpers import needs
from npukit import api
from npukit.board.board import Board, load_board
from npukit.errors import NpukitError
from npukit.project.compile import MissingFunction
from npukit.project.hal import hal_source, missing_functions
from npukit.project.toolchain import find_toolchain
from npukit.skeleton import new_board

MODEL = DIGITS / "digits_int8.tflite"
NAME = "my-board"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    new_board(NAME, tmp_path / "mine")
    return tmp_path / "mine"


def changed(folder: Path, old: str, new: str) -> Board:
    source = folder / f"{NAME}.c"
    text = source.read_text()
    assert old in text
    source.write_text(text.replace(old, new))
    return load_board(str(folder / f"{NAME}.toml"))


@needs("qemu-system-arm")
def test_a_board_as_the_docs_add_one_runs(folder: Path, tmp_path: Path) -> None:
    build = api.build(MODEL, board=str(folder / f"{NAME}.toml"), output=tmp_path / "out")
    shutil.rmtree(folder)
    assert (build.folder / "project/firmware/hal" / f"{NAME}.c").is_file()
    assert api.validate(build, on="qemu", cases=1).passed


@pytest.mark.exhaustive
def test_a_build_finds_the_boards_c_in_its_project(folder: Path, tmp_path: Path) -> None:
    build = api.build(MODEL, board=str(folder / f"{NAME}.toml"), output=tmp_path / "out")
    shutil.rmtree(folder)
    assert hal_source(build.board).is_relative_to(build.folder)
    assert str(folder) not in (build.folder / "npukit.json").read_text()


@pytest.mark.exhaustive
def test_other_c_is_another_build(folder: Path, tmp_path: Path) -> None:
    one = api.build(MODEL, board=str(folder / f"{NAME}.toml"), output=tmp_path / "one")
    changed(folder, "discard earlier bytes", "anything")
    two = api.build(MODEL, board=str(folder / f"{NAME}.toml"), output=tmp_path / "two")
    assert one.build_id != two.build_id


def test_nothing_is_missing_from_npukits_own_boards_and_the_skeleton(folder: Path) -> None:
    for board in (str(folder / f"{NAME}.toml"), "mps2-an386", "pe-mesh"):
        assert missing_functions(load_board(board), find_toolchain()) == []


def test_what_is_missing_is_named(folder: Path, tmp_path: Path) -> None:
    board = changed(folder, "void hal_link_write(", "void link_write(")
    assert missing_functions(board, find_toolchain()) == ["hal_link_write"]
    with pytest.raises(MissingFunction, match="hal_link_write") as caught:
        api.build(MODEL, board=str(folder / f"{NAME}.toml"), output=tmp_path / "out")
    assert "npukit boards" in caught.value.tries[0]


def test_c_that_does_not_compile_is_shown(folder: Path) -> None:
    board = changed(folder, "return (uint8_t)UART->data;", "return UART->dat;")
    with pytest.raises(NpukitError, match=r"does not compile my-board\.c: .*dat"):
        missing_functions(board, find_toolchain())


def test_a_file_that_is_not_there_is_named(folder: Path) -> None:
    (folder / f"{NAME}.c").unlink()
    with pytest.raises(NpukitError, match=r"has the hal my-board\.c, which is not there"):
        hal_source(load_board(str(folder / f"{NAME}.toml")))


def test_a_stored_board_cannot_name_a_file_of_this_machine() -> None:
    stored = load_board("mps2-an386").model_dump(mode="json")
    assert Board.model_validate({**stored, "hal_file": "/etc/passwd"}).hal_file is None
    with pytest.raises(ValueError, match="hal"):
        Board.model_validate({**stored, "hal": "../../secret.c"})
