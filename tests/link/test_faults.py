"""A link that loses, repeats, truncates and damages frames: a right result or a clear error, never wrong data, never a
hang."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from time import monotonic

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from link.device_process import Pipes
from npukit.errors import NpukitError
from npukit.link.session import Session

Damage = Callable[[bytes], bytes]
IMAGE = bytes(i * 11 % 256 for i in range(900))
WRITABLE = 0x2000_1000


@dataclass
class Faulty:
    """A transport that damages chosen frames, numbered in each direction."""

    inner: Pipes
    damage: dict[tuple[str, int], Damage]
    frames: dict[str, int] = field(default_factory=lambda: {"out": 0, "in": 0})
    unfinished: bytes = b""

    def write(self, data: bytes) -> None:
        self.inner.write(self._through("out", data))

    def read(self, timeout: float) -> bytes:
        until = monotonic() + timeout
        while monotonic() < until:
            data = self.inner.read(timeout)
            arrived = b"".join(self._through("in", frame) for frame in self._frames_in(data))
            if arrived or not data:
                return arrived
        return b""

    def close(self) -> None:
        """The device lives on for the next session."""

    def _frames_in(self, data: bytes) -> Iterator[bytes]:
        *whole, self.unfinished = (self.unfinished + data).split(b"\0")
        return (b"\0" + frame + b"\0" for frame in whole if frame)

    def _through(self, direction: str, frame: bytes) -> bytes:
        number = self.frames[direction]
        self.frames[direction] += 1
        return self.damage.get((direction, number), bytes)(frame)


def drop(frame: bytes) -> bytes:
    return b""


def repeat(frame: bytes) -> bytes:
    return frame + frame


def cut_end(frame: bytes) -> bytes:
    return frame[: len(frame) // 2]


def cut_start(frame: bytes) -> bytes:
    return frame[len(frame) // 2 :]


def lose_a_byte(frame: bytes) -> bytes:
    return frame[:4] + frame[5:]


def drown(frame: bytes) -> bytes:
    return bytes(range(256)) * 8 + frame


def flip(place: float, bit: int) -> Damage:
    def flipped(frame: bytes) -> bytes:
        at = int(place * (len(frame) - 1))
        return frame[:at] + bytes([frame[at] ^ 1 << bit]) + frame[at + 1 :]

    return flipped


DAMAGES = [
    drop,
    repeat,
    cut_end,
    cut_start,
    lose_a_byte,
    drown,
    *(flip(p, b) for p, b in [(0, 0), (0.1, 3), (0.5, 7), (1, 5)]),
]


def converse(transport: Faulty) -> list[object]:
    """Results of various requests, which must not depend on the link."""
    with Session(transport) as session:
        session.write_input(0, IMAGE)
        session.write_input(1, b"\5\0")
        run = session.run(observe=True)
        outputs = [session.read_output(i) for i in range(2)]
        session.write_memory(WRITABLE, IMAGE[:100])
        told = [session.device, run, outputs, session.layers(5, 40), session.read_memory(WRITABLE, 100)]
        return [*told, session.start(3).wait(), session.events(6, 0)]


@pytest.fixture(scope="module")
def module_pipes(device_program: Path) -> Iterator[Pipes]:
    transport = Pipes(device_program)
    yield transport
    transport.close()


@pytest.fixture(scope="module")
def undisturbed(module_pipes: Pipes) -> tuple[list[object], dict[str, int]]:
    transport = Faulty(module_pipes, {})
    return converse(transport), transport.frames


@pytest.mark.parametrize("direction", ["out", "in"])
@pytest.mark.parametrize("damage", DAMAGES)
def test_any_one_frame_may_be_damaged(
    module_pipes: Pipes, undisturbed: tuple[list[object], dict[str, int]], direction: str, damage: Damage
) -> None:
    wanted, frames = undisturbed
    assert frames[direction] > 10
    for number in range(frames[direction]):
        faulty = Faulty(module_pipes, {(direction, number): damage})
        assert converse(faulty) == wanted, f"frame {number}"


damages = st.dictionaries(
    st.tuples(st.sampled_from(["out", "in"]), st.integers(0, 40)),
    st.sampled_from(DAMAGES) | st.builds(flip, st.floats(0, 1), st.integers(0, 7)),
    max_size=40,
)


@given(damages)
@settings(max_examples=60, deadline=5000)
def test_many_frames_may_be_damaged(
    module_pipes: Pipes, undisturbed: tuple[list[object], dict[str, int]], damage: dict[tuple[str, int], Damage]
) -> None:
    try:
        outcome = converse(Faulty(module_pipes, damage))
    except NpukitError as error:
        outcome = error.message
    assert outcome == undisturbed[0] or "did not answer" in outcome


def test_a_dead_link_is_an_error(module_pipes: Pipes) -> None:
    dead = {("out", number): drop for number in range(100)}
    with pytest.raises(NpukitError, match="asked to shake hands and did not answer: nothing came back"):
        converse(Faulty(module_pipes, dead))


def test_a_link_that_dies_on_the_way_is_an_error(module_pipes: Pipes) -> None:
    dead = {("in", number): drop for number in range(8, 100)}
    with pytest.raises(NpukitError, match=r"asked to .* and did not answer"):
        converse(Faulty(module_pipes, dead))
