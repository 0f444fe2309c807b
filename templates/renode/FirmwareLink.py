# SPDX-License-Identifier: Apache-2.0
"""Keywords of the Robot suite: the link's protocol over Renode's port, and the golden frame. Needs Python alone."""

import json
import re
import socket
import struct
import time
import zlib
from pathlib import Path

ROBOT_LIBRARY_SCOPE = "TEST"

HELLO, WRITE_INPUT, READ_OUTPUT, RUN = 1, 3, 4, 5
SESSION = 0x7E57
ANY_PE = 0xFFFF
HEADER, REPLY_HEADER = struct.Struct("<BBHHH"), struct.Struct("<BBHHHII")
PIECE = 40
"""Bytes of a tensor in a packet. Together with the header they fit the smallest allowed packet, 64 bytes."""

ATTEMPTS, SECONDS = 6, 10
"""Attempts of a request, and seconds between attempts in the time of the board, which a busy machine slows down."""

POLL, STILL = 1, 600
"""Seconds of this machine between two readings of the board's time, and limit of equal readings."""

VIRTUAL = re.compile(r"virtual time\D*(\d+):(\d+):(\d+(?:\.\d+)?)", re.IGNORECASE)


def board_seconds():
    """Seconds of the board's run, from Renode; without Renode the time of this machine."""
    try:
        from robot.libraries.BuiltIn import BuiltIn

        told = str(BuiltIn().run_keyword("Execute Command", "currentTime"))
    except Exception:  # Robot is absent or not running
        return time.monotonic()
    found = VIRTUAL.search(told)
    if found is None:
        return time.monotonic()
    hours, minutes, seconds = map(float, found.groups())
    return 3600 * hours + 60 * minutes + seconds


class Broken(AssertionError):
    """Wrong outputs of the firmware, or no answer."""


class FirmwareLink:
    """The host's side of a single link."""

    def __init__(self, seconds=board_seconds):
        self._seconds = seconds
        self.golden = json.loads((Path(__file__).parent / "golden.json").read_text())
        self.socket = None
        self.sequence = 0
        self.received = b""

    def free_port(self):
        """A free port of this machine."""
        with socket.create_server(("127.0.0.1", 0)) as listener:
            return listener.getsockname()[1]

    def connect_to_firmware(self, port):
        self.hang_up()
        self.socket = socket.create_connection(("127.0.0.1", int(port)), 60)
        self.socket.settimeout(POLL)
        self.received = b""

    def hang_up(self):
        if self.socket is not None:
            self.socket.close()
            self.socket = None

    def firmware_should_answer(self):
        """Greet the firmware, and compare build and model with those of the golden frame."""
        payload = self.ask(HELLO)
        build, names = payload[12:28].hex(), payload[28:]
        model = names[1 + names[0] :][1:].decode()
        check("build", build, self.golden["build_id"])
        check("model", model, self.golden["model"])

    def golden_frame_should_be_reproduced(self):
        outputs = [bytes.fromhex(text) for text in self.golden["outputs"]]
        for number, (got, wanted) in enumerate(zip(self.run_golden_frame(), outputs, strict=True)):
            check(f"output {number}", got.hex(), wanted.hex(), Broken)

    def golden_frame_should_not_be_reproduced(self):
        """Accept other outputs, an error of the network, or no answer, but no refused request."""
        try:
            self.golden_frame_should_be_reproduced()
        except Broken:
            return
        raise AssertionError("the outputs are the golden frame's")

    def run_golden_frame(self):
        for index, text in enumerate(self.golden["inputs"]):
            self.write_input(index, bytes.fromhex(text))
        _, status = struct.unpack("<Ii", self.ask(RUN, struct.pack("<IHH", self.sequence, 0, 1))[:8])
        check("status of the run", status, 0, Broken)
        return [self.read_output(index, len(text) // 2) for index, text in enumerate(self.golden["outputs"])]

    def write_input(self, index, data):
        for at in range(0, len(data), PIECE):
            self.ask(WRITE_INPUT, struct.pack("<HxxI", index, at) + data[at : at + PIECE])

    def read_output(self, index, size):
        sizes = [(at, min(PIECE, size - at)) for at in range(0, size, PIECE)]
        return b"".join(self.ask(READ_OUTPUT, struct.pack("<HHI", index, count, at)) for at, count in sizes)

    def ask(self, kind, arguments=b""):
        """The payload of the reply. Unanswered requests are repeated: every request may arrive twice."""
        self.sequence = (self.sequence + 1) & 0xFFFF
        packet = HEADER.pack(1, kind, self.sequence, ANY_PE, SESSION) + arguments
        for _ in range(ATTEMPTS):
            self.socket.sendall(frame(packet))
            reply = self.await_reply(kind)
            if reply is not None:
                return reply
        raise Broken(f"no answer to request {kind}")

    def await_reply(self, kind):
        while (data := self.receive()) is not None:
            packet = unframe(data)
            if packet is None or len(packet) < REPLY_HEADER.size:
                continue
            _, answered, sequence, _, session, status, address = REPLY_HEADER.unpack_from(packet)
            if answered == 0xFF:
                raise Broken(f"the firmware stopped at {address:#010x}")
            if (answered, sequence, session) == (kind | 0x80, self.sequence, SESSION):
                payload = packet[REPLY_HEADER.size :]
                check("status", (status, payload if status else b""), (0, b""))
                return payload
        return None

    def receive(self):
        """The bytes before the next zero, or None after SECONDS."""
        begun = before = self._seconds()
        still = 0
        while b"\0" not in self.received:
            try:
                data = self.socket.recv(4096)
            except TimeoutError:
                now = self._seconds()
                still, before = (still + 1 if now == before else 0), now
                check("Renode's time", still < STILL, True)
                if now - begun >= SECONDS:
                    return None
                continue
            if not data:
                raise AssertionError("Renode hung up")
            self.received += data
        data, self.received = self.received.split(b"\0", 1)
        return data


def check(what, got, wanted, error=AssertionError):
    if got != wanted:
        raise error(f"{what}: {got} instead of {wanted}")


def frame(packet):
    """The packet and its CRC-32, COBS-encoded, between zeros."""
    data = packet + zlib.crc32(packet).to_bytes(4, "little")
    stuffed = b""
    for part in data.split(b"\0"):
        while len(part) >= 254:
            stuffed, part = stuffed + b"\xff" + part[:254], part[254:]
        stuffed += bytes([len(part) + 1]) + part
    return b"\0" + stuffed + b"\0"


def unframe(stuffed):
    """The packet, or None for a damaged frame."""
    data, at = b"", 0
    while at < len(stuffed):
        count = stuffed[at]
        data += stuffed[at + 1 : at + count]
        at += count
        data += b"\0" if count < 255 and at < len(stuffed) else b""
    packet, crc = data[:-4], data[-4:]
    return packet if zlib.crc32(packet).to_bytes(4, "little") == crc else None
