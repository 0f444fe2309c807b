"""Numbers of one board file that cannot all be true."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from itertools import pairwise
from typing import TYPE_CHECKING

from npukit.board.cores import RISC_V

if TYPE_CHECKING:
    from npukit.board.board import Board

MOST_PES = 1 << 16
"""Nine times the largest board there is. Planning and emulating take time and memory for each."""


def contradictions(board: Board) -> Iterator[str]:
    """Each as one line that names the fields and the numbers."""
    if board.pe_count > MOST_PES:
        yield f"mesh: {board.mesh.chips.count:,} chips of {board.mesh.pes.count:,} PEs are more than {MOST_PES:,} PEs"
        return
    yield from _of_accelerators(board)
    yield from _of_kinds(board)
    yield from _of_mesh(board)
    yield from _of_addresses(board)
    if board.events and board.core.type.architecture is not RISC_V:
        yield f"[events] is for RISC-V cores: a {board.core.type.title} has events of its own"
    if board.pe_count > 1 and board.noc is None:
        yield f"{board.pe_count} PEs need a [noc]"
    if "emulator" in board.runs_on and not board.noc and not board.emulator:
        yield "runs_on names the emulator, which needs an [emulator] with the registers"
    if "emulator" in board.runs_on and board.core.type.assembly == "helium":
        yield f"runs_on names the emulator, which has none of a {board.core.type.title}'s vectors: QEMU has them"
    if board.noc and board.mesh.chips.count > 1 and not _bytes_over_a_border(board):
        fields = "chip_links_per_border, chip_link_bytes_per_cycle"
        yield f"{board.mesh.chips.count} chips, but no byte a cycle crosses a border: {fields}"


def _of_accelerators(board: Board) -> Iterator[str]:
    for name, times in Counter(slot.name for slot in board.accelerator).items():
        if times > 1:
            yield f"{times} accelerators are called {name}: a PE has one of each kind"


def _of_kinds(board: Board) -> Iterator[str]:
    kinds = Counter(pe for kind in board.kind for pe in kind.numbers)
    for pe in sorted(pe for pe in kinds if not 0 <= pe < board.pe_count):
        yield f"PE {pe} is named in a kind, but there are only PEs 0 to {board.pe_count - 1}"
    for pe in sorted(pe for pe, times in kinds.items() if times > 1):
        yield f"PE {pe} is of {kinds[pe]} kinds"
    known = {slot.name for slot in board.accelerator if slot.base is not None}
    for name in sorted({name for kind in board.kind for name in kind.accelerators} - known):
        yield f"a kind of PE carries {name}, which is no accelerator of the board with a base"


def _of_mesh(board: Board) -> Iterator[str]:
    named = {*board.mesh.dead_pes, *(pe for link in board.mesh.dead_links for pe in link)}
    for pe in sorted(pe for pe in named if not 0 <= pe < board.pe_count):
        yield f"PE {pe} is named as dead, but there are only PEs 0 to {board.pe_count - 1}"
    grid = board.mesh.pes
    for first, second in board.mesh.dead_links:
        (row, column), (other_row, other_column) = (divmod(pe % grid.count, grid.columns) for pe in (first, second))
        same_chip = first // grid.count == second // grid.count
        if same_chip and abs(row - other_row) + abs(column - other_column) != 1:
            yield f"PEs {first} and {second} are named as a dead link, but they are no neighbours"


def _of_addresses(board: Board) -> Iterator[str]:
    for first, second in pairwise(sorted(board.memory, key=lambda memory: memory.origin)):
        if first.end > second.origin:
            yield f"memories {first.name} and {second.name} overlap"
    bases = dict(_bases(board))
    for name, base in bases.items():
        for memory in board.memory:
            if memory.origin <= base < memory.end:
                yield f"the registers of {name} at {base:#x} lie in memory {memory.name}, which ends at {memory.end:#x}"
    for (first, base), (second, same) in pairwise(sorted(bases.items(), key=lambda item: item[1])):
        if base == same:
            yield f"{first} and {second} have their registers at one address, {base:#x}"


def _bases(board: Board) -> Iterator[tuple[str, int]]:
    yield "timer", board.timer.base
    yield "uart", board.uart.base
    if board.events:
        yield "events", board.events.base
    if board.noc:
        yield "noc", board.noc.base
    if board.flash:
        yield "flash", board.flash.base
    yield from ((slot.name, slot.base) for slot in board.accelerator if slot.base is not None)


def _bytes_over_a_border(board: Board) -> int:
    return board.noc.chip_links_per_border * board.noc.chip_link_bytes_per_cycle if board.noc else 0
