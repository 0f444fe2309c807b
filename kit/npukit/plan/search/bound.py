"""Lower bounds on a batch before its emission: the bytes of each PE, and the cycles of a frame."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping
from math import inf

from npukit.accel.core_kernels import NO_KERNELS
from npukit.accel.cpu import Cpu
from npukit.accel.interface import Engines
from npukit.board.noc import DRAM
from npukit.net.box import Box
from npukit.net.net import CORE, Op
from npukit.plan.batch.batch import Batch
from npukit.plan.batch.channel_bands import between, in_bands
from npukit.plan.batch.live_bytes import most_at_once
from npukit.plan.batch.schedule import ends_of, output_bytes
from npukit.plan.batch.weight_tiles import LARGEST_WEIGHT_TILE, cut_in_weight_tiles, widths
from npukit.plan.emit.emitter import command_bytes, constants_of, resident_bytes, streamed_bytes
from npukit.plan.emit.messages import descriptor_bytes
from npukit.plan.emit.regions import Ends, Regions, copies_to, regions_of, transfers_of
from npukit.plan.ir.assignment import Assignment, Tile, pes_of, useful
from npukit.plan.ir.plan import MemoryUse
from npukit.plan.predict.memory import (
    CODE_BYTES,
    CODE_OF_A_TENSOR,
    CODE_OF_A_TILE,
    CODE_OF_THE_LOOP,
    FIRMWARE_BYTES,
    LAYER_BYTES,
    LAYER_NUMBER_BYTES,
    PAGE_BYTES,
    STACK_BYTES,
    STEP_BYTES,
    WORKER_BYTES,
    WORKER_STACK_BYTES,
    Lacks,
    control_bytes,
    memory_use,
    most_lacking,
)
from npukit.plan.tensors.graph import Graph, aliases
from npukit.plan.tensors.problem import Problem

_Cut = Callable[[Op, Box], tuple[int, int]]
"""The number of a tile's weight tiles, 0 if the tile is computed whole, and bytes of the first two on a PE together: a
weight tile arrives while the other is in use."""


def least_cycles(problem: Problem, batch: Batch) -> float:
    """A lower bound on the cycles per frame: the busiest PE of a group, and for a single frame the longest path. The
    path has only the first band of an op whose result goes band by band."""
    group, busy = useful(problem.graph, batch.groups[0]), Counter[int]()
    least, most, cycles = dict[str, int](), dict[str, int](), _least_cycles_of(problem, batch)
    banded = in_bands(problem.graph, group, batch.bands)
    for op in problem.graph.ops:
        tiles, parts = group[op.name], [cycles(op, part) for part in banded[op.name]]
        taken = [sum(parts[number :: len(tiles)]) for number in range(len(tiles))]
        for tile, spent in zip(tiles, taken, strict=True):
            busy[tile.pe] += spent
        awaited = parts[: len(tiles)] if op.name in batch.bands else taken
        least[op.output], most[op.output] = min(awaited, default=0), max(awaited, default=0)
    per_frame = max(busy.values()) / len(batch.groups)
    return per_frame if batch.frames > 1 else max(per_frame, _longest_path(problem.graph, least, most))


def _least_cycles_of(problem: Problem, batch: Batch) -> Callable[[Op, Tile], int]:
    """The function for the least cycles of a tile: weight tiles together may take fewer than the whole."""
    known: dict[tuple[str, tuple[int, ...], int | None], int] = {}

    def of_tile(op: Op, tile: Tile) -> int:
        if op.name not in batch.stream.ops:
            return problem.cost(op, tile.box, tile.pe).cycles
        key = op.name, tile.box.shape, tile.pe if op.engine == CORE else None
        if key not in known:
            known[key] = in_weight_tiles(op, *key[1:])
        return known[key]

    def in_weight_tiles(op: Op, shape: tuple[int, ...], pe: int | None) -> int:
        def cycles(width: int) -> int:
            return problem.cost(op, Box.whole((*shape[:-1], width)), pe).cycles if width else 0

        size = max(streamed_bytes(problem.engines[op.engine], problem.cost(op, Box.whole(shape), pe)), 1)
        least, most = batch.stream.sizes
        found = widths(shape[-1], range(-(-size // most), -(-size // least) + 1))
        return min(shape[-1] // width * cycles(width) + cycles(shape[-1] % width) for width in found)

    return of_tile


def _longest_path(graph: Graph, least: Mapping[str, int], most: Mapping[str, int]) -> int:
    """Cycles of the longest path through the slowest tile of one op and the fastest tiles of the others."""
    before, after = dict[str, int](), Counter[str]()
    for op in graph.ops:
        before[op.output] = max((before[name] + least[name] for name in graph.sources(op) if name in before), default=0)
    for op in reversed(graph.ops):
        for name in graph.sources(op):
            after[name] = max(after[name], after[op.output] + least[op.output])
    return max((before[op.output] + most[op.output] + after[op.output] for op in graph.ops), default=0)


def may_be_resident(problem: Problem) -> bool:
    """True if all PEs together may have room for the constants of all ops, and the root for the inputs of a frame."""
    board, graph, root = problem.board, problem.graph, problem.board.root_pe
    wholes = sum(problem.cost(op, Box.whole(graph.shape(op.output))).constant_bytes for op in graph.ops)
    inputs = max((graph.net.tensor(name).bytes for name in graph.net.inputs), default=0)
    use = memory_use(board.seen_by(root), 0, inputs, FIRMWARE_BYTES, STACK_BYTES)
    fit = wholes <= len(problem.order) * board.memory_for("constants").size
    return fit and not most_lacking(board, {root: use}).missing


def least_lacking(problem: Problem, batch: Batch) -> Lacks:
    """The PE that lacks the most bytes, and a lower bound on its memory use."""
    lacking = None
    for lacking in _bounds(problem, batch):
        if lacking.missing:
            break
    assert lacking is not None
    return lacking


def lacking_on_root(problem: Problem, batch: Batch) -> Lacks:
    """A lower bound on the memory use of the root: the host's tensors of every frame, and its own constants."""
    board, root, net = problem.board, problem.board.root_pe, problem.net
    tensors = batch.frames * (len(net.inputs) + len(net.outputs))
    stored = ends_of(problem, fetched=batch.fetched).outputs == DRAM
    outputs = 0 if stored else batch.frames * output_bytes(problem.graph)
    own = next((group for group in batch.groups if root in pes_of(group)), None)
    constants = _resident(problem, useful(problem.graph, own), batch)[root] if own else 0
    code = FIRMWARE_BYTES + CODE_OF_A_TENSOR * tensors
    return most_lacking(board, {root: memory_use(board.seen_by(root), constants, outputs, code, STACK_BYTES)})


def _bounds(problem: Problem, batch: Batch) -> Iterator[Lacks]:
    """The PE that lacks the most bytes: the root first, then one of the last group, which neither has the root nor gets
    places late. Descriptors, which take longest to compute, come last.
    """
    if not batch.is_frame:
        yield lacking_on_root(problem, batch)
    graph, root = problem.graph, problem.board.root_pe
    group = in_bands(graph, useful(graph, batch.groups[-1]), batch.bands)
    thin, late = between(graph, batch.bands), batch.low_memory
    ends = Ends(DRAM, DRAM) if batch.fetched else Ends(root, root)
    regions = regions_of(graph, group, ends, 0, thin, low_memory=late)
    cut = _cut_of(problem, batch)
    beside = {op.output: {tile.pe: cut(op, tile.box)[1] for tile in group[op.name]} for op in graph.ops}
    in_place = _in_place(graph, problem.engines, group)
    held = most_at_once(graph, regions, aliases(graph, problem.engines), in_place, thin, beside, late=late)
    pages = frozenset(pe for pe in held if batch.in_pages and problem.board.is_on_roots_chip(pe))
    constants = _resident(problem, group, batch) + _orders(problem, group, batch, cut, pages)
    if not batch.is_frame:
        constants += _controls(group)
    kernels = Counter(tile.pe for op in graph.ops if op.engine == CORE for tile in group[op.name])
    yield _most(problem, constants, held, kernels)
    if batch.is_frame or pages >= held.keys():
        return
    descriptors = sum((_descriptors(graph, regions, tensor) for tensor in regions), Counter())
    constants += Counter({pe: size for pe, size in descriptors.items() if pe not in pages})
    yield _most(problem, constants, held, kernels)


def _most(problem: Problem, constants: Counter[int], held: Counter[int], kernels: Counter[int]) -> Lacks:
    """`constants`, `held`: bytes by PE. `kernels`: kernels on the core by PE."""
    uses = dict[int, MemoryUse]()
    for pe in held | constants:
        code, stack = _program(problem, kernels[pe])
        uses[pe] = memory_use(problem.board.seen_by(pe), constants[pe], held[pe], code, stack)
    return most_lacking(problem.board, uses)


def _program(problem: Problem, kernels: int) -> tuple[int, int]:
    """Bytes of firmware and stack of a PE. Kernels in assembly want the firmware of a worker only."""
    if len(problem.order) == 1:
        return CODE_BYTES, STACK_BYTES
    core = problem.engines[CORE]
    in_assembly = isinstance(core, Cpu) and core.kernels is not NO_KERNELS
    code = FIRMWARE_BYTES if kernels and not in_assembly else WORKER_BYTES
    return code, STACK_BYTES if kernels else WORKER_STACK_BYTES


def _resident(problem: Problem, group: Assignment, batch: Batch) -> Counter[int]:
    """Bytes of the constants that are not streamed, with their commands, on each PE.
    Constants shared by tiles count once."""
    resident = (op for op in problem.graph.ops if op.name not in batch.stream.ops)
    return resident_bytes(constants_of(problem, op, tile) for op in resident for tile in group[op.name])


def _in_place(graph: Graph, engines: Engines, group: Assignment) -> frozenset[int]:
    """The indices of ops whose output may overwrite an operand."""
    first = ((index, op, tile.box) for index, op in enumerate(graph.ops) for tile in group[op.name][:1])
    return frozenset(index for index, op, box in first if engines[op.engine].cost(graph.net, op, box).may_overwrite)


def _cut_of(problem: Problem, batch: Batch) -> _Cut:
    """The function for a batch's tiles, with as few and as small weight tiles as possible."""
    stream, filled, (least, most) = batch.stream, batch.stream.room is not None, batch.stream.sizes
    known: dict[tuple[str, tuple[int, ...]], tuple[int, int]] = {}

    def cut_anew(op: Op, box: Box) -> tuple[int, int]:
        def size(part: Box) -> int:
            return streamed_bytes(problem.engines[op.engine], problem.cost(op, Box.whole(part.shape)))

        if size(box) <= least:
            return 0, size(box)
        small = cut_in_weight_tiles(box, size, least, least if filled else LARGEST_WEIGHT_TILE * least)
        large = cut_in_weight_tiles(box, size, most, LARGEST_WEIGHT_TILE * most) if size(box) > most else []
        return len(large), sum(map(size, small[: min(stream.tiles, 2)]))

    def cut(op: Op, box: Box) -> tuple[int, int]:
        key = op.name, box.shape
        if key not in known:
            known[key] = cut_anew(op, box) if op.name in stream.ops else (0, 0)
        return known[key]

    return cut


def _orders(problem: Problem, group: Assignment, batch: Batch, cut: _Cut, pages: Collection[int]) -> Counter[int]:
    """Bytes of the steps on each PE and of the commands of streamed ops: in C or in a table, whichever is less.
    `pages`: PEs that may fetch a table's orders from DRAM."""
    commands, in_c, rows, layers = Counter[int](), Counter[int](), Counter[int](), Counter[int]()
    for op in problem.graph.ops:
        for tile in group[op.name]:
            if op.name in batch.stream.ops:
                commands[tile.pe] += command_bytes(problem.engines[op.engine], problem.cost(op, tile.box, tile.pe))
            count, _ = cut(op, tile.box)
            in_c[tile.pe] += CODE_OF_A_TILE * max(count, 1)
            rows[tile.pe] += STEP_BYTES * _rows(count)
            layers[tile.pe] += LAYER_BYTES + LAYER_NUMBER_BYTES
    if len(problem.order) == 1:  # `CODE_BYTES` has room for its steps in C
        return commands
    orders = {pe: min(rows[pe] + commands[pe], 2 * PAGE_BYTES if pe in pages else inf) for pe in layers}
    in_table = {pe: CODE_OF_THE_LOOP + layers[pe] + int(size) for pe, size in orders.items()}
    return Counter({pe: min(in_c[pe] + commands[pe], size) for pe, size in in_table.items()})


def _rows(weight_tiles: int) -> int:
    """The least number of table rows for a tile's weight tiles. A row computes, another waits; a credit and a wait, as
    stored for an earlier weight tile, are a single row. Weight tiles of one shape need 3 rows more, for the addresses
    of output, weights and parameters, because consecutive weight tiles never lie in the same place. The last may be
    smaller."""
    return 2 * weight_tiles + (3 * (weight_tiles - 1) if weight_tiles > 2 else 0)


def _controls(group: Assignment) -> Counter[int]:
    """Bytes of the layers' records on each PE."""
    counts = Counter(tile.pe for tiles in group.values() for tile in tiles)
    return Counter({pe: control_bytes(count) for pe, count in counts.items()})


def _descriptors(graph: Graph, regions: Regions, tensor: str) -> Counter[int]:
    """Bytes of a tensor's descriptors on each PE, for sending and for fetching from DRAM."""
    found: Counter[int] = Counter()
    for transfer in transfers_of(graph, regions, tensor):
        parts = len(copies_to(graph, transfer.box, transfer.source, transfer.destinations[0]))
        if transfer.source.pe == DRAM:
            found.update({to.pe: descriptor_bytes(parts, 1) for to in transfer.destinations})
        else:
            found[transfer.source.pe] += descriptor_bytes(parts, len(transfer.destinations))
    return found
