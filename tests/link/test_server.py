"""The C server against hosts that violate the protocol, under sanitizers if available."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from link.device_process import Pipes
from npukit.link.frames import FrameDecoder, encode_frame
from npukit.link.messages import Hello, Reply, Status, pack_request, unpack_reply

SESSION = 77


@pytest.fixture(scope="module")
def device(device_program: Path) -> Iterator[Pipes]:
    transport = Pipes(device_program)
    yield transport
    transport.close()


def replies(device: Pipes, stream: bytes) -> list[Reply]:
    """All replies of the device to these bytes."""
    device.write(stream)
    decoder, packets = FrameDecoder(), []
    while data := device.read(5):
        packets += decoder.feed(data)
    assert decoder.damaged == 0
    return [reply for packet in packets if (reply := unpack_reply(packet))]


def say(device: Pipes, packet: bytes) -> Reply:
    (reply,) = replies(device, encode_frame(packet))
    return reply


def packet(kind: int, arguments: bytes, *, protocol: int = 1, pe: int = 0xFFFF, session: int = SESSION) -> bytes:
    return bytes([protocol, kind, 9, 0]) + pe.to_bytes(2, "little") + session.to_bytes(2, "little") + arguments


def shake_hands(device: Pipes) -> None:
    assert say(device, pack_request(Hello(), 1, SESSION)).status == Status.OK


def word(value: int) -> bytes:
    return value.to_bytes(4, "little")


def half(value: int) -> bytes:
    return value.to_bytes(2, "little")


@pytest.mark.parametrize(
    ("request_packet", "status", "address"),
    [
        (packet(9, b"", protocol=2), Status.OTHER_PROTOCOL, 1),
        (packet(9, b"", session=SESSION + 1), Status.NO_SESSION, 0),
        (packet(1, b"", session=0), Status.NO_SESSION, 0),
        (packet(9, b"", pe=6), Status.OTHER_PE, 5),
        (packet(0, b""), Status.UNKNOWN_REQUEST, 0),
        (packet(99, b""), Status.UNKNOWN_REQUEST, 99),
        (packet(11, word(1) + word(0) + word(0)), Status.BAD_ARGUMENTS, 12),
        (packet(11, word(1) + word(1) + word(2)), Status.NO_SUCH_RUN, 0),
        (packet(12, word(1)), Status.NO_SUCH_RUN, 0),
        (packet(13, word(1)), Status.NO_SUCH_RUN, 0),
        (packet(14, b"", pe=6), Status.OTHER_PE, 5),
        (packet(15, word(0), pe=7), Status.NOT_RUNNING, 7),
        (packet(10, half(2) + half(0)), Status.NO_SUCH_TENSOR, 2),
        (packet(127, b""), Status.UNKNOWN_REQUEST, 127),
        (packet(1, b"?"), Status.BAD_ARGUMENTS, 1),
        (packet(5, b"1234567"), Status.BAD_ARGUMENTS, 7),
        (packet(5, word(3) + half(0) + half(0)), Status.BAD_ARGUMENTS, 8),
        (packet(3, b""), Status.BAD_ARGUMENTS, 0),
        (packet(2, half(3) + half(0)), Status.NO_SUCH_TENSOR, 0),
        (packet(2, half(2) + half(40)), Status.NO_SUCH_TENSOR, 40),
        (packet(3, half(2) + half(0) + word(0)), Status.NO_SUCH_TENSOR, 2),
        (packet(3, half(0) + half(0) + word(900) + b"!"), Status.OUT_OF_RANGE, 900),
        (packet(3, half(1) + half(0) + word(0xFFFF_FFFF) + b"12"), Status.OUT_OF_RANGE, 2),
        (packet(7, word(0x2000_0000) + word(513)), Status.BAD_ARGUMENTS, 8),
        (packet(7, word(0x2000_0000) + word(0xFFFF_FFFF)), Status.BAD_ARGUMENTS, 8),
        (packet(7, word(0x1FFF_FFFF) + word(2)), Status.NOT_READABLE, 0x1FFF_FFFF),
        (packet(8, word(0x2000_0000) + b"!"), Status.NOT_WRITABLE, 0x2000_0000),
    ],
)
def test_what_is_wrong_is_refused_with_status_address_and_text(
    device: Pipes, request_packet: bytes, status: Status, address: int
) -> None:
    shake_hands(device)
    reply = say(device, request_packet)
    assert (Status(reply.status), reply.address) == (status, address)
    assert reply.text.isascii()
    assert len(reply.text) > 10
    assert (reply.protocol, reply.kind, reply.sequence, reply.pe) == (1, request_packet[1] | 0x80, 9, 5)


@pytest.mark.parametrize(
    ("pe", "arguments", "status", "address"),
    [
        (5, half(40) + half(0), Status.NO_SUCH_TENSOR, 40),
        (6, half(2) + half(0), Status.NO_SUCH_TENSOR, 2),
        (7, half(0) + half(0), Status.OTHER_PE, 5),
    ],
)
def test_layers_end_where_they_end(device: Pipes, pe: int, arguments: bytes, status: Status, address: int) -> None:
    shake_hands(device)
    assert say(device, packet(5, word(2) + half(1) + half(1))).status == Status.OK
    reply = say(device, packet(6, arguments, pe=pe))
    assert (Status(reply.status), reply.address) == (status, address)


@pytest.mark.parametrize(
    ("arguments", "status", "address"),
    [
        (half(2) + half(1) + word(0), Status.NO_SUCH_TENSOR, 2),
        (half(0) + half(513) + word(0), Status.BAD_ARGUMENTS, 8),
        (half(1) + half(1) + word(7), Status.OUT_OF_RANGE, 7),
        (half(1) + half(2) + word(0xFFFF_FFFF), Status.OUT_OF_RANGE, 7),
        (half(1) + half(0) + word(7), Status.OK, 0),
    ],
)
def test_outputs_end_where_they_end(device: Pipes, arguments: bytes, status: Status, address: int) -> None:
    shake_hands(device)
    assert say(device, packet(5, word(1) + half(0) + half(1))).status == Status.OK
    reply = say(device, packet(4, arguments))
    assert (Status(reply.status), reply.address) == (status, address)


def test_a_run_asked_for_twice_runs_once(device: Pipes) -> None:
    shake_hands(device)
    before = say(device, packet(9, b"")).payload
    first, again = (say(device, packet(5, word(7) + half(0) + half(1))) for _ in range(2))
    after = say(device, packet(9, b"")).payload
    assert first == again
    spent = int.from_bytes(after[:8], "little") - int.from_bytes(before[:8], "little")
    assert spent == int.from_bytes(first.payload[8:16], "little") > 0


def test_the_device_does_not_answer_replies(device: Pipes) -> None:
    assert replies(device, encode_frame(packet(0x81, b""))) == []


def test_several_requests_in_one_write_are_answered_in_turn(device: Pipes) -> None:
    shake_hands(device)
    stream = b"".join(encode_frame(pack_request(Hello(), sequence, SESSION)) for sequence in range(20))
    assert [reply.sequence for reply in replies(device, stream)] == list(range(20))


def test_a_frame_too_long_is_dropped_and_the_next_one_served(device: Pipes) -> None:
    too_long = encode_frame(packet(8, word(0x2000_1000) + bytes(4000)))
    (reply,) = replies(device, too_long + encode_frame(pack_request(Hello(), 3, SESSION)))
    assert reply.sequence == 3


@given(st.lists(st.binary(max_size=560), max_size=5))
@settings(max_examples=200, deadline=5000)
def test_any_packets_leave_it_alive(device: Pipes, rubbish: list[bytes]) -> None:
    replies(device, b"".join(encode_frame(part) for part in rubbish))
    shake_hands(device)


KINDS = st.integers(0, 12).filter(lambda kind: kind != 5)
ARGUMENTS = st.lists(st.sampled_from([b"\0", b"\1", b"\2", b"\xff", b"\x7f", b"\x20", b"\x10"]), max_size=12).map(
    b"".join
)


@given(KINDS, ARGUMENTS, st.binary(max_size=520))
@settings(max_examples=300, deadline=5000)
def test_any_request_gets_one_answer(device: Pipes, kind: int, arguments: bytes, data: bytes) -> None:
    shake_hands(device)
    request = packet(kind, arguments + data)
    answers = replies(device, encode_frame(request))
    assert len(answers) == (len(request) <= 528)
    assert all(answer.kind == kind | 0x80 for answer in answers)


@given(st.binary(max_size=2000))
@settings(max_examples=200, deadline=5000)
def test_any_bytes_leave_it_alive(device: Pipes, noise: bytes) -> None:
    replies(device, noise)
    shake_hands(device)
