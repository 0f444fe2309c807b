"""Groups: data-parallel groups of PEs compute different frames. Trials of a single group choose the batch.

Groups differ only in the arrival of their inputs. A single group therefore shows the cycles and the memory of all
groups, without an emission for hundreds of PEs. `planner_constants.py batches` measures the constants.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator, Sequence
from dataclasses import dataclass, replace
from math import ceil, inf

from npukit.board.noc import DRAM
from npukit.plan.batch.batch import Batch, frame, weighed
from npukit.plan.batch.channel_bands import bands_for
from npukit.plan.batch.schedule import output_bytes
from npukit.plan.batch.weight_tiles import StreamWeights, most_listed
from npukit.plan.emit.messages import NO_FLAGS, descriptor_bytes
from npukit.plan.ir.assignment import Assignment, Tile, pes_of
from npukit.plan.ir.plan import Plan
from npukit.plan.layout.layout_search import QUICK, LatencySearch
from npukit.plan.search.bound import lacking_on_root, least_cycles
from npukit.plan.search.candidate import Candidate, Fits, Lacks, Outcome, Proposals
from npukit.plan.strategies.frames import fewer
from npukit.plan.strategies.layouts import whole_cycles
from npukit.plan.strategies.streams import PRICE, fewest_streamed, more_streamed
from npukit.plan.tensors.problem import Problem

LARGE_GROUPS = (8, 7, 6, 5, 4)
"""Numbers of groups that take all PEs. With fewer, a group's layouts take long to search for."""

SMALL_TILES, LARGE_TILES = (StreamWeights(tile_bytes=size << 10, tiles=2) for size in (9, 17))
"""Weight tiles of the groups."""

OTHER_TILES = (
    StreamWeights(tile_bytes=32 << 10, tiles=2),
    replace(LARGE_TILES, room=0),
    replace(SMALL_TILES, room=0, prefetch_distance=2),
    SMALL_TILES,
)
"""Other weight tiles for the best groups: larger, earlier, or all small to leave room for micro-batches."""

PATIENCE = 3
"""Sizes in a row without gain before the search for sizes ends."""

MOVES_OF_GROUPS = 3.0
"""Weight of moving data in a second search for the best sizes: messages take longer while all groups work. With 2
MobileNetV2 on 16 PEs is 0.4 % slower (`planner_constants.py batches`)."""

SETTLED = 0.87
"""Lower bound on the cycles of a later micro-batch, relative to the first."""

MOST_MICRO_BATCHES = 4
"""Most micro-batches of a batch."""

WHOLE = 5_000
"""Work of the batches emitted whole, beyond the first batch without a shortage."""

NEAR = 1.01
"""Largest estimate of a batch to emit, relative to the best figure so far. With 1 more memory makes a random network
0.1 % slower (`tests/plan/test_more_never_hurts.py`)."""

MOST_EMITTED = 10_000
"""Most messages of a batch without prefetching PEs: every group then has a different program. With 0 the autoencoder
`ad01_int8` on 16 PEs is 5.2 % slower (`planner_constants.py batches`)."""

WELL_USED = 0.92
"""Least part of the PEs in the groups of a size together."""


@dataclass(frozen=True)
class _Trial:
    """A batch with the cycles of a single group, and the cycles by which the other groups come later."""

    batch: Batch
    cycles: int
    later: float

    @property
    def figure(self) -> float:
        """Estimated cycles between frames, weighed by the length of the batch."""
        return weighed((self.cycles + self.later) / self.batch.frames, self.batch.frames)

    def figure_in(self, micro_batches: int) -> float:
        """A lower bound on the figure in this number of micro-batches."""
        cycles = self.cycles * (1 + (micro_batches - 1) * SETTLED) + self.later
        frames = micro_batches * self.batch.frames_of_micro_batch
        return weighed(cycles / frames, frames)


_Trials = Generator[Candidate, Outcome, list[_Trial]]


def groups(problem: Problem) -> Proposals:
    """Batches on the PEs with the most common core, then on all PEs. If most PEs are idle, half of them may be better,
    because fewer PEs share the DRAM and the links."""
    if problem.board.noc is None:
        return
    for pes in {each.order: each for each in (problem.alike, problem.equipped)}.values():
        figure = inf
        while len(pes.order) > 1 and whole_cycles(pes) / len(pes.order) < figure:
            figure = yield from _batches(pes)
            pes = pes.on(pes.order[: len(pes.order) // 2])


def _batches(problem: Problem) -> Generator[Candidate, Outcome, float]:
    """The batch of the best trial, or of the next best trial where memory is short; then a single frame on all PEs.
    Returns the figure of the batch, or 0 if none fits."""
    search = LatencySearch(problem, QUICK, fetched=True)
    firsts = yield from _of_all_sizes(problem, search)
    found = list(firsts)
    found += yield from _in_micro_batches(problem, found, _least(found))
    found += yield from _moving_less(problem, search.weighing(MOVES_OF_GROUPS), found)
    found += yield from _refined(problem, found)
    best = _least(found)
    for first in sorted(firsts, key=lambda each: each.figure):
        more = yield from _interleaved(problem, first, _least(found))
        found += [*more, *(yield from _in_micro_batches(problem, more, _least(found)))]
    if _least(found) < best:
        found += yield from _refined(problem, found)
    least = yield from _whole(problem, sorted(found, key=lambda each: each.figure))
    single = search.best_found(PRICE)
    if single.cycles < _least(found):
        yield Candidate(problem, frame(search.assignment_of(single.splits)))
    return least if least < inf else 0.0


def _whole(problem: Problem, trials: Sequence[_Trial]) -> Generator[Candidate, Outcome, float]:
    """The batches of the trials, the best first. Better batches for which the root lacks memory come again with more
    streamed constants. Returns the least figure."""
    is_spent, lacking, least = problem.work.share(WHOLE), list[_Trial](), inf
    for trial in trials:
        if least < inf and (trial.figure >= NEAR * least or is_spent()):
            break
        outcome = yield Candidate(problem, trial.batch)
        if isinstance(outcome, Lacks):
            lacking.append(trial)
        elif isinstance(outcome, Fits):
            least = min(least, weighed(outcome.plan.predicted.interval_cycles, trial.batch.frames))
    is_spent = problem.work.share(WHOLE)
    for trial in lacking:
        if trial.figure < least and not is_spent():
            yield from fewest_streamed(problem, trial.batch, len(trial.batch.stream.ops) + 1)
    return least


def _best(found: Sequence[_Trial]) -> _Trial:
    return min(found, key=lambda each: each.figure)


def _least(found: Sequence[_Trial]) -> float:
    return _best(found).figure if found else inf


def _of_all_sizes(problem: Problem, search: LatencySearch) -> _Trials:
    """Trials of each size, until larger sizes bring nothing."""
    found, worse = list[_Trial](), 0
    for size in _sizes(len(problem.order)):
        first = yield from _first(problem, _of_size(problem, size, search), _least(found))
        worse = 0 if not found or _least(first) < _least(found) else worse + 1
        found += first
        if worse == PATIENCE:
            break
    return found


def _moving_less(problem: Problem, search: LatencySearch, found: Sequence[_Trial]) -> _Trials:
    """Trials of the best sizes again, in layouts with less moved data."""
    more = list[_Trial]()
    near = [each for each in found if each.figure < 1.02 * _least(found)]
    batches, count = [each.batch for each in near], len(problem.order)
    for size in sorted({(count - len(batch.prefetchers)) // len(batch.groups) for batch in batches}):
        more += yield from _first(problem, _of_size(problem, size, search))
    return [*more, *(yield from _in_micro_batches(problem, more, _least([*found, *more])))]


def _refined(problem: Problem, found: Sequence[_Trial]) -> _Trials:
    """Trials of the best batch with other weight tiles, then with fewer streamed ops."""
    if not found:
        return []
    other = yield from _other_tiles(problem, _best(found))
    return [*other, *(yield from _less_streamed(problem, _best([*found, *other])))]


def _sizes(count: int) -> Iterator[int]:
    """Sizes of groups with few PEs left over. Of sizes with an equal number of groups the largest counts."""
    sizes = sorted({*fewer(count + 1, 1), *(count // groups for groups in LARGE_GROUPS)})
    largest = {count // size: size for size in sizes if 0 < size <= count}
    return (size for size in sorted(largest.values()) if count // size * size >= WELL_USED * count)


def _of_size(problem: Problem, size: int, search: LatencySearch) -> Batch:
    """Groups of `size` PEs. The PEs left over prefetch."""
    order = problem.order
    assignment = search.on(order[:size]).best(PRICE)
    # The root has most to hold, and a group's last PE has the fewest tiles.
    places = list(order) if len(order) % size else [*reversed(order[:size]), *order[size:]]
    batch = Batch(tuple(groups_of(assignment, order, size, places)), prefetchers=tuple(order[: len(order) % size]))
    bands = bands_for(problem.graph, problem.board, assignment)
    return replace(batch, bands=bands, stream=replace(SMALL_TILES, room=0))


def _interleaved(problem: Problem, first: _Trial, best: float) -> _Trials:
    """Trials with 2, 4, 8, ... frames in turn, op by op, on a group, as long as the figure improves. A frame computes
    while the tiles of another frame are in flight."""
    found, more = list[_Trial](), [first]
    while _least(more) < _least(found):
        found += more
        batch = replace(first.batch, interleaved=2 * found[-1].batch.interleaved)
        more = yield from _first(problem, batch, min(best, _least(found)))
    return found[1:]


def _first(problem: Problem, batch: Batch, best: float = inf) -> _Trials:
    """A trial of the batch with constants kept, else streamed; without bands, else with bands."""
    for bands in ({}, batch.bands) if batch.bands else ({},):
        batches = more_streamed(problem, replace(batch, bands=bands))
        for each in (batches[0], batches[-1]):
            if trial := (yield from _trial(problem, each, best)):
                return trial
    return []


def _trial(problem: Problem, batch: Batch, best: float = inf) -> _Trials:
    """A trial of a single group of the batch; empty without room. If descriptors lack room, the first groups make way
    for prefetching PEs."""
    if not _root_has_room(problem, batch) or least_cycles(problem, batch) >= best:
        return []
    outcome = yield Candidate(problem, replace(batch, groups=_one_of(batch)), probe=True)
    if not isinstance(outcome, Fits):
        return []
    inputs, noc = sum(problem.net.tensor(name).bytes for name in problem.net.inputs), problem.board.noc
    assert noc is not None
    later = (batch.frames_of_micro_batch - 1) * (inputs / noc.dram_bytes_per_cycle)
    trial = _Trial(replace(batch, flags=outcome.flags), outcome.plan.predicted.latency_cycles, later)
    apart = _with_prefetchers(batch, _prefetchers_needed(problem, batch, outcome.plan))
    if apart == batch:
        return [trial]
    is_short = len(outcome.plan.messages) * len(batch.groups) <= MOST_EMITTED
    return [*([trial] if is_short else []), *(yield from _trial(problem, apart, best))]


def _in_micro_batches(problem: Problem, waiting: Sequence[_Trial], best: float) -> _Trials:
    """Trials in more micro-batches, the most promising first."""
    found = list[_Trial]()
    for trial in sorted(waiting, key=lambda each: each.figure_in(MOST_MICRO_BATCHES)):
        last = trial
        for count in range(2, MOST_MICRO_BATCHES + 1):
            if trial.figure_in(MOST_MICRO_BATCHES) >= min(best, _least(found)):
                break
            longer = replace(last.batch, micro_batches=count)
            tried = yield from _trial(problem, longer)
            if not tried:
                break
            found += tried
            last = tried[-1]
    return found


def _other_tiles(problem: Problem, best: _Trial) -> _Trials:
    """Trials of the best groups with other weight tiles."""
    found, streamed = list[_Trial](), best.batch.stream.ops
    for stream in OTHER_TILES if streamed else ():
        batch = replace(best.batch, stream=stream.of(streamed), flags=NO_FLAGS)
        for count in range(best.batch.micro_batches, MOST_MICRO_BATCHES + 1):
            tried = yield from _trial(problem, replace(batch, micro_batches=count))
            if not tried:
                break
            found += tried
            batch = tried[-1].batch
    return found


def _less_streamed(problem: Problem, best: _Trial) -> _Trials:
    """A trial of the batch with as few streamed constants as a group and the root permit."""
    batch = replace(best.batch, flags=NO_FLAGS)
    batches = more_streamed(problem, batch)
    least = next(count for count, batch in enumerate(batches) if _root_has_room(problem, batch))
    alone = replace(batch, groups=_one_of(batch))
    stream = yield from fewest_streamed(problem, alone, len(batch.stream.ops), least=least, probe=True)
    return (yield from _trial(problem, replace(batch, stream=stream))) if stream else []


def _one_of(batch: Batch) -> tuple[Assignment]:
    """A group without the root: the emitted group, if groups are alike."""
    return (batch.groups[0 if batch.prefetchers else -1],)


def _prefetchers_needed(problem: Problem, batch: Batch, plan: Plan) -> int:
    """The number of PEs for the descriptors of all streamed constants, by the plan of a single group. The root, if a
    prefetching PE, holds the outputs too."""
    streamed = (each for each in plan.messages if each.source_pe >= DRAM and not each.tensor)
    sizes = {each.source.buffer: len(each.landings) for each in streamed}
    listed = sum(descriptor_bytes(1, len(batch.groups) * pes) for pes in sizes.values())
    return ceil((listed + batch.frames * output_bytes(problem.graph)) / most_listed(problem.board)) if listed else 0


def _with_prefetchers(batch: Batch, needed: int) -> Batch:
    """The batch without the first groups, whose PEs become the `needed` prefetching PEs, if few PEs are lost."""
    groups, prefetchers = list(batch.groups), list(batch.prefetchers)
    while len(prefetchers) < needed and len(groups) > 1:
        prefetchers += pes_of(groups.pop(0))
    if len(groups) < WELL_USED * len(batch.groups):
        return batch
    return replace(batch, groups=tuple(groups), prefetchers=tuple(prefetchers))


def _root_has_room(problem: Problem, batch: Batch) -> bool:
    return not lacking_on_root(problem, batch).missing


def groups_of(
    assignment: Assignment, order: Sequence[int], size: int, places: Sequence[int] | None = None
) -> Iterator[Assignment]:
    """The assignment of the first `size` PEs on each group of `size` PEs. The first PEs are left over, if any.

    `places`: the order of the groups, by default `order`.
    """
    for start in range(len(order) % size, len(order), size):
        moved = dict(zip(order[:size], (places or order)[start : start + size], strict=True))
        yield {op: tuple(Tile(moved[tile.pe], tile.box) for tile in tiles) for op, tiles in assignment.items()}
