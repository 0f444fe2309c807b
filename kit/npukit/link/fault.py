"""Faults of PEs that have stopped, in words."""

from __future__ import annotations

from collections.abc import Iterable

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


_ON_LINKS = {7: "a message with a wrong CRC", 8: "a lost or repeated message"}
"""Errors of the DMA from the links of the network: hardware manual, section 4.8."""
_IF_AGAIN = "if it comes again: dead_pes or dead_links in the board file, and a new build"


def explain_status(status: int) -> str:
    """A PE's error code, with words if it tells of a link of the network."""
    return f"error code {status}" + (f": {_ON_LINKS[status]}" if status in _ON_LINKS else "")


def ways_out(statuses: Iterable[int]) -> list[str]:
    """Ways out of a failed run, by the error codes of the PEs."""
    return ["reset the device, and run again", *([_IF_AGAIN] if set(statuses) & set(_ON_LINKS) else ())]


def explain_fault(code: int) -> str:
    """The cause of a fault in words, from the core's fault status. Armv6-M reports no cause."""
    if code == 0:
        return "a fault of which the core does not say more"
    core = next((each for each in ARCHITECTURES if code & each.numbered), CORTEX_M)
    if core.numbered:
        return core.causes.get(code ^ core.numbered, f"trap {code ^ core.numbered}")
    causes = [text for bit, text in core.causes.items() if code >> bit & 1]
    return ", ".join(causes) or f"fault status {code:#010x}"
