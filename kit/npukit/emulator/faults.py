"""A core's fault, in words."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from npukit.emulator.program import where
from npukit.errors import NpukitError

_KINDS = {
    1: "an undefined instruction",
    2: "a load from address {address:#010x}, where nothing is",
    3: "a store to address {address:#010x}, where nothing is or nothing may be stored",
    4: "a jump to address {address:#010x}, where no code is",
    5: "an access to a peripheral register that is not an aligned word (offset {address:#x})",
    6: "an SVC instruction, for which the board has no handler",
    7: "a breakpoint",
    8: "an exception return outside an exception",
    9: "something the emulated core cannot do",
}
"""By `enum fault_kind` in worker/core/mesh.h."""

_PC, _PSR = 15, 16
_NAMES = (*(f"r{i}" for i in range(13)), "sp", "lr", "pc", "xpsr")


def explain(fault: dict[str, Any], elf: Path | None) -> NpukitError:
    """Which PE stopped where, and why."""
    pc = fault["registers"][_PC]
    place = where(elf, pc) if elf else ""
    why = _KINDS[fault["kind"]].format(address=fault["address"])
    registers = " ".join(f"{n}={v:#x}" for n, v in zip(_NAMES, fault["registers"], strict=True))
    return NpukitError(
        f"PE {fault['pe']} stopped at pc {pc:#010x}{f' in {place}' if place else ''}: {why}",
        tries=[f"registers: {registers}"],
    )
