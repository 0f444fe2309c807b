"""The host under arbitrary bytes from a device: a meaningless answer ends in an error, nothing else."""

from __future__ import annotations

import struct
from collections.abc import Callable
from contextlib import suppress
from datetime import timedelta
from time import monotonic

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from npukit.errors import NpukitError
from npukit.link import flash, messages, runs
from npukit.link.flash import LoaderSession
from npukit.link.frames import FrameDecoder, encode_frame
from npukit.link.messages import Malformed, Request
from npukit.link.session import Session

REQUESTS: list[Request] = [
    messages.Hello(),
    messages.Describe(messages.Table.INPUTS, 0),
    messages.WriteInput(0, 0, b""),
    messages.ReadOutput(0, 5, 0),
    messages.Run(1, False, 1),
    messages.ReadLayers(0),
    messages.ReadMemory(0, 5),
    messages.WriteMemory(0, b""),
    messages.ReadCounters(),
    messages.ReadPes(0),
    messages.Reset(),
    runs.Start(1, 0, 5),
    runs.Stop(1),
    runs.ReadRun(1),
    messages.ReadEvents(2),
    flash._Identify(),
    flash._DescribeSlot(0),
    flash._DigestPages(0, 0),
]
GREETING = struct.pack("<HHHHHH16s", 64, 3, 1, 1, 2, 2, bytes(16)) + b"\5board\5model"
TENSORS, LAYERS = b"\1\0\0\0\1a", b"\1\0\0\0\1a\1\0\0\0\1b"
LOADER = struct.pack("<HHIIIBBBB32sB", 1, 64, 4096, 256, 1, 0, 0xFF, 0, 0, bytes(32), 5) + b"board"
EVENTS = struct.pack("<IIIHH", 3, 2, 7, 0, 1)
SENSIBLE = {1: GREETING, 2: TENSORS, 0x20: LOADER, 0x23: b"", 0x24: b""}
payloads = st.binary(max_size=90) | st.sampled_from(
    [GREETING, TENSORS, LAYERS, LOADER, b"", bytes(32), bytes(48), bytes(56), EVENTS]
)


requests = st.sampled_from(REQUESTS)


def parse(request: Request, payload: bytes) -> None:
    with suppress(Malformed, struct.error):
        request.parse(payload)


@given(requests, payloads)
def test_a_payload_is_an_answer_or_malformed(request_: Request, payload: bytes) -> None:
    parse(request_, payload)


class Babbler:
    """A device that gives `sense` sensible answers, then arbitrary bytes, packets and payloads."""

    def __init__(self, sense: int, nonsense: list[tuple[str, bytes, int]]) -> None:
        self._sense = sense
        self._nonsense = nonsense
        self._sent = b""
        self._answers = 0

    def restart(self) -> None: ...

    def close(self) -> None: ...

    def write(self, data: bytes) -> None:
        self._sent += b"".join(self._answer(packet) for packet in FrameDecoder().feed(data))

    def read(self, timeout: float) -> bytes:
        sent, self._sent = self._sent, b""
        return sent

    def _answer(self, packet: bytes) -> bytes:
        self._answers += 1
        header = bytes([1, packet[1] | 0x80]) + packet[2:8]
        if self._answers <= self._sense and packet[1] in SENSIBLE:
            return encode_frame(header + bytes(8) + SENSIBLE[packet[1]])
        if not self._nonsense:
            return b""
        form, content, status = self._nonsense[self._answers % len(self._nonsense)]
        words = struct.pack("<II", status, 0)
        return {
            "bytes": content,
            "packet": encode_frame(content),
            "reply": encode_frame(header + words + content),
            "fault": encode_frame(header[:1] + b"\xff" + header[2:] + words + content),
        }[form]


nonsense = st.lists(
    st.tuples(st.sampled_from(["bytes", "packet", "reply", "reply", "reply", "fault"]), payloads, st.integers(0, 99)),
    max_size=6,
)


def everything(device: Babbler) -> None:
    with Session(device, answer_seconds=0.5) as session:
        session.write_input(0, b"x")
        session.run(observe=True, seconds=0.5)
        session.read_output(0)
        session.layers(1, 2)
        session.pes()
        session.counters()
        session.read_memory(0, 100)
        session.events(1, 0)
        session.start(3).stop()
        session.reset()


def an_update(device: Babbler) -> None:
    loader = LoaderSession(device, answer_seconds=0.5)
    loader.describe(loader.free_slot())
    loader.write(1, bytes(700))
    loader.boot()


def converse(use: Callable[[Babbler], None], sense: int, told: list[tuple[str, bytes, int]]) -> None:
    with suppress(NpukitError):
        use(Babbler(sense, told))


@pytest.mark.parametrize("use", [everything, an_update])
@given(sense=st.integers(0, 8), told=nonsense)
@settings(max_examples=150, derandomize=True)
def test_a_device_that_makes_no_sense_is_an_error(
    use: Callable[[Babbler], None], sense: int, told: list[tuple[str, bytes, int]]
) -> None:
    converse(use, sense, told)


HANG = timedelta(seconds=10)


def fuzz(seconds: float) -> int:
    """Run examples for `seconds`. Returns their number; an exception other than `NpukitError` propagates."""
    until, count = monotonic() + seconds, 0
    every = settings(max_examples=300, database=None, deadline=HANG, suppress_health_check=[*HealthCheck])  # pyright: ignore[reportArgumentType]
    checks = [
        every(given(request=requests, payload=payloads | st.binary(max_size=600))(parse)),
        every(given(use=st.sampled_from([everything, an_update]), sense=st.integers(0, 40), told=nonsense)(converse)),
    ]
    while monotonic() < until:
        for check in checks:
            check()
            count += every.max_examples
    return count
