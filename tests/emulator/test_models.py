"""External accelerators: a model compiled against device.h alone, loaded into the emulator."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from emulator.programs import RESULTS, program, run_to_sleep, words
from helpers import CHECKOUT, HOST_COMPILER
from npukit.board.board import Board, load_board
from npukit.data import data_folder
from npukit.emulator.builtin import Emulator
from npukit.errors import NpukitError
from npukit.project.images.image import Image

DOUBLER = Path(__file__).parent / "host" / "doubler.c"
DEVICE_H = CHECKOUT / "kit" / "npukit_emulator" / "core"

PROGRAM = """
#include "board.h"
#define DOUBLER REGISTER(0xE6000000U)
#define DOUBLER_BUSY REGISTER(0xE6000004U)
int main(void)
{
    RESULTS[0] = 21;
    DOUBLER = 0x10000U;
    while (DOUBLER_BUSY) {
        RESULTS[1] = RESULTS[0];
        wait_for_event();
    }
    DOUBLER = 0x20000U;
    return 0;
}
"""


def board_with_doubler(folder: Path, figure: str = "slowness = 123") -> Board:
    text = (data_folder("boards") / "pe-mesh.toml").read_text()
    path = folder / "doubling.toml"
    path.write_text(f'{text}\n[[accelerator]]\nname = "doubler"\nbase = 0xE600_0000\n[accelerator.figures]\n{figure}\n')
    return load_board(str(path))


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("doubler") / "doubler.so"
    subprocess.run([*HOST_COMPILER, "-shared", "-fPIC", f"-I{DEVICE_H}", str(DOUBLER), "-o", str(made)], check=True)
    return made


def test_a_foreign_model_works_beside_our_own(tmp_path: Path, library: Path) -> None:
    board, image = board_with_doubler(tmp_path), Image(program(PROGRAM), (0,))
    with Emulator(board, [image], {"doubler": library}) as emulator:
        run_to_sleep(emulator)
        counters = emulator.counters(0)
        assert words(emulator, 0, 2, RESULTS) == [42, 21]
    assert counters.npu_busy == 123
    assert counters.device_errors == 1


def test_a_model_may_refuse_the_board_file(tmp_path: Path, library: Path) -> None:
    board, image = board_with_doubler(tmp_path, "speed = 1"), Image(program(PROGRAM), (0,))
    with pytest.raises(NpukitError, match="slowness is missing"):
        Emulator(board, [image], {"doubler": library})


def test_an_accelerator_without_a_model_is_refused(tmp_path: Path) -> None:
    with pytest.raises(NpukitError, match="no model of the accelerator doubler"):
        Emulator(board_with_doubler(tmp_path), [Image(program(PROGRAM), (0,))])
