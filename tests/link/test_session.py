"""The host's session with the C server."""

from __future__ import annotations

import zlib
from collections.abc import Iterator

import pytest

from link.device_process import Pipes
from npukit.errors import DoesNotFit, NpukitError
from npukit.link.fault import DeviceFault
from npukit.link.messages import LayerRecord
from npukit.link.session import Session

BUILD_ID = bytes(range(16))
IMAGE = bytes(i * 7 % 256 for i in range(900))
SHIFT_BY_3, FAIL, STOP, TALK = b"\x03\0", b"\0\1", b"\0\2", b"\0\3"
SHIFTED = bytes((byte + 3) % 256 for byte in IMAGE)
WRITABLE = 0x2000_1000
NEIGHBOURS_CONTROL, NEIGHBOURS_WISH = 0x4000, 0x2000_1FFF


def word(value: int) -> bytes:
    return value.to_bytes(4, "little")


@pytest.fixture
def session(pipes: Pipes) -> Iterator[Session]:
    with Session(pipes, build_id=BUILD_ID) as session:
        yield session


def shift(session: Session, *, observe: bool = False) -> None:
    session.write_input(0, IMAGE)
    session.write_input(1, SHIFT_BY_3)
    session.run(observe=observe)


def test_the_handshake_tells_what_runs_there(session: Session) -> None:
    device = session.device
    assert (device.protocol, device.pe, device.board, device.model) == (1, 5, "pipes", "shifter")
    assert [(t.name, t.bytes) for t in device.inputs] == [("image", 900), ("offset", 2)]
    assert [(t.name, t.bytes) for t in device.outputs] == [("shifted", 900), ("sums", 7)]
    assert device.layers == tuple(f"layer {i}" for i in range(40))


def test_another_build_is_refused_by_naming_both(pipes: Pipes) -> None:
    with pytest.raises(DoesNotFit, match=r"(?s)000102030405.*ffffffff") as caught:
        Session(pipes, build_id=b"\xff" * 16).open()
    assert caught.value.exit_status == 3


def test_a_frame_goes_in_and_comes_out(session: Session) -> None:
    shift(session)
    assert session.read_output(0) == SHIFTED
    assert session.read_output(1) == bytes(SHIFTED[0] + i for i in range(7))


def test_a_run_counts_nothing_but_itself(session: Session) -> None:
    before = session.counters()
    plain, observed = session.run(), session.run(observe=True)
    after = session.counters()
    assert plain == observed
    assert plain.cycles == 1000 + sum(8 * i for i in range(39)) + 2**33
    assert after.cycles - before.cycles == 2 * plain.cycles


def test_frames_run_in_a_row_and_leave_the_outputs_of_the_last(session: Session) -> None:
    session.write_input(0, bytes(900))
    session.write_input(1, b"\3\0")
    one, many = session.run(), session.run(frames=5)
    assert many.cycles == 5 * one.cycles
    assert session.pes()[0].frames == 6
    assert session.read_output(0) == b"\x12" * 900  # each frame adds to the input in place


def test_every_pe_says_how_it_is_doing(session: Session) -> None:
    run = session.run()
    here, there = session.pes()
    assert (here.pe, here.running, here.layers, here.frames, here.status) == (5, True, 40, 1, 0)
    assert here.cycles == run.cycles
    assert (there.pe, there.running, there.layers, there.frames) == (6, True, 2, 3)
    assert (there.cycles, there.instructions, there.asleep) == (700, 600, 500)


def test_layers_of_another_pe(session: Session) -> None:
    session.run(observe=True)
    assert session.layers(6, 2) == (LayerRecord(4, 3, 2, 1), LayerRecord(8, 7, 6, 5))
    with pytest.raises(NpukitError, match="no such tensor"):
        session.layers(6, 3)
    with pytest.raises(NpukitError, match="no way to that PE"):
        session.layers(7, 1)


def test_memory_of_another_pe(session: Session) -> None:
    session.run(observe=True)
    assert session.read_memory(NEIGHBOURS_CONTROL + 8, 4, 6) == word(1)
    session.run()
    assert session.read_memory(NEIGHBOURS_CONTROL + 8, 4, 6) == word(0)
    with pytest.raises(NpukitError, match="no way to that PE"):
        session.read_memory(NEIGHBOURS_CONTROL, 4, 7)


def test_a_pe_that_does_not_run_is_named(session: Session) -> None:
    session.write_memory(NEIGHBOURS_WISH, b"\xff")
    with pytest.raises(NpukitError, match=r"a PE of the network does not run it \(status 13, 0x00000006\)"):
        session.run()
    assert [pe.running for pe in session.pes()] == [True, False]


def test_a_run_that_fails_elsewhere_names_the_pe(session: Session) -> None:
    session.write_memory(NEIGHBOURS_WISH, b"\x09")
    session.write_input(1, FAIL)
    with pytest.raises(NpukitError, match="PE 5 stopped with error code -7; PE 6 stopped with error code 9"):
        session.run()
    with pytest.raises(NpukitError, match="out of step since a run failed: reset the board"):
        session.run()


def test_layers_of_an_observed_run(session: Session) -> None:
    shift(session, observe=True)
    layers = session.layers(5, 40)
    assert layers[0].digest == zlib.crc32(SHIFTED)
    assert [layer.digest for layer in layers[1:]] == [zlib.crc32(bytes([(SHIFTED[0] + i) % 256])) for i in range(1, 40)]
    assert [layer.cycles for layer in layers] == [1000, *(8 * i for i in range(1, 39)), 0xFFFF_FFFF]
    assert (layers[5].instructions, layers[5].asleep) == (20, 10)


def test_layers_need_an_observed_run(session: Session) -> None:
    shift(session)
    with pytest.raises(NpukitError, match="no observed run"):
        session.layers(5, 40)


def test_outputs_need_a_run_after_the_input(session: Session) -> None:
    shift(session)
    session.write_input(1, SHIFT_BY_3)
    with pytest.raises(NpukitError, match="no successful run since an input was written"):
        session.read_output(1)


def test_a_failing_run_says_so_and_leaves_nothing_to_read(session: Session) -> None:
    session.write_input(1, FAIL)
    with pytest.raises(NpukitError, match="error code -7"):
        session.run(observe=True)
    with pytest.raises(NpukitError, match="no successful run"):
        session.read_output(0)
    with pytest.raises(NpukitError, match="no observed run"):
        session.layers(5, 40)


def test_a_fault_tells_where_and_why(session: Session) -> None:
    session.write_input(1, STOP)
    with pytest.raises(
        DeviceFault, match="PE 5 stopped at instruction 0x00001234: bus error on a data access"
    ) as caught:
        session.run()
    assert caught.value.address == 0xDEADBEEF


def test_a_line_of_text_comes_with_the_answer_and_once(session: Session) -> None:
    session.write_input(1, TALK)
    session.run(frames=2)
    assert session.lines() == ("shifting", "shifting")
    assert session.lines() == ()


def test_inputs_of_the_wrong_size_do_not_leave_the_host(session: Session) -> None:
    with pytest.raises(NpukitError, match="input image takes 900 bytes, not 899"):
        session.write_input(0, IMAGE[:-1])
    with pytest.raises(NpukitError, match="no input 2"):
        session.write_input(2, IMAGE)


def test_memory_is_written_where_it_may_be(session: Session) -> None:
    session.write_memory(WRITABLE, IMAGE)
    assert session.read_memory(WRITABLE - 4, 904) == bytes(4) + IMAGE


@pytest.mark.parametrize(
    ("address", "size"),
    [(WRITABLE - 1, 2), (WRITABLE + 0xFFF, 2), (WRITABLE + 0x1000, 1), (0, 1), (0xFFFF_FFFF, 1)],
)
def test_memory_is_not_written_elsewhere(session: Session, address: int, size: int) -> None:
    with pytest.raises(NpukitError, match=f"may not write.*{address:#010x}"):
        session.write_memory(address, bytes(size))


def test_memory_is_not_read_elsewhere(session: Session) -> None:
    with pytest.raises(NpukitError, match="may not read"):
        session.read_memory(WRITABLE + 0xFF0, 17)
    with pytest.raises(NpukitError, match="32-bit"):
        session.read_memory(0xFFFF_FFFF, 2)


def test_a_second_host_takes_over_and_the_first_is_told(pipes: Pipes) -> None:
    first, second = Session(pipes), Session(pipes)
    first.open()
    shift(first)
    second.open()
    with pytest.raises(NpukitError, match="another host took over"):
        first.counters()
    with pytest.raises(NpukitError, match="no successful run"):
        second.read_output(0)
