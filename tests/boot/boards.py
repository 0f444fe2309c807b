"""Programs, images and emulated boards with a flash, for tests of the whole way."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from npukit.board.board import Board
from npukit.boot.loader import flash_of
from npukit.boot.mesh_image import mesh_image
from npukit.boot.signed_image import Version, sign_image
from npukit.link.session import Session
from npukit.link.update import Update
from npukit.project.images.image import Image
from project.identity import Built, build_identity, identity_sources

THERE_AND_BACK = Path(__file__).parents[1] / "project" / "nets" / "there_and_back.c"
COMPILER = "zig"
BUILD_ID = "00" * 16
"""Build id that the network reports."""


def build_there_and_back(board: Board, folder: Path) -> Built:
    """A network whose root PE sends the input to another PE, which adds 1 and sends the result back."""
    net = identity_sources(board, net=THERE_AND_BACK.read_text())
    return build_identity(board.name, COMPILER, folder, replace(net, constant_bytes=96, activation_bytes=64 + 16 + 128))


def update_of(
    board: Board,
    built: Built,
    version: Version,
    key: Ed25519PrivateKey | None,
    build_id: str = BUILD_ID,
    *,
    provisions: bool = False,
    security_counter: int = 0,
) -> Update:
    """An update with the built images, signed. A `build_id` other than the firmware's simulates firmware that does not
    start."""
    images = [Image(image.elf, image.pes) for image in built.images]
    payload = mesh_image(board, images, bytes.fromhex(build_id))
    image = sign_image(payload, version, key, security_counter)
    flash = flash_of(board)
    provision_address = flash.window + flash.once_offset
    return Update(
        board.name, image, bytes.fromhex(build_id), provisions=provisions, provision_address=provision_address
    )


def computes(session: Session) -> bool:
    """True if the outputs of several frames are right."""
    session.open()
    for frame in range(3):
        session.write_input(0, bytes(range(frame, frame + 64)))
        session.run()
        if session.read_output(0) != bytes(range(frame + 1, frame + 65)):
            return False
    return True
