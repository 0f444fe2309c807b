"""The host's parser accepts arbitrary bytes and does not grow."""

from __future__ import annotations

import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from npukit.errors import NpukitError
from npukit.link.frames import LARGEST_FRAME, FrameDecoder, encode_frame
from npukit.link.messages import Hello, Malformed, Reply, unpack_reply
from npukit.link.session import Session

packets = st.binary(max_size=700)


def fed_in_pieces(decoder: FrameDecoder, stream: bytes, size: int) -> list[bytes]:
    pieces = (stream[at : at + size] for at in range(0, len(stream), size))
    return [packet for piece in pieces for packet in decoder.feed(piece)]


@given(st.lists(packets), st.integers(1, 999))
def test_packets_come_out_as_they_went_in(sent: list[bytes], piece: int) -> None:
    stream = b"".join(map(encode_frame, sent))
    assert fed_in_pieces(FrameDecoder(), stream, piece) == sent


@given(packets)
def test_a_frame_holds_no_zero_within(packet: bytes) -> None:
    frame = encode_frame(packet)
    assert frame[:1] == frame[-1:] == b"\0"
    assert 0 not in frame[1:-1]


@given(st.binary(), packets)
def test_a_packet_after_garbage_arrives(garbage: bytes, packet: bytes) -> None:
    assert FrameDecoder().feed(garbage + encode_frame(packet)) == [packet]


@given(packets, st.data())
def test_a_flipped_bit_is_noticed(packet: bytes, data: st.DataObject) -> None:
    frame = bytearray(encode_frame(packet))
    frame[data.draw(st.integers(1, len(frame) - 2))] ^= 1 << data.draw(st.integers(0, 7))
    decoder = FrameDecoder()
    assert decoder.feed(bytes(frame)) == []
    assert decoder.damaged > 0


def test_garbage_without_end_is_not_kept() -> None:
    decoder = FrameDecoder()
    for _ in range(100):
        decoder.feed(b"\xaa" * 10_000)
    assert sys.getsizeof(decoder._frame) <= 2 * LARGEST_FRAME
    assert decoder.feed(b"\0" + encode_frame(b"after")) == [b"after"]


@given(st.binary(max_size=600))
def test_any_packet_is_a_reply_or_is_none(packet: bytes) -> None:
    reply = unpack_reply(packet)
    assert reply is None or (reply.kind & 0x80 and len(reply.payload) == len(packet) - 16)


def test_an_echo_is_no_reply() -> None:
    assert unpack_reply(bytes([1, 9]) + bytes(30)) is None


@given(st.binary(max_size=300))
def test_a_greeting_is_read_whole_or_refused(payload: bytes) -> None:
    try:
        greeting = Hello().parse(payload)
    except Malformed:
        return
    assert len(payload) >= 30
    assert greeting.build_id == payload[12:28]


class Noise:
    """A device that sends rubbish for ever, as fast as the host reads."""

    def __init__(self, rubbish: bytes) -> None:
        self.rubbish = rubbish

    def write(self, data: bytes) -> None: ...

    def read(self, timeout: float) -> bytes:
        return self.rubbish

    def close(self) -> None: ...


HEADER_OF_A_REPLY = bytes([1, 0x81, 1, 0, 0, 0, 7, 7])


@pytest.mark.parametrize(
    "rubbish", [b"\xff", b"\0", b"login: \0", encode_frame(b""), encode_frame(HEADER_OF_A_REPLY * 3)]
)
def test_a_device_that_talks_rubbish_is_an_error_in_time(rubbish: bytes) -> None:
    with pytest.raises(NpukitError, match="asked to shake hands and did not answer"):
        Session(Noise(rubbish), answer_seconds=0.2).open()


def test_a_reply_is_to_one_request_only() -> None:
    reply = Reply(protocol=1, kind=0x81, sequence=3, pe=0, session=7, status=0, address=0, payload=b"")
    assert reply.answers(Hello(), sequence=3, session=7)
    assert not reply.answers(Hello(), sequence=4, session=7)
    assert not reply.answers(Hello(), sequence=3, session=8)
