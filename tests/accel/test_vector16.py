"""The example with an instruction set: programs are assembled, disassembled and run, every kind of op bit for bit."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from accel.boards import with_accelerator
from end_to_end.builds import DIGITS, build
from frontend.onnx_models import Graph, saved
from helpers import CHECKOUT, needs
from npukit import api
from npukit.project.build_folder import Build

EXAMPLE = CHECKOUT / "examples/accelerators/vector16"
BOARD = str(EXAMPLE / "vector16.toml")


@pytest.fixture(scope="module")
def elementwise(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Every kind of op with a program for the unit, on 3 x 5 x 7 elements: no whole number of vectors."""
    graph = Graph()
    x, y = graph.dequantized("x", 0.05, 3), graph.dequantized("y", 0.02, -9)
    steps = (("Add", 0.09, 4), ("Sub", 0.06, -3), ("Mul", 0.04, 11))
    last = ""
    for kind, scale, zero in steps:
        graph.node(kind, [last or x, y], f"{kind}_sum")
        graph.quantized(f"{kind}_sum", scale, zero, f"{kind}_q")
        last = graph.dequantized(f"{kind}_q", scale, zero)
    graph.quantized(last, 0.013, 2, "again")
    graph.node("Max", [graph.dequantized("again", 0.013, 2), graph.dequantized("z", 0.013, 2)], "largest")
    graph.quantized("largest", 0.013, 2, "result")
    shape = (1, 3, 5, 7)
    return saved(graph.model({"x": shape, "y": shape, "z": shape}, "result"), tmp_path_factory.mktemp("elementwise"))


def on_unit(built: Build) -> set[str]:
    return {op["op"] for op in built.manifest.summary["ops"] if op["engine"] == "vector16"}


@pytest.mark.exhaustive
@pytest.mark.parametrize("pes", [1, 4])
def test_every_kind_equals_the_reference(elementwise: Path, pes: int, tmp_path: Path) -> None:
    built = build(elementwise, tmp_path / "out", BOARD, pes=pes)
    assert {"add", "subtract", "multiply", "requantize", "maximum"} <= on_unit(built)
    found = api.validate(built.folder)
    assert found.passed, found.mismatches


@needs("qemu-system-arm")
def test_the_interpreter_on_the_core_computes_the_same(elementwise: Path, tmp_path: Path) -> None:
    plugin = f'plugin = "{(EXAMPLE / "vector16").as_posix()}"'
    figures = ("[accelerator.figures]", "program_words = 64", "setup_cycles = 8")
    board = with_accelerator(tmp_path, "mps2-an386", 'name = "vector16"', plugin, *figures)
    built = build(elementwise, tmp_path / "out", board)
    assert "add" in on_unit(built)
    found = api.validate(built.folder)
    assert found.engine == "qemu"
    assert found.passed, found.mismatches


@pytest.mark.exhaustive
def test_digits_add_on_the_unit_and_the_c_disassembles(tmp_path: Path) -> None:
    built = build(DIGITS / "digits_int8.tflite", tmp_path / "out", BOARD, pes=1)
    assert on_unit(built) == {"add"}
    assert api.validate(built.folder, cases=1).passed
    text = subprocess.run(
        [sys.executable, "-m", "vector16", str(built.folder / "project/net/constants.c")],
        cwd=EXAMPLE, env={"PYTHONPATH": str(CHECKOUT / "kit")}, capture_output=True, text=True, check=True, timeout=60,
    ).stdout  # fmt: skip
    lines = [line.strip() for line in text.splitlines()]
    assert lines[0] == "add_0_program:"
    assert lines[1] == "load v0, [p0]"
    assert lines[-2:] == ["store v0, [p2]", "halt"]


def test_words_and_instructions_are_the_same_program(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(EXAMPLE))
    from vector16.instructions import OPCODES, WITH_IMMEDIATE, Instruction, assemble, disassemble  # pyright: ignore[reportMissingImports]

    rng = np.random.default_rng(5)
    program = [
        Instruction(name, *rng.integers(0, 8, 3).tolist(), int(rng.integers(-9, 9)) if name in WITH_IMMEDIATE else 0)
        for name in (*OPCODES[1:], *OPCODES[1:])
    ]
    words = assemble(program)
    assert list(disassemble(words.tolist())) == [*program, Instruction("halt")]
    with pytest.raises(ValueError, match="no halt"):
        list(disassemble(words[:-1].tolist()))
    with pytest.raises(ValueError, match="is no instruction"):
        list(disassemble([99]))


def test_a_program_memory_that_is_too_small_is_the_reason(tmp_path: Path) -> None:
    text = Path(BOARD).read_text().replace("program_words = 64", "program_words = 10")
    copy = tmp_path / "vector16"
    shutil.copytree(EXAMPLE / "vector16", copy)
    (tmp_path / "small.toml").write_text(text)
    found = api.fit(DIGITS / "digits_int8.tflite", board=str(tmp_path / "small.toml"), options=api.Options(pes=1))
    (reason,) = (op["reason"] for op in found["ops"] if op["op"] == "add")
    assert "words, there is room for 10" in reason
