"""Registers of a stock board in the built-in emulator: only registers used by the board's C."""

from __future__ import annotations

from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field, model_validator

Address = Annotated[int, Field(strict=True, ge=0, le=0xFFFF_FFFF)]
Offset = Annotated[int, Field(ge=0, lt=0x1000)]
"""Offset of a register from its device's base address."""
Bits = tuple[Offset, Annotated[int, Field(gt=0, le=0xFFFF_FFFF)]]
"""A register, and a mask of its bits."""
Rule = tuple[str, int, int]


class _Registers(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class UartRegisters(_Registers):
    """A UART's registers. `readable` bits are set when a byte has arrived, `empty` bits when none has. `writable` bits
    are set when there is room for a byte, `full` bits when there is none.

    A UART with its own DMA reads a byte at the address in `send_from` and stores one at the address in `receive_to`;
    writing `send` or `receive` starts the transfer. `bytes`: registers are one byte wide.
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
    """A timer's registers. `count`: the count, or its lower half. `high`: the upper half. `capture`: a write copies the
    count into `count`, where `count` does not always show it. `down`: the timer counts down."""

    count: Offset
    high: Offset | None = None
    capture: Offset | None = None
    down: bool = False


class EmulatedRegisters(_Registers):
    """A board's registers in the built-in emulator. Without `timer`, the clock is the core's own cycle counter.

    `pages`: addresses of 4 KB pages whose registers keep written values. In registers by address, `set` bits are always
    set, `same` reads as another register, `pe` reads as the number of the core. Writing `restart` bits restarts the
    board. Writing the address of another core's program to `start` starts this other core.
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
        addresses = (("page", self.pages), ("pe", self.pe), ("start", self.start))
        pairs = (("set", self.set), ("same", self.same), ("restart", self.restart))
        return (
            *((kind, address, 0) for kind, group in addresses for address in group),
            *((kind, address, value) for kind, group in pairs for address, value in group),
        )
