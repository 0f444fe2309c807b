"""The vectors in docs/vectors/link.txt equal the frames of host and device."""

from __future__ import annotations

import re
from itertools import count

import pytest

from helpers import CHECKOUT
from link.device_process import Pipes
from npukit.link.frames import FrameDecoder, encode_frame
from npukit.link.messages import (
    Describe,
    Hello,
    ReadCounters,
    ReadDigest,
    ReadEvents,
    ReadLayers,
    ReadMemory,
    ReadOutput,
    ReadPes,
    Request,
    Reset,
    ResetStates,
    Run,
    Status,
    StopBehind,
    Table,
    WriteInput,
    WriteMemory,
    pack_request,
)
from npukit.link.runs import ReadRun, Start, Stop

DOCUMENT = CHECKOUT / "docs" / "protocol.md"
VECTORS = CHECKOUT / "docs/vectors/link.txt"
SESSION = 0x1234
REQUESTS: list[Request | tuple[Request, ...]] = [
    Hello(),
    Describe(Table.INPUTS, 0),
    WriteInput(0, 0, bytes([10, 0, 30])),
    WriteInput(1, 0, bytes([5, 0])),
    Run(1, observe=True, frames=1),
    ReadOutput(0, 3, 0),
    ReadOutput(1, 1, 7),
    ReadLayers(38),
    WriteMemory(0x2000_1000, b"\1\2\3\4"),
    ReadMemory(0x2000_1000, 4),
    ReadCounters(),
    ReadPes(0),
    WriteInput(1, 0, bytes([0, 3])),
    Run(2, observe=False, frames=1),
    WriteInput(1, 0, bytes([0, 0])),
    (Start(3, 0, 5), Stop(3)),
    Start(3, 1, 5),
    ReadRun(3),
    ReadRun(4),
    ReadEvents(10),
    ReadDigest(0x2000_1000, 4),
    ResetStates(),
    StopBehind(39, 1),
    Reset(),
]


def vectors() -> list[tuple[bytes, bytes]]:
    """The frames after `>` and `<` in the file."""
    pairs = re.findall(r"((?:^> [0-9a-f ]+\n)+)((?:^< [0-9a-f ]+\n)+)", VECTORS.read_text(), re.MULTILINE)
    return [(bytes.fromhex(sent.replace(">", "")), bytes.fromhex(got.replace("<", ""))) for sent, got in pairs]


def frames_sent() -> list[bytes]:
    """Frames of the host, exchange by exchange. Requests sent together have consecutive numbers."""
    numbers = count(1)
    together = (each if isinstance(each, tuple) else (each,) for each in REQUESTS)
    return [b"".join(encode_frame(pack_request(r, next(numbers), SESSION)) for r in each) for each in together]


def exchange(pipes: Pipes, frame: bytes) -> bytes:
    pipes.write(frame)
    received = b""
    while data := pipes.read(5):
        received += data
    return received


def test_the_host_sends_the_requests_of_the_document() -> None:
    assert [frame.hex(" ") for frame, _ in vectors()] == [frame.hex(" ") for frame in frames_sent()]


def test_every_request_has_a_vector() -> None:
    asked = {packet[1] for frames, _ in vectors() for packet in FrameDecoder().feed(frames)}
    documented = re.findall(r"^\| (\d+) \| [A-Z_]+ \|", DOCUMENT.read_text(), re.MULTILINE)
    assert asked == {int(kind) for kind in documented} == set(range(1, 19))


def test_the_device_answers_as_in_the_document(pipes: Pipes) -> None:
    got = [exchange(pipes, frame) for frame, _ in vectors()]
    assert [frame.hex(" ") for frame in got] == [frame.hex(" ") for _, frame in vectors()]


def test_host_and_device_encode_alike() -> None:
    replies = b"".join(frames for _, frames in vectors())
    assert b"".join(map(encode_frame, FrameDecoder().feed(replies))) == replies


@pytest.mark.parametrize("status", Status)
def test_every_status_is_documented(status: Status) -> None:
    assert f"| {status.value} | `{status.name}` |" in DOCUMENT.read_text()
