"""Files of `npukit new accelerator`. test_document.py runs the skeleton and the skeleton's own tests."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest
from typer.testing import CliRunner

from helpers import CHECKOUT, needs, toolchain
from npukit.cli.main import app
from npukit.project.toolchain import COMMON_FLAGS

NAME = "tiny_npu2"


def npukit(*arguments: str):
    return CliRunner().invoke(app, arguments)


@pytest.fixture(scope="module")
def skeleton(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("new") / NAME
    done = npukit("new", "accelerator", NAME, "-o", str(folder))
    assert done.exit_code == 0, done.stderr
    return folder


@pytest.fixture(scope="module")
def with_rtl(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("rtl") / NAME
    done = npukit("new", "accelerator", NAME, "--rtl", "-o", str(folder))
    assert done.exit_code == 0, done.stderr
    return folder


def texts(folder: Path) -> dict[str, str]:
    files = [path for path in folder.rglob("*") if path.is_file() and path.suffix not in (".pyc", ".tflite")]
    return {str(path.relative_to(folder)): path.read_text() for path in files}


def test_no_placeholder_is_left(skeleton: Path, with_rtl: Path) -> None:
    plain, more = texts(skeleton), texts(with_rtl)
    assert len(plain) == 9
    assert sum(len(text.splitlines()) for text in plain.values()) < 440
    verilog = [f"{NAME}/rtl/{NAME}{part}.sv" for part in ("", "_products", "_requantise")]
    assert set(more) - set(plain) == {*verilog, f"tests/test_{NAME}_rtl.py"}
    assert sum(len(text.splitlines()) for text in more.values()) < 780
    for path, text in more.items():
        assert "NAME" not in path
        assert "{{ " not in text, path
        assert "{%" not in text, path


def test_only_the_skeleton_with_verilog_speaks_of_it(skeleton: Path) -> None:
    for path, text in texts(skeleton).items():
        assert not re.search("rtl|verilog", text, re.IGNORECASE), path


@pytest.mark.parametrize("compiler", ["gcc", "zig"])
def test_its_c_is_free_of_warnings(skeleton: Path, compiler: str, tmp_path: Path) -> None:
    (tmp_path / "board.h").write_text(f"#define BOARD_{NAME.upper()}_BASE 0xE5000000U\n")
    command = toolchain(compiler).command
    target = ["-mcpu=cortex-m4", "-mthumb"] if compiler == "gcc" else ["-target", "thumb-freestanding-eabi"]
    (tmp_path / "string.h").write_text("int strcmp(const char *, const char *);\n")
    parts = ("firmware/include", "firmware/cortex_m", "kit/npukit_emulator/core")
    folders = [tmp_path, *(CHECKOUT / part for part in parts)]
    for source in (skeleton / NAME / "firmware").glob("*.c"):
        flags = [*target, "-O2", *" ".join(COMMON_FLAGS).split(), *(f"-I{folder}" for folder in folders)]
        done = subprocess.run([*command, *flags, "-c", str(source), "-o", str(tmp_path / "out.o")], capture_output=True)
        assert done.returncode == 0, done.stderr.decode()


@pytest.mark.parametrize("name", ["MyNpu", "2fast", "my-npu", "cpu", "mac_array", "class", ""])
def test_names_that_cannot_be(name: str, tmp_path: Path) -> None:
    done = npukit("new", "accelerator", name, "-o", str(tmp_path / "out"))
    assert done.exit_code == 1
    assert f"error: {name} cannot be the name of an accelerator" in done.stderr
    assert not (tmp_path / "out").exists()


def test_nothing_is_overwritten(tmp_path: Path) -> None:
    (tmp_path / "mine.txt").write_text("mine")
    done = npukit("new", "accelerator", "fine", "-o", str(tmp_path))
    assert done.exit_code == 1
    assert "is there already" in done.stderr
    assert [path.name for path in tmp_path.iterdir()] == ["mine.txt"]


@needs("verilator")
def test_mistakes_in_its_verilog_are_named(tmp_path: Path) -> None:
    folder = tmp_path / NAME
    assert npukit("new", "accelerator", NAME, "--rtl", "-o", str(folder)).exit_code == 0
    board = str(folder / f"{NAME}.toml")
    (folder / NAME / "rtl" / f"{NAME}.sv").write_text(f"module {NAME}(input logic clock) endmodule\n")
    built = npukit("build", str(folder / "small.tflite"), "--board", board, "--pes", "1", "-o", str(tmp_path / "out"))
    assert built.exit_code == 0, built.stderr
    done = npukit("validate", str(tmp_path / "out"), "--board", board, "--on", "rtl")
    assert done.exit_code == 1
    assert f"Verilator on the RTL of {NAME} fails" in done.stderr
