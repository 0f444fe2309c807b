"""The suite's own side of the link's protocol, against firmware on the built-in emulator."""

from __future__ import annotations

import random
import socket
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from itertools import count
from pathlib import Path
from types import ModuleType, SimpleNamespace

import pytest

from emulator.renode.meshes import Frame, one_pe, render_frame, sixteen_pes
from emulator.renode.test_render import load_library
from npukit.emulator.builtin import Emulator
from npukit.link.frames import FrameDecoder, encode_frame


class Frames(dict[str, Frame]):
    """The frames by name, each built on first use."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def __missing__(self, name: str) -> Frame:
        folder = self._folder / name.replace(" ", "-")
        folder.mkdir()
        self[name] = frame = {"one PE": one_pe, "sixteen PEs": sixteen_pes}[name](folder)
        return frame


@pytest.fixture(scope="module")
def frames(tmp_path_factory: pytest.TempPathFactory) -> Frames:
    return Frames(tmp_path_factory.mktemp("frames"))


@pytest.fixture(scope="module")
def library(frames: Frames, tmp_path_factory: pytest.TempPathFactory) -> ModuleType:
    folder = tmp_path_factory.mktemp("library")
    render_frame(frames["one PE"], folder)
    return load_library(folder)


@contextmanager
def served(emulator: Emulator) -> Iterator[int]:
    """The emulator's UART on a port, for one host."""
    with socket.create_server(("127.0.0.1", 0)) as listener, emulator:
        thread = threading.Thread(target=_serve, args=(listener, emulator), daemon=True)
        thread.start()
        yield listener.getsockname()[1]
        thread.join(10)


def _serve(listener: socket.socket, emulator: Emulator) -> None:
    host = listener.accept()[0]
    host.settimeout(0.01)
    with host:
        while True:
            with suppress(TimeoutError):
                data = host.recv(4096)
                if not data:
                    return
                emulator.write(data)
            host.sendall(emulator.read(0.01))


@contextmanager
def linked(frame: Frame, folder: Path, emulator: Emulator) -> Iterator:
    link = load_library(render_frame(frame, folder).parent).FirmwareLink()
    with served(emulator) as port:
        link.connect_to_firmware(port)
        try:
            yield link
        finally:
            link.hang_up()


@pytest.mark.exhaustive
@pytest.mark.parametrize("name", ["one PE", "sixteen PEs"])
def test_the_golden_frame_is_reproduced(frames: Frames, name: str, tmp_path: Path) -> None:
    frame = frames[name]
    with linked(frame, tmp_path, Emulator(frame.board, frame.images)) as link:
        link.firmware_should_answer()
        link.golden_frame_should_be_reproduced()
        link.golden_frame_should_be_reproduced()
        with pytest.raises(AssertionError, match="are the golden"):
            link.golden_frame_should_not_be_reproduced()


def test_a_broken_image_is_found_out(frames: Frames, tmp_path: Path) -> None:
    frame = frames["one PE"]
    emulator = Emulator(frame.board, frame.images)
    place = int((render_frame(frame, tmp_path).read_text().split("IN    ")[2]).split()[0], 16)
    before = emulator.read_memory(0, place, 1)[0]
    emulator.write_memory(0, place, bytes([before ^ 0x80]))
    with linked(frame, tmp_path, emulator) as link:
        link.firmware_should_answer()
        link.golden_frame_should_not_be_reproduced()
        with pytest.raises(AssertionError, match="output 0"):
            link.golden_frame_should_be_reproduced()


def test_a_refused_request_is_no_broken_image(frames: Frames, tmp_path: Path) -> None:
    """Without the handshake the firmware refuses everything."""
    frame = frames["one PE"]
    with (
        linked(frame, tmp_path, Emulator(frame.board, frame.images)) as link,
        pytest.raises(AssertionError, match="no handshake"),
    ):
        link.golden_frame_should_not_be_reproduced()


def test_another_build_is_found_out(frames: Frames, tmp_path: Path) -> None:
    frame = frames["one PE"]
    with linked(frame, tmp_path, Emulator(frame.board, frame.images)) as link:
        link.golden["build_id"] = "ff" * 16
        with pytest.raises(AssertionError, match="build"):
            link.firmware_should_answer()


class Silent:
    """A socket to a silent board."""

    def __init__(self) -> None:
        self.sent = 0

    def sendall(self, data: bytes) -> None:
        self.sent += 1

    def recv(self, most: int) -> bytes:
        raise TimeoutError


def test_limits_are_in_the_board_s_own_time(library: ModuleType) -> None:
    """A board that runs a hundredth of a second per poll still has ten seconds for each attempt."""
    looks = count()
    link = library.FirmwareLink(lambda: next(looks) / 100)
    link.socket = Silent()
    with pytest.raises(library.Broken, match="no answer to request 5"):
        link.ask(5)
    assert link.socket.sent == library.ATTEMPTS
    assert next(looks) >= 100 * library.ATTEMPTS * library.SECONDS


def test_a_board_whose_time_stands_still_is_no_wait_for_ever(library: ModuleType) -> None:
    link = library.FirmwareLink(lambda: 1.0)
    link.socket = Silent()
    with pytest.raises(AssertionError, match="Renode's time"):
        link.ask(5)


@pytest.mark.parametrize(
    ("told", "seconds"),
    [
        ("Current virtual time: 00:01:02.500000\nCurrent real time: 00:09:00.1", 62.5),
        ("Current real time: 00:09:00.1\nCurrent virtual time: 01:00:00", 3600.0),
    ],
)
def test_the_board_s_time_is_what_renode_tells(
    told: str, seconds: float, library: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = SimpleNamespace(run_keyword=lambda *words: told if words == ("Execute Command", "currentTime") else "")
    monkeypatch.setitem(sys.modules, "robot", ModuleType("robot"))
    monkeypatch.setitem(sys.modules, "robot.libraries", ModuleType("robot.libraries"))
    monkeypatch.setitem(sys.modules, "robot.libraries.BuiltIn", SimpleNamespace(BuiltIn=lambda: asked))
    assert library.board_seconds() == seconds


def test_frames_are_npukit_s(library: ModuleType) -> None:
    source = random.Random(4)
    for size in [*range(1, 20), 249, 250, 251, 253, 254, 255, 507, 508, 509, 600]:
        packet = bytes(source.choice((0, source.randrange(256))) for _ in range(size))
        for data in (packet, packet.replace(b"\0", b"\7")):
            assert FrameDecoder().feed(library.frame(data)) == [data]
            assert library.unframe(encode_frame(data)[1:-1]) == data


def test_a_damaged_frame_is_none(library: ModuleType) -> None:
    stuffed = encode_frame(b"hello")[1:-1]
    assert library.unframe(stuffed[:-1] + bytes([stuffed[-1] ^ 1])) is None
