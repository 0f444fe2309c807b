"""The cores that a PE can have: what compilers, kernels and emulators must know of each, once."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True)
class CoreType:
    """A kind of core.

    `gcc` and `zig` are the flags that make code for it. `dsp`: it has the instructions that the generated assembly is
    made of; without them every layer is C. `exception_bytes` are pushed on entry to an exception: the most, and a word
    that aligns the stack. `unicorn` is Unicorn's number of it. `cycles` are those of instructions, by name, that take
    other than on the Cortex-M4.
    """

    title: str
    gcc: str
    zig: str
    dsp: bool
    exception_bytes: int
    unicorn: int
    cycles: Mapping[str, int] = field(default_factory=dict)


_WITH_FPU, _WITHOUT_FPU = 27 * 4, 9 * 4

CORTEX_M4F = CoreType(
    title="Cortex-M4F",
    gcc="-mcpu=cortex-m4 -mthumb -mfloat-abi=hard -mfpu=fpv4-sp-d16",
    # `cortex_m4` alone means a core without FPU.
    zig="-target thumb-freestanding-eabihf -mcpu=cortex_m4+vfp4d16sp",
    dsp=True,
    exception_bytes=_WITH_FPU,
    unicorn=9,
)
"""The core of the reference hardware."""

CORES: Mapping[str, CoreType] = {
    "cortex-m3": CoreType(
        title="Cortex-M3",
        gcc="-mcpu=cortex-m3 -mthumb -mfloat-abi=soft",
        zig="-target thumb-freestanding-eabi -mcpu=cortex_m3",
        dsp=False,
        exception_bytes=_WITHOUT_FPU,
        unicorn=8,
        # Arm DDI 0337, table 3-1. Long products take 3 to 5 or 4 to 7 by their operands: the most stands for them.
        cycles={"mla": 2, "mls": 2, "smull": 5, "umull": 5, "smlal": 7, "umlal": 7},
    ),
    "cortex-m4f": CORTEX_M4F,
}
