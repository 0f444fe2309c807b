"""Assembling kernels, running them on an emulated Cortex-M4, and counting."""

from __future__ import annotations

import pickle
import shutil
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from types import MappingProxyType

import numpy as np
from elftools.elf.elffile import ELFFile

from helpers import GCC, ZIG, need
from npukit.accel.cortex_m.kernel import Kernel
from npukit.accel.cortex_m.layout import ELEMENT_TYPES, Layout, Order
from npukit.accel.cortex_m.network import INPUT, KernelChoice

CODE, FLASH, RAM = 0x10000, 0x08000000, 0x20000000
INPUTS, INPUT_SPACING, PAGE = 0x30000000, 0x1000000, 0x1000
GUARD = 64
PROLOGUE = ".syntax unified\n.thumb\n.text\n"
UNTOUCHED = 0xC3
_ASSEMBLERS = {
    "gcc": (GCC, "-mcpu=cortex-m4", "-mthumb", "-x", "assembler"),
    "zig": (*ZIG, "-target", "thumb-freestanding-eabihf", "-mcpu=cortex_m4+vfp4d16sp"),
}


@dataclass(frozen=True)
class Run:
    """What one call did."""

    output: np.ndarray
    instructions: int
    stack_bytes: int


def pack(layout: Layout, values: np.ndarray, zero_point: int) -> np.ndarray:
    """The bytes of a tensor of int8 values in a layout."""
    memory = np.full(layout.bytes, zero_point & 0xFF if layout.order is Order.PIXELS else 0, np.uint8)
    _view(layout, memory)[...] = values if layout.order is Order.PIXELS else values.astype(np.int64) - zero_point
    return memory


def unpack(layout: Layout, memory: np.ndarray, zero_point: int) -> np.ndarray:
    """The int8 values of a tensor from the bytes in a layout."""
    values = _view(layout, np.ascontiguousarray(memory).view(np.uint8)).astype(np.int64)
    return (values if layout.order is Order.PIXELS else values + zero_point).astype(np.int8)


def _view(layout: Layout, memory: np.ndarray) -> np.ndarray:
    strides = (layout.row_stride, layout.column_stride, layout.channel_stride)
    elements = memory[layout.origin :].view(np.uint8)
    return np.ndarray(layout.shape, ELEMENT_TYPES[layout.order], buffer=elements.data, strides=strides)


def entry_of(kernel: Kernel) -> str:
    """The instructions that load the address of the layer's constants and branch to the shared routine."""
    lines = [f".global {kernel.symbol}", ".thumb_func", f"{kernel.symbol}:"]
    if kernel.constants:
        symbol = kernel.constants[0].symbol
        lines += [f"    movw r12, #:lower16:{symbol}", f"    movt r12, #:upper16:{symbol}"]
    return "\n".join([*lines, f"    b.w {kernel.routine.name}", ""])


def assembly_of(kernel: Kernel) -> str:
    """The routine and the entry of a kernel."""
    return PROLOGUE + kernel.routine.assembly + entry_of(kernel)


def code_bytes(kernel: Kernel) -> int:
    return kernel.routine.bytes + kernel.entry_bytes


def run_network(choice: KernelChoice, x: np.ndarray) -> tuple[np.ndarray, int]:
    """The bytes of the network's output for the bytes of its input, and the instructions of all calls."""
    tensors, instructions = {INPUT: x.view(np.uint8).ravel()}, 0
    for call in choice.calls:
        if choice.nodes[call.node].layer is None:
            tensors[call.node] = tensors[call.inputs[0]]
            continue
        assert call.kernel is not None, call.refusals
        found = run(call.kernel, *(tensors[i] for i in call.inputs), before=tensors.get(call.node))
        tensors[call.node] = found.output
        instructions += found.instructions
    return tensors[choice.calls[-1].node], instructions


def run(kernel: Kernel, *inputs: np.ndarray, before: np.ndarray | None = None, over: int | None = None) -> Run:
    """Call a kernel on inputs already in its layouts. Memory around output and scratch must stay untouched.

    `before` is what the output holds already; `over` numbers the input on which the output lies.
    """
    symbols, writes, free = {}, [], FLASH
    for constant in kernel.constants:
        symbols[constant.symbol] = free
        writes.append((free, constant.values.tobytes()))
        free += -(-constant.values.nbytes // 16) * 16
    code, entry = _linked(assembly_of(kernel), kernel.symbol, tuple(symbols.items()))
    arguments, free, regions = [], RAM + GUARD, []
    for index, data in enumerate(inputs):
        content = data.tobytes() + b"\x5a" * kernel.reads_beyond
        place = _before_nothing(index, content, regions) if over is None else free
        arguments.append(place)
        writes.append((place, content))
        free = (free + data.nbytes + 2 * GUARD) & ~15
    output, scratch = free + GUARD, (free + 3 * GUARD + kernel.output.bytes) & ~15
    if over is not None:
        output = arguments[over]
    else:
        writes.append((output - GUARD, bytes([UNTOUCHED]) * (kernel.output.bytes + 2 * GUARD)))
    if before is not None:
        writes.append((output, before.tobytes()))
    writes.append((scratch, bytes([UNTOUCHED]) * (kernel.scratch_bytes + GUARD)))
    reads = [(output - GUARD, kernel.output.bytes + 2 * GUARD), (scratch + kernel.scratch_bytes, GUARD)]
    memory, instructions, stack, error = _ask((code, entry, regions, writes, [*arguments, output, scratch], reads))
    assert not error, error
    _check_guards(memory, on_input=over is not None)
    return Run(np.frombuffer(memory[0][GUARD:-GUARD], np.uint8), instructions, stack)


def _before_nothing(index: int, content: bytes, regions: list[tuple[int, int]]) -> int:
    """A word-aligned place for an input right before the end of memory: reading beyond it faults."""
    size = (len(content) // PAGE + 1) * PAGE
    regions.append((INPUTS + index * INPUT_SPACING, size))
    return (sum(regions[-1]) - len(content)) & ~3


def _check_guards(memory: list[bytes], *, on_input: bool) -> None:
    guard = bytes([UNTOUCHED]) * GUARD
    assert memory[1] == guard, "wrote after the scratch"
    if not on_input:
        assert memory[0][:GUARD] == guard, "wrote before the output"
        assert memory[0][-GUARD:] == guard, "wrote after the output"


@cache
def _linked(assembly: str, symbol: str, symbols: tuple[tuple[str, int], ...]) -> tuple[bytes, int]:
    with TemporaryDirectory() as folder:
        image = Path(folder, "kernel.elf")
        definitions = [f"--defsym={name}={address:#x}" for name, address in symbols]
        layout = [f"-Ttext={CODE:#x}", "-e", symbol, str(_assembled(assembly, "zig", Path(folder))), "-o", str(image)]
        subprocess.run([ZIG[0], "ld.lld", *definitions, *layout], check=True, timeout=60)
        return _text(image)


def object_code(assembly: str, assembler: str) -> bytes:
    """The .text section as "gcc" or "zig" assembles it, or skip without "gcc"."""
    need(_ASSEMBLERS[assembler][0])
    with TemporaryDirectory() as folder:
        return _text(_assembled(assembly, assembler, Path(folder)))[0]


def _assembled(assembly: str, assembler: str, folder: Path) -> Path:
    source, target = folder / "kernel.s", folder / "kernel.o"
    source.write_text(assembly)
    subprocess.run([*_ASSEMBLERS[assembler], "-c", str(source), "-o", str(target)], check=True, timeout=120)
    return target


def check_assemblers(kernel: Kernel) -> None:
    """As `check_code` of what the kernel says of itself."""
    check_code(assembly_of(kernel), code_bytes(kernel))


def check_code(assembly: str, size: int, directives: Mapping[str, str] = MappingProxyType({})) -> None:
    """LLVM makes as many bytes as were said; GNU as, where it is here, makes the same and pads them to words.

    `directives` are lines that an assembler wants before the others.
    """
    made = {name: object_code(directives.get(name, "") + assembly, name) for name in _here()}
    for code in made.values():
        assert code[:size] == made["zig"]
        assert len(code) in (size, -(-size // 4) * 4)


def _here() -> list[str]:
    return [name for name in _ASSEMBLERS if name == "zig" or shutil.which(GCC)]


def _text(image: Path) -> tuple[bytes, int]:
    with image.open("rb") as file:
        elf = ELFFile(file)
        section = elf.get_section_by_name(".text")
        assert section is not None
        return section.data(), elf["e_entry"] & ~1


def _ask(request: tuple) -> tuple[list[bytes], int, int, str]:
    worker = _worker()
    assert worker.stdin is not None
    assert worker.stdout is not None
    pickle.dump(request, worker.stdin)
    worker.stdin.flush()
    return pickle.load(worker.stdout)


@cache
def _worker() -> subprocess.Popen[bytes]:
    script = Path(__file__).with_name("emulator_worker.py")
    return subprocess.Popen([sys.executable, str(script)], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
