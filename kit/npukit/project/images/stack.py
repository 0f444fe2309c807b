"""A bound of the stack's depth, from the image itself.

Compilers' own reports do not serve: zig knows no `-fcallgraph-info` and writes no file for `-fstack-usage`, and no
compiler reports assembly and its own libraries.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from npukit.board.cores import CoreType
from npukit.errors import NpukitError
from npukit.project.images.disassembly import Frame, MachineCall, frame_of
from npukit.project.images.elf import Elf, functions_pointed_at
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


def stack_bound(
    path: Path, objects: Sequence[Path], indirect: Mapping[str, Sequence[str]], core: CoreType
) -> StackReport:
    """The bound for a linked image made of `objects`.

    `indirect` names what the code of a source folder calls through pointers. Code elsewhere may call every function
    whose address is taken anywhere.
    """
    graph = _Graph(Elf(path), functions_pointed_at(objects), indirect)
    program, deepest = graph.depth(ENTRY)
    fault, _ = graph.depth(FAULT)
    total = program + core.exception_bytes + fault
    frames = {frame.function.name: frame.bytes for frame in graph.frames.values()}
    return StackReport(-(-total // STACK_ALIGNMENT) * STACK_ALIGNMENT, deepest, program, frames)


class _Graph:
    """The call graph, unrolled from an entry point."""

    def __init__(self, elf: Elf, pointed_at: set[str], indirect: Mapping[str, Sequence[str]]) -> None:
        self.elf = elf
        self.frames: dict[int, Frame] = {}
        self._indirect = indirect
        self._pointed_at = sorted({address for name in pointed_at for address in elf.addresses_of(name)})
        self._depths: dict[int, tuple[int, tuple[str, ...]]] = {}
        self._open: list[int] = []

    def depth(self, name: str) -> tuple[int, tuple[str, ...]]:
        """Bytes below this function's entry, and the calls that lead to the deepest point."""
        return self._depth(self.elf.addresses_of(name)[0])

    def _depth(self, address: int) -> tuple[int, tuple[str, ...]]:
        if address not in self._depths:
            self._refuse_recursion(address)
            self._open.append(address)
            self._depths[address] = self._unroll(self._frame(address))
            self._open.pop()
        return self._depths[address]

    def _unroll(self, frame: Frame) -> tuple[int, tuple[str, ...]]:
        name = frame.function.name
        depth, path = frame.bytes, (name,)
        for call in frame.calls:
            for callee in self._callees(call, name):
                below, way = self._depth(callee)
                if call.depth + below > depth:
                    depth, path = call.depth + below, (name, *way)
        return depth, path

    def _frame(self, address: int) -> Frame:
        if address not in self.elf.functions:
            raise NpukitError(f"the image calls {address:#x}, where no function begins")
        return self.frames.setdefault(address, frame_of(self.elf, self.elf.functions[address]))

    def _callees(self, call: MachineCall, caller: str) -> Sequence[int]:
        if call.callee is not None:
            return [call.callee]
        source = self.elf.source_of(call.site) or ""
        for folder, names in self._indirect.items():
            if source.startswith(f"{folder}/"):
                return [address for name in names for address in self._named(name, caller)]
        return self._pointed_at

    def _named(self, name: str, caller: str) -> Sequence[int]:
        found = self.elf.addresses_of(name)
        if not found:
            raise NpukitError(f"{caller} calls {name} through a pointer, but the image has no such function")
        return found

    def _refuse_recursion(self, address: int) -> None:
        if address in self._open:
            names = [self.elf.functions[each].name for each in (*self._open[self._open.index(address) :], address)]
            raise NpukitError(
                f"recursion has no stack bound: {' calls '.join(names)}", tries=["a loop in place of the recursion"]
            )
