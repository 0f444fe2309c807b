"""Memory of a PE: offsets of buffers from their lifetimes, reserves for code and stack, and the check against the
board."""

from __future__ import annotations

from array import array
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate, pairwise, zip_longest
from math import inf
from operator import itemgetter

import numpy as np

from npukit.board.board import Board
from npukit.board.noc import FLIT_BYTES
from npukit.plan.ir.plan import MemoryUse, Plan
from npukit.structs import WORD, bytes_of

ALIGNMENT = FLIT_BYTES
"""Alignment of buffers in bytes."""

CODE_BYTES = 17 << 10
"""Bytes reserved for the program until the linker has measured it."""

FIRMWARE_BYTES = 39 << 8
"""Bytes of firmware in every program: measured 9.6 KB (`tests/project/test_images.py`). Traces, or a link shared by
several networks, take 1.1 KB more, which the unused part of the stack's reserve covers."""

WORKER_BYTES = 13 << 8
"""Bytes of firmware on a worker, a PE without host link and without computing on its core: measured 3.1 KB, with
variables."""

CODE_OF_A_TILE, CODE_OF_A_MESSAGE, CODE_OF_A_TENSOR = 64, 16, 24
"""Bytes of code added by a compute step, by a send or a wait, and by an input or output of the host."""

LONG_PROGRAM = 400
"""Steps from which on the program of a PE on a mesh is a table, executed by a loop, instead of C code."""

MANY_PROGRAMS = 512
"""Different programs on a mesh above which all become tables and share one program. A program takes half a second to
build; a row of a table takes some twenty cycles more than a statement. SmolLM2-135M would have 1751. Eight blocks of
TinyLlama, which would be a tenth slower as tables, have 327."""

STEP_BYTES, LAYER_BYTES, STATE_BYTES, CONTROL_BYTES, RECORD_BYTES = (
    bytes_of(f"net_{struct}") for struct in ("step", "layer", "state", "control", "record")
)
"""Bytes of the firmware's structures. The control block and a record per layer begin every PE's activations."""

MULTICAST_SIGNAL = 3
"""Number of receiving PEs from which on a signal in a table is a multicast with a list of PEs."""

PAGE_BYTES = 2 << 10
"""Bytes of a page of a table, unless a step needs more. A PE has two pages. With 4 KB the twelve blocks of ViT-tiny/32
(`benchmarks/transformers/transformer.py`) are predicted to take 4 % more, with 1 KB 2 % less."""

ROWS_OF_A_PAGE = 4
"""Rows of a page beside its steps: the fetch of the next page, the jump there, and padding for alignment."""

CODE_OF_THE_LOOP = 5 << 8
"""Bytes of the loop that executes a table: measured 1.0 KB."""

CODE_OF_STATES = 192
"""Bytes of the code that resets states, and of the host's request for a reset."""

LAYER_NUMBER_BYTES = WORD // 2
"""Bytes of a layer's number in `net_layer_numbers`: `uint16_t`."""

STACK_BYTES = 3 << 10
"""Bytes reserved for the stack until its bound is measured."""

WORKER_STACK_BYTES = 5 << 7
"""Bytes of a worker's stack: measured 0.4 KB."""

VARIABLE_BYTES = 8 << 10
"""Bytes left free for the firmware's own variables: measured 2 KB at most."""


@dataclass(frozen=True)
class Lifetime:
    """Bytes in use from step `first` to step `last`, both included. With `parts` only in these intervals of steps."""

    bytes: int
    first: int
    last: int
    parts: tuple[tuple[int, int], ...] = ()

    @property
    def spans(self) -> tuple[tuple[int, int], ...]:
        return self.parts or ((self.first, self.last),)

    @property
    def steps(self) -> int:
        return sum(last - first + 1 for first, last in self.spans)


def in_turn(lifetimes: Sequence[Lifetime]) -> Lifetime | None:
    """One lifetime for buffers that reuse the same bytes in turn, or None if two are live at once."""
    spans = sorted(span for life in lifetimes for span in life.spans)
    if any(before[1] >= after[0] for before, after in pairwise(spans)):
        return None
    return Lifetime(max(life.bytes for life in lifetimes), spans[0][0], spans[-1][1], tuple(spans))


def reuse_chains(count: int, heirs: Mapping[int, int]) -> list[list[int]]:
    """Chains of buffers that reuse one address in turn. Buffers are the numbers below `count`.

    `heirs`: the successor at the same address, for each buffer with a successor.
    """
    units: list[list[int]] = []
    for first in sorted(set(range(count)) - set(heirs.values())):
        unit = [first]
        while unit[-1] in heirs:
            unit.append(heirs[unit[-1]])
        units.append(unit)
    return units


def joined(lifetimes: Sequence[Lifetime]) -> Lifetime:
    """One lifetime for buffers that share the same bytes, in turn or at once."""
    if len(lifetimes) == 1:
        return lifetimes[0]
    first, last = min(life.first for life in lifetimes), max(life.last for life in lifetimes)
    return Lifetime(max(life.bytes for life in lifetimes), first, last)


def aligned(size: int) -> int:
    return -(-size // ALIGNMENT) * ALIGNMENT


def pack(lifetimes: Sequence[Lifetime], room: float = inf) -> tuple[int, ...]:
    """An offset for each buffer. Buffers are placed by size, the largest first, at the lowest address free over their
    lifetimes.

    If the result exceeds the peak of live bytes, the packing is repeated with the highest buffer placed first. If some
    buffers have several intervals, further initial orders are tried: by length of lifetime, and by first step. Nothing
    is repeated if the peak exceeds the `room`.
    """
    some = [index for index, life in enumerate(lifetimes) if life.bytes]
    orders = [sorted(some, key=lambda i: (-lifetimes[i].bytes, lifetimes[i].first, i))]
    if any(life.parts for life in lifetimes):
        orders.append(sorted(orders[0], key=lambda i: -lifetimes[i].steps))
        orders.append(sorted(orders[0], key=lambda i: lifetimes[i].first))
    sizes, met, least = [life.bytes for life in lifetimes], _meetings(lifetimes), peak_bytes(lifetimes)
    best = _placed(sizes, met, orders[0])
    for order in orders:
        if least < best[1] and least <= room:
            best = min(best, _improved(sizes, met, order, least), key=itemgetter(1))
    return tuple(span >> 32 for span in best[0])


def _meetings(lifetimes: Sequence[Lifetime]) -> list[array[int]]:
    """The indices of the buffers live at the same time as each one: of a large plan, millions in all."""
    spans = [(number, *span) for number, life in enumerate(lifetimes) if life.bytes for span in life.spans]
    owners, firsts, lasts = np.array(spans, np.int64).reshape(-1, 3).T
    found: list[array[int]] = []
    for life in lifetimes:
        meets = np.zeros(len(lifetimes), bool)
        for first, last in life.spans if life.bytes else ():
            meets[owners[(firsts <= last) & (first <= lasts)]] = True
        found.append(array("i", np.flatnonzero(meets).astype(np.intc).tobytes()))
    return found


_Placed = tuple[list[int], int, int]
"""A packing: the span of each buffer, the bytes in total, and the index of the highest buffer. A span of memory is one
integer, quick to sort: its offset in the upper bits, its end in the lower 32."""


def _improved(sizes: Sequence[int], met: Sequence[Collection[int]], order: Sequence[int], least: int) -> _Placed:
    """The best of several packings. Each repetition places the highest buffer of the last one first.

    There are up to 40 repetitions, fewer for many buffers, because thousands take seconds.
    """
    best = placed = _placed(sizes, met, order)
    for _ in range(min(40, 12_000 // len(order))):
        if best[1] <= least:
            break
        order = [placed[2], *(i for i in order if i != placed[2])]
        placed = _placed(sizes, met, order, placed[0])
        best = min(best, placed, key=itemgetter(1))
    return best


def _placed(
    sizes: Sequence[int], met: Sequence[Collection[int]], order: Sequence[int], before: Sequence[int] = ()
) -> _Placed:
    """Place each buffer in turn at the lowest address free of the buffers that it has `met`, alive at the same time.

    `before`: the spans for the same order, except that the first buffer has moved to the front. A buffer keeps its span
    if no overlapping lifetime's span has changed.
    """
    spans, moved = [0] * len(sizes), [not before] * len(sizes)
    highest, top = -1, 0
    for index in order:
        if moved[index] or index == order[0]:
            spans[index] = _lowest(sizes[index], spans, met[index])
            if before and (index == order[0] or spans[index] != before[index]):
                for other in met[index]:
                    moved[other] = True
        else:
            spans[index] = before[index]
        end = (spans[index] >> 32) + sizes[index]
        if end > top or (end == top and index < highest):
            highest, top = index, end
    return spans, aligned(top), highest


def _lowest(size: int, spans: Sequence[int], met: Collection[int]) -> int:
    """The lowest free span, next to the placed buffers with overlapping lifetimes."""
    place = 0
    for span in sorted(filter(None, map(spans.__getitem__, met))):
        if place + size <= span >> 32:
            break
        place = max(place, span & 0xFFFF_FFFF)
    return place << 32 | aligned(place + size)


def peak_bytes(lifetimes: Sequence[Lifetime]) -> int:
    """Peak of live bytes over all steps: a lower bound on the extent of any packing."""
    changes: Counter[int] = Counter()
    for life in lifetimes:
        for first, last in life.spans:
            changes[first] += aligned(life.bytes)
            changes[last + 1] -= aligned(life.bytes)
    return max(accumulate(changes[step] for step in sorted(changes)), default=0)


def extent(lifetimes: Sequence[Lifetime], offsets: Sequence[int]) -> int:
    """Bytes from offset 0 to the end of the last buffer."""
    return max((aligned(o + life.bytes) for o, life in zip(offsets, lifetimes, strict=True)), default=0)


def initial_bytes(value: np.ndarray) -> int:
    """Bytes of constants for the initial value of a part of a state. A value of equal bytes needs none."""
    data = value.tobytes()
    return 0 if data == data[:1] * len(data) else len(data)


def control_bytes(layers: int) -> int:
    """The bytes in front of a PE's arena: its control block and a record per layer."""
    return CONTROL_BYTES + RECORD_BYTES * max(layers, 1)


def program_bytes(
    pes: int, *, tiles: int = 0, messages: int = 0, tensors: int = 0, kernels: int = 0, table: bool = False
) -> tuple[int, int]:
    """The bytes to reserve for a PE's program, and for its stack.

    The size follows from the numbers of compute steps (`tiles`), of sends and waits (`messages`), of tensors of the
    host and of steps on the core (`kernels`). A worker, one of several PEs without tensors and kernels, needs only the
    small firmware. Other programs in C take at least `CODE_BYTES`.
    """
    worker = pes > 1 and not tensors and not kernels
    firmware, stack = (WORKER_BYTES, WORKER_STACK_BYTES) if worker else (FIRMWARE_BYTES, STACK_BYTES)
    code = firmware + CODE_OF_A_TENSOR * tensors
    if table:
        return code + CODE_OF_THE_LOOP + CODE_OF_A_TILE * kernels, stack
    code += CODE_OF_A_TILE * tiles + CODE_OF_A_MESSAGE * messages
    return code if worker else max(CODE_BYTES, code), stack


def is_table(steps: int, pes: int) -> bool:
    """True if a program with this number of steps is a table."""
    return steps >= LONG_PROGRAM and pes > 1


def rows_of_signal(pes: int) -> int:
    """The rows of a table for a signal to `pes` PEs. An entry of the list of PEs is as long as a row."""
    return pes + 2 if pes >= MULTICAST_SIGNAL else pes


def table_bytes(rows: int, layers: int, places: int) -> int:
    """The bytes of a table: its steps, a number per layer, and a record of each place of layers' outputs."""
    words = -(-LAYER_NUMBER_BYTES * layers // WORD)
    return STEP_BYTES * (rows + 1) + LAYER_BYTES * places + WORD * words


def memory_use(
    board: Board, constants: int, activations: int, code: int = CODE_BYTES, stack: int = STACK_BYTES
) -> MemoryUse:
    """The division of a PE's memory.

    `free` refers to the memory for activations, or to its first bank; below 0, the plan does not fit. Activations
    beyond one bank continue in the next.
    """
    use = _with_free(board, MemoryUse(code, constants, activations, stack, 0))
    if use.free >= 0 or not board.banks[1:]:
        return use
    banks, left = [activations + use.free], -use.free
    for bank in board.banks[1:]:
        banks.append(left if bank == board.banks[-1] else min(left, bank.size))
        left -= banks[-1]
    return in_banks(board, use, banks)


def in_banks(board: Board, use: MemoryUse, extents: Sequence[int]) -> MemoryUse:
    """The memory use with `extents` bytes of activations in the banks."""
    return _with_free(board, replace(use, activations=extents[0], banks=tuple(extents[1:])))


def bank_begins(board: Board) -> tuple[int, ...]:
    """The offset of each bank's first byte among the activations."""
    return tuple(accumulate((bank.size for bank in board.banks[:-1]), initial=0))


def activation_room(board: Board, constants: int, layers: int) -> int:
    """Bytes of the first bank left for a PE's arena, beside its constants and its records of layers."""
    variables = 0 if "code" in board.banks[0].holds else VARIABLE_BYTES
    return memory_use(board, constants, control_bytes(layers)).free - variables


def with_code(board: Board, use: MemoryUse, code_bytes: int, near: int = 0) -> MemoryUse:
    """The memory use with `code_bytes` of code more than the reserve, and `near` bytes of constants copied at start-up
    to the memory of the program's variables."""
    return _with_free(board, replace(use, code=use.code + code_bytes + near, variables=use.variables + near))


@dataclass(frozen=True)
class RegionUse:
    """The bytes in one of a PE's memories, by content."""

    name: str
    size: int
    parts: Mapping[str, int]

    @property
    def used(self) -> int:
        return sum(self.parts.values())

    @property
    def missing(self) -> int:
        return max(0, self.used - self.size)


def regions_of(board: Board, use: MemoryUse) -> tuple[RegionUse, ...]:
    """The use of each memory of a PE."""
    apart, banks = use.variables, [bank.name for bank in board.banks]
    sizes = {"code": use.code - apart, "constants": use.constants, "activations": use.activations, "stack": use.stack}
    further = dict(zip_longest(banks[1:], use.banks, fillvalue=0))
    of_bank = {name: {"activations": size} for name, size in further.items()}
    if apart:
        of_bank[banks[0]] = {"variables": apart}
    parts = [{kind: sizes[kind] for kind in memory.holds} | of_bank.get(memory.name, {}) for memory in board.memory]
    return tuple(RegionUse(memory.name, memory.size, held) for memory, held in zip(board.memory, parts, strict=True))


def fullest_regions(board: Board, plan: Plan) -> tuple[RegionUse, ...]:
    """The use of each memory, on the PE with the largest share in use."""
    each = zip(*(regions_of(board.seen_by(pe.pe), pe.memory) for pe in plan.pes), strict=True)
    return tuple(max(regions, key=lambda region: region.used / region.size) for regions in each)


def crowded_region(board: Board, use: MemoryUse) -> RegionUse:
    """The PE's memory with the largest shortfall."""
    return max(regions_of(board, use), key=lambda region: region.missing)


def shortfall(board: Board, use: MemoryUse) -> int:
    """Bytes that the most crowded memory of the PE lacks; 0 if all fits."""
    return crowded_region(board, use).missing


@dataclass(frozen=True)
class Lacks:
    """The PE with the least memory for a plan, and the bytes that it lacks; 0 if all fits.

    `use`: the memory use of the PE, a lower bound if `plan` is None.
    """

    missing: int
    pe: int
    use: MemoryUse
    plan: Plan | None = None


def most_lacking(board: Board, uses: Mapping[int, MemoryUse]) -> Lacks:
    """The PE with the largest shortfall, given the memory use of each."""
    missing, _, pe = max((shortfall(board.seen_by(pe), use), -use.free, -pe) for pe, use in uses.items())
    return Lacks(missing, -pe, uses[-pe])


def lacking_of(board: Board, plan: Plan) -> Lacks:
    """The PE of the plan with the largest shortfall."""
    return replace(most_lacking(board, {pe.pe: pe.memory for pe in plan.pes}), plan=plan)


def missing_bytes(board: Board, plan: Plan) -> int:
    """The largest shortfall in bytes of any memory of any PE."""
    return lacking_of(board, plan).missing


def _with_free(board: Board, use: MemoryUse) -> MemoryUse:
    home = next(region for region in regions_of(board, use) if region.name == board.banks[0].name)
    return replace(use, free=home.size - home.used)
