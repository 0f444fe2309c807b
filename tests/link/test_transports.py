"""Serial ports by name and by URL, with the C server at the other end."""

from __future__ import annotations

import os
import select
import socket
import subprocess
import threading
import tty
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, suppress
from pathlib import Path

import pytest
import serial
from serial import rfc2217
from serial.tools.list_ports_common import ListPortInfo

from npukit.board.board import Uart, load_board
from npukit.errors import NpukitError
from npukit.link.session import Session
from npukit.link.transports import open_serial
from npukit.progress import Silent

UART = Uart(base=0, baud=115_200)
IMAGE = bytes(i * 5 % 256 for i in range(900))


@pytest.fixture
def serial_device(device_program: Path) -> Iterator[str]:
    """A pseudo-terminal with the device at its other end."""
    ours, theirs = os.openpty()
    tty.setraw(theirs)
    process = subprocess.Popen([device_program], stdin=ours, stdout=ours, stderr=subprocess.DEVNULL)
    yield os.ttyname(theirs)
    process.kill()
    process.wait(10)
    os.close(ours)
    os.close(theirs)


@pytest.fixture
def socket_url(device_program: Path) -> Iterator[str]:
    with socket.create_server(("127.0.0.1", 0)) as server:
        thread = threading.Thread(target=serve_one, args=(server, device_program))
        thread.start()
        yield f"socket://127.0.0.1:{server.getsockname()[1]}"
        thread.join(10)


def serve_one(server: socket.socket, program: Path) -> None:
    connection, _ = server.accept()
    with connection:
        subprocess.run(
            [program], stdin=connection.fileno(), stdout=connection.fileno(), stderr=subprocess.DEVNULL, timeout=20
        )


def shift(port: str) -> bytes:
    with Session(open_serial(port, UART)) as session:
        session.write_input(0, IMAGE)
        session.write_input(1, b"\1\0")
        session.run()
        return session.read_output(0)


def test_over_a_serial_device(serial_device: str) -> None:
    assert shift(serial_device) == bytes((byte + 1) % 256 for byte in IMAGE)


def test_over_a_socket(socket_url: str) -> None:
    assert shift(socket_url) == bytes((byte + 1) % 256 for byte in IMAGE)


class Told(Silent):
    """Record of the stages shown."""

    def __init__(self) -> None:
        self.stages = list[str]()

    def stage(self, name: str) -> None:
        self.stages.append(name)


def test_a_socket_that_opens_soon_is_waited_for() -> None:
    """`npukit emulate --port` writes the board's flash before it listens."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        address = free.getsockname()
    told, servers = Told(), list[socket.socket]()
    later = threading.Timer(0.4, lambda: servers.append(socket.create_server(address)))
    later.start()
    with closing(open_serial(f"socket://127.0.0.1:{address[1]}", UART, told)):
        pass
    later.join()
    servers[0].close()
    assert told.stages == [f"wait for socket://127.0.0.1:{address[1]} to open"]


def test_a_device_that_appears_soon_is_waited_for(tmp_path: Path) -> None:
    ours, theirs = os.openpty()
    later = threading.Timer(0.4, lambda: (tmp_path / "ttyACM9").symlink_to(os.ttyname(theirs)))
    later.start()
    with closing(open_serial(str(tmp_path / "ttyACM9"), UART, told := Told())):
        pass
    assert told.stages == [f"wait for {tmp_path / 'ttyACM9'} to open"]
    os.close(ours)
    os.close(theirs)


def test_a_port_that_is_not_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("npukit.link.transports.OPENING_SECONDS", 0.2)
    with pytest.raises(NpukitError, match="cannot be opened") as caught:
        open_serial(str(tmp_path / "ttyACM9"), UART)
    assert caught.value.tries


def test_a_url_of_no_known_kind() -> None:
    with pytest.raises(NpukitError, match="carrier-pigeon://roof cannot be opened"):
        open_serial("carrier-pigeon://roof", UART)


def test_a_device_that_is_pulled_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("npukit.link.transports._BROKEN_SECONDS", 0.2)
    with socket.create_server(("127.0.0.1", 0)) as server:
        transport = open_serial(f"socket://127.0.0.1:{server.getsockname()[1]}", UART)
        server.accept()[0].close()
    with pytest.raises(NpukitError, match=r"the link over socket://.* broke"):
        Session(transport).open()
    transport.close()


def test_a_line_that_is_cut_again_and_again_ends_in_an_error() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server, ThreadPoolExecutor(1) as pool:
        server.settimeout(3)

        def hang_up() -> None:
            with suppress(TimeoutError):  # the session gives up
                while True:
                    server.accept()[0].close()

        ended = pool.submit(hang_up)
        transport = open_serial(f"socket://127.0.0.1:{server.getsockname()[1]}", UART)
        with pytest.raises(NpukitError, match=r"did not answer|broke"):
            Session(transport, answer_seconds=1).open()
        ended.result()
        transport.close()


def relay(source: socket.socket, process: subprocess.Popen[bytes], room: int) -> None:
    """Carry at most `room` bytes from the device, then cut the line."""
    assert process.stdin is not None
    assert process.stdout is not None
    with source:
        while room > 0:
            readable = select.select([source, process.stdout], [], [], 10)[0]
            if source in readable:
                data = source.recv(4096)
                if not data:
                    return
                process.stdin.write(data)
                process.stdin.flush()
            if process.stdout in readable:
                data = os.read(process.stdout.fileno(), room)
                room -= len(data)
                source.sendall(data)


@pytest.mark.parametrize("bytes_at_a_time", [700, 1100])
def test_a_transfer_goes_on_when_the_line_comes_back(device_program: Path, bytes_at_a_time: int) -> None:
    """One device and one session over a line that is cut every `bytes_at_a_time` bytes."""
    process = subprocess.Popen([device_program], stdin=-1, stdout=-1, stderr=subprocess.DEVNULL, bufsize=0)
    cuts = []
    with socket.create_server(("127.0.0.1", 0)) as server:

        def serve() -> None:
            for _ in range(60):
                connection = server.accept()[0]
                cuts.append(connection)
                relay(connection, process, bytes_at_a_time)

        threading.Thread(target=serve, daemon=True).start()
        with Session(open_serial(f"socket://127.0.0.1:{server.getsockname()[1]}", UART)) as session:
            session.write_input(0, IMAGE)
            session.write_input(1, b"\1\0")
            session.run(observe=True)
            assert session.read_output(0) == bytes((byte + 1) % 256 for byte in IMAGE)
            assert len(session.layers(5, 40)) == 40
    assert len(cuts) > 2
    process.kill()
    process.wait(10)


@pytest.mark.filterwarnings("ignore::DeprecationWarning:serial")
def test_over_rfc2217(device_program: Path) -> None:
    """A serial device shared by another machine, through pyserial's server of the protocol."""
    ours, theirs = os.openpty()
    tty.setraw(theirs)
    process = subprocess.Popen([device_program], stdin=ours, stdout=ours, stderr=subprocess.DEVNULL)
    with socket.create_server(("127.0.0.1", 0)) as server:
        threading.Thread(target=share, args=(server, os.ttyname(theirs)), daemon=True).start()
        shifted = shift(f"rfc2217://127.0.0.1:{server.getsockname()[1]}")
    assert shifted == bytes((byte + 1) % 256 for byte in IMAGE)
    process.kill()
    process.wait(10)
    os.close(ours)
    os.close(theirs)


class Terminal(serial.Serial):
    """A pseudo-terminal has no modem lines."""

    cts = dsr = ri = cd = False  # pyright: ignore

    def _update_dtr_state(self) -> None: ...

    def _update_rts_state(self) -> None: ...


def share(server: socket.socket, name: str) -> None:
    """Carry bytes between a serial device and the network as RFC 2217 says."""
    connection = server.accept()[0]
    with connection, Terminal(name, timeout=0) as device:
        manager = rfc2217.PortManager(device, SocketWriter(connection))  # pyright: ignore[reportArgumentType]
        with suppress(OSError):
            while True:
                if select.select([connection], [], [], 0.01)[0]:
                    data = connection.recv(1024)
                    if not data:
                        return
                    device.write(b"".join(manager.filter(data)))
                connection.sendall(b"".join(manager.escape(device.read(4096))))


class SocketWriter:
    """Writer for the server's side of the negotiation, as pyserial expects."""

    def __init__(self, connection: socket.socket) -> None:
        self._connection = connection

    def write(self, data: bytes) -> None:
        self._connection.sendall(data)


def test_a_device_that_says_nothing_takes_no_longer_than_it_may() -> None:
    ours, theirs = os.openpty()
    tty.setraw(theirs)
    with pytest.raises(NpukitError, match="did not answer: nothing came back"):
        Session(open_serial(os.ttyname(theirs), UART), answer_seconds=0.3).open()
    os.close(ours)
    os.close(theirs)


def port(device: str, usb: tuple[int, int] | None, description: str = "n/a") -> ListPortInfo:
    found = ListPortInfo(device, skip_link_detection=True)
    found.vid, found.pid = usb or (None, None)
    found.description = description
    return found


MICROBIT = port("/dev/ttyACM1", (0x0D28, 0x0204), "BBC micro:bit CMSIS-DAP")
OWN = port("/dev/ttyS0", None)
ADAPTER = port("loop://", (0x0403, 0x6001), "FT232R USB UART")


def plugged(ports: list[ListPortInfo], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("npukit.link.transports.list_ports.comports", lambda: ports)


def test_a_board_that_is_not_there(monkeypatch: pytest.MonkeyPatch) -> None:
    """Serial ports outside USB belong to the machine."""
    plugged([OWN], monkeypatch)
    with pytest.raises(NpukitError, match="no board is plugged in"):
        open_serial("serial", UART)


def test_of_two_boards_which_is_meant_is_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    plugged([OWN, ADAPTER, MICROBIT], monkeypatch)
    with pytest.raises(NpukitError, match="2 boards are plugged in") as error:
        open_serial("serial", load_board("pe-mesh").uart)
    assert error.value.facts == (
        "/dev/ttyACM1: BBC micro:bit CMSIS-DAP, 0d28:0204, as has microbit",
        "loop://: FT232R USB UART, 0403:6001",
    )
    assert error.value.tries == ("/dev/ttyACM1 instead of serial", "loop:// instead of serial")


@pytest.mark.parametrize(
    ("usb", "ports"), [((), [OWN, ADAPTER]), (("0d28",), [ADAPTER]), (("0403:6001", "1366"), [MICROBIT, ADAPTER])]
)
def test_the_board_is_found(usb: tuple[str, ...], ports: list[ListPortInfo], monkeypatch: pytest.MonkeyPatch) -> None:
    """The board is found by the USB numbers of its UART, otherwise as the only device on USB."""
    plugged(ports, monkeypatch)
    line = open_serial("serial", UART.model_copy(update={"usb": usb}))
    line.write(b"to itself")
    assert line.read(1) == b"to itself"
    line.close()
