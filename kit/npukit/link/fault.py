"""Faults of PEs that have stopped, in words."""

from __future__ import annotations

from npukit.board.cores import ARCHITECTURES, CORTEX_M
from npukit.errors import NpukitError


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
    if code == 0:
        return "a fault of which the core does not say more"
    core = next((each for each in ARCHITECTURES if code & each.numbered), CORTEX_M)
    if core.numbered:
        return core.causes.get(code ^ core.numbered, f"trap {code ^ core.numbered}")
    causes = [text for bit, text in core.causes.items() if code >> bit & 1]
    return ", ".join(causes) or f"fault status {code:#010x}"
