"""Flashing of boards without npukit's loader: the board's own tool writes, then the firmware reports the build."""

from __future__ import annotations

import shlex
import shutil
import tempfile
from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from npukit.board.board import Programmer
from npukit.errors import NpukitError
from npukit.host.programs import find_program, run
from npukit.link.image_files import FLASH_OFFSET, write_uf2
from npukit.link.session import Session
from npukit.link.transports import open_serial
from npukit.progress import Progress
from npukit.project.build_folder import Build
from npukit.project.images.elf import Elf

_SECONDS = 300
_LAST_WORDS = 600
_HOW_TO_GET = {
    "openocd": "apt install openocd",
    "pyocd": "pip install pyocd",
    "picotool": "https://github.com/raspberrypi/picotool/releases",
    "esptool": "pip install esptool",
    "bossac": "apt install bossa-cli",
}


@dataclass(frozen=True)
class Programmed:
    """Image and command of a write to a board's flash; with `dry_run` nothing was written."""

    board: str
    command: tuple[str, ...]
    image: Path
    build_id: bytes
    dry_run: bool

    @property
    def pasted(self) -> str:
        """Shell line for the command in the image's folder."""
        return f"cd {shlex.quote(str(self.image.parent))} && {shlex.join(self.command)}"

    def to_json(self) -> dict[str, Any]:
        return {**vars(self), "command": list(self.command), "image": str(self.image), "build_id": self.build_id.hex()}


def program(build: Build, port: str, progress: Progress, *, dry_run: bool) -> Programmed:
    """Write the build's image with the board's tool, then shake hands with the firmware at `port`."""
    assert build.board.programmer is not None
    images = [each.elf for each in build.images()]
    image, command = images[0], tool_command(build.board.programmer, images)
    if not dry_run:
        progress.stage(f"write {image.name} with {command[0]}")
        _run(command, images)
        progress.stage(f"shake hands at {port}")
        with closing(open_serial(port, build.board.uart)) as line:
            Session(line, build_id=build.build_id).open()
    return Programmed(build.board.name, command, image, build.build_id, dry_run)


def tool_command(programmer: Programmer, images: Sequence[Path]) -> tuple[str, ...]:
    """Command to write the image and restart the board. OpenOCD, picotool and BOSSA also verify the flash.

    The command runs in the images' folder. Files for the tool are written there first: for `esptool` a file for each
    stretch of flash, for `picotool` a single file of several images.
    """
    image, target = images[0], programmer.target
    name = image.name
    match programmer.tool:
        case "openocd":
            return "openocd", "-f", target, "-c", f"program {name} verify reset exit"
        case "pyocd":
            return "pyocd", "load", "--target", target, name
        case "picotool":
            name = name if len(images) == 1 else write_uf2(images, target).name
            return "picotool", "load", "--verify", "--execute", "--family", target, name
        case "bossac":
            return (
                "bossac",
                "--erase",
                "--write",
                "--verify",
                "--reset",
                f"--offset={target}",
                image.with_suffix(".bin").name,
            )
        case "esptool":
            pieces = [word for offset, piece in _pieces(image) for word in (f"{offset:#x}", piece.name)]
            return "esptool", "--chip", target, "write_flash", *pieces


def _pieces(image: Path) -> list[tuple[int, Path]]:
    """Write a file beside the image for each stretch of flash. Returns offsets in the flash, and paths."""
    pieces = list[tuple[int, Path]]()
    for address, data in Elf(image).stretches():
        offset = address & FLASH_OFFSET
        path = image.with_suffix(f".{offset:x}.bin")
        path.write_bytes(data)
        pieces.append((offset, path))
    return pieces


def _run(command: tuple[str, ...], images: Sequence[Path]) -> None:
    """Run the tool in a folder with the images alone, because tools read configuration files from their folder."""
    tool, image = command[0], images[0]
    if find_program(tool) is None:
        tries = [_HOW_TO_GET[tool]]
        if tool == "picotool":
            uf2 = write_uf2(images, command[command.index("--family") + 1])
            tries.append(f"copy {uf2} to the drive that the board shows when it is plugged in with BOOTSEL held")
        raise NpukitError(f"{tool} is not here, and writes this board's flash", tries=tries)
    try:
        with tempfile.TemporaryDirectory(prefix="npukit-") as folder:
            for each in image.parent.glob(f"{image.stem}.*"):
                shutil.copyfile(each, Path(folder) / each.name)
            done = run(command, Path(folder), seconds=_SECONDS)
    except OSError as error:
        raise _failed(command, str(error)) from error
    if done.returncode != 0:
        raise _failed(command, (done.stderr or done.stdout).strip()[-_LAST_WORDS:])


def _failed(command: tuple[str, ...], words: str) -> NpukitError:
    return NpukitError(
        f"{command[0]} did not write the board's flash: {words}",
        tries=["is the board plugged in, and does no debugger hold it?", shlex.join(command)],
    )
