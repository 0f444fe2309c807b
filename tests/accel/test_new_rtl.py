"""The Verilog of `npukit new accelerator --rtl` beside its model: odd sizes, errors, a defect."""

from __future__ import annotations

from pathlib import Path

import pytest

from accel.nets import conv, dense
from emulator.programs import RESULTS, program, run_to_sleep, words
from helpers import first_of, needs
from npukit import api
from npukit.accel.subgraphs.tflite_file import subgraph_tflite
from npukit.board.board import load_board
from npukit.emulator import rtl
from npukit.emulator.builtin import Emulator
from npukit.errors import NpukitError
from npukit.net.net import Net, fuse
from npukit.project.build_folder import Build
from npukit.project.images.image import Image
from npukit.skeleton import new_accelerator

NAME = "tiny_rtl"

PROGRAM = """
#include "board.h"
#define DEVICE ((volatile uint32_t *)0xE6000000U)
static const int8_t input[2] = {3, -5}, weights[2] = {7, 2};
static const int32_t channel[3] = {4, 1 << 30, 1};
static int32_t layer[11] = {0, 1, 2, 1, 2, 2, 1, 1, -1, -128, 127};
static uint32_t run(void)
{
    DEVICE[1 + 1] = (uint32_t)input;
    DEVICE[2 + 1] = (uint32_t)weights;
    DEVICE[3 + 1] = (uint32_t)channel;
    DEVICE[4 + 1] = (uint32_t)layer;
    DEVICE[5 + 1] = (uint32_t)(RESULTS + 2);
    __asm volatile("dsb" ::: "memory");
    DEVICE[0] = 1;
    while (DEVICE[1] & 1) {
        wait_for_event();
    }
    return DEVICE[1];
}
int main(void)
{
    RESULTS[2] = 0;
    RESULTS[0] = run();
    layer[0] = 1;
    RESULTS[1] = run();
    return 0;
}
"""
"""A layer without a row, which is an error, and then a layer of two products: 3 * 7 - 5 * 2 + 4 - 1 is 14."""


@pytest.fixture
def skeleton(tmp_path: Path) -> Path:
    new_accelerator(NAME, tmp_path / NAME, rtl=True)
    return tmp_path / NAME


def built(skeleton: Path, net: Net, pes: int) -> Build:
    model, options = skeleton / "odd.tflite", api.Options(pes=pes, engine=NAME, strict=True)
    model.write_bytes(subgraph_tflite(net, fuse(net.ops, whole=True)))
    return api.build(model, board=str(skeleton / f"{NAME}.toml"), output=skeleton / "out", options=options)


@needs("verilator")
@pytest.mark.parametrize(
    ("net", "pes"), first_of([(conv(5, 3, 21, 7, kernel=1), 2), (dense(1, 5), 1), (dense(47, 3), 1)])
)
def test_odd_sizes_are_exact(skeleton: Path, net: Net, pes: int) -> None:
    found = api.validate(built(skeleton, net, pes), on="rtl", cases=2)
    assert found.passed, found.mismatches
    assert (found.rtl_works or 0) >= 2 * pes


@needs("verilator")
def test_a_layer_without_size_is_an_error(skeleton: Path) -> None:
    """The error and the next layer end in the same cycles in RTL and model. Registers read the same."""
    board, image = load_board(str(skeleton / f"{NAME}.toml")), Image(program(PROGRAM), (0,))
    folder = skeleton / NAME
    libraries = rtl.rtl_libraries(board, {NAME: folder / "rtl"})
    models = {NAME: folder / "firmware" / f"{NAME}_model.c"}
    with Emulator(board, [image], models, rtl=libraries) as emulator:
        run_to_sleep(emulator)
        assert words(emulator, 0, 3, RESULTS) == [2, 0, 14]
        assert emulator.compared().works == 2
        assert emulator.counters(0).npu_busy == 4 + 4 + 2 + 4
        assert emulator.counters(0).device_errors == 1


@needs("verilator")
@pytest.mark.exhaustive
@pytest.mark.parametrize(
    ("file", "old", "new", "told"),
    [
        ("", "enable ? Layer : Begin", "Begin", "the RTL ends in cycle"),
        ("_requantise", "+ Half", "+ 0", "by the RTL, 0x.* by the model"),
    ],
)
def test_a_defect_is_found(skeleton: Path, file: str, old: str, new: str, told: str) -> None:
    source = skeleton / NAME / "rtl" / f"{NAME}{file}.sv"
    assert old in source.read_text()
    source.write_text(source.read_text().replace(old, new))
    with pytest.raises(NpukitError, match=f"the RTL of {NAME} differs from its model in .*{told}"):
        api.validate(built(skeleton, dense(40, 30), 1), on="rtl", cases=2)
