"""Devices with correct frames but wrong packets."""

from __future__ import annotations

import struct
from collections.abc import Callable

import pytest

from npukit.errors import DoesNotFit, NpukitError
from npukit.link.conversation import Conversation
from npukit.link.fault import DeviceFault, explain_fault
from npukit.link.frames import FrameDecoder, encode_frame
from npukit.link.messages import ReadCounters, Reset, Run
from npukit.link.session import Session

GREETING = struct.pack("<HHHHHxx16s", 528, 1, 1, 0, 0, bytes(16)) + b"\5board\5model"


class Scripted:
    """A device that sends the result of `answer` for each packet."""

    def __init__(self, answer: Callable[[bytes], bytes]) -> None:
        self._answer = answer
        self._sent = b""

    def write(self, data: bytes) -> None:
        self._sent += b"".join(self._answer(packet) for packet in FrameDecoder().feed(data))

    def read(self, timeout: float) -> bytes:
        sent, self._sent = self._sent, b""
        return sent

    def close(self) -> None: ...


def reply(request: bytes, payload: bytes, status: int = 0, address: int = 0) -> bytes:
    header = bytes([1, request[1] | 0x80]) + request[2:8]
    return encode_frame(header + struct.pack("<II", status, address) + payload)


def fault(session: bytes) -> bytes:
    header = bytes([1, 0xFF, 0, 0, 3, 0]) + session
    return encode_frame(header + struct.pack("<IIII", 12, 0x100, 1 << 25, 0))


def open_with(answer: Callable[[bytes], bytes]) -> None:
    Session(Scripted(answer)).open()


@pytest.mark.parametrize("payload", [b"", GREETING[:-1], GREETING + b"!", b"\xff" * 40])
def test_a_greeting_that_makes_no_sense(payload: bytes) -> None:
    with pytest.raises(NpukitError, match="asked to shake hands, and its answer makes no sense"):
        open_with(lambda request: reply(request, payload))


@pytest.mark.parametrize("largest", [0, 63, 65_001])
def test_a_largest_packet_the_protocol_does_not_allow(largest: int) -> None:
    with pytest.raises(NpukitError, match=f"largest packet has {largest} bytes"):
        open_with(lambda request: reply(request, struct.pack("<H", largest) + GREETING[2:]))


@pytest.mark.parametrize("entries", [b"", b"\0\0\0", b"\1\0\0\0\5name"])
def test_a_description_that_makes_no_sense(entries: bytes) -> None:
    with pytest.raises(NpukitError, match="asked to describe its tensors, and its answer makes no sense"):
        open_with(lambda request: reply(request, GREETING if request[1] == 1 else entries))


def test_more_tensors_than_there_are() -> None:
    entries = b"\1\0\0\0\1a" * 2
    with pytest.raises(NpukitError, match="lists 2 items where it says it has 1"):
        open_with(lambda request: reply(request, GREETING if request[1] == 1 else entries))


def test_another_version_of_the_protocol_does_not_fit() -> None:
    with pytest.raises(DoesNotFit, match="speaks version 9 of the link's protocol, this npukit version 1"):
        open_with(lambda request: reply(request, b"other", status=1, address=9))


def test_a_fault_of_this_session_ends_it() -> None:
    with pytest.raises(DeviceFault, match="PE 3 stopped at instruction 0x00000100: division by zero"):
        open_with(lambda request: fault(request[6:8]))


def test_a_fault_of_before_explains_silence() -> None:
    with pytest.raises(DeviceFault, match="PE 3 stopped"):
        open_with(lambda request: fault(b"\0\0"))


def test_a_fault_of_before_is_no_matter_once_the_device_answers() -> None:
    def answer(request: bytes) -> bytes:
        return fault(b"\0\0") + reply(request, GREETING if request[1] == 1 else b"\1\0\0\0\1a")

    session = Session(Scripted(answer))
    assert session.open().inputs[0].name == "a"


def test_a_session_not_yet_open_says_so() -> None:
    with pytest.raises(NpukitError, match="not open yet"):
        Session(Scripted(lambda _: b"")).read_output(0)


def test_causes_that_no_bit_tells_are_shown_as_they_are() -> None:
    assert explain_fault(0) == "a fault of which the core does not say more"
    assert explain_fault(1 << 31 | 7) == "store to forbidden memory"
    assert explain_fault(1 << 9 | 1 << 15) == "bus error on a data access"


class Lossy(Scripted):
    """A device with readable memory and a window of four. Misses some requests once and answers in reverse order."""

    def __init__(self, missed: set[int]) -> None:
        super().__init__(self._reply)
        self.most_under_way = 0
        self._missed = missed
        self._reads: list[bytes] = []

    def _reply(self, request: bytes) -> bytes:
        if request[1] in (1, 2):
            return reply(request, GREETING[:2] + b"\4\0" + GREETING[4:] if request[1] == 1 else b"\1\0\0\0\1a")
        self._reads.append(request)
        return b""

    def read(self, timeout: float) -> bytes:
        waiting, self._reads = self._reads, []
        self.most_under_way = max(self.most_under_way, len(waiting))
        heard = [request for request in waiting if struct.unpack_from("<I", request, 8)[0] not in self._missed]
        self._missed -= {struct.unpack_from("<I", request, 8)[0] for request in waiting}
        return super().read(timeout) + b"".join(self._memory(request) for request in reversed(heard))

    def _memory(self, request: bytes) -> bytes:
        address, size = struct.unpack_from("<II", request, 8)
        return reply(request, bytes(at // 512 for at in range(address, address + size)))


@pytest.mark.parametrize("missed", [set(), {0}, {512, 1024}, {0, 512, 1024, 1536, 2048}])
def test_a_window_of_requests_is_filled_and_what_is_lost_of_it_is_sent_again(missed: set[int]) -> None:
    device = Lossy(set(missed))
    session = Session(device)
    session.open()
    assert session.read_memory(0, 5000) == bytes(at // 512 for at in range(5000))
    assert device.most_under_way == 4


def test_a_window_of_nothing_is_refused() -> None:
    with pytest.raises(NpukitError, match="no request may be under way"):
        open_with(lambda request: reply(request, GREETING[:2] + bytes(2) + GREETING[4:]))


def test_an_insistent_request_goes_on_as_long_as_an_answer_may_take() -> None:
    heard = 0

    def answer(request: bytes) -> bytes:
        nonlocal heard
        heard += 1
        return reply(request, b"") if heard > 2000 else b""

    Conversation(Scripted(answer), answer_seconds=60).insist(Reset())


class Timed(Scripted):
    """A device that records how long the host would wait for each answer before repeating the request."""

    def __init__(self) -> None:
        super().__init__(lambda packet: reply(packet, packet[8:12] + bytes(28) if packet[1] == Run.kind else bytes(24)))
        self.waits: list[float] = []

    def read(self, timeout: float) -> bytes:
        self.waits.append(timeout)
        return super().read(timeout)


class TimedWitness(Timed):
    conversations = 0

    def conversation(self) -> int:
        self.conversations += 1
        return self.conversations

    def silence(self) -> tuple[str, ...]:
        return ()

    def expect(self, frames: int) -> None:
        del frames


@pytest.mark.parametrize(("transport", "waits"), [(Timed, [2.0, 0.5]), (TimedWitness, [10.0, 10.0])])
def test_a_run_is_not_disturbed_soon_and_an_emulator_never(transport: type[Timed], waits: list[float]) -> None:
    timed = transport()
    conversation = Conversation(timed, 10.0)
    conversation.ask(Run(1, observe=False, frames=1))
    conversation.ask(ReadCounters())
    assert timed.waits == pytest.approx(waits, abs=0.3)


class Recorded(TimedWitness):
    """An emulator with a record of received frames."""

    def __init__(self) -> None:
        super().__init__()
        self.frames: list[bytes] = []

    def write(self, data: bytes) -> None:
        self.frames.append(data)
        super().write(data)


def test_conversations_with_an_emulator_send_the_same_bytes_after_each_power_on() -> None:
    boards = [Recorded(), Recorded()]
    for board in boards:
        for _ in range(2):
            Conversation(board, 10.0).ask(ReadCounters())
    assert boards[0].frames == boards[1].frames
    assert boards[0].frames[0] != boards[0].frames[1]
