"""Memory of the PEs that a frame takes, before it is emitted: what they hold, and what is worth streaming from DRAM."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Collection, Hashable, Mapping
from functools import cached_property
from itertools import accumulate
from math import inf

from npukit.accel.interface import Cost
from npukit.net.box import Box
from npukit.net.net import CORE, Op
from npukit.plan.batch.live_bytes import most_at_once, most_held
from npukit.plan.batch.schedule import ends_of
from npukit.plan.batch.weight_tiles import StreamWeights
from npukit.plan.emit.emitter import command_bytes, same_constants
from npukit.plan.emit.regions import Ends, regions_of
from npukit.plan.ir.assignment import Assignment, Tile, useful
from npukit.plan.predict.memory import (
    CODE_BYTES,
    STACK_BYTES,
    WORKER_BYTES,
    WORKER_STACK_BYTES,
    Lacking,
    memory_use,
    most_lacking,
    shortfall,
)
from npukit.plan.tensors.graph import aliases
from npukit.plan.tensors.problem import Problem

WEIGHT_TILES = StreamWeights(tile_bytes=9 << 10, tiles=2, prefetch_distance=4)
"""Weight tiles of streamed constants."""

WINDOW = WEIGHT_TILES.least_bytes
"""Bytes of all that have room."""

SMALLEST = 1 << 10
"""Bytes of constants on a PE that are not worth streaming."""

SMALLEST_OF_THE_CORE = 1 << 9
"""The same of what the core reads: half the factors and offsets of a norm are 0.8 KB in ViT-tiny."""

WAITS_WEIGH = 4
"""Times what DRAM takes anyway that cycles weigh which a frame waits for it."""


def root_lacks_room(problem: Problem) -> bool:
    """True if the root cannot hold the inputs of a frame, so that they have to lie in DRAM."""
    inputs = sum(problem.net.tensor(name).bytes for name in problem.net.inputs)
    room = memory_use(problem.board, 0, inputs, WORKER_BYTES, WORKER_STACK_BYTES)
    return shortfall(problem.board, room) > 0


def pes_for_constants(problem: Problem) -> int:
    """The PEs that it takes at least to hold all constants once."""
    wholes = ((op, Box.whole(problem.graph.shape(op.output))) for op in problem.graph.ops)
    needed = {problem.graph.constants_as[op.name]: problem.cost(op, box).constant_bytes for op, box in wholes}
    return -(-sum(needed.values()) // problem.board.memory_for("constants").size)


def lacking_bytes(problem: Problem, assignment: Assignment) -> int:
    """Bytes by which a memory of a PE is too small at least, if inputs lie on the root and all constants in the PEs."""
    return lacking(problem, assignment).missing


def lacking(problem: Problem, assignment: Assignment) -> Lacking:
    """The PE that lacks most of them, and what it holds at least."""
    graph, root = problem.graph, problem.board.root_pe
    used = useful(graph, assignment)
    regions = regions_of(graph, used, Ends(root, root), 0)
    beside = {op.output: dict[int, int]() for op in graph.ops}
    tensors = most_at_once(graph, regions, aliases(graph, problem.engines), range(len(graph.ops)), (), beside)
    constants = FrameMemory(problem, assignment, 0).resident(())
    boards = {pe: problem.board.seen_by(pe) for pe in tensors | constants}
    alone = len(problem.order) == 1
    code, stack = (CODE_BYTES, STACK_BYTES) if alone else (WORKER_BYTES, WORKER_STACK_BYTES)
    uses = {pe: memory_use(board, constants[pe], tensors[pe], code, stack) for pe, board in boards.items()}
    return most_lacking(problem.board, uses)


class FrameMemory:
    """Bytes that the PEs hold of an assignment's frame, which is expected to take so many cycles."""

    def __init__(self, problem: Problem, assignment: Assignment, cycles: int) -> None:
        self._problem, self._cycles = problem, cycles
        self._assignment = useful(problem.graph, assignment)
        ops = problem.graph.ops
        tiles = {
            op.name: [(tile, problem.cost(op, tile.box, tile.pe)) for tile in self._assignment[op.name]] for op in ops
        }
        self._bytes = {name: {tile.pe: cost.constant_bytes for tile, cost in own} for name, own in tiles.items()}
        self._streams = [name for name, own in tiles.items() if all(cost.streams for _, cost in own)]
        self._on_core = frozenset(op.name for op in ops if op.engine == CORE)
        self._constants = {op.name: [self._held_once(op, *each) for each in tiles[op.name]] for op in ops}
        self._scratch = [max((cost.scratch_bytes for _, cost in tiles[op.name]), default=0) for op in ops]
        self._cores = {tile.pe for op in ops if op.engine == CORE for tile in self._assignment[op.name]}
        computing = [max((cost.cycles for _, cost in tiles[op.name]), default=0) for op in ops]
        self._starts = [cycles * done // max(sum(computing), 1) for done in accumulate(computing, initial=0)]

    @cached_property
    def _tensors(self) -> list[int]:
        """Bytes of tensors and scratch memory, for each op, on the PE that holds most."""
        graph = self._problem.graph
        regions = regions_of(graph, self._assignment, ends_of(self._problem, fetched=True), 0)
        held = most_held(graph, [regions], aliases(graph, self._problem.engines), late=False)
        return [tensors + scratch for tensors, scratch in zip(held, self._scratch, strict=True)]

    @cached_property
    def _streamable(self) -> dict[str, int]:
        """Bytes that DRAM gives of the constants of each op for which streaming is worth it: those that tiles share
        once."""
        most = {name: max(self._bytes[name].values(), default=0) for name in self._streams}
        worth = (
            name for name, size in most.items() if size > (SMALLEST_OF_THE_CORE if name in self._on_core else SMALLEST)
        )
        return {name: sum({key: size for _, key, size, _ in self._constants[name]}.values()) for name in worth}

    def program(self, pe: int) -> int:
        """Bytes of code and stack of a PE: more where its core computes."""
        return CODE_BYTES + STACK_BYTES if pe in self._cores else WORKER_BYTES + WORKER_STACK_BYTES

    def tensors_and_weight_tiles(self, streamed: Collection[str]) -> int:
        """Bytes on the PE that holds most at once."""
        names = [op.name for op in self._problem.graph.ops]
        return max(
            held + WINDOW * any(name in streamed for name in names[index : index + WEIGHT_TILES.prefetch_distance + 1])
            for index, held in enumerate(self._tensors)
        )

    def _held_once(self, op: Op, tile: Tile, cost: Cost) -> tuple[int, Hashable, int, int]:
        """A tile's PE, the key of constants that are there once, their bytes, and those of its commands."""
        commands = command_bytes(self._problem.engines[op.engine])
        return tile.pe, same_constants(self._problem.graph, op, tile.box, cost), cost.constant_bytes, commands

    def resident(self, streamed: Collection[str]) -> Counter[int]:
        """Bytes of the constants that are not streamed, by PE: those that ops share once."""
        found: Counter[int] = Counter()
        there: set[tuple[int, Hashable]] = set()
        for pe, key, size, commands in (
            each for name, own in self._constants.items() if name not in streamed for each in own
        ):
            found[pe] += commands if (pe, key) in there else size
            there.add((pe, key))
        return found

    @cached_property
    def most_tiles(self) -> int:
        """Tiles on the PE that has most."""
        pes = Counter(tile.pe for tiles in self._assignment.values() for tile in tiles)
        return max(pes.values(), default=0)

    @cached_property
    def least_resident(self) -> int:
        """Bytes of the constants that are not worth streaming, on the PE that has most."""
        return max(self.resident(self._streamable.keys() - self._on_core).values(), default=0)

    def with_more_streamed(
        self, streamed: frozenset[str], rooms: Mapping[int, int], *, core_too: bool = False
    ) -> frozenset[str]:
        """These ops and more, so that no PE has more resident constants than it has room for, if there are as many.

        Each is the one that makes the frame wait least for the bytes by which it helps. Those of the core are small,
        and each takes all PEs a signal and a wait: they help only what is known to lack room for its orders.
        """
        resident = self.resident(streamed)
        while lacking := {pe: held - rooms[pe] for pe, held in resident.items() if held > rooms[pe]}:
            left = self._streamable.keys() - streamed - (frozenset() if core_too else self._on_core)
            harm, name = min(((self._harm(name, streamed, lacking), name) for name in left), default=(inf, ""))
            if harm == inf:
                break
            streamed |= {name}
            resident = self.resident(streamed)
        return streamed

    def _harm(self, name: str, streamed: frozenset[str], lacking: Mapping[int, int]) -> float:
        """Cycles that DRAM is at work, and that the frame waits for it, for a byte that PEs lack."""
        helped = sum(min(lacking.get(pe, 0), size) for pe, size in self._bytes[name].items())
        cycles = self._given(name) + WAITS_WEIGH * (self.delay(streamed | {name}) - self.delay(streamed))
        return cycles / helped if helped else inf

    def delay(self, streamed: Collection[str]) -> int:
        """Cycles that the frame waits for what DRAM gives: the inputs, then the constants of one op after the other.

        Those of an op come when memory has room for them: when so many ops before it are done with theirs.
        """
        net, room = self._problem.net, WINDOW
        free = sum(net.tensor(name).bytes for name in net.inputs) // self._dram_bytes_per_cycle
        late = 0
        there: deque[tuple[int, int]] = deque()
        for index, op in enumerate(self._problem.graph.ops):
            if op.name not in streamed:
                continue
            size = max(self._bytes[op.name].values())
            free = max(free, self._starts[max(index - WEIGHT_TILES.prefetch_distance, 0)] + late)
            while there and sum(held for held, _ in there) + size > room:
                free = max(free, there.popleft()[1])
            free += self._given(op.name)
            late = max(late, free - self._starts[index])
            there.append((size, self._starts[index + 1] + late))
        return late

    def _given(self, name: str) -> int:
        """Cycles in which DRAM gives the constants of an op."""
        return self._streamable[name] // self._dram_bytes_per_cycle

    @property
    def _dram_bytes_per_cycle(self) -> int:
        assert self._problem.board.noc is not None
        return self._problem.board.noc.dram_bytes_per_cycle
