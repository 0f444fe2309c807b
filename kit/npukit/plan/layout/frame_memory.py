"""Estimates of a frame's memory before its emission, and the choice of constants to stream from DRAM."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Collection, Mapping
from functools import cached_property
from itertools import accumulate
from math import inf

from npukit.net.net import CORE
from npukit.plan.batch.live_bytes import most_held
from npukit.plan.batch.schedule import ends_of
from npukit.plan.batch.weight_tiles import StreamWeights
from npukit.plan.emit.emitter import constants_of, resident_bytes
from npukit.plan.emit.regions import regions_of
from npukit.plan.ir.assignment import Assignment, useful
from npukit.plan.predict.memory import program_bytes
from npukit.plan.tensors.graph import aliases
from npukit.plan.tensors.problem import Problem

STREAM = StreamWeights(tile_bytes=9 << 10, tiles=2, prefetch_distance=4)
"""Weight tiles of streamed constants."""

STREAM_BYTES = STREAM.least_bytes
"""Bytes of all weight tiles in a PE's memory."""

SMALLEST = 1 << 10
"""Bytes of constants on a PE up to which streaming does not pay. Half as many for ops on the core: half the factors and
offsets of a norm are 0.8 KB in ViT-tiny."""


class FrameMemory:
    """Bytes on each PE for a frame of an assignment. `cycles`: estimate of the frame."""

    def __init__(self, problem: Problem, assignment: Assignment, cycles: int) -> None:
        assert problem.board.noc is not None
        self.problem, self.assignment, self._noc = problem, useful(problem.graph, assignment), problem.board.noc
        ops = problem.graph.ops
        costs = {op.name: [problem.cost(op, tile.box, tile.pe) for tile in self.assignment[op.name]] for op in ops}
        self._constants = {
            op.name: [constants_of(problem, op, tile) for tile in self.assignment[op.name]] for op in ops
        }
        self._bytes = {name: {pe: size for pe, _, size, _ in held} for name, held in self._constants.items()}
        self._streams = [name for name, own in costs.items() if all(cost.streams for cost in own)]
        self._on_core = frozenset(op.name for op in ops if op.engine == CORE)
        self._cores = {tile.pe for name in self._on_core for tile in self.assignment[name]}
        self._scratch = [max((cost.scratch_bytes for cost in costs[op.name]), default=0) for op in ops]
        computing = [max((cost.cycles for cost in costs[op.name]), default=0) for op in ops]
        self._starts = [cycles * done // max(sum(computing), 1) for done in accumulate(computing, initial=0)]

    @cached_property
    def _tensors(self) -> list[int]:
        """Bytes of tensors and scratch memory for each op, on the fullest PE."""
        graph = self.problem.graph
        regions = regions_of(graph, self.assignment, ends_of(self.problem, fetched=True), 0)
        held = most_held(graph, [regions], aliases(graph, self.problem.engines), late=False)
        return [tensors + scratch for tensors, scratch in zip(held, self._scratch, strict=True)]

    @cached_property
    def _streamable(self) -> dict[str, int]:
        """Bytes in DRAM of the constants of each op worth streaming. Constants shared by tiles count once."""
        found = dict[str, int]()
        for name in self._streams:
            least = SMALLEST // 2 if name in self._on_core else SMALLEST
            if max(self._bytes[name].values(), default=0) > least:
                found[name] = sum({key: size for _, key, size, _ in self._constants[name]}.values())
        return found

    def program(self, pe: int) -> int:
        """Bytes of code and stack of a PE."""
        return sum(program_bytes(len(self.problem.order), kernels=pe in self._cores))

    def tensors_and_weight_tiles(self, streamed: Collection[str]) -> int:
        """Bytes of tensors and weight tiles on the fullest PE at once."""
        names = [op.name for op in self.problem.graph.ops]
        return max(
            held + STREAM_BYTES * any(name in streamed for name in names[index : index + STREAM.prefetch_distance + 1])
            for index, held in enumerate(self._tensors)
        )

    def resident(self, streamed: Collection[str]) -> Counter[int]:
        """Bytes of resident constants by PE."""
        return resident_bytes(each for name, held in self._constants.items() if name not in streamed for each in held)

    @property
    def least_resident(self) -> int:
        """Bytes of constants not worth streaming, on the fullest PE."""
        return max(self.resident(self._streamable.keys() - self._on_core).values(), default=0)

    def with_more_streamed(
        self, streamed: frozenset[str], rooms: Mapping[int, int], *, core_too: bool = False
    ) -> frozenset[str]:
        """The streamed ops and more, until each PE has room for its resident constants, if possible.

        The next op is the op with the least wait of the frame per byte freed. Constants of ops on the core are small,
        and cost each PE a signal and a wait. With `core_too` they are streamed too, because orders are known to lack
        room.
        """
        resident = self.resident(streamed)
        copies = Counter(each[:2] for name, held in self._constants.items() if name not in streamed for each in held)
        while lacking := {pe: held - rooms[pe] for pe, held in resident.items() if held > rooms[pe]}:
            left = self._streamable.keys() - streamed - (frozenset() if core_too else self._on_core)
            late = self.delay(streamed)
            harm, name = min(((self._harm(name, streamed, late, lacking), name) for name in left), default=(inf, ""))
            if harm == inf:
                break
            streamed |= {name}
            for pe, key, size, command in self._constants[name]:
                copies[pe, key] -= 1
                resident[pe] -= command if copies[pe, key] else size
        return streamed

    def _harm(self, name: str, streamed: frozenset[str], late: int, lacking: Mapping[int, int]) -> float:
        """Cycles per lacking byte that streaming an op frees. `late`: the wait before. A cycle of waiting for
        DRAM weighs as much as four in which DRAM is busy."""
        freed = sum(min(lacking.get(pe, 0), size) for pe, size in self._bytes[name].items())
        return (self._cycles_of_dram(name) + 4 * (self.delay(streamed | {name}) - late)) / freed if freed else inf

    def delay(self, streamed: Collection[str]) -> int:
        """Cycles in which the frame waits for DRAM: for the inputs, then for the constants of op after op.

        Constants of an op arrive once memory has room, after the use of earlier constants.
        """
        net = self.problem.net
        free = sum(net.tensor(name).bytes for name in net.inputs) // self._noc.dram_bytes_per_cycle
        late = 0
        there: deque[tuple[int, int]] = deque()
        for index, op in enumerate(self.problem.graph.ops):
            if op.name not in streamed:
                continue
            size = max(self._bytes[op.name].values())
            free = max(free, self._starts[max(index - STREAM.prefetch_distance, 0)] + late)
            while there and sum(held for held, _ in there) + size > STREAM_BYTES:
                free = max(free, there.popleft()[1])
            free += self._cycles_of_dram(op.name)
            late = max(late, free - self._starts[index])
            there.append((size, self._starts[index + 1] + late))
        return late

    def _cycles_of_dram(self, name: str) -> int:
        """Cycles of DRAM for the constants of an op."""
        return self._streamable[name] // self._noc.dram_bytes_per_cycle
