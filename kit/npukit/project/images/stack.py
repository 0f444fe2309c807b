"""A bound of the stack's depth, from the image itself.

The room reads instructions because compilers' reports do not serve: zig, the compiler of users without GCC, has no
`-fcallgraph-info` and writes no file for `-fstack-usage`, and no compiler reports assembly and its own libraries. The
trace of an emulator uses the same calls (`calls.py`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from npukit.board.cores import CoreType
from npukit.errors import NpukitError
from npukit.project.images.elf import Elf, functions_pointed_at
from npukit.project.images.walk import Frame, MachineCall, frame_of
from npukit.project.layout import STACK_ALIGNMENT

ENTRY = "reset_handler"
FAULT = "fault_handler"


@dataclass(frozen=True)
class StackReport:
    """`bytes`: enough for the deepest path and then a fault, and its report, on top of it."""

    bytes: int
    deepest: tuple[str, ...]
    program_bytes: int
    functions: Mapping[str, int]
    """Bytes that each function takes itself."""


def stack_bound(path: Path, objects: Sequence[Path], core: CoreType, *, without_pointers: str = "") -> StackReport:
    """The bound for a linked image made of `objects`. A call through a pointer may reach every function whose address
    is taken anywhere. `without_pointers`: a source folder whose code calls nothing through pointers."""
    graph = _Graph(Elf(path), functions_pointed_at(objects), without_pointers)
    program, deepest = graph.depth(ENTRY)
    fault, _ = graph.depth(FAULT)
    total = program + core.exception_bytes + fault
    frames = {frame.function.name: frame.bytes for frame in graph.frames.values()}
    return StackReport(-(-total // STACK_ALIGNMENT) * STACK_ALIGNMENT, deepest, program, frames)


class _Graph:
    """The call graph, unrolled from an entry point."""

    def __init__(self, elf: Elf, pointed_at: set[str], without_pointers: str) -> None:
        self.elf, self._without_pointers = elf, without_pointers
        self.frames, self._open = dict[int, Frame](), list[int]()
        self._pointed_at = sorted({address for name in pointed_at for address in elf.addresses_of(name)})
        self._depths: dict[int, tuple[int, tuple[str, ...]]] = {}

    def depth(self, name: str) -> tuple[int, tuple[str, ...]]:
        """Bytes below this function's entry, and the calls that lead to the deepest point."""
        return self._depth(self.elf.addresses_of(name)[0])

    def _depth(self, address: int) -> tuple[int, tuple[str, ...]]:
        if address in self._depths:
            return self._depths[address]
        if address in self._open:
            names = [self.elf.functions[each].name for each in (*self._open[self._open.index(address) :], address)]
            message = f"recursion has no stack bound: {' calls '.join(names)}"
            raise NpukitError(message, tries=["a loop in place of the recursion"])
        if address not in self.elf.functions:
            raise NpukitError(f"the image calls {address:#x}, where no function begins")
        self._open.append(address)
        frame = self.frames[address] = frame_of(self.elf, self.elf.functions[address])
        depth, path = frame.bytes, (frame.function.name,)
        for call in frame.calls:
            for callee in self._callees(call):
                below, way = self._depth(callee)
                if call.depth + below > depth:
                    depth, path = call.depth + below, (frame.function.name, *way)
        self._open.pop()
        self._depths[address] = depth, path
        return depth, path

    def _callees(self, call: MachineCall) -> Sequence[int]:
        if call.callee is not None:
            return [call.callee]
        source = self.elf.source_of(call.site) or ""
        return [] if self._without_pointers and source.startswith(f"{self._without_pointers}/") else self._pointed_at
