"""Placement: the offset and the lifetime of each buffer in a PE's memory."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

from npukit.accel.interface import Cost
from npukit.net.arrangement import Arrangement
from npukit.net.box import Box
from npukit.plan.emit.banks import Banks, Reads, reads_of
from npukit.plan.emit.pe_program import Block, Held, PeProgram, use_of
from npukit.plan.emit.regions import Region
from npukit.plan.ir.names import in_order
from npukit.plan.ir.plan import Buffer, Compute
from npukit.plan.predict.memory import Lifetime, extent, in_turn, joined, pack, reuse_chains
from npukit.plan.tensors.graph import Graph
from npukit.plan.tensors.reshapes import reshaped_box


@dataclass(frozen=True)
class Placed:
    """The buffers of a PE, their bytes in each bank, and the wait cycles of each step."""

    buffers: list[Buffer]
    extents: tuple[int, ...]
    waits: Mapping[int, int]


def placed(graph: Graph, program: PeProgram, banks: Banks, frames: int | None) -> Placed:
    """Place all buffers of a PE. `frames`: frames of a micro-batch; if given, all micro-batches use the same places."""
    needs = _BufferNeeds()
    scratch: list[tuple[Held, Lifetime]] = []
    for step, cost in program.costs:
        compute = program.steps[step]
        assert isinstance(compute, Compute)
        needs.note(compute, cost)
        if compute.scratch:
            scratch.append((Block(compute.scratch, cost.scratch_bytes), _while_it_runs(program, step, cost)))
    used = ((held, Lifetime(needs.bytes(graph, held), use.first, use.last)) for held, use in program.uses.items())
    wanted = [*used, *scratch]
    lifetimes = [life for _, life in wanted]
    ways = [(_packed_in_waves(wanted, units, frames), saved) for units, saved in _ways(graph, program, wanted)]
    offsets, _ = min(ways, key=lambda way: extent(lifetimes, way[0]) - way[1])
    reads: Reads = {}
    if any(bank.waits for bank in banks.memories):
        reads = reads_of(program, _named(graph, wanted), [life.bytes for life in lifetimes])
    if banks.memories[1:] and extent(lifetimes, offsets) > banks.room:
        spread = [banks.spread(lifetimes, units, reads) for units, _ in _ways(graph, program, wanted)]
        offsets = min(spread, key=lambda each: sum(banks.waits(lifetimes, each, reads).values()))
    buffers: list[Buffer] = []
    for (held, life), offset in zip(wanted, offsets, strict=True):
        span = life.bytes, offset, life.first, life.last
        shown = [(held.name, "", held.box)] if isinstance(held, Block) else _shown(graph, held)
        buffers += [Buffer(name, tensor, box, *span, needs.arrangements.get(name)) for name, tensor, box in shown]
    extents, waits = banks.extents(lifetimes, offsets), banks.waits(lifetimes, offsets, reads)
    return Placed(in_order(buffers), extents, waits)


Unit = Mapping[int, int]
"""The indices of buffers that stay together, each with its distance from the start of the unit."""


def _ways(
    graph: Graph, program: PeProgram, wanted: Sequence[tuple[Held, Lifetime]]
) -> Iterator[tuple[list[Unit], int]]:
    """Candidate lists of units for packing: operands in arenas; only states in place; every permitted result in place.
    Each comes with the bytes of operands that need no copy. A byte less to copy is worth a byte of memory."""
    kept, names = _kept(program, wanted), _named(graph, wanted)
    shares = {i: o for i, o in _shares(program, wanted, names).items() if i not in kept and o not in kept.values()}
    arenas = _arenas(program, wanted, names, {*kept, *kept.values()})
    inside = {index for arena in arenas for index in arena}
    if arenas:
        apart = {i: o for i, o in shares.items() if inside.isdisjoint((i, o))}
        rest = [unit for unit in _chains(wanted, {**apart, **kept}) if inside.isdisjoint(unit)]
        yield [*arenas, *rest], sum(wanted[index][1].bytes for arena in arenas for index in [*arena][1:])
    yield _chains(wanted, kept), 0
    if shares:
        yield _chains(wanted, {**shares, **kept}), 0


def _chains(wanted: Sequence[tuple[Held, Lifetime]], shares: Mapping[int, int]) -> list[Unit]:
    return [dict.fromkeys(unit, 0) for unit in reuse_chains(len(wanted), shares)]


def _packed_in_waves(
    wanted: Sequence[tuple[Held, Lifetime]], units: Sequence[Unit], frames: int | None
) -> tuple[int, ...]:
    """The offset of each buffer; units stay together. With the `frames` of a micro-batch, buffers of the same use share
    one place in every micro-batch, unless two of them are alive at once."""
    lives = [joined([wanted[index][1] for index in unit]) for unit in units]
    used: dict[object, list[int]] = {}
    for number, unit in enumerate(units):
        use = tuple(use_of(wanted[index][0], frames) for index in unit) if frames else number
        used.setdefault(use, []).append(number)
    homes: list[tuple[Lifetime, list[int]]] = []
    for same in used.values():
        together = in_turn([lives[number] for number in same])
        homes += [(together, same)] if together else [(lives[number], [number]) for number in same]
    offsets = [0] * len(wanted)
    for offset, (_, same) in zip(_packed(tuple(life for life, _ in homes)), homes, strict=True):
        for index, distance in (placed for number in same for placed in units[number].items()):
            offsets[index] = offset + distance
    return tuple(offsets)


@lru_cache(maxsize=1024)
def _packed(lifetimes: tuple[Lifetime, ...]) -> tuple[int, ...]:
    """The offsets of buffers with these lifetimes. Cached, because PEs with the same work on other frames have equal
    lifetimes."""
    return pack(lifetimes)


def _kept(program: PeProgram, wanted: Sequence[tuple[Held, Lifetime]]) -> dict[int, int]:
    """The index of each state, with the index of its new value at the same address."""
    indices = {held: index for index, (held, _) in enumerate(wanted)}
    found = {indices[state]: indices[made] for state, made in program.kept.items()}
    late = (i for i, o in found.items() if wanted[i][1].last > wanted[o][1].first)
    assert next(late, None) is None, "a state is read after it is written"
    return found


def _named(graph: Graph, wanted: Sequence[tuple[Held, Lifetime]]) -> dict[str, int]:
    """The index of the region or block behind each buffer, by the buffer's name."""
    named: dict[str, int] = {}
    for index, (held, _) in enumerate(wanted):
        names = (
            [held.name]
            if isinstance(held, Block)
            else [held.named(n) for n in (held.tensor, *graph.views(held.tensor))]
        )
        named |= dict.fromkeys(names, index)
    return named


def _shares(program: PeProgram, wanted: Sequence[tuple[Held, Lifetime]], named: Mapping[str, int]) -> dict[int, int]:
    """The indices of operands at their last use, each with the output that may take its place."""
    indices = {held: index for index, (held, _) in enumerate(wanted)}
    pairs = [(indices[source], indices[target]) for source, target in program.aliases.items()]
    found = {i: o for i, o in pairs if wanted[i][1].bytes == wanted[o][1].bytes and _ends_first(wanted, i, o)}
    for step, cost in program.costs:
        compute = program.steps[step]
        assert isinstance(compute, Compute)
        output = named[compute.output.buffer]
        for i in (named[compute.inputs[i].buffer] for i in cost.may_overwrite):
            if wanted[i][1].last == step == wanted[output][1].first and output not in found.values():
                found.setdefault(i, output)
    return found


def _arenas(
    program: PeProgram, wanted: Sequence[tuple[Held, Lifetime]], named: Mapping[str, int], elsewhere: Collection[int]
) -> list[Unit]:
    """Scratch memories with the operands that lie inside: inputs without later readers, and the output. No operand lies
    in two."""
    found: list[Unit] = []
    taken = set(elsewhere)
    for step, cost in program.costs:
        compute = program.steps[step]
        assert isinstance(compute, Compute)
        if cost.arena and compute.scratch:
            home = named[compute.scratch]
            operands = [named[view.buffer] for view in (*compute.inputs, compute.output)]
            places = dict(zip(operands, cost.arena, strict=True))
            within = {i: at for i, at in places.items() if i not in taken and _may_lie_in(wanted, home, i, at)}
            found += [{home: 0, **within}] if within else []
            taken |= within.keys()
    return found


def _may_lie_in(wanted: Sequence[tuple[Held, Lifetime]], home: int, operand: int, distance: int) -> bool:
    """True if an operand ends no later than the scratch memory, or begins no earlier, and fits at this distance."""
    life, arena = wanted[operand][1], wanted[home][1]
    return (life.last <= arena.last or life.first >= arena.first) and distance + life.bytes <= arena.bytes


def _ends_first(wanted: Sequence[tuple[Held, Lifetime]], one: int, other: int) -> bool:
    return wanted[one][1].first < wanted[other][1].first and wanted[one][1].last <= wanted[other][1].last


def _while_it_runs(program: PeProgram, step: int, cost: Cost) -> Lifetime:
    return Lifetime(cost.scratch_bytes, step, program.scratch_until.get(step, step))


class _BufferNeeds:
    """Requirements of engines on buffers, by name: the arrangement of outputs, and bytes reserved behind inputs."""

    def __init__(self) -> None:
        self.arrangements: dict[str, Arrangement] = {}
        self._room: dict[str, int] = {}

    def note(self, step: Compute, cost: Cost) -> None:
        if cost.arrangement:
            self.arrangements[step.output.buffer] = cost.arrangement
        for view in step.inputs:
            self._room[view.buffer] = max(self._room.get(view.buffer, 0), cost.reads_beyond)

    def bytes(self, graph: Graph, held: Held) -> int:
        if isinstance(held, Block):
            return held.bytes
        arrangement = self.arrangements.get(held.name)
        size = arrangement.bytes if arrangement else held.box.elements * graph.element_bytes(held.tensor)
        names = (held.tensor, *graph.views(held.tensor))
        return size + max(self._room.get(held.named(name), 0) for name in names)


def _shown(graph: Graph, region: Region) -> Iterator[tuple[str, str, Box]]:
    """The buffers of a region: the region itself and reshapes on the same bytes, as name, tensor, box."""
    shape = graph.shape(region.tensor)
    for name in (region.tensor, *graph.views(region.tensor)):
        box = reshaped_box(region.box, shape, graph.shape(name)) if name != region.tensor else region.box
        if box.elements == region.box.elements:
            yield region.named(name), name, box
