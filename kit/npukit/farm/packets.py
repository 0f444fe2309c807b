"""Packets of TVM's RPC protocol (0.8.0) as Python values. A handle is a number of the server's, never an address."""

from __future__ import annotations

import struct
from dataclasses import dataclass
from enum import IntEnum
from math import prod
from typing import Any

import numpy as np

from npukit.errors import NpukitError

VERSION = "0.8.0"
LENGTH = struct.Struct("<Q")
"""Length before each packet."""


class Code(IntEnum):
    """Codes of requests and answers."""

    SHUTDOWN = 1
    INIT_SERVER = 2
    CALL = 3
    RETURN = 4
    EXCEPTION = 5
    COPY_FROM_SERVER = 6
    COPY_TO_SERVER = 7
    COPY_ACK = 8
    GET_FUNCTION = 9
    FREE_HANDLE = 10
    SET_DEVICE = 11
    GET_ATTRIBUTE = 12
    ALLOCATE = 13
    FREE_DATA = 14
    SYNCHRONISE = 15
    COPY_AMONG = 16
    ALLOCATE_SHAPED = 17
    CREATE_STREAM = 18
    FREE_STREAM = 19
    SET_STREAM = 20
    GET_STREAM = 21


class Kind(IntEnum):
    """TVM's types of values."""

    NONE = 0
    INT = 1
    BOOL = 2
    FLOAT = 3
    POINTER = 4
    DATA_TYPE = 5
    DEVICE = 6
    TENSOR = 7
    C_STRING = 8
    BYTE_ARRAY = 9
    SMALL_STRING = 11
    SMALL_BYTES = 12
    STRING = 65
    BYTES = 66
    FUNCTION = 68
    MODULE = 73


MOST_VALUES, MOST_AXES = 256, 16
"""Most values of a packet, and most axes of a tensor."""
DTYPES = {
    **{(0, bits): f"int{bits}" for bits in (8, 16, 32, 64)},
    **{(1, bits): f"uint{bits}" for bits in (8, 16, 32, 64)},
    (2, 32): "float32",
    (2, 64): "float64",
    (6, 8): "bool",
}
"""Types of elements, by TVM's code and bits."""


@dataclass(frozen=True)
class Handle:
    """A client's number for an object that the server holds; 0 for nothing."""

    number: int


@dataclass(frozen=True)
class RemoteTensor:
    """A part of a client's allocation."""

    data: Handle
    dtype: str
    shape: tuple[int, ...]
    offset: int

    @property
    def bytes(self) -> int:
        return prod(self.shape) * np.dtype(self.dtype).itemsize


class ClientPacket:
    """A packet from a client, read from the front."""

    def __init__(self, data: bytes) -> None:
        self._data, self._place = memoryview(data), 0

    def take(self, count: int) -> bytes:
        if not 0 <= count <= len(self._data) - self._place:
            raise NpukitError("the packet ends before what it announces")
        self._place += count
        return bytes(self._data[self._place - count : self._place])

    def number(self, form: str) -> Any:
        (value,) = struct.unpack(f"<{form}", self.take(struct.calcsize(f"<{form}")))
        return value

    def sized(self) -> bytes:
        return self.take(self.number("Q"))

    def handle(self) -> Handle:
        return Handle(self.number("Q"))

    def tensor(self) -> RemoteTensor:
        data, _ = self.handle(), self.take(8)
        axes, code, bits, lanes = self.number("i"), self.number("B"), self.number("B"), self.number("H")
        if not 0 <= axes <= MOST_AXES or (code, bits) not in DTYPES or lanes != 1:
            raise NpukitError("a tensor of no kind that the server has")
        shape = tuple(self.number("q") for _ in range(axes))
        if min(shape, default=0) < 0:
            raise NpukitError(f"a tensor has no shape {list(shape)}")
        return RemoteTensor(data, DTYPES[code, bits], shape, self.number("Q"))

    def values(self) -> list[Any]:
        """The arguments of a call."""
        count = self.number("i")
        if not 0 <= count <= MOST_VALUES:
            raise NpukitError(f"a packet has at most {MOST_VALUES} values")
        return [self._value(self.number("i")) for _ in range(count)]

    def _value(self, kind: int) -> Any:
        match kind:
            case Kind.NONE:
                return None
            case Kind.INT | Kind.BOOL:
                return self.number("q")
            case Kind.FLOAT:
                return self.number("d")
            case Kind.POINTER | Kind.FUNCTION | Kind.MODULE:
                return self.handle()
            case Kind.DATA_TYPE | Kind.DEVICE:
                return self.take(8)
            case Kind.TENSOR:
                return self.tensor()
            case Kind.C_STRING:
                return self.sized().decode()
            case Kind.BYTE_ARRAY:
                return self.sized()
            case Kind.STRING | Kind.BYTES | Kind.SMALL_STRING | Kind.SMALL_BYTES:
                return self._text(self.number("I"))
            case _:
                raise NpukitError(f"a value of kind {kind}, which clients of this server have none of")

    def _text(self, kind: int) -> Any:
        if kind not in (Kind.STRING, Kind.BYTES):
            raise NpukitError("an object, which clients of this server have none of")
        return self.sized().decode() if kind == Kind.STRING else self.sized()


def packet(code: Code, body: bytes) -> bytes:
    return LENGTH.pack(4 + len(body)) + struct.pack("<i", code) + body


def returned(*values: Any) -> bytes:
    """Packet with the results of a request."""
    return packet(Code.RETURN, struct.pack("<i", len(values)) + b"".join(map(_packed, values)))


def raised(message: str) -> bytes:
    """Packet with an error."""
    return packet(Code.EXCEPTION, struct.pack("<i", 1) + _packed(message))


def _packed(value: Any) -> bytes:
    if value is None:
        return struct.pack("<i", Kind.NONE)
    if isinstance(value, int):
        return struct.pack("<iq", Kind.INT, value)
    if isinstance(value, Handle):
        return struct.pack("<iQ", Kind.POINTER, value.number)
    kind, data = (Kind.C_STRING, value.encode()) if isinstance(value, str) else (Kind.BYTE_ARRAY, value)
    return struct.pack("<iQ", kind, len(data)) + data
