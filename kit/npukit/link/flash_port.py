"""Opening a port as a board with a loader, and making an update from a build."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from npukit.boot.keys import public_bytes
from npukit.boot.load_time import load_cycles
from npukit.boot.loader import flash_of, loader_area
from npukit.boot.mesh_image import distinct_programs, mesh_image
from npukit.boot.provision import Takes, takes_of
from npukit.boot.signed_image import Version, sign_image
from npukit.emulator.flashed import FlashedBoard
from npukit.link.flash import RestartableTransport
from npukit.link.transports import open_serial
from npukit.link.update import Update
from npukit.progress import Progress
from npukit.project.build_folder import Build

EMULATOR = "emulator"


def update_of(
    build: Build,
    key: Ed25519PrivateKey | None,
    version: str,
    *,
    security_counter: int = 0,
    may_be_older: bool = False,
    provisions: bool = False,
) -> Update:
    """An update to the build's image with version `version`, signed with `key` if there is one."""
    flash = flash_of(build.board)
    images = build.images()
    image = sign_image(mesh_image(build.board, images, build.build_id), Version.parse(version), key, security_counter)
    overlays = [overlay for each in images for overlay in each.overlays]
    cycles = load_cycles(build.board, distinct_programs(images), overlays, len(image.data), signed=key is not None)
    return Update(
        build.board.name,
        image,
        build.build_id,
        may_be_older=may_be_older,
        provisions=provisions,
        load_seconds=cycles / build.board.core.clock_hz,
        provision_address=flash.window + flash.once_offset,
    )


@contextmanager
def open_board(
    build: Build, port: str, key: Ed25519PrivateKey | None, progress: Progress
) -> Iterator[RestartableTransport]:
    """The board at a serial port, or an emulated board: `emulator`, or `emulator:FILE` to keep the flash in a file. A
    new emulated board has the loader in its flash, and accepts images of `key` alone; without a key, any image."""
    name, _, file = port.partition(":")
    if name != EMULATOR:
        with closing(open_serial(port, build.board.uart)) as serial:
            yield serial
        return
    with emulated_board(
        build, Path(file) if file else None, takes_of(public_bytes(key) if key else None), progress
    ) as board:
        yield board


@contextmanager
def emulated_board(build: Build, file: Path | None, takes: Takes, progress: Progress) -> Iterator[FlashedBoard]:
    """An emulated board of the build's kind, started from the flash in `file`, or a new board. A new board has the
    loader in its flash, and is provisioned with `takes`."""
    with tempfile.TemporaryDirectory(prefix="npukit-") as scratch:
        path, loader = file or Path(scratch) / "flash", None
        if not path.exists():
            progress.stage(f"compile the loader of a new emulated board, which takes {takes}")
            loader = loader_area(build.board, takes.record())
        with closing(FlashedBoard(build.board, path, loader, build.models())) as board:
            yield board
