"""Throughput of large meshes: groups of PEs in lock step, chosen by what one group of each size would take.

A whole round on hundreds of PEs takes long to emit and to simulate. Groups differ only in when their inputs arrive, so
that one of them tells what all take, and whether they fit.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from math import inf

from npukit.board.board import Board
from npukit.plan.assignment import Assignment, Tile
from npukit.plan.bands import bands_for, narrowed
from npukit.plan.graph import Graph
from npukit.plan.latency import LatencySearch
from npukit.plan.least_memory import may_fit
from npukit.plan.memory import FIRMWARE_BYTES, STACK_BYTES, missing_bytes
from npukit.plan.plan import Plan
from npukit.plan.predict import with_predictions
from npukit.plan.programs import Engines
from npukit.plan.round import Round
from npukit.plan.rounds import emit_round, settled_round
from npukit.plan.search import QUICK
from npukit.plan.simulate import simulate
from npukit.plan.splits import WIDE_GRAIN
from npukit.plan.streaming import most_streamed, none_or_all_streamed
from npukit.plan.traffic import UsualFlags

WELL_USED = 0.92
"""Of the PEs, what the groups of a size must take together."""

SIZES = (1, 2, 3, 4, 6, 8, 10, 12, 14, 16, 18, 19, 21, 25, 30, 38, 50, 76)

PRICE = 0.06
"""Cycles a byte of constants costs."""

SLICES = ((9 << 10, 2), (9 << 10, 3), (17 << 10, 2))
"""Bytes of slices, and how many have room: what leaves most memory first."""

LEAST_ROOM = min(slice_bytes * slices for slice_bytes, slices in SLICES)

COMPARED = 2
"""Whole rounds that are planned, if the first takes longer than one group of the second lets expect."""

ROOMS = (None, 3 / 8, 5 / 8)
"""Parts of a PE's memory that a tile's inputs, output and slices may take, tried: what is left holds more waves."""

HEAVY_MOVES = 3.0
"""Times what they are estimated to cost that moving data weighs in another search for the best size: while all groups
work, what is on its way takes longer."""

OTHER_WAYS = ((0, 2, SLICES[0]), (None, 1, SLICES[0]), (None, 1, SLICES[1]))
"""Of the best groups' slices, rooms for them, so many ops that they may come before they are computed with, bytes and
number, tried besides: as large as there is room, which they take longer; small everywhere, which leaves room for more
waves."""

WORSE = 3
"""Sizes one after the other that are no better than the best before: larger ones are not tried."""

MOST_WAVES = 4

SETTLED = 0.94
"""Part of what the first wave takes that each wave behind it takes at least."""

FORESEEN = 0.02
"""Part by which a whole round may take longer than one group of it lets expect."""


NEARLY_FITS = 6 << 10
"""Bytes by which the flags on which a round settles may be worth another look."""


@dataclass(frozen=True)
class _Choice:
    """A round, and the cycles that one of its groups takes alone, and that the others come later."""

    wanted: Round
    cycles: int
    later: float
    settled: UsualFlags = field(default_factory=dict)
    """Of its group, if it has several waves."""

    @property
    def interval(self) -> float:
        """Cycles between frames that this lets expect."""
        return (self.cycles + self.later) / (self.wanted.waves * len(self.wanted.groups))

    @property
    def best_interval(self) -> float:
        """Fewer cannot be expected, however many more waves it gets."""
        return SETTLED * self.cycles / (self.wanted.waves * len(self.wanted.groups))


def lockstep_plan(graph: Graph, board: Board, engines: Engines, order: Sequence[int]) -> Plan | None:
    """The most frames a cycle that groups in lock step give, or None if none fit."""
    choices: list[_Choice] = []
    search = LatencySearch(graph, board, engines, order, QUICK, fetched=True, slices=2)
    worse = 0
    for rounds in _rounds(graph, board, order, search):
        least = min((choice.interval for choice in choices), default=None)
        tried = [_choice(graph, board, engines, wanted, least) for wanted in rounds]
        better = [choice for choice in tried if choice]
        worse = 0 if least is None or any(choice.interval < least for choice in better) else worse + 1
        choices += better
        if worse == WORSE:
            break
    longer = list(_in_waves(graph, board, engines, choices))
    if longer:
        best = min(longer, key=_by_interval)
        heavy = _with_heavy_moves(graph, board, engines, order, best, search.weighing(HEAVY_MOVES))
        longer += _in_waves(graph, board, engines, heavy, best.interval)
        longer += _in_other_ways(graph, board, engines, min(longer, key=_by_interval))
    return _best_whole(graph, board, engines, longer)


def _by_interval(choice: _Choice) -> float:
    return choice.interval


def _best_whole(graph: Graph, board: Board, engines: Engines, choices: Sequence[_Choice]) -> Plan | None:
    """The best of the whole rounds that may be, those first that let expect most."""
    found: list[Plan] = []
    for choice in sorted(choices, key=lambda choice: choice.interval):
        best = min((plan.predicted.interval_cycles for plan in found), default=None)
        if len(found) == COMPARED or (best is not None and choice.interval >= best * (1 - FORESEEN)):
            break
        plan, _ = settled_round(graph, board, engines, choice.wanted, choice.settled)
        if not missing_bytes(board, plan):
            found.append(with_predictions(graph.net, board, plan))
    return min(found, key=lambda plan: plan.predicted.interval_cycles, default=None)


def closest_frame(graph: Graph, board: Board, engines: Engines, order: Sequence[int]) -> Plan:
    """One frame on all PEs, with whatever leaves most memory: small tiles, all constants streamed that can be."""
    room = int(ROOMS[-1] * board.memory_for("activations").size)
    search = LatencySearch(graph, board, engines, order, QUICK, fetched=True, room=room, slices=2)
    assignment = search.best(PRICE)
    wanted = Round((assignment,), slice_bytes=SLICES[0][0], slices=SLICES[0][1])
    plan = most_streamed(graph, board, engines, wanted) or emit_round(graph, board, engines, wanted)
    return with_predictions(graph.net, board, plan)


def _in_waves(
    graph: Graph, board: Board, engines: Engines, choices: Sequence[_Choice], best: float = inf
) -> Iterator[_Choice]:
    """With as many waves as one of its groups holds, those that then may be better than the best so far.

    Those in larger slices too, where these have room.
    """
    best = min([best, *(choice.interval for choice in choices)])
    yield from choices
    for choice in sorted(choices, key=lambda choice: choice.best_interval):
        longest: _Choice | None = choice
        for waves in range(2, MOST_WAVES + 1):
            if longest is None or choice.best_interval >= best:
                break
            choice, longest = longest, _instead(graph, board, engines, longest, replace(longest.wanted, waves=waves))
            if longest:
                best = min(best, longest.interval)
                yield longest
        if (longest or choice).best_interval < best:
            yield from _in_larger_slices(graph, board, engines, longest or choice)


def _in_larger_slices(graph: Graph, board: Board, engines: Engines, choice: _Choice) -> Iterator[_Choice]:
    for slice_bytes, slices in SLICES[1:] if choice.wanted.streamed else ():
        wanted = replace(choice.wanted, slice_bytes=slice_bytes, slices=slices)
        larger = _instead(graph, board, engines, choice, wanted)
        if larger is None:
            break
        yield larger


def _instead(graph: Graph, board: Board, engines: Engines, choice: _Choice, wanted: Round) -> _Choice | None:
    """Another round of the same groups, if one of them fits."""
    as_before = _ways(wanted) == _ways(choice.wanted)
    known, alone = choice.settled if as_before else {}, replace(wanted, groups=_one_of(wanted))
    plan, settled = settled_round(graph, board, engines, alone, known)
    if known and 0 < missing_bytes(board, plan) < NEARLY_FITS:  # its own flags may do
        plan, settled = settled_round(graph, board, engines, alone, settled)
    if missing_bytes(board, plan):
        return None
    cycles = simulate(graph.net, board, plan).latency_cycles
    return replace(choice, wanted=wanted, cycles=cycles, settled=settled if wanted.waves > 1 else {})


def _ways(wanted: Round) -> tuple[int | None, ...]:
    """What of a round is about its slices."""
    return wanted.slice_bytes, wanted.slices, wanted.room, wanted.lead


def _one_of(wanted: Round) -> tuple[Assignment]:
    """The group that tells what all take: none with the root, and if they are alike the one that is emitted."""
    return (wanted.groups[0 if wanted.feeders else -1],)


def _with_heavy_moves(
    graph: Graph, board: Board, engines: Engines, order: Sequence[int], best: _Choice, search: LatencySearch
) -> list[_Choice]:
    """Of the best groups' size those that move less."""
    size = (len(order) - len(best.wanted.feeders)) // len(best.wanted.groups)
    rounds = _of_size(graph, board, order, size, search, ROOMS[:1])
    return [found for found in (_choice(graph, board, engines, wanted, None) for wanted in rounds) if found]


def _in_other_ways(graph: Graph, board: Board, engines: Engines, best: _Choice) -> Iterator[_Choice]:
    for room, lead, (slice_bytes, slices) in OTHER_WAYS if best.wanted.streamed else ():
        least = replace(best.wanted, room=room, lead=lead, slice_bytes=slice_bytes, slices=slices)
        yield from _otherwise(graph, board, engines, best, least)


def _otherwise(graph: Graph, board: Board, engines: Engines, choice: _Choice, least: Round) -> Iterator[_Choice]:
    """The same groups with their slices in another way, with as many more waves as one of them holds then."""
    other: _Choice | None = choice
    for waves in range(least.waves, MOST_WAVES + 1):
        other = _instead(graph, board, engines, other, replace(least, waves=waves))
        if other is None:
            break
        yield other


def _rounds(graph: Graph, board: Board, order: Sequence[int], search: LatencySearch) -> Iterator[list[Round]]:
    """Of groups of each size worth it, in each room."""
    memory = board.memory_for("activations").size
    for size in SIZES:
        crowded = _least_bytes(graph) / size > memory - STACK_BYTES - FIRMWARE_BYTES - LEAST_ROOM
        if not crowded and len(order) // size * size >= WELL_USED * len(order):
            yield _of_size(graph, board, order, size, search)


def _of_size(
    graph: Graph,
    board: Board,
    order: Sequence[int],
    size: int,
    search: LatencySearch,
    rooms: Sequence[float | None] = ROOMS,
) -> list[Round]:
    """The best groups of a size in each room, those that differ."""
    memory, of_size = board.memory_for("activations").size, search.on(order[:size])
    found: list[Round] = []
    for room in rooms:
        assignment = of_size.within(int(room * memory) if room else None).best(PRICE)
        wanted = replace(round_of(assignment, order, size), bands=bands_for(graph, board, assignment))
        if wanted not in found:
            found.append(wanted)
    return found


def _choice(graph: Graph, board: Board, engines: Engines, wanted: Round, best: float | None) -> _Choice | None:
    """In small slices, if one group of it fits; none if its engines alone take longer than the best."""
    if best is not None and engine_cycles(graph, engines, wanted) >= best:
        return None
    slice_bytes, slices = SLICES[0]
    alone = replace(wanted, groups=_one_of(wanted), slice_bytes=slice_bytes, slices=slices, room=0)
    found = _fitting(graph, board, engines, alone)
    if found is None:
        return None
    fitting, plan = found
    cycles = simulate(graph.net, board, plan).latency_cycles
    later = (len(wanted.groups) - 1) * _input_cycles(graph, board)
    return _Choice(replace(fitting, groups=wanted.groups), cycles, later)


def _fitting(graph: Graph, board: Board, engines: Engines, alone: Round) -> tuple[Round, Plan] | None:
    """In bands, which take longer, only if it does not fit without."""
    for tried in (replace(alone, bands={}), alone) if alone.bands else (alone,):
        found = none_or_all_streamed(graph, board, engines, tried) if may_fit(graph, board, engines, tried) else None
        if found:
            return found
    return None


def round_of(assignment: Assignment, order: Sequence[int], size: int) -> Round:
    """The assignment on each group of so many PEs; those that are left ask for what is streamed."""
    groups = tuple(groups_of(assignment, order, size, root_last(order, size)))
    return Round(groups, feeders=tuple(order[: len(order) % size]))


def groups_of(
    assignment: Assignment, order: Sequence[int], size: int, places: Sequence[int] | None = None
) -> Iterator[Assignment]:
    """The assignment of the first `size` PEs, on each group of so many; the first PEs are left if any are.

    The groups follow each other in the order of `places`, which is the same if none are given.
    """
    for start in range(len(order) % size, len(order), size):
        moved = dict(zip(order[:size], (places or order)[start : start + size], strict=True))
        yield {op: tuple(Tile(moved[tile.pe], tile.box) for tile in tiles) for op, tiles in assignment.items()}


def root_last(order: Sequence[int], size: int) -> list[int]:
    """With the root's group turned round: the root has most to hold, and a group's last PE has fewest tiles.

    Where PEs are left, the root is one of them.
    """
    return list(order) if len(order) % size else [*reversed(order[:size]), *order[size:]]


def engine_cycles(graph: Graph, engines: Engines, wanted: Round) -> float:
    """Cycles a frame of the busiest PE's engines."""
    busy: Counter[int] = Counter()
    for op in graph.ops:
        for tile in wanted.groups[0][op.name]:
            busy[tile.pe] += engines[op.engine].cost(graph.net, op, tile.box).cycles
    return max(busy.values()) / len(wanted.groups)


def _least_bytes(graph: Graph) -> float:
    """Of the op that has most, the inputs and the output; of tensors that may go in bands, the narrowest band."""
    thin = narrowed(graph)

    def held(name: str) -> float:
        channels = graph.shape(name)[-1] if name in thin else 0
        return graph.net.tensor(name).bytes * (WIDE_GRAIN / channels if channels > WIDE_GRAIN else 1)

    return max(sum(held(name) for name in {*graph.sources(op), op.output}) for op in graph.ops)


def _input_cycles(graph: Graph, board: Board) -> float:
    """Of the DRAM, for a frame's inputs."""
    assert board.noc is not None
    return sum(graph.net.tensor(name).bytes for name in graph.net.inputs) / board.noc.dram_bytes_per_cycle
