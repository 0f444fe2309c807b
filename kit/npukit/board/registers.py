"""Registers of a stock board, as the built-in emulator has them: those that the board's C touches, and no more."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field, model_validator

Address = Annotated[int, Field(strict=True, ge=0, le=0xFFFF_FFFF)]
Offset = Annotated[int, Field(ge=0, lt=0x1000)]
"""A register's distance from its device's base address."""
Bits = tuple[Offset, Annotated[int, Field(gt=0, le=0xFFFF_FFFF)]]
"""A register, and bits of it."""
Rule = tuple[str, int, int]


class _Registers(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class UartRegisters(_Registers):
    """A UART's registers. It is `readable` or `empty` when these bits are set, `writable` or `full` when those are.

    One with a DMA of its own takes a byte from where `send_from` says and puts one where `receive_to` does: `send` and
    `receive` then begin that. `bytes`: its registers are of a byte each.
    """

    receive: Offset
    send: Offset
    readable: Bits | None = None
    empty: Bits | None = None
    writable: Bits | None = None
    full: Bits | None = None
    receive_to: Offset | None = None
    send_from: Offset | None = None
    bytes: bool = False

    @model_validator(mode="after")
    def _says_whether_there_is_room(self) -> UartRegisters:
        for first, second in (("readable", "empty"), ("writable", "full")):
            if (getattr(self, first) is None) == (getattr(self, second) is None):
                raise ValueError(f"a UART has either {first} or {second}")
        if (self.receive_to is None) != (self.send_from is None):
            raise ValueError("a UART has both receive_to and send_from, or neither")
        return self

    @property
    def input(self) -> Bits:
        """The bits of `readable` or `empty`."""
        return self.readable or self.empty or (0, 0)

    @property
    def room(self) -> Bits:
        """The bits of `writable` or `full`."""
        return self.writable or self.full or (0, 0)


class TimerRegisters(_Registers):
    """The register with a timer's `count`, with its upper half if there is one, and the register that, when written,
    takes the count for the first, if that does not always show it."""

    count: Offset
    high: Offset | None = None
    capture: Offset | None = None
    down: bool = False


class EmulatedRegisters(_Registers):
    """A board's registers in the built-in emulator. Without `timer` there is the core's own counter of cycles.

    `pages` are addresses in pages of 4 KB whose registers keep what is written. In registers by their addresses, `set`
    bits are always set, `same` reads as another register, `pe` as the number of the core; `restart` bits, once written,
    restart the board; the address of another core's program, written to `start`, starts that core.
    """

    uart: UartRegisters
    timer: TimerRegisters | None = None
    pages: tuple[Address, ...] = ()
    set: tuple[tuple[Address, Address], ...] = ()
    same: tuple[tuple[Address, Address], ...] = ()
    pe: tuple[Address, ...] = ()
    start: tuple[Address, ...] = ()
    restart: tuple[tuple[Address, Address], ...] = ()

    @property
    def rules(self) -> tuple[Rule, ...]:
        return tuple(self._rules())

    def _rules(self) -> Iterator[Rule]:
        for kind, addresses in (("page", self.pages), ("pe", self.pe), ("start", self.start)):
            yield from ((kind, address, 0) for address in addresses)
        for kind, pairs in (("set", self.set), ("same", self.same), ("restart", self.restart)):
            yield from ((kind, address, value) for address, value in pairs)
