"""A server of gdb's remote protocol for a single core, halted during requests.

https://sourceware.org/gdb/current/onlinedocs/gdb.html/Remote-Protocol.html
"""

from __future__ import annotations

import re
import select
import socket
from collections.abc import Callable
from enum import Enum, IntEnum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from npukit.emulator.debugged import DebuggedEmulator

_PACKET_BYTES = 0x1000
_INTERRUPT = b"\x03"
_CORE, _FPSCR = 17, 17
"""Count of the core's registers, r0 to xpsr, and index of fpscr after them, in the order of `Core.registers`."""
_DOUBLES = 16
_TARGET = (
    '<?xml version="1.0"?><!DOCTYPE target SYSTEM "gdb-target.dtd"><target><architecture>arm</architecture>'
    '<feature name="org.gnu.gdb.arm.m-profile">'
    + "".join(f'<reg name="r{n}" bitsize="32"/>' for n in range(13))
    + '<reg name="sp" bitsize="32" type="data_ptr"/><reg name="lr" bitsize="32"/>'
    '<reg name="pc" bitsize="32" type="code_ptr"/><reg name="xpsr" bitsize="32"/></feature>'
    '<feature name="org.gnu.gdb.arm.vfp">'
    + "".join(f'<reg name="d{n}" bitsize="64" type="ieee_double"/>' for n in range(_DOUBLES))
    + '<reg name="fpscr" bitsize="32" type="int" group="float"/></feature></target>'
).encode()


class Signal(IntEnum):
    """Reasons of a halt, as gdb's signal numbers."""

    INTERRUPT = 2
    TRAP = 5
    FAULT = 11


class GdbOrder(Enum):
    CONTINUE = "c"
    STEP = "s"
    LEAVE = "D"


class _Gone(Exception):
    """gdb has closed the connection."""


class GdbServer:
    """Listens on a port of this machine for one gdb, and answers its requests."""

    def __init__(self, port: int, core: DebuggedEmulator) -> None:
        self._core = core
        self._listener = socket.create_server(("127.0.0.1", port))
        self.port: int = self._listener.getsockname()[1]
        self._gdb: socket.socket | None = None
        self._running = False
        self._acknowledges = True
        self._data = b""
        self._left = False

    def close(self) -> None:
        self._hang_up()
        self._listener.close()

    def interrupts(self) -> bool:
        """True if gdb requests a halt of the running core."""
        if self._gdb is None or not select.select([self._gdb], [], [], 0)[0]:
            return False
        try:
            self._receive()
        except _Gone:
            self._hang_up()
            return False
        wants, self._data = _INTERRUPT in self._data, self._data.replace(_INTERRUPT, b"")
        return wants

    def serve(self, why: Signal) -> GdbOrder:
        """Answer gdb's requests on the halted core until gdb resumes the core. Waits for gdb to connect first."""
        if self._left:
            return GdbOrder.LEAVE
        try:
            if self._gdb is None:
                self._gdb, _ = self._listener.accept()
                self._gdb.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            elif self._running:
                self._send(f"S{why:02x}")
            while True:
                order = self._answer(self._packet(), why)
                if order is not None:
                    self._running = order is not GdbOrder.LEAVE
                    return order if self._running else self._leave()
        except (_Gone, OSError):
            return self._leave()

    def _leave(self) -> GdbOrder:
        self._left = True
        self._hang_up()
        return GdbOrder.LEAVE

    def _hang_up(self) -> None:
        if self._gdb is not None:
            self._gdb.close()
            self._gdb = None

    def _receive(self) -> None:
        assert self._gdb is not None
        if not (data := self._gdb.recv(_PACKET_BYTES)):
            raise _Gone
        self._data += data

    def _packet(self) -> bytes:
        """The contents of the next packet."""
        while (found := re.search(rb"\$([^#]*)#([0-9a-fA-F]{2})", self._data)) is None:
            self._receive()
        self._data = self._data[found.end() :]
        if sum(found[1]) % 256 != int(found[2], 16):
            self._raw(b"-")
            return self._packet()
        if self._acknowledges:
            self._raw(b"+")
        return found[1]

    def _raw(self, data: bytes) -> None:
        assert self._gdb is not None
        self._gdb.sendall(data)

    def _send(self, text: str | bytes) -> None:
        data = text.encode() if isinstance(text, str) else text
        self._raw(b"$%s#%02x" % (data, sum(data) % 256))

    def _answer(self, packet: bytes, why: Signal) -> GdbOrder | None:
        """Answer a packet, or return the order in the packet."""
        kind, rest = packet[:1].decode(), packet[1:].decode(errors="replace")
        if kind in "cs":
            if rest:
                self._core.set_register(_CORE - 2, int(rest, 16))
            return GdbOrder(kind)
        if kind in "Dk":
            if kind == "D":
                self._send("OK")
            return GdbOrder.LEAVE
        self._send(f"S{why:02x}" if kind == "?" else self._reply(kind, rest))
        return None

    def _reply(self, kind: str, rest: str) -> str | bytes:
        answers: dict[str, Callable[[str], str | bytes]] = {
            "g": lambda _: "".join(_hex(*register) for register in self._all_registers()),
            "p": self._read_register,
            "P": self._write_register,
            "m": self._read_memory,
            "M": self._write_memory,
            "Z": lambda text: self._breakpoint(text, on=True),
            "z": lambda text: self._breakpoint(text, on=False),
            "q": _query,
            "H": lambda _: "OK",
            "T": lambda _: "OK",
        }
        if (kind, rest) == ("Q", "StartNoAckMode"):
            self._acknowledges = False
            return "OK"
        return answers[kind](rest) if kind in answers else ""

    def _all_registers(self) -> list[tuple[int, int]]:
        """Values and sizes in bytes, in the order of the target's description."""
        values = self._core.registers()
        singles = values[_FPSCR + 1 :]
        doubles = [singles[2 * n] | singles[2 * n + 1] << 32 for n in range(_DOUBLES)]
        return [*((v, 4) for v in values[:_CORE]), *((d, 8) for d in doubles), (values[_FPSCR], 4)]

    def _read_register(self, text: str) -> str:
        registers = self._all_registers()
        number = int(text, 16)
        return _hex(*registers[number]) if number < len(registers) else "E01"

    def _write_register(self, text: str) -> str:
        name, _, digits = text.partition("=")
        number, value = int(name, 16), int.from_bytes(bytes.fromhex(digits), "little")
        if number < _CORE:
            self._core.set_register(number, value)
        elif number < _CORE + _DOUBLES:
            first = _FPSCR + 1 + 2 * (number - _CORE)
            self._core.set_register(first, value & 0xFFFF_FFFF)
            self._core.set_register(first + 1, value >> 32)
        else:
            self._core.set_register(_FPSCR, value)
        return "OK"

    def _read_memory(self, text: str) -> str:
        address, size = (int(part, 16) for part in text.split(","))
        data = self._core.memory(address, size)
        return "E0e" if data is None else data.hex()

    def _write_memory(self, text: str) -> str:
        place, _, digits = text.partition(":")
        return "OK" if self._core.set_memory(int(place.split(",")[0], 16), bytes.fromhex(digits)) else "E0e"

    def _breakpoint(self, text: str, on: bool) -> str:
        kind, address, *_ = text.split(",")
        if kind not in "01":
            return ""
        self._core.set_breakpoint(int(address, 16), on)
        return "OK"


def _query(text: str) -> str | bytes:
    if text.startswith("Supported"):
        return f"PacketSize={_PACKET_BYTES:x};qXfer:features:read+;QStartNoAckMode+"
    if text.startswith("Xfer:features:read:target.xml:"):
        start, size = (int(part, 16) for part in text.rpartition(":")[2].split(","))
        return (b"m" if start + size < len(_TARGET) else b"l") + _TARGET[start : start + size]
    return {"Attached": "1", "C": "QC1", "fThreadInfo": "m1", "sThreadInfo": "l"}.get(text, "")


def _hex(value: int, size: int) -> str:
    return value.to_bytes(size, "little").hex()
