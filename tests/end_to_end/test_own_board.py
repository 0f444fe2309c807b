"""A custom board from outside the package, made by docs/boards.md alone: an M33 and a RISC-V."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import pytest
from typer.testing import CliRunner

from end_to_end.builds import DIGITS
from npukit.cli.main import app

PAGE = (DIGITS.parents[1] / "docs/boards.md").read_text(encoding="utf-8").partition("## A new core board")[2]
QEMU = {"my-m33": "qemu-system-arm", "my-rv": "qemu-system-riscv32"}


def blocks() -> list[str]:
    """The indented blocks of the page's section."""
    section = PAGE.partition("\n## ")[0]
    found = re.findall(r"(?:^(?: {4}.*)?\n)+", section, re.MULTILINE)
    return [re.sub("^ {4}", "", block, flags=re.MULTILINE).strip() + "\n" for block in found if block.strip()]


def block_with(start: str) -> str:
    (block,) = (block for block in blocks() if block.startswith(start))
    return block


def run(command: str) -> tuple[int, str]:
    done = CliRunner().invoke(app, command.removeprefix("npukit ").split())
    return done.exit_code, done.output


def follow(name: str, folder: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Write the board's files as on the page. Returns the page's three commands, for this board."""
    shutil.copy(DIGITS / "digits_int8.tflite", folder)
    monkeypatch.chdir(folder)
    assert run(f"npukit new board {name}")[0] == 0
    (folder / name / f"{name}.toml").write_text(block_with(f'name = "{name}"'))
    if name == "my-rv":
        (folder / name / f"{name}.c").write_text(block_with('#include "hal.h"'))
    return [line.replace("my-m33", name) for line in block_with("npukit boards").splitlines()]


@pytest.mark.exhaustive
@pytest.mark.parametrize("name", QEMU)
def test_a_board_made_by_the_page_is_checked_builds_and_is_exact(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    commands = follow(name, tmp_path, monkeypatch)
    said = [run(command) for command in commands]
    assert [status for status, _ in said] == [0, 0, 0], said
    assert "equal bit for bit" in said[-1][1]
    if shutil.which(QEMU[name]):
        status, output = run(commands[-1].replace("emulator", "qemu"))
        assert (status, "equal bit for bit" in output) == (0, True), output


@pytest.mark.exhaustive
def test_a_new_board_runs_as_it_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert run("npukit new board fresh")[0] == 0
    build = f"npukit build {DIGITS / 'digits_int8.tflite'} --board fresh/fresh.toml -o out"
    assert run(build)[0] == 0
    assert run("npukit validate out --on emulator")[0] == 0


def test_the_check_says_what_the_c_lacks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    commands = follow("my-rv", tmp_path, monkeypatch)
    source = tmp_path / "my-rv/my-rv.c"
    source.write_text(source.read_text().replace("uint8_t hal_link_read(", "uint8_t other(void);\nuint8_t other("))
    status, output = run(commands[0])
    assert (status, "does not define hal_link_read" in output) == (1, True), output


@pytest.mark.parametrize(
    ("was", "becomes", "said"),
    [
        ("clock_hz = 10_000_000", "clock_hz = -1", "core.clock_hz"),
        ('cpu = "rv32imc"', 'cpu = "z80"', "core.cpu"),
        ("size = 0x40_0000", "", "memory.0.size"),
        ("timer = { count = 0 }", "timer = { count = 0, counts = 1 }", "emulator.timer.counts"),
        (", writable = [5, 0x20]", "", "a UART has either writable or full"),
    ],
)
def test_the_check_says_which_figure_is_wrong(
    was: str, becomes: str, said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    commands = follow("my-rv", tmp_path, monkeypatch)
    file = tmp_path / "my-rv/my-rv.toml"
    file.write_text(file.read_text().replace(was, becomes))
    status, output = run(commands[0])
    assert (status, said in output) == (1, True), output
