"""`--on rtl`: the MAC array in SystemVerilog on the built-in emulator. Bytes and cycles are those of the C model."""

from __future__ import annotations

import shutil
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path

import pytest

from emulator.programs import RESULTS, program, run_to_sleep, words
from emulator.test_clocked import COPIES, CYCLES, PORT
from emulator.test_models import DOUBLER, board_with_doubler, library
from helpers import CHECKOUT, needs
from npukit import api
from npukit.board.board import load_board
from npukit.data import data_folder
from npukit.emulator import rtl
from npukit.emulator.builtin import Emulator
from npukit.errors import NpukitError
from npukit.measure import target
from npukit.project.build_folder import Build
from npukit.project.images.image import Image

__all__ = ["library"]

MODEL = CHECKOUT / "examples" / "digits" / "digits_int8.tflite"


@pytest.fixture(scope="module")
def digits(tmp_path_factory: pytest.TempPathFactory) -> Build:
    folder = tmp_path_factory.mktemp("rtl") / "digits"
    return api.build(MODEL, board="pe-mesh", output=folder, options=api.Options(pes=1))


@needs("verilator")
def test_digits_is_exact_in_rtl_and_takes_the_manuals_cycles(digits: Build) -> None:
    found = api.validate(digits, on="rtl", cases=2)
    assert found.passed
    assert found.engine == "rtl"
    assert (found.rtl_works or 0) > found.layers_checked
    measured = api.bench(digits, on="rtl", frames=1)
    assert measured.manual is not None
    assert measured.manual.engine == "emulator"
    told = replace(measured, engine="emulator", timeline=None, manual=None, rtl_parts=())
    assert told == replace(measured.manual, timeline=None)
    assert type(measured).from_json(measured.to_json()).manual == replace(measured.manual, timeline=None)


@needs("verilator")
@pytest.mark.exhaustive
@pytest.mark.parametrize(
    ("file", "old", "new", "told"),
    [
        ("array_registers.sv", "CheckCycles = 24", "CheckCycles = 25", "the RTL ends in cycle"),
        ("array_write_back.sv", ": entry;", ": entry ^ 128'd1;", "holds 0x.. by the RTL, 0x.. by the model"),
    ],
)
def test_a_defect_of_the_rtl_is_named(
    digits: Build, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, file: str, old: str, new: str, told: str
) -> None:
    shutil.copytree(data_folder("rtl") / "array", tmp_path / "array")
    changed = tmp_path / "array" / file
    text = changed.read_text()
    assert old in text
    changed.write_text(text.replace(old, new))
    library = rtl.library_of(rtl.Rtl("mac_array", tmp_path / "array", "mac_array"))
    monkeypatch.setattr(target, "rtl_libraries", lambda *_, **__: {"mac_array": library})
    with pytest.raises(NpukitError, match=f"PE 0 stopped: the RTL of mac_array .* in layer conv2d_0, command .*{told}"):
        api.bench(digits, on="rtl", frames=1)


@pytest.mark.parametrize(
    ("missing", "told", "tried"),
    [((rtl.VERILATOR,), "Verilator", rtl.GET_VERILATOR), (rtl.COMPILERS, "C\\+\\+ compiler", rtl.GET_COMPILER)],
)
def test_missing_tools_are_named(
    monkeypatch: pytest.MonkeyPatch, missing: tuple[str, ...], told: str, tried: str
) -> None:
    monkeypatch.setattr(rtl, "find_program", lambda name: None if name in missing else f"/usr/bin/{name}")
    with pytest.raises(NpukitError, match=f"--on rtl needs .*{told}") as caught:
        rtl.rtl_libraries(load_board("pe-mesh"), {})
    assert tried in caught.value.tries


def test_boards_without_rtl_are_refused(digits: Build) -> None:
    board = load_board("pe-mesh").model_copy(update={"noc": None})
    with pytest.raises(NpukitError, match="has neither accelerator nor network in RTL"):
        rtl.rtl_libraries(board.model_copy(update={"accelerator": ()}), {})
    (slot,) = board.accelerator
    other = slot.model_copy(update={"figures": {**slot.figures, "width": 8}})
    with pytest.raises(NpukitError, match="width = 8, and the RTL has 16"):
        rtl.rtl_libraries(board.model_copy(update={"accelerator": (other,)}), {})


@needs("verilator")
def test_messages_of_verilator_are_shown(tmp_path: Path) -> None:
    (tmp_path / "wrong.sv").write_text("module wrong(input logic clock) endmodule\n")
    with pytest.raises(NpukitError, match="Verilator on the RTL of wrong fails") as caught:
        rtl.library_of(rtl.Rtl("wrong", tmp_path, "wrong"))
    assert any("syntax error" in fact for fact in caught.value.facts)


@needs("verilator")
@pytest.mark.parametrize("defect", ["", pytest.param("123;", marks=pytest.mark.exhaustive)])
def test_a_device_of_a_plug_in_runs_in_rtl(tmp_path: Path, library: Path, defect: str) -> None:
    """Equal to the C model by events while the DMA takes the port; with a cycle more, the cycles differ."""
    shutil.copytree(DOUBLER.with_name("rtl"), tmp_path / "rtl")
    source = tmp_path / "rtl" / "doubler.sv"
    if defect:
        source.write_text(source.read_text().replace(defect, "124;"))
    board, image = board_with_doubler(tmp_path), Image(program(COPIES), (0,))
    alone = board.model_copy(update={"accelerator": board.accelerator[1:]})
    libraries = rtl.rtl_libraries(alone, {"doubler": source.parent})
    differs = pytest.raises(NpukitError, match="the RTL of doubler differs from its model") if defect else nullcontext()
    with Emulator(board, [image], {"doubler": library}, rtl=libraries) as emulator, differs:
        run_to_sleep(emulator)
        assert words(emulator, 0, 1, RESULTS) == [42]
        assert emulator.counters(0).npu_busy == CYCLES + PORT
        assert emulator.compared().works == 1
