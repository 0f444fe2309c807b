"""Images for the tests of Renode, with golden frames: a copying PE, and a chip of PEs with messages between them."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

from npukit.board.board import Board, load_board
from npukit.emulator.renode.render import render_renode
from npukit.emulator.renode.suite import GoldenFrame, render_suite
from npukit.project.images.image import Image
from project.identity import NET, build_identity, identity_sources

MESH_NET = Path(__file__).with_name("mesh_net.c")


@dataclass(frozen=True)
class Frame:
    """Images, with the inputs of a frame and the right outputs by definition of the network."""

    board: Board
    images: list[Image]
    golden: GoldenFrame


def one_pe(folder: Path, board: str = "pe-mesh") -> Frame:
    data = bytes(range(64))
    net = NET.read_text().replace("const uint8_t flip", "const volatile uint8_t flip")
    assert "volatile" in net  # makes changes in the image change the result
    return _frame(folder, net, (0,), 208, GoldenFrame("identity", build_id(1), (data,), (data,)), board)


def sixteen_pes(folder: Path) -> Frame:
    """Each PE adds its number to eight bytes."""
    data = bytes((7 * i + 3) % 256 for i in range(128))
    output = bytes((value + i // 8) % 256 for i, value in enumerate(data))
    golden = GoldenFrame("mesh", build_id(0), (data,), (output,))
    return _frame(folder, MESH_NET.read_text(), tuple(range(16)), 336, golden)


def render_frame(frame: Frame, folder: Path) -> Path:
    """Everything for `renode-test`; the suite's path."""
    render_renode(frame.board, frame.images, folder)
    render_suite(frame.board, frame.images, frame.golden, folder)
    return folder / "firmware.robot"


def build_id(first: int) -> str:
    """Build id in the C file: 16 numbers in order."""
    return bytes(range(first, first + 16)).hex()


def stm32f4(folder: Path) -> Frame:
    return one_pe(folder, "stm32f4-disco")


def nrf52840(folder: Path) -> Frame:
    return one_pe(folder, "nrf52840-dk")


def _frame(
    folder: Path, net: str, pes: tuple[int, ...], activations: int, golden: GoldenFrame, name: str = "pe-mesh"
) -> Frame:
    board = load_board(name)
    sources = replace(identity_sources(board, pes=pes, net=net), activation_bytes=activations)
    built = build_identity(name, "zig", folder, sources)
    return Frame(board, [Image(image.elf, image.pes) for image in built.images], golden)
