"""The cores of PEs: all facts about each core for compilers, kernels and emulators."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Literal


@dataclass(frozen=True)
class Architecture:
    """An instruction set: common properties of its cores.

    `firmware`: folder of the firmware with start-up code and fault report. `gcc`: the compiler's program. `qemu`,
    `qemu_package`: the emulator's program and Debian package. `elf`: the name in an image's header. `instructions`: the
    decoder in `project/images/`. `address_relocations`: relocations to an address of code or data, except in calls.
    `registers`: registers reported by the built-in emulator, in order.

    `causes`: faults in words, by bit of the core's fault status, or by number if the status has the bit `numbered`.
    `takes_back_events`: a core takes back events through a register of the board. `board_functions`: functions of a
    stock board's support.
    """

    title: str
    firmware: str
    gcc: str
    qemu: str
    qemu_package: str
    elf: str
    instructions: str
    address_relocations: tuple[int, ...]
    registers: tuple[str, ...]
    causes: Mapping[int, str]
    numbered: int = 0
    takes_back_events: bool = False
    board_functions: tuple[str, ...] = ()

    @property
    def gcc_package(self) -> str:
        """The Debian package of the compiler: `gcc-arm-none-eabi` of `arm-none-eabi-gcc`."""
        return f"gcc-{self.gcc.removesuffix('-gcc')}"


_ARM_CAUSES = {
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

CORTEX_M = Architecture(
    title="Cortex-M",
    firmware="cortex_m",
    gcc="arm-none-eabi-gcc",
    qemu="qemu-system-arm",
    qemu_package="qemu-system-arm",
    elf="EM_ARM",
    instructions="thumb",
    address_relocations=(2, 47),  # R_ARM_ABS32, R_ARM_THM_MOVW_ABS_NC
    registers=(*(f"r{i}" for i in range(13)), "sp", "lr", "pc", "xpsr"),
    causes=_ARM_CAUSES,
)

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

RISC_V = Architecture(
    title="RISC-V",
    firmware="riscv",
    gcc="riscv64-unknown-elf-gcc",
    qemu="qemu-system-riscv32",
    qemu_package="qemu-system-misc",
    elf="EM_RISCV",
    instructions="riscv",
    address_relocations=(1, 20, 23, 26),  # R_RISCV_32, R_RISCV_GOT_HI20, R_RISCV_PCREL_HI20, R_RISCV_HI20
    registers=(*(f"a{i}" for i in range(8)), "t0", "t1", "t2", "s0", "s1", "sp", "ra", "pc", "gp"),
    causes=_RISC_V_CAUSES,
    numbered=1 << 31,
    takes_back_events=True,
    board_functions=("core_restart",),
)

ARCHITECTURES = (CORTEX_M, RISC_V)


def architecture_of(elf: str) -> Architecture:
    """The architecture of an image, by the name in its header."""
    return next(each for each in ARCHITECTURES if each.elf == elf)


Assembly = Literal["none", "moves", "dsp", "helium"]
"""Generated assembly that a core can run. `none`: none. `moves`: routines that move and map bytes, with Thumb-2. `dsp`:
also kernels of layers, with the DSP instructions. `helium`: also kernels with vectors."""


@dataclass(frozen=True)
class CoreType:
    """A kind of core.

    `gcc`, `zig`: flags of the compilers. `assembly`: layers without a kernel in this assembly are C. `exception_bytes`:
    most bytes pushed on entry to an exception, and a word that aligns the stack. `unicorn`: Unicorn's number of the
    core.

    `cycles`: by instruction, where other than on the Cortex-M4, or for RISC-V on the CV32E40P. `refill_cycles`: extra
    cycles of a taken branch. `c_cycles`: factor on a Cortex-M4's cycles for kernels in C; `c_kinds`: other factors, for
    some kinds of op (`benchmarks/core/c_costs.py`). `call_cycles`: factor on a Cortex-M4's cycles for calls, messages
    and waits (`benchmarks/core/core_cycles.py`).

    `products`: C for convolutions and dense layers calls a loop in assembly, because compilers run out of registers.
    `vectors`: C for these layers calls RISC-V's vectors.
    """

    title: str
    architecture: Architecture
    gcc: str
    zig: str
    assembly: Assembly
    exception_bytes: int
    unicorn: int
    cycles: Mapping[str, int] = field(default_factory=dict)
    refill_cycles: int = 1
    products: bool = False
    vectors: bool = False
    c_cycles: float = 1
    call_cycles: float = 1
    c_kinds: Mapping[str, float] = field(default_factory=dict)

    @property
    def has_dsp(self) -> bool:
        return self.assembly in ("dsp", "helium")

    @property
    def has_vectors(self) -> bool:
        """True for Helium and for RISC-V's vectors. Unicorn emulates neither."""
        return self.vectors or self.assembly == "helium"

    def c_factor(self, kind: str) -> float:
        """Cycles of a kernel in C for this kind of op, as a multiple of a Cortex-M4's."""
        return self.c_kinds.get(kind, self.c_cycles)


_WITH_FPU, _WITHOUT_FPU = 27 * 4, 9 * 4

CORTEX_M4F = CoreType(
    title="Cortex-M4F",
    architecture=CORTEX_M,
    gcc="-mcpu=cortex-m4 -mthumb -mfloat-abi=hard -mfpu=fpv4-sp-d16",
    # `cortex_m4` alone means a core without FPU.
    zig="-target thumb-freestanding-eabihf -mcpu=cortex_m4+vfp4d16sp",
    assembly="dsp",
    exception_bytes=_WITH_FPU,
    unicorn=9,
)
"""The core of the reference hardware."""

# The analysis of the stack follows jumps to addresses in the code, but not through tables or registers.
_NO_TABLES = "-fno-jump-tables"
_RISC_V_ALIKE = f"{_NO_TABLES} -msmall-data-limit=0"

_ARMV6_M = f"-mthumb -mfloat-abi=soft {_NO_TABLES}"
# Arm DDI 0432, table 3-1, and DDI 0484, table 3-1, with the multiplier of one cycle.
_ARMV6_M_ACCESSES = dict.fromkeys(("ldr", "ldrb", "ldrh", "ldrsb", "ldrsh", "str", "strb", "strh"), 2)

_CORTEX_M0 = CoreType(
    title="Cortex-M0",
    architecture=CORTEX_M,
    gcc=f"-mcpu=cortex-m0 {_ARMV6_M}",
    zig=f"-target thumb-freestanding-eabi -mcpu=cortex_m0 {_NO_TABLES}",
    assembly="none",
    products=True,
    exception_bytes=_WITHOUT_FPU,
    unicorn=7,
    cycles={**_ARMV6_M_ACCESSES, "bl": 2, "dsb": 4, "isb": 4, "mrs": 4, "msr": 4},
    refill_cycles=2,
    c_cycles=1.62,
    call_cycles=1.4,
    c_kinds={"add": 2.1, "average_pool": 1.4, "dense": 1.44, "depthwise_conv2d": 2.2, "softmax": 1.8},
)

_CORTEX_M33 = replace(
    CORTEX_M4F,
    title="Cortex-M33",
    gcc="-mcpu=cortex-m33 -mthumb -mfloat-abi=hard -mfpu=fpv5-sp-d16",
    zig="-target thumb-freestanding-eabihf -mcpu=cortex_m33+dsp+fp_armv8d16sp",
    unicorn=11,
)

_RISC_V_KINDS = {"softmax": 1.22, "norm": 1.33, "add": 1.2, "dense": 1.09, "depthwise_conv2d": 0.94}
"""Between the factors of zig's code and of GCC's."""
_VECTOR_KINDS = {**_RISC_V_KINDS, "conv2d": 0.15, "dense": 0.15, "depthwise_conv2d": 0.15}
"""Factors on the assumption of one cycle for each register of 128 bits that an instruction writes. Not measured."""

_RV32IMC = CoreType(
    title="RV32IMC",
    architecture=RISC_V,
    gcc=f"-march=rv32imc -mabi=ilp32 {_RISC_V_ALIKE}",
    zig=f"-target riscv32-freestanding-none -mcpu=generic_rv32+m+c -mabi=ilp32 {_RISC_V_ALIKE}",
    assembly="none",
    exception_bytes=0,
    unicorn=1,
    refill_cycles=2,
    c_kinds=_RISC_V_KINDS,
)

CORES: Mapping[str, CoreType] = {
    "cortex-m0": _CORTEX_M0,
    # Factors on cycles measured on the Cortex-M0: no board here has this core.
    "cortex-m0plus": replace(
        _CORTEX_M0,
        title="Cortex-M0+",
        gcc=f"-mcpu=cortex-m0plus {_ARMV6_M}",
        zig=f"-target thumb-freestanding-eabi -mcpu=cortex_m0plus {_NO_TABLES}",
        cycles={**_ARMV6_M_ACCESSES, "bl": 2, "dsb": 3, "isb": 3, "mrs": 3, "msr": 3},
        refill_cycles=1,
    ),
    "cortex-m3": CoreType(
        title="Cortex-M3",
        architecture=CORTEX_M,
        gcc="-mcpu=cortex-m3 -mthumb -mfloat-abi=soft",
        zig="-target thumb-freestanding-eabi -mcpu=cortex_m3",
        assembly="moves",
        exception_bytes=_WITHOUT_FPU,
        unicorn=8,
        # Arm DDI 0337, table 3-1. Long products take 3 to 5 or 4 to 7 cycles by their operands: these are the most.
        cycles={"mla": 2, "mls": 2, "smull": 5, "umull": 5, "smlal": 7, "umlal": 7},
        c_cycles=1.05,
        c_kinds={"conv2d": 1.34, "dense": 1.28, "sums": 1.3},
    ),
    "cortex-m4f": CORTEX_M4F,
    "cortex-m7": replace(
        CORTEX_M4F,
        title="Cortex-M7",
        gcc="-mcpu=cortex-m7 -mthumb -mfloat-abi=hard -mfpu=fpv5-sp-d16",
        zig="-target thumb-freestanding-eabihf -mcpu=cortex_m7-fp64+fp_armv8d16sp",
        unicorn=10,
    ),
    "cortex-m33": _CORTEX_M33,
    # The core of the AN521, and the nRF5340's network core: Armv8-M Mainline without DSP instructions and FPU.
    "cortex-m33-nodsp": replace(
        _CORTEX_M33,
        title="Cortex-M33 without DSP",
        gcc="-mcpu=cortex-m33+nodsp -mthumb -mfloat-abi=soft",
        zig="-target thumb-freestanding-eabi -mcpu=cortex_m33-dsp-fp_armv8d16sp",
        assembly="moves",
        exception_bytes=_WITHOUT_FPU,
    ),
    # Compiled as for a Cortex-M33: capstone, which reads the code for the stack's bound, knows no Armv8.1-M.
    "cortex-m55": replace(_CORTEX_M33, title="Cortex-M55", assembly="helium"),
    "rv32imc": _RV32IMC,
    # The compilers' flags have no vectors: the stack of compiled vector code would have an unknown size.
    "rv32imc-zve32x": replace(
        _RV32IMC,
        title="RV32IMC with vectors",
        gcc=f"{_RV32IMC.gcc} -DCORE_VECTORS",
        zig=f"{_RV32IMC.zig} -DCORE_VECTORS",
        vectors=True,
        c_kinds=_VECTOR_KINDS,
    ),
    "rv32imafc": replace(
        _RV32IMC,
        title="RV32IMAFC",
        gcc=f"-march=rv32imafc -mabi=ilp32f {_RISC_V_ALIKE}",
        zig=f"-target riscv32-freestanding-none -mcpu=generic_rv32+m+a+f+c -mabi=ilp32f {_RISC_V_ALIKE}",
    ),
}
