"""One frame on a large mesh: many assignments estimated, the most promising few emitted.

To emit and simulate a frame on a hundred PEs takes seconds; to search for an assignment and to estimate it takes a
fraction of one. So the search runs for several prices of constants and rooms for tensors, and each assignment that
it finds is a draft: inputs in DRAM, whence every PE fetches its part, as few constants streamed as its memory wants,
and the cycles it is expected to take. The drafts are emitted in the order of these, as many as the budget allows.
`benchmarks/large/planner_constants.py wide-frame` measures what the constants are worth.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Collection, Hashable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import accumulate, islice, product
from math import inf

from npukit.accel.interface import Cost
from npukit.errors import DoesNotFit
from npukit.net.net import CORE, Op
from npukit.plan.batch.batch import Batch
from npukit.plan.batch.batch_emitter import emit_batch
from npukit.plan.batch.live_bytes import most_at_once, most_held
from npukit.plan.batch.schedule import ends_of
from npukit.plan.batch.weight_tiles import StreamWeights
from npukit.plan.emit.emitter import command_bytes, same_constants
from npukit.plan.emit.regions import Ends, regions_of
from npukit.plan.ir.assignment import Assignment, Tile, useful
from npukit.plan.ir.plan import Plan
from npukit.plan.predict.memory import (
    CODE_BYTES,
    STACK_BYTES,
    WORKER_BYTES,
    WORKER_STACK_BYTES,
    memory_use,
    missing_bytes,
    shortfall,
)
from npukit.plan.predict.simulate import with_predictions
from npukit.plan.search.layout_search import Effort, LatencySearch
from npukit.plan.search.tries import tried
from npukit.plan.tensors.graph import aliases
from npukit.plan.tensors.problem import Problem

PRICES = (0.0, 0.06, 0.1, 0.15, 0.2, 0.3, 0.4, 0.6)
"""Cycles a byte of constants costs, tried."""

ROOMS = (3 / 8, 1 / 4, 1 / 6)
"""Parts of a PE's memory that the inputs and the output of a tile may take, tried."""

WIDE = Effort(10, 40, priced=True)
"""The effort of the search: with splits and states as on other large meshes MobileNetV1 on 152 PEs is 3.6 % slower,
with splits that are not priced 61 % (`planner_constants.py wide-frame`)."""

SEARCHED = 800
"""Ops that are placed in the searches for all drafts: with every price and room for a network of up to 33 ops, with
fewer for longer ones. Four searches for two blocks of a vision transformer, 29 ops, took 12 s of the processor."""

PES_OF_A_PREFETCHER = 32
"""PEs for each that computes nothing and asks for what is streamed. Whoever does both keeps what others wait for behind
what DRAM has not given yet: MobileNetV1 on 152 PEs took 193,000 cycles instead of 159,000."""

WEIGHT_TILES = StreamWeights(tile_bytes=9 << 10, tiles=2, prefetch_distance=4)
"""Weight tiles of streamed constants."""

WINDOW = WEIGHT_TILES.least_bytes
"""Bytes of all that have room."""

SMALLEST = 1 << 10
"""Bytes of constants on a PE that are not worth streaming."""

ORDERS = 20 << 10
"""Bytes of commands, descriptors and code that a PE is expected to have."""

WAITS_WEIGH = 4
"""Times what DRAM takes anyway that cycles weigh which a frame waits for it."""

REPAIRS = 3
"""Times that a draft which does not fit is emitted again with more constants streamed."""


@dataclass(frozen=True)
class FrameDraft:
    """An assignment of a frame, the ops whose constants are streamed, and the cycles it is expected to take."""

    assignment: Assignment
    streamed: frozenset[str]
    cycles: int
    held: _Held


class WideFrame:
    """The search for one frame on the PEs of a problem, of which the first only feed the others."""

    def __init__(self, problem: Problem) -> None:
        prefetchers = -(-len(problem.order) // PES_OF_A_PREFETCHER)
        self._problem, self._graph = problem, problem.graph
        self._prefetchers = tuple(problem.order[:prefetchers])
        self._search = LatencySearch(problem.on(problem.order[prefetchers:]), WIDE, from_dram=True)
        self._memory = problem.board.memory_for("activations").size

    def best(self) -> Plan | None:
        """The fastest frame that fits among those which the budget allows; None if none does."""
        board, plans = self._problem.board, tried(self._problem, self._plans())
        fitting = (plan for plan in plans if not missing_bytes(board, plan))
        return min(fitting, key=lambda plan: plan.predicted.latency_cycles, default=None)

    def _plans(self) -> Iterator[Plan | None]:
        """Plans of one draft after the other, until none is expected to be faster than the fastest that fits."""
        fastest = inf
        for draft in self.drafts():
            if draft.cycles >= fastest:
                break
            for plan in self._repaired(draft):
                if plan and not missing_bytes(self._problem.board, plan):
                    fastest = min(fastest, plan.predicted.latency_cycles)
                yield plan

    def _repaired(self, draft: FrameDraft) -> Iterator[Plan | None]:
        """A draft's plan, and while it does not fit that with more constants streamed."""
        for _ in range(REPAIRS):
            plan = self._emitted(draft)
            yield plan
            if plan is None or not missing_bytes(self._problem.board, plan):
                break
            more = self._with_more_streamed(draft, plan)
            if more.streamed == draft.streamed:
                break
            draft = more

    def drafts(self) -> list[FrameDraft]:
        """Drafts of different splits, the most promising first."""
        found: dict[object, FrameDraft] = {}
        pairs = len(ROOMS) * len(PRICES)
        step = -(-pairs * len(self._graph.ops) // SEARCHED)
        for room, price in islice(product(ROOMS, PRICES), 0, None, step):
            search = self._search.within(int(room * self._memory))
            best = search.best_found(price)
            if best.splits not in found:
                found[best.splits] = self._draft(search.assignment(best), best.cycles)
        return sorted(found.values(), key=lambda draft: draft.cycles)

    def _draft(self, assignment: Assignment, cycles: int) -> FrameDraft:
        """A draft with as few constants streamed as are expected to be enough."""
        held, streamed = _Held(self._problem, assignment, cycles), frozenset[str]()
        room = self._memory - ORDERS
        for _ in range(REPAIRS):
            beside = held.tensors_and_weight_tiles(streamed)
            left = {pe: room - held.program(pe) - beside for pe in held.resident(())}
            streamed = held.with_more_streamed(streamed, left)
        return FrameDraft(assignment, streamed, cycles + held.delay(streamed), held)

    def _with_more_streamed(self, draft: FrameDraft, plan: Plan) -> FrameDraft:
        """The draft with as many constants streamed as its plan lacks room for."""
        before = draft.held.resident(draft.streamed)
        weight_tiles = 0 if draft.streamed else WINDOW
        rooms = {pe.pe: before[pe.pe] + pe.memory.free - weight_tiles for pe in plan.pes}
        return replace(draft, streamed=draft.held.with_more_streamed(draft.streamed, rooms))

    def _emitted(self, draft: FrameDraft) -> Plan | None:
        wanted = Batch(
            (draft.assignment,),
            stream=WEIGHT_TILES.of(draft.streamed),
            prefetchers=self._prefetchers,
        )
        try:
            plan = replace(emit_batch(self._problem, wanted), objective="latency")
        except DoesNotFit:
            return None
        fits = not missing_bytes(self._problem.board, plan)
        return with_predictions(self._problem.net, self._problem.board, plan) if fits else plan


def root_lacks_room(problem: Problem) -> bool:
    """True if the root cannot hold the inputs of a frame, so that they have to lie in DRAM."""
    inputs = sum(problem.net.tensor(name).bytes for name in problem.net.inputs)
    room = memory_use(problem.board, 0, inputs, WORKER_BYTES, WORKER_STACK_BYTES)
    return shortfall(problem.board, room) > 0


def lacking_bytes(problem: Problem, assignment: Assignment) -> int:
    """Bytes by which a memory of a PE is too small at least, if inputs lie on the root and all constants in the PEs."""
    graph, root = problem.graph, problem.board.root_pe
    used = useful(graph, assignment)
    regions = regions_of(graph, used, Ends(root, root), 0)
    alone = {op.output: dict[int, int]() for op in graph.ops}
    tensors = most_at_once(graph, regions, aliases(graph, problem.engines), range(len(graph.ops)), (), alone)
    constants = _Held(problem, assignment, 0).resident(())
    boards = {pe: problem.board.seen_by(pe) for pe in tensors | constants}
    uses = {
        pe: memory_use(board, constants[pe], tensors[pe], WORKER_BYTES, WORKER_STACK_BYTES)
        for pe, board in boards.items()
    }
    return max(shortfall(boards[pe], use) for pe, use in uses.items())


class _Held:
    """Bytes that the PEs hold of an assignment's frame, which is expected to take so many cycles."""

    def __init__(self, problem: Problem, assignment: Assignment, cycles: int) -> None:
        self._problem, self._cycles = problem, cycles
        self._assignment = useful(problem.graph, assignment)
        ops = problem.graph.ops
        tiles = {
            op.name: [(tile, problem.cost(op, tile.box, tile.pe)) for tile in self._assignment[op.name]] for op in ops
        }
        self._bytes = {name: {tile.pe: cost.constant_bytes for tile, cost in own} for name, own in tiles.items()}
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
        worth = {name for name, sizes in self._bytes.items() if max(sizes.values(), default=0) > SMALLEST}
        names = [op.name for op in self._problem.graph.ops if op.engine != CORE and op.name in worth]
        return {name: sum({key: size for _, key, size, _ in self._constants[name]}.values()) for name in names}

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

    def with_more_streamed(self, streamed: frozenset[str], rooms: Mapping[int, int]) -> frozenset[str]:
        """These ops and more, so that no PE has more resident constants than it has room for, if there are as many.

        Each is the one that makes the frame wait least for the bytes by which it helps.
        """
        resident = self.resident(streamed)
        while lacking := {pe: held - rooms[pe] for pe, held in resident.items() if held > rooms[pe]}:
            helping = [(self._harm(name, streamed, lacking), name) for name in self._streamable.keys() - streamed]
            harm, name = min(helping, default=(inf, ""))
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
