"""The host's session with the C server."""

from __future__ import annotations

import zlib
from collections.abc import Iterator

import pytest

from link.device_process import Pipes
from npukit.errors import DoesNotFit, NpukitError
from npukit.link.fault import DeviceFault
from npukit.link.session import Session

BUILD_ID = bytes(range(16))
IMAGE = bytes(i * 7 % 256 for i in range(900))
SHIFT_BY_3, FAIL, STOP = b"\x03\0", b"\0\1", b"\0\2"
SHIFTED = bytes((byte + 3) % 256 for byte in IMAGE)
WRITABLE = 0x2000_1000


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
    assert after.cycles - before.cycles == 2 * plain.cycles + 40 * 500  # what the observer took


def test_layers_of_an_observed_run(session: Session) -> None:
    shift(session, observe=True)
    digests, counters = session.layer_digests(), session.layer_counters()
    assert digests[0] == zlib.crc32(SHIFTED)
    assert digests[1:] == tuple(zlib.crc32(bytes([(SHIFTED[0] + i) % 256])) for i in range(1, 40))
    assert [c.cycles for c in counters] == [1000, *(8 * i for i in range(1, 39)), 0xFFFF_FFFF]
    assert (counters[5].instructions, counters[5].asleep) == (20, 10)


def test_layers_need_an_observed_run(session: Session) -> None:
    shift(session)
    with pytest.raises(NpukitError, match="no observed run"):
        session.layer_digests()


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
        session.layer_digests()


def test_a_fault_tells_where_and_why(session: Session) -> None:
    session.write_input(1, STOP)
    with pytest.raises(
        DeviceFault, match="PE 5 stopped at instruction 0x00001234: bus error on a data access"
    ) as caught:
        session.run()
    assert caught.value.address == 0xDEADBEEF


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
