"""Faults of PEs that have stopped, in words."""

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
    20: "the stack overflows its limit",
    25: "division by zero",
}
"""Causes by bit of the Configurable Fault Status Register (Armv7-M Architecture Reference Manual, B3.2.15, and
Armv8-M's, D1.2.7)."""

_NUMBERED = 1 << 31
"""Marks the cause of a RISC-V core, which is a number instead of bits."""

_RISC_V_CAUSES = {
    0: "jump to an odd address",
    1: "instruction fetch from forbidden memory",
    2: "undefined instruction",
    3: "breakpoint",
    4: "unaligned load",
    5: "load from forbidden memory",
    6: "unaligned store",
    7: "store to forbidden memory",
    11: "environment call",
}
"""Causes by `mcause` (The RISC-V Instruction Set Manual, volume II, 3.1.15)."""


class DeviceFault(NpukitError):
    """A PE has stopped on a fault at the instruction `pc`."""

    def __init__(self, pe: int, pc: int, code: int, address: int) -> None:
        at = f" at data address {address:#010x}" if address else ""
        super().__init__(
            f"PE {pe} stopped at instruction {pc:#010x}: {explain_fault(code)}{at}",
            tries=[f"addr2line -f -e the image's ELF file {pc:#x}", "reset the device"],
        )
        self.pe, self.pc, self.code, self.address = pe, pc, code, address


def explain_fault(code: int) -> str:
    """The cause of a fault in words, from the core's fault status. Armv6-M reports no cause."""
    if code & _NUMBERED:
        return _RISC_V_CAUSES.get(code ^ _NUMBERED, f"trap {code ^ _NUMBERED}")
    if code == 0:
        return "a fault of which the core does not say more"
    causes = [text for bit, text in _CAUSES.items() if code >> bit & 1]
    return ", ".join(causes) or f"fault status {code:#010x}"
