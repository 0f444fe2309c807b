"""Images of the smallest network, for tests of the code around a network."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from helpers import toolchain
from npukit.board.board import Board, load_board
from npukit.codegen.sources import Sources
from npukit.data import data_folder
from npukit.project.compile import BuiltImage, build_images
from npukit.project.files import Project
from npukit.project.render import About, render_project

NET = Path(__file__).parents[1] / "firmware" / "identity_net" / "net.c"
CONSTANT_BYTES, ACTIVATION_BYTES = 16, 64 + 16 + 128
BUILD_ID = "000102030405060708090a0b0c0d0e0f"


@dataclass(frozen=True)
class Built:
    project: Project
    images: list[BuiltImage]


def identity_sources(
    board: Board, role: int = 0, pes: tuple[int, ...] | None = None, net: str | None = None
) -> Sources:
    driver = "mac_array.c" if board.accelerator else "mac_array_on_core.c"
    return Sources(
        role=role,
        pes=pes or tuple(range(board.pe_count)),
        files={"net.c": net or NET.read_text()},
        drivers=(data_folder("firmware") / "mac_array" / driver,),
        constant_bytes=CONSTANT_BYTES,
        activation_bytes=ACTIVATION_BYTES,
    )


def build_identity(board_name: str, with_toolchain: str, folder: Path, *sources: Sources) -> Built:
    """The identity net, or `sources`, for a board by a toolchain."""
    board = load_board(board_name)
    compiler = toolchain(with_toolchain, board.core.type)
    project = render_project(
        sources or [identity_sources(board)], board, About("identity", BUILD_ID), folder / "project"
    )
    return Built(project, build_images(project, compiler, folder / "images"))
