"""Frames on the link: a COBS-encoded packet with a CRC-32, between zero bytes (`docs/protocol.md`)."""

from __future__ import annotations

import zlib

from cobs import cobs

_CRC_BYTES = 4
LARGEST_FRAME = 0xFFFF
"""Longest accepted frame in bytes, between two zeros. The largest packet a device may announce is shorter."""


def encode_frame(packet: bytes) -> bytes:
    """The encoded packet. The leading zero terminates a truncated frame before it."""
    crc = zlib.crc32(packet).to_bytes(_CRC_BYTES, "little")
    return b"\0" + cobs.encode(packet + crc) + b"\0"


class FrameDecoder:
    """Decodes packets from a byte stream. Accepts arbitrary bytes; buffers at most one frame."""

    def __init__(self) -> None:
        self._frame = bytearray()
        self._too_long = False
        self.damaged = 0
        """Number of invalid frames."""

    def feed(self, data: bytes) -> list[bytes]:
        """Return the packets completed by `data`. Invalid frames are counted and dropped."""
        *ended, rest = data.split(b"\0")
        packets = [self._finish(part) for part in ended]
        self._take(rest)
        return [packet for packet in packets if packet is not None]

    def _take(self, part: bytes) -> None:
        self._too_long |= len(self._frame) + len(part) > LARGEST_FRAME
        if self._too_long:
            self._frame.clear()
        else:
            self._frame += part

    def _finish(self, part: bytes) -> bytes | None:
        self._take(part)
        frame, too_long = bytes(self._frame), self._too_long
        self._frame.clear()
        self._too_long = False
        packet = _packet_in(frame)
        self.damaged += too_long or (packet is None and bool(frame))
        return packet


def _packet_in(frame: bytes) -> bytes | None:
    try:
        decoded = cobs.decode(frame)
    except cobs.DecodeError:
        return None
    packet, crc = decoded[:-_CRC_BYTES], decoded[-_CRC_BYTES:]
    return packet if len(crc) == _CRC_BYTES and zlib.crc32(packet) == int.from_bytes(crc, "little") else None
