"""The fault of a PE that has stopped, in words."""

from __future__ import annotations

from npukit.errors import NpukitError

_CAUSES = {
    0: "instruction fetch from forbidden memory",
    1: "data access to forbidden memory",
    3: "forbidden memory on return from an exception",
    4: "forbidden memory on entry to an exception (stack overflow?)",
    8: "bus error on instruction fetch",
    9: "bus error on a data access",
    10: "bus error on an earlier store",
    11: "bus error on return from an exception",
    12: "bus error on entry to an exception (stack overflow?)",
    16: "undefined instruction",
    17: "invalid processor state",
    18: "invalid return from an exception",
    19: "FPU used while off",
    24: "unaligned access",
    25: "division by zero",
}
"""Causes by bit of the Configurable Fault Status Register (Armv7-M Architecture Reference Manual, B3.2.15)."""


class DeviceFault(NpukitError):
    """A PE has stopped at the instruction `pc`."""

    def __init__(self, pe: int, pc: int, code: int, address: int) -> None:
        at = f" at data address {address:#010x}" if address else ""
        super().__init__(
            f"PE {pe} stopped at instruction {pc:#010x}: {explain_fault(code)}{at}",
            tries=[f"addr2line -f -e the image's ELF file {pc:#x}", "reset the device"],
        )
        self.pe, self.pc, self.code, self.address = pe, pc, code, address


def explain_fault(code: int) -> str:
    """The fault status register in words."""
    causes = [text for bit, text in _CAUSES.items() if code >> bit & 1]
    return ", ".join(causes) or f"fault status {code:#010x}"
