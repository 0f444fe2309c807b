"""Checks for contradictory numbers in a board file."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from itertools import pairwise
from typing import TYPE_CHECKING

from npukit.board.cores import ARCHITECTURES, CORES
from npukit.board.lines import Where

if TYPE_CHECKING:
    from npukit.board.board import Board

Fault = tuple[Where, str]
"""Place of a field in the board file, and a line that names the contradictory fields and numbers."""

MOST_PES = 1 << 16
"""Nine times the largest existing board. Planning and emulating take time and memory for each PE."""


def contradictions(board: Board) -> Iterator[Fault]:
    """Contradictions, each with its place in the board file."""
    if board.pe_count > MOST_PES:
        of = f"{board.mesh.chips.count:,} chips of {board.mesh.pes.count:,} PEs"
        yield ("mesh", "pes"), f"mesh: {of} are more than {MOST_PES:,} PEs"
        return
    yield from _of_memories(board)
    for name, times in Counter(slot.name for slot in board.accelerator).items():
        if times > 1:
            yield ("accelerator",), f"{times} accelerators are called {name}: a PE has one of each kind"
    yield from _of_kinds(board)
    yield from _of_small_memories(board)
    yield from _of_mesh(board)
    yield from _of_addresses(board)
    yield from _of_targets(board)
    cores = [CORES[cpu] for cpu in board.cpus]
    if board.events and not any(core.architecture.takes_back_events for core in cores):
        takers = " or ".join(each.title for each in ARCHITECTURES if each.takes_back_events)
        yield ("events",), f"[events] is for {takers} cores: a {cores[0].title} has events of its own"


def _of_targets(board: Board) -> Iterator[Fault]:
    cores = [CORES[cpu] for cpu in board.cpus]
    if "emulator" in board.runs_on and not board.noc and not board.emulator:
        yield ("runs_on",), "runs_on names the emulator, which needs an [emulator] with the registers"
    for core in (each for each in cores if each.has_vectors and "emulator" in board.runs_on):
        yield ("runs_on",), f"runs_on names the emulator, which has none of a {core.title}'s vectors: QEMU has them"
    if len(cores) > 1 and "renode" in board.runs_on:
        yield ("runs_on",), "runs_on names renode, whose PEs here have the same core each"
    if "renode" in board.runs_on and board.mesh.chip_links != "grid":
        yield ("mesh", "chip_links"), "runs_on names renode, whose chips here are linked as a grid"


def _of_memories(board: Board) -> Iterator[Fault]:
    for kind in ("code", "constants", "activations", "stack"):
        homes = [memory.name for memory in board.memory if kind in memory.holds]
        if len(homes) != 1 and not (kind == "activations" and homes and not board.noc):
            found = " and ".join(homes) or "none"
            yield ("memory", 0, "holds"), f"{kind} must have exactly one memory to live in, not {found}"
    for number, memory in enumerate(board.memory):
        waits = memory.waits
        if waits and any(lines % waits.ways for lines in (waits.lines, waits.data_lines or waits.lines)):
            fact = f"the lines of memory {memory.name} are no multiple of its cache's {waits.ways} ways"
            yield ("memory", number, "waits"), fact


def _of_kinds(board: Board) -> Iterator[Fault]:
    kinds = Counter(pe for kind in board.kind for pe in kind.numbers)
    for pe in sorted(pe for pe in kinds if not 0 <= pe < board.pe_count):
        yield ("kind", 0, "pes"), f"PE {pe} is named in a kind, but there are only PEs 0 to {board.pe_count - 1}"
    for pe in sorted(pe for pe, times in kinds.items() if times > 1):
        yield ("kind", 0, "pes"), f"PE {pe} is of {kinds[pe]} kinds"
    known = {slot.name for slot in board.accelerator if slot.base is not None}
    for name in sorted({name for kind in board.kind for name in kind.accelerators or ()} - known):
        fact = f"a kind of PE carries {name}, which is no accelerator of the board with a base"
        yield ("kind", 0, "accelerators"), fact


def _of_small_memories(board: Board) -> Iterator[Fault]:
    sizes = [kind.memory_bytes for kind in board.kind if kind.memory_bytes]
    where: Where = ("kind", 0, "memory_bytes")
    if sizes and (len(board.memory) != 1 or board.stock):
        yield where, "memory_bytes of a kind is for PEs of a mesh with one memory each"
    elif sizes and max(sizes) > board.memory[0].size:
        memory = board.memory[0]
        yield where, f"a kind has {max(sizes):,} bytes of memory {memory.name}, which has {memory.size:,}"
    elif sizes and "renode" in board.runs_on:
        yield ("runs_on",), "runs_on names renode, whose PEs here have as much memory each"


def _of_mesh(board: Board) -> Iterator[Fault]:
    noc, chips = board.noc, board.mesh.chips.count
    if board.pe_count > 1 and noc is None:
        yield ("mesh",), f"{board.pe_count} PEs need a [noc]"
    if noc and chips > 1 and not noc.chip_links_per_border * noc.chip_link_bytes_per_cycle:
        fact = "no byte a cycle crosses a border: chip_links_per_border, chip_link_bytes_per_cycle"
        yield ("noc", "chip_links_per_border"), f"{chips} chips, but {fact}"
    named = {*board.mesh.dead_pes, *(pe for link in board.mesh.dead_links for pe in link)}
    for pe in sorted(pe for pe in named if not 0 <= pe < board.pe_count):
        yield ("mesh", "dead_pes"), f"PE {pe} is named as dead, but there are only PEs 0 to {board.pe_count - 1}"
    grid = board.mesh.pes
    for first, second in board.mesh.dead_links:
        (row, column), (other_row, other_column) = (divmod(pe % grid.count, grid.columns) for pe in (first, second))
        same_chip = first // grid.count == second // grid.count
        if same_chip and abs(row - other_row) + abs(column - other_column) != 1:
            fact = f"PEs {first} and {second} are named as a dead link, but they are no neighbours"
            yield ("mesh", "dead_links"), fact


def _of_addresses(board: Board) -> Iterator[Fault]:
    for first, second in pairwise(sorted(board.memory, key=lambda memory: memory.origin)):
        if first.end > second.origin:
            yield ("memory", board.memory.index(second), "origin"), f"memories {first.name} and {second.name} overlap"
    parts = {name: getattr(board, name) for name in ("timer", "uart", "events", "noc", "flash")}
    bases: list[tuple[Where, str, int]] = [((name, "base"), name, part.base) for name, part in parts.items() if part]
    slots = enumerate(board.accelerator)
    bases += [(("accelerator", at, "base"), slot.name, slot.base) for at, slot in slots if slot.base is not None]
    for where, name, base in bases:
        for memory in board.memory:
            if memory.origin <= base < memory.end:
                place = f"memory {memory.name}, which ends at {memory.end:#x}"
                yield where, f"the registers of {name} at {base:#x} lie in {place}"
    for (_, first, base), (where, second, same) in pairwise(sorted(bases, key=lambda each: each[2])):
        if base == same:
            yield where, f"{first} and {second} have their registers at one address, {base:#x}"
