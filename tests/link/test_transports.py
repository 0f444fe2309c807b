"""Serial ports by name and by URL, with the C server at the other end."""

from __future__ import annotations

import os
import socket
import subprocess
import threading
import tty
from collections.abc import Iterator
from pathlib import Path

import pytest

from npukit.errors import NpukitError
from npukit.link.session import Session
from npukit.link.transports import open_serial

IMAGE = bytes(i * 5 % 256 for i in range(900))


@pytest.fixture
def serial_device(device_program: Path) -> Iterator[str]:
    """A terminal whose other end is the device."""
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
    with Session(open_serial(port, 115_200)) as session:
        session.write_input(0, IMAGE)
        session.write_input(1, b"\1\0")
        session.run()
        return session.read_output(0)


def test_over_a_serial_device(serial_device: str) -> None:
    assert shift(serial_device) == bytes((byte + 1) % 256 for byte in IMAGE)


def test_over_a_socket(socket_url: str) -> None:
    assert shift(socket_url) == bytes((byte + 1) % 256 for byte in IMAGE)


def test_a_port_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(NpukitError, match="cannot be opened") as caught:
        open_serial(str(tmp_path / "ttyACM9"), 115_200)
    assert caught.value.tries


def test_a_url_of_no_known_kind() -> None:
    with pytest.raises(NpukitError, match="carrier-pigeon://roof cannot be opened"):
        open_serial("carrier-pigeon://roof", 115_200)


def test_a_device_that_is_pulled_out() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        transport = open_serial(f"socket://127.0.0.1:{server.getsockname()[1]}", 115_200)
        server.accept()[0].close()
        with pytest.raises(NpukitError, match=r"the link over socket://.* broke"):
            Session(transport).open()
        transport.close()


def test_a_device_that_says_nothing_takes_no_longer_than_it_may() -> None:
    ours, theirs = os.openpty()
    tty.setraw(theirs)
    with pytest.raises(NpukitError, match="did not answer: nothing came back"):
        Session(open_serial(os.ttyname(theirs), 115_200), answer_seconds=0.3).open()
    os.close(ours)
    os.close(theirs)
