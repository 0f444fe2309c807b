"""A client of a server: the functions to call, by name, and the objects held, by number."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from itertools import count
from typing import Any

import numpy as np

from npukit.errors import NpukitError
from npukit.farm.packets import VERSION, ClientPacket, Code, Handle, Kind, RemoteTensor, packet, raised, returned

MOST_CLIENT_BYTES = 256 << 20
"""Most bytes of a client's allocations, and of a packet."""
MOST_HELD = 1 << 16
"""Most handles of a client."""

Function = Callable[..., Any]
"""A function for clients. Takes numbers, texts, bytes and arrays, and may set elements of arrays. Returns None, a text,
bytes or a function."""


class ClientModule:
    """The network's functions as a module, for clients."""


NETWORK = ClientModule()


class FarmSession:
    """Answers a client's packets. A client's value is never used as an address, a file or code. An unknown name or
    number is an error."""

    def __init__(self, functions: Mapping[str, Function]) -> None:
        self._functions = functions
        self._held: dict[int, Any] = {}
        self._numbers = count(16)
        self._answers: Mapping[Code, Callable[[ClientPacket], bytes]] = {
            Code.INIT_SERVER: self._begin,
            Code.CALL: self._call,
            Code.GET_FUNCTION: self._function,
            Code.COPY_TO_SERVER: self._copy_in,
            Code.COPY_FROM_SERVER: self._copy_out,
            Code.COPY_AMONG: self._copy_among,
            Code.ALLOCATE: lambda asked: self._allocate(asked.values()[1]),
            Code.ALLOCATE_SHAPED: lambda asked: self._allocate(asked.values()[0].bytes),
            Code.FREE_DATA: self._free,
            Code.FREE_HANDLE: self._free,
            Code.GET_ATTRIBUTE: lambda asked: returned(None),
            Code.CREATE_STREAM: lambda asked: returned(Handle(0)),
            Code.GET_STREAM: lambda asked: returned(Handle(0)),
            **dict.fromkeys(
                (Code.SET_DEVICE, Code.SYNCHRONISE, Code.FREE_STREAM, Code.SET_STREAM),
                lambda asked: returned(None),
            ),
        }

    def answer(self, data: bytes) -> bytes | None:
        """The answer to a packet; None if the client leaves."""
        asked = ClientPacket(data)
        try:
            code = asked.number("i")
            if code == Code.SHUTDOWN:
                return None
            if code not in self._answers:
                raise NpukitError(f"the server does not know request {code}")
            return self._answers[Code(code)](asked)
        except NpukitError as error:
            return raised(error.message + (f". Things to try: {'; '.join(error.tries)}" if error.tries else ""))
        except Exception as error:  # malformed requests must not change the server for the next client
            return raised(f"the request makes no sense: {type(error).__name__}: {error}")

    def _begin(self, asked: ClientPacket) -> bytes:
        version, wanted = asked.sized().decode(), asked.values()
        if version != VERSION:
            raise NpukitError(f"the client speaks version {version} of TVM's RPC, the server {VERSION}")
        if wanted not in ([], ["rpc.LocalSession"]):
            raise NpukitError("the server makes no sessions elsewhere")
        return returned(None)

    def _function(self, asked: ClientPacket) -> bytes:
        (name,) = asked.values()
        found = self._functions.get(name)
        return returned(self._hold(found) if found else Handle(0))

    def _call(self, asked: ClientPacket) -> bytes:
        function = self._of(asked.handle())
        if not callable(function):
            raise NpukitError("the handle is not that of a function")
        result = function(*map(self._decoded, asked.values()))
        if result is None:
            return returned(int(Kind.NONE), None)
        if isinstance(result, str | bytes):
            return returned(int(Kind.STRING if isinstance(result, str) else Kind.BYTES), result)
        return returned(int(Kind.MODULE if isinstance(result, ClientModule) else Kind.FUNCTION), self._hold(result))

    def _decoded(self, value: Any) -> Any:
        if isinstance(value, RemoteTensor):
            return np.frombuffer(self._part(value, value.bytes), value.dtype).reshape(value.shape)
        return self._of(value) if isinstance(value, Handle) else value

    def _allocate(self, size: int) -> bytes:
        taken = sum(len(each) for each in self._held.values() if isinstance(each, bytearray))
        if not 0 <= size <= MOST_CLIENT_BYTES - taken:
            raise NpukitError(f"a client of this server has at most {MOST_CLIENT_BYTES:,} bytes")
        return returned(self._hold(bytearray(size)))

    def _free(self, asked: ClientPacket) -> bytes:
        """Free a handle. The request has the handle, or a device and the handle."""
        self._held.pop(asked.values()[-1].number, None)
        return returned(None)

    def _copy_in(self, asked: ClientPacket) -> bytes:
        tensor, size = asked.tensor(), asked.number("Q")
        self._part(tensor, size)[:] = asked.take(size)
        return returned(None)

    def _copy_out(self, asked: ClientPacket) -> bytes:
        tensor, size = asked.tensor(), asked.number("Q")
        return packet(Code.COPY_ACK, bytes(self._part(tensor, size)))

    def _copy_among(self, asked: ClientPacket) -> bytes:
        source, target, *_ = asked.values()
        self._part(target, source.bytes)[:] = bytes(self._part(source, source.bytes))
        return returned(None)

    def _part(self, tensor: RemoteTensor, size: int) -> memoryview:
        """A part of a client's allocation."""
        data = self._of(tensor.data)
        if not isinstance(data, bytearray) or tensor.offset + size > len(data):
            raise NpukitError("the tensor is not within what the client has allocated")
        return memoryview(data)[tensor.offset : tensor.offset + size]

    def _hold(self, thing: Any) -> Handle:
        if len(self._held) >= MOST_HELD:
            raise NpukitError(f"a client of this server holds at most {MOST_HELD:,} things")
        number = next(self._numbers)
        self._held[number] = thing
        return Handle(number)

    def _of(self, handle: Handle) -> Any:
        if handle.number not in self._held:
            raise NpukitError("the handle is none that the server has given to this client")
        return self._held[handle.number]
