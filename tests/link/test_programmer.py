"""Boards written by OpenOCD or pyOCD: the command, the tool's result, and the handshake afterwards."""

from __future__ import annotations

import json
import socket
import subprocess
import threading
from collections.abc import Iterator
from contextlib import closing, suppress
from pathlib import Path

import pytest
from typer.testing import CliRunner

from end_to_end.builds import DIGITS, build
from helpers import need
from npukit.board.board import load_board
from npukit.cli.main import app
from npukit.data import data_folder
from npukit.emulator.qemu import QemuMachine
from npukit.link.programmer import tool_command
from npukit.project.build_folder import Build
from npukit.tools import find_tools

BOARD = '\n[programmer]\ntool = "openocd"\ntarget = "board/some.cfg"\n'


@pytest.fixture(scope="module")
def stock(tmp_path_factory: pytest.TempPathFactory) -> Build:
    """The example for a QEMU board, written by OpenOCD."""
    folder = tmp_path_factory.mktemp("stock")
    board = (data_folder("boards") / "mps2-an386.toml").read_text()
    (folder / "stock.toml").write_text(board + BOARD)
    return build(DIGITS / "digits_int8.tflite", folder / "build", board=str(folder / "stock.toml"))


@pytest.fixture
def tool(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A tool that records its call, and fails if a file `fail` lies beside it."""
    script = tmp_path / "openocd"
    script.write_text(
        '#!/bin/sh\nhere=$(dirname "$0")\npwd > "$here/called"\nfor word; do echo "$word" >> "$here/called"; done\n'
        '[ ! -e "$here/fail" ] || { echo "Error: no device found" >&2; exit 1; }\n'
    )
    script.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
    return tmp_path


@pytest.fixture
def port(stock: Build) -> Iterator[str]:
    """The board's UART, once the board runs the written image."""
    need("qemu-system-arm")
    with socket.create_server(("127.0.0.1", 0)) as server:
        threading.Thread(target=run_board, args=(server, stock), daemon=True).start()
        yield f"socket://127.0.0.1:{server.getsockname()[1]}"


def run_board(server: socket.socket, build: Build) -> None:
    connection = server.accept()[0]
    connection.settimeout(0.01)
    with closing(QemuMachine(build.board, build.images()[0].elf)) as board:
        while True:
            with suppress(TimeoutError):
                data = connection.recv(4096)
                if not data:
                    return
                board.write(data)
            connection.sendall(board.read(0.02))


def flash(build: Build, port: str, *words: str) -> tuple[int, dict, str]:
    done = CliRunner().invoke(app, ["flash", str(build.folder), "--port", port, "--json", *words])
    return done.exit_code, json.loads(done.stdout) if done.stdout.startswith("{") else {}, done.output


@pytest.mark.exhaustive
def test_a_stock_board_is_written_by_its_tool_and_asked_what_it_runs(stock: Build, tool: Path, port: str) -> None:
    status, said, _ = flash(stock, port)
    assert (status, said["board"], said["build_id"]) == (0, "mps2-an386", stock.manifest.build_id)
    image = stock.images()[0].elf
    where, *called = (tool / "called").read_text().splitlines()
    assert called == ["-f", "board/some.cfg", "-c", f"program {image.name} verify reset exit"]
    assert not Path(where).is_relative_to(stock.folder)


def test_a_dry_run_says_the_command_and_runs_nothing(stock: Build, tool: Path) -> None:
    status, said, _ = flash(stock, "/dev/nowhere", "--dry-run")
    assert (status, said["command"][0], said["dry_run"]) == (0, "openocd", True)
    assert not (tool / "called").exists()


def test_a_dry_run_can_be_pasted(stock: Build, tool: Path, tmp_path: Path) -> None:
    said = CliRunner().invoke(app, ["flash", str(stock.folder), "--dry-run"]).stdout
    first, command = said.splitlines()
    assert first == "mps2-an386: would run"
    subprocess.run(command, shell=True, cwd=tmp_path, check=True)
    where, *words = (tool / "called").read_text().splitlines()
    image = stock.images()[0].elf
    assert (where, words[-1]) == (str(image.parent), f"program {image.name} verify reset exit")


def test_a_tool_that_fails_is_quoted(stock: Build, tool: Path) -> None:
    (tool / "fail").touch()
    status, _, output = flash(stock, "/dev/nowhere")
    assert status == 1
    assert "openocd did not write the board's flash: Error: no device found" in output


def test_a_tool_that_is_missing_is_named(stock: Build, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    status, _, output = flash(stock, "/dev/nowhere")
    assert status == 1
    assert "openocd is not here" in output
    assert "apt install openocd" in output


def test_a_key_is_of_no_use_there(stock: Build, tool: Path) -> None:
    status, _, output = flash(stock, "/dev/nowhere", "--allow-older")
    assert status == 1
    assert "no loader that would check a signature" in output


@pytest.mark.parametrize(
    ("name", "command"),
    [
        ("stm32f4-disco", ("openocd", "-f", "board/stm32f4discovery.cfg", "-c", "program pe0.elf verify reset exit")),
        ("nrf52840-dk", ("pyocd", "load", "--target", "nrf52840", "pe0.elf")),
        ("pico2", ("picotool", "load", "--verify", "--execute", "--family", "rp2350-arm-s", "pe0.elf")),
        (
            "arduino-nano-33-ble",
            ("bossac", "--erase", "--write", "--verify", "--reset", "--offset=0x10000", "pe0.bin"),
        ),
    ],
)
def test_the_stock_boards_commands(name: str, command: tuple[str, ...]) -> None:
    programmer = load_board(name).programmer
    assert programmer is not None
    assert tool_command(programmer, [Path("pe0.elf")]) == command


def test_doctor_explains_the_tools() -> None:
    assert {"openocd", "pyocd", "picotool", "esptool", "bossac"} <= {tool.name for tool in find_tools()}


def test_no_board_that_ships_has_both_a_loader_and_a_programmer() -> None:
    for path in data_folder("boards").glob("*.toml"):
        board = load_board(str(path))
        assert board.flash is None or board.programmer is None
