"""Calls of generated kernels, as a program that leaves all registers and memory behind.

Every call begins with the same values in all registers without an argument. Emulators must therefore leave the same
values in all registers, preserved or not.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from accel.cortex_m import laboratory
from emulator.kernels import Case
from npukit.accel.cortex_m.kernel import Kernel

RESULTS, END = 0x1_0000, 0x2_0000
DONE_AT, DONE = 0x1_EFF0, 0x600D600D
REGISTERS = (*(f"r{n}" for n in range(13)), "sp", "lr", "apsr", "fpscr", *(f"s{n}" for n in range(32)))
"""Results of a call, a word each. The calls follow one another from `RESULTS` on."""
WORDS = len(REGISTERS)
KEPT, SEED = range(4, 12), 0x1111
"""Core registers that a kernel must preserve, and their contents: register n holds n * SEED."""

_ALIGN, _GUARD = 16, 16
_ARGUMENTS = 4
_BYTES_A_LINE = 32
_SEEDS = [
    *(line for n in range(32) for line in (f"movw r4, #{257 * n}", f"movt r4, #{0x3F80 + n}", f"vmov s{n}, r4")),
    *("mov r4, #0", "vmsr fpscr, r4"),
    *(f"movw r{n}, #{SEED * n}" for n in KEPT),
]
_CALL = [
    *(".global call_kernel", ".thumb_func", "call_kernel:"),
    *("push {r3-r11, lr}", "vpush {s16-s31}", "push {r0, r1}"),
    *("mov r12, r0", "mov lr, r2", *_SEEDS, "ldm lr, {r0-r3}", "cmp r12, r12"),
    "blx r12",
    *("push {r0-r12}", "ldr r12, [sp, #56]", "pop {r0-r11}", "stm r12!, {r0-r11}"),
    *("pop {r0}", "mov r1, sp", "mov r2, lr", "mrs r3, apsr", "vmrs r4, fpscr"),
    *("stm r12!, {r0-r4}", "vstmia r12!, {s0-s31}"),
    *("add sp, #8", "vpop {s16-s31}", "pop {r3-r11, pc}"),
]
_PROGRAM = """#include "board.h"

void call_kernel(void (*kernel)(void), volatile uint32_t *left, const uint32_t *arguments);
{declarations}
{arrays}
__asm__(
{assembly}
);

static void copy(uint32_t to, const uint8_t *from, uint32_t bytes)
{{
    for (uint32_t i = 0; i < bytes; i++) {{
        ((volatile uint8_t *)to)[i] = from[i];
    }}
}}

int main(void)
{{
    REGISTER(0xE000ED88U) |= 0xFU << 20; /* the FPU */
    __asm volatile("dsb\\n\\tisb" ::: "memory");
{calls}
    REGISTER({done_at}U) = {done}U;
    return 0;
}}
"""


@dataclass(frozen=True)
class Places:
    """Addresses of a case's inputs, output and scratch memory."""

    inputs: tuple[int, ...]
    output: int
    scratch: int

    @property
    def arguments(self) -> list[int]:
        return [*self.inputs, self.output, self.scratch, 0][:_ARGUMENTS]


class _Shelf:
    def __init__(self, start: int) -> None:
        self._next = start

    def take(self, size: int) -> int:
        place = -(-self._next // _ALIGN) * _ALIGN
        self._next = place + size + _GUARD
        assert self._next <= DONE_AT, "too many kernels for one program"
        return place


def all_places(cases: Mapping[str, Case]) -> dict[str, Places]:
    shelf = _Shelf(RESULTS + 4 * WORDS * len(cases))
    return {name: _places(case, shelf) for name, case in cases.items()}


def _source(kernels: Sequence[Kernel]) -> str:
    """One assembly file with several kernels. Equal routines appear once."""
    routines = {kernel.routine.name: kernel.routine.assembly for kernel in kernels}
    return laboratory.PROLOGUE + "".join(routines.values()) + "".join(laboratory.entry_of(kernel) for kernel in kernels)


def program_text(cases: Mapping[str, Case]) -> str:
    """A C program for `programs.program`: all calls one after another, then `DONE` at `DONE_AT`."""
    numbered = list(zip(cases.values(), all_places(cases).values(), strict=True))
    kernels = [_renamed(case.kernel, number) for number, case in enumerate(cases.values())]
    lines = [*_source(kernels).splitlines(), *_CALL]
    return _PROGRAM.format(
        declarations="\n".join(f"void {kernel.symbol}(void);" for kernel in kernels),
        arrays="\n".join([*_constants(kernels), *_inputs(cases)]),
        assembly="\n".join(f'"{line}\\n"' for line in lines),
        calls="\n".join(line for number, (case, places) in enumerate(numbered) for line in _call(number, case, places)),
        done_at=f"{DONE_AT:#x}",
        done=f"{DONE:#x}",
    )


def _places(case: Case, shelf: _Shelf) -> Places:
    inputs = tuple(shelf.take(data.nbytes + case.kernel.reads_beyond) for data in case.inputs)
    return Places(inputs, shelf.take(case.kernel.output.bytes), shelf.take(case.kernel.scratch_bytes))


def _renamed(kernel: Kernel, number: int) -> Kernel:
    """The kernel under a unique name."""
    constants = tuple(replace(each, symbol=f"constants_{number}") for each in kernel.constants)
    assert len(constants) < 2
    return replace(kernel, symbol=f"kernel_{number}", constants=constants)


def _constants(kernels: list[Kernel]) -> Iterator[str]:
    for kernel in kernels:
        for constant in kernel.constants:
            yield f"extern const uint8_t {constant.symbol}[];"
            yield _array(constant.symbol, constant.values)


def _inputs(cases: Mapping[str, Case]) -> Iterator[str]:
    for number, case in enumerate(cases.values()):
        for index, data in enumerate(case.inputs):
            if data.nbytes:
                yield f"static {_array(f'input_{number}_{index}', data)}"


def _array(name: str, values: np.ndarray) -> str:
    data = values.tobytes()
    lines = (data[at : at + _BYTES_A_LINE] for at in range(0, len(data), _BYTES_A_LINE))
    text = ",\n".join(", ".join(map(str, line)) for line in lines)
    return f"const _Alignas({_ALIGN}) uint8_t {name}[] = {{\n{text}}};"


def _call(number: int, case: Case, places: Places) -> Iterator[str]:
    for index, (data, place) in enumerate(zip(case.inputs, places.inputs, strict=True)):
        if data.nbytes:
            yield f"    copy({place:#x}U, input_{number}_{index}, sizeof input_{number}_{index});"
    words = ", ".join(f"{value:#x}U" for value in places.arguments)
    left = RESULTS + 4 * WORDS * number
    yield f"    call_kernel(kernel_{number}, (volatile uint32_t *){left:#x}U, (const uint32_t[4]){{{words}}});"
