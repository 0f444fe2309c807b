"""Malicious clients of a board server: they get errors, and the next client finds the server unchanged."""

from __future__ import annotations

import random
import socket
import struct
import subprocess
import sys
import tarfile
from collections.abc import Callable, Iterator
from contextlib import suppress
from io import BytesIO
from pathlib import Path
from typing import Any, cast

import numpy as np
import pytest

from npukit.errors import NpukitError
from npukit.farm import session as sessions
from npukit.farm.packets import VERSION, Code, Kind
from npukit.farm.served import MOST_FRAMES, ServedBoard
from npukit.farm.server import Server, functions_of
from npukit.farm.session import FarmSession
from npukit.farm.trials import unpacked

KEY = "board"
CPU = struct.pack("<iii", Kind.DEVICE, 1, 0)


class Board:
    """A board whose network doubles its input."""

    closed = False

    def describe(self) -> dict[str, Any]:
        return {"inputs": [{}], "outputs": [{}]}

    def run(self, inputs: Any) -> list[np.ndarray]:
        return [2 * inputs[0]]

    def bench(self, frames: int) -> dict[str, Any]:
        return {"frames": frames}

    def trial(self, archive: bytes) -> dict[str, Any]:
        return {"bytes": len(archive)}

    def reset(self) -> None:
        """Do nothing: the network has no state."""

    def close(self) -> None:
        self.closed = True


def functions(*, trials: bool = False) -> dict[str, Any]:
    return functions_of(cast(ServedBoard, Board()), trials=trials)


@pytest.fixture
def session() -> FarmSession:
    return FarmSession(functions())


def ask(session: FarmSession, code: int, body: bytes = b"") -> bytes:
    answer = session.answer(struct.pack("<i", code) + body)
    assert answer is not None
    assert struct.unpack_from("<Q", answer)[0] == len(answer) - 8
    return answer[8:]


def code_of(answer: bytes) -> int:
    return struct.unpack_from("<i", answer)[0]


def values(*parts: bytes) -> bytes:
    return struct.pack("<i", len(parts)) + b"".join(parts)


def text(word: str) -> bytes:
    return struct.pack("<iQ", Kind.C_STRING, len(word)) + word.encode()


def number(value: int) -> bytes:
    return struct.pack("<iq", Kind.INT, value)


def handle(value: int, kind: int = Kind.POINTER) -> bytes:
    return struct.pack("<iQ", kind, value)


def tensor(data: int, *shape: int, offset: int = 0, code: int = 2, bits: int = 32, lanes: int = 1) -> bytes:
    head = struct.pack("<QiiiBBH", data, 1, 0, len(shape), code, bits, lanes)
    return head + struct.pack(f"<{len(shape)}qQ", *shape, offset)


def given(answer: bytes) -> int:
    """The handle in an answer."""
    count, kind, found = struct.unpack_from("<iiQ", answer, 4)
    assert (code_of(answer), count, kind) == (Code.RETURN, 1, Kind.POINTER)
    return found


def function(session: FarmSession, name: str) -> int:
    return given(ask(session, Code.GET_FUNCTION, values(text(name))))


def allocated(session: FarmSession, size: int) -> int:
    data_type = struct.pack("<iBBHi", Kind.DATA_TYPE, 2, 32, 1, 0)
    return given(ask(session, Code.ALLOCATE, values(CPU, number(size), number(64), data_type)))


def test_what_a_client_is_meant_to_do_it_can(session: FarmSession) -> None:
    version = struct.pack("<Q", len(VERSION)) + VERSION.encode()
    assert code_of(ask(session, Code.INIT_SERVER, version + values())) == Code.RETURN
    source, target = allocated(session, 12), allocated(session, 12)
    sent = np.array([1, 2, 3], np.float32).tobytes()
    copied = ask(session, Code.COPY_TO_SERVER, tensor(source, 3) + struct.pack("<Q", 12) + sent)
    assert code_of(copied) == Code.RETURN
    run = struct.pack("<Q", function(session, "npukit.run"))
    arguments = [struct.pack("<i", Kind.TENSOR) + tensor(each, 3) for each in (source, target)]
    assert code_of(ask(session, Code.CALL, run + values(*arguments))) == Code.RETURN
    back = ask(session, Code.COPY_FROM_SERVER, tensor(target, 3) + struct.pack("<Q", 12))
    assert np.frombuffer(back[4:], np.float32).tolist() == [2, 4, 6]


@pytest.mark.parametrize(
    "name",
    [
        *(
            "tvm.rpc.server.upload",
            "tvm.rpc.server.load_module",
            "tvm.rpc.server.ImportModule",
            "ffi.ModuleLoadFromFile",
        ),
        *("runtime.ModuleLoadFromFile", "testing.echo", "ffi.FunctionListGlobalNamesFunctor", "rpc.Connect"),
        *("npukit.trial", "__import__", "os.system", ""),
    ],
)
def test_no_function_is_there_but_those_of_the_network(session: FarmSession, name: str) -> None:
    assert function(session, name) == 0


def test_other_builds_only_if_the_server_says_so() -> None:
    assert function(FarmSession(functions(trials=True)), "npukit.trial") != 0


ADDRESS = id(ADDRESSED := bytearray(4096))
"""An address inside the server's memory."""

REQUESTS: dict[str, Callable[[FarmSession], bytes]] = {
    "a call of an address": lambda s: ask(s, Code.CALL, struct.pack("<Q", ADDRESS) + values()),
    "a call of nothing": lambda s: ask(s, Code.CALL, struct.pack("<Q", 0) + values()),
    "a call of memory": lambda s: ask(s, Code.CALL, struct.pack("<Q", allocated(s, 64)) + values()),
    "an address read": lambda s: ask(s, Code.COPY_FROM_SERVER, tensor(ADDRESS, 4) + struct.pack("<Q", 16)),
    "an address written": lambda s: ask(s, Code.COPY_TO_SERVER, tensor(ADDRESS, 4) + struct.pack("<Q", 4) + b"evil"),
    "an address passed": lambda s: ask(
        s,
        Code.CALL,
        struct.pack("<Q", function(s, "npukit.run"))
        + values(*2 * [struct.pack("<i", Kind.TENSOR) + tensor(ADDRESS, 4)]),
    ),
    "a function read": lambda s: ask(
        s, Code.COPY_FROM_SERVER, tensor(function(s, "npukit.run"), 4) + struct.pack("<Q", 16)
    ),
    "behind the end": lambda s: ask(s, Code.COPY_FROM_SERVER, tensor(allocated(s, 64), 4) + struct.pack("<Q", 65)),
    "far behind the end": lambda s: ask(
        s, Code.COPY_FROM_SERVER, tensor(allocated(s, 64), 4, offset=(1 << 64) - 4) + struct.pack("<Q", 4)
    ),
    "before the beginning": lambda s: ask(
        s, Code.COPY_FROM_SERVER, tensor(allocated(s, 64), -4) + struct.pack("<Q", 4)
    ),
    "more than is sent": lambda s: ask(
        s, Code.COPY_TO_SERVER, tensor(allocated(s, 64), 4) + struct.pack("<Q", 64) + b"x"
    ),
    "all memory": lambda s: ask(s, Code.ALLOCATE, values(CPU, number(1 << 40), number(64))),
    "less than no memory": lambda s: ask(s, Code.ALLOCATE, values(CPU, number(-1), number(64))),
    "a huge tensor": lambda s: ask(
        s, Code.ALLOCATE_SHAPED, values(struct.pack("<i", Kind.TENSOR) + tensor(0, 1 << 40, 1 << 40))
    ),
    "vectors": lambda s: ask(s, Code.COPY_FROM_SERVER, tensor(allocated(s, 64), 4, lanes=4) + struct.pack("<Q", 4)),
    "many axes": lambda s: ask(s, Code.COPY_FROM_SERVER, tensor(allocated(s, 64), *[1] * 99) + struct.pack("<Q", 4)),
    "a billion values": lambda s: ask(s, Code.GET_FUNCTION, struct.pack("<i", 1 << 30)),
    "an object": lambda s: ask(s, Code.GET_FUNCTION, values(struct.pack("<iIQ", 129, 129, ADDRESS))),
    "a text of 16 EB": lambda s: ask(s, Code.GET_FUNCTION, values(struct.pack("<iQ", Kind.C_STRING, (1 << 64) - 1))),
    "a session elsewhere": lambda s: ask(
        s,
        Code.INIT_SERVER,
        struct.pack("<Q5s", 5, VERSION.encode()) + values(text("rpc.Connect"), text("10.0.0.1")),
    ),
    "another version": lambda s: ask(s, Code.INIT_SERVER, struct.pack("<Q5s", 5, b"9.9.9") + values()),
    "no such request": lambda s: ask(s, 99),
    "nothing": lambda s: ask(s, Code.CALL),
    "a network of numbers": lambda s: ask(
        s, Code.CALL, struct.pack("<Q", function(s, "npukit.run")) + values(number(ADDRESS), number(ADDRESS))
    ),
}


@pytest.mark.parametrize("what", REQUESTS)
def test_a_request_that_goes_too_far_is_an_error(session: FarmSession, what: str) -> None:
    assert code_of(REQUESTS[what](session)) == Code.EXCEPTION
    assert allocated(session, 1 << 20), "the session goes on"
    assert not any(ADDRESSED)


def test_what_is_allocated_in_parts_is_bounded(session: FarmSession, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sessions, "MOST_CLIENT_BYTES", 1000)
    monkeypatch.setattr(sessions, "MOST_HELD", 8)
    first = allocated(session, 600)
    assert code_of(ask(session, Code.ALLOCATE, values(CPU, number(600), number(64)))) == Code.EXCEPTION
    ask(session, Code.FREE_DATA, values(CPU, handle(first)))
    for _ in range(8):
        allocated(session, 100)
    assert code_of(ask(session, Code.GET_FUNCTION, values(text("npukit.run")))) == Code.EXCEPTION


def test_frames_without_end_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(NpukitError, match="a request is of 1 to"):
        ServedBoard(Path("nowhere"), None).bench(MOST_FRAMES + 1)


def test_twenty_thousand_packets_of_chance() -> None:
    """Valid requests with bytes changed, cut and repeated: the session answers each, and still works afterwards."""
    chance, session = random.Random(16), FarmSession(functions())
    held = [function(session, "npukit.run"), allocated(session, 64)]
    good = [
        struct.pack("<i", Code.CALL) + struct.pack("<Q", held[0]) + values(handle(held[1]), text("x"), number(1)),
        struct.pack("<i", Code.COPY_TO_SERVER) + tensor(held[1], 4) + struct.pack("<Q", 4) + b"data",
        struct.pack("<i", Code.COPY_FROM_SERVER) + tensor(held[1], 4) + struct.pack("<Q", 4),
        struct.pack("<i", Code.GET_FUNCTION) + values(text("npukit.run")),
        struct.pack("<i", Code.COPY_AMONG) + values(*2 * [struct.pack("<i", Kind.TENSOR) + tensor(held[1], 4)]),
    ]
    codes = set()
    for _ in range(20_000):
        packet = bytearray(chance.choice(good))
        for _ in range(chance.randrange(1, 4)):
            packet[chance.randrange(len(packet))] = chance.choice((0, 1, 127, 128, 255, chance.randrange(256)))
        answer = session.answer(bytes(packet[: chance.choice((len(packet), chance.randrange(1, len(packet))))]))
        codes.add(None if answer is None else code_of(answer[8:]))
        if len(codes) and chance.random() < 0.01:
            session = FarmSession(functions())
            function(session, "npukit.run")
            allocated(session, 64)
    assert {Code.RETURN, Code.EXCEPTION} < codes
    assert not any(ADDRESSED)


# Over the wire


@pytest.fixture
def server() -> Iterator[Server]:
    board = Board()
    started = Server(cast(ServedBoard, board), "127.0.0.1", 9600, KEY, trials=False)
    yield started
    started.close()
    assert board.closed


def connected(server: Server) -> socket.socket:
    return socket.create_connection(("127.0.0.1", server.port), 20)


def greeting(word: str, magic: int = 0xFF271) -> bytes:
    return struct.pack("<ii", magic, len(word)) + word.encode()


@pytest.mark.parametrize(
    "sent",
    [
        b"GET / HTTP/1.1\r\n\r\n",
        greeting(f"client:{KEY}", magic=1),
        greeting("client:another"),
        greeting(""),
        struct.pack("<ii", 0xFF271, -1),
        struct.pack("<ii", 0xFF271, 1 << 30),
        greeting(f"client:{KEY}") + struct.pack("<Q", 1 << 62),
        greeting(f"client:{KEY}") + struct.pack("<Q", 1 << 20) + b"a part",
        greeting(f"client:{KEY}") + struct.pack("<Qi", 4, Code.SHUTDOWN),
        b"",
    ],
)
def test_whoever_comes_next_is_served(server: Server, sent: bytes) -> None:
    with connected(server) as evil, suppress(OSError):  # the server may already have closed the socket
        evil.sendall(sent)
        evil.shutdown(socket.SHUT_WR)
        while evil.recv(1024):
            pass
    with connected(server) as good:
        good.sendall(greeting(f"client:{KEY}"))
        assert good.recv(4) == struct.pack("<i", 0xFF271)


CLIENT = """
import sys
import tvm
from tvm import rpc

remote = rpc.connect("127.0.0.1", int(sys.argv[1]), key=sys.argv[2])
for attack in (
    lambda: remote.upload(bytearray(b"evil"), "evil.so"),
    lambda: remote.load_module("evil.so"),
    lambda: remote.get_function("ffi.ModuleLoadFromFile")("evil.so"),
    lambda: remote.get_function("runtime.ModuleLoadFromFile")("evil.so"),
    lambda: remote.system_lib()["__tvm_main__"],
    lambda: remote.system_lib().import_module(remote.system_lib()),
):
    try:
        attack()
    except Exception as error:
        print(type(error).__name__)
    else:
        print("DONE")
print(remote.get_function("npukit.describe")())
"""


@pytest.mark.exhaustive
def test_a_client_of_tvm_finds_nothing_to_load_code_with(server: Server) -> None:
    command = [sys.executable, "-c", CLIENT, str(server.port), KEY]
    said = subprocess.run(command, capture_output=True, text=True, timeout=120, check=True).stdout.splitlines()
    assert "DONE" not in said
    assert said[-1] == '{"inputs": [{}], "outputs": [{}]}'


def test_an_archive_that_unpacks_to_more_than_a_build_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    stream = BytesIO()
    with tarfile.open(fileobj=stream, mode="w:gz") as archive:
        member = tarfile.TarInfo("zeros")
        member.size = 1 << 20
        archive.addfile(member, BytesIO(bytes(member.size)))
    monkeypatch.setattr("npukit.farm.trials.MOST_FOLDER_BYTES", 1000)
    with pytest.raises(NpukitError, match="more than the 1,000 bytes"), unpacked(stream.getvalue()):
        pass


@pytest.mark.parametrize(
    ("name", "kind"), [("../out", tarfile.REGTYPE), ("/out", tarfile.REGTYPE), ("a", tarfile.SYMTYPE)]
)
def test_an_archive_of_anything_but_files_of_a_folder_is_refused(name: str, kind: bytes) -> None:
    stream = BytesIO()
    with tarfile.open(fileobj=stream, mode="w:gz") as archive:
        member = tarfile.TarInfo(name)
        member.type, member.linkname = kind, "/etc"
        archive.addfile(member, BytesIO())
    with pytest.raises(NpukitError, match="no file of a build folder"), unpacked(stream.getvalue()):
        pass
