"""Updates over a line that loses, repeats, cuts and damages frames: the image arrives unchanged, or a clear error."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import cycle
from pathlib import Path

import pytest

from boot.boards import build_there_and_back, computes, update_of
from boot.native import compile_loader, small_board, tiny_mesh
from helpers import toolchain
from link.device_process import Pipes
from link.test_faults import Damage, Faulty, cut_end, drop, flip, lose_a_byte, repeat
from npukit.board.board import load_board
from npukit.boot.loader import loader_area
from npukit.boot.provision import takes_of
from npukit.boot.signed_image import SignedImage, Version, sign_image
from npukit.emulator.flashed import FlashedBoard
from npukit.link.flash import LoaderSession, SlotState
from npukit.link.session import Session
from npukit.link.update import flash

BOARD = load_board("pe-mesh")
DAMAGES = [drop, repeat, cut_end, lose_a_byte, flip(0.3, 2), flip(0.8, 6)]


class BadLine:
    """Damages every `every`-th frame in each direction, each time in another way."""

    def __init__(self, board: FlashedBoard, every: int, first: int) -> None:
        self._board = board
        self._damages = cycle(DAMAGES)
        self._every, self._frames = every, first
        self._unfinished = b""
        self.damaged = 0

    def restart(self) -> None:
        self._board.restart()

    def close(self) -> None: ...

    def write(self, data: bytes) -> None:
        self._board.write(self._through(data))

    def read(self, timeout: float) -> bytes:
        while data := self._board.read(timeout):
            arrived = b"".join(self._through(frame) for frame in self._frames_in(data))
            if arrived:
                return arrived
        return b""

    def _frames_in(self, data: bytes) -> Iterator[bytes]:
        *whole, self._unfinished = (self._unfinished + data).split(b"\0")
        return (b"\0" + frame + b"\0" for frame in whole if frame)

    def _through(self, frame: bytes) -> bytes:
        self._frames += 1
        if self._frames % self._every:
            return frame
        self.damaged += 1
        return next(self._damages)(frame)


@pytest.fixture(scope="module")
def loader() -> bytes:
    return loader_area(BOARD, takes_of(None).record(), toolchain("zig"))


@pytest.mark.exhaustive
@pytest.mark.parametrize("first", [0])
def test_an_update_over_a_bad_line(loader: bytes, first: int, tmp_path: Path) -> None:
    built = build_there_and_back(BOARD, tmp_path / "net")
    update = update_of(BOARD, built, Version(1), None)
    with FlashedBoard(BOARD, tmp_path / "flash", loader) as board:
        assert isinstance(board, FlashedBoard)
        line = BadLine(board, 7, first)
        done = flash(line, update)
        assert line.damaged >= 6
        assert done.pages_written == done.pages_in_image
        assert computes(Session(board, update.build_id))


class FaultyBoard(Faulty):
    """A loader that only the host restarts."""

    def restart(self) -> None: ...


def put(transport: FaultyBoard, image: SignedImage) -> list[object]:
    """Results of all requests of an update, which must not depend on the line."""
    loader = LoaderSession(transport)
    loader.provision(takes_of(None))
    written = loader.write(1, image.data)
    loader.put_on_trial(1, image, False)
    told = [loader.state.board, written, loader.describe(1)]
    loader.abandon()
    return told


@pytest.fixture(scope="module")
def line(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Pipes]:
    transport = Pipes(compile_loader(small_board(), tmp_path_factory.mktemp("loader")))
    yield transport
    transport.close()


@pytest.mark.parametrize("direction", ["out", "in"])
@pytest.mark.parametrize("damage", DAMAGES)
def test_any_one_frame_of_an_update_may_be_damaged(line: Pipes, direction: str, damage: Damage) -> None:
    """Two images in turn without a common page."""
    meshes = (tiny_mesh(small_board(), bytes([number]) * 200, number) for number in (1, 2))
    images = [sign_image(mesh, Version(1), None) for mesh in meshes]
    undisturbed = FaultyBoard(line, {})
    wanted = [put(undisturbed, image) for image in images]
    wanted = [put(undisturbed, image) for image in images]
    assert [told[-1].digest for told in wanted if isinstance(told[-1], SlotState)] == [each.digest for each in images]
    frames = undisturbed.frames[direction] // 4
    assert frames >= 8
    for number in range(frames + 1):
        which = number % 2
        assert put(FaultyBoard(line, {(direction, number): damage}), images[which]) == wanted[which], f"frame {number}"
