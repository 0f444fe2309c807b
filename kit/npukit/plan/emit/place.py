"""Placement: the offset and the lifetime of each buffer in a PE's memory."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from functools import lru_cache

from npukit.net.arrangement import Arrangement
from npukit.net.box import Box
from npukit.plan.emit.banks import Banks, Reads, reads_of
from npukit.plan.emit.pe_program import Block, Held, PeProgram, use_of
from npukit.plan.emit.regions import Region
from npukit.plan.ir.names import in_order
from npukit.plan.ir.plan import Buffer
from npukit.plan.predict.memory import Lifetime, extent, in_turn, joined, pack, reuse_chains
from npukit.plan.tensors.graph import Graph
from npukit.plan.tensors.reshapes import reshaped_box


def placed(
    graph: Graph, program: PeProgram, banks: Banks, frames: int | None
) -> tuple[list[Buffer], tuple[int, ...], Mapping[int, int]]:
    """The buffers of a PE, their bytes in each bank, and the wait cycles of each step. `frames`: frames of a
    micro-batch; if given, all micro-batches use the same places."""
    arrangements: dict[str, Arrangement] = {}
    beyond: dict[str, int] = {}
    """Bytes reserved behind each buffer, because a step reads beyond an input's end."""
    scratch: list[_Wanted] = []
    for index, step, cost in program.computes():
        if cost.arrangement:
            arrangements[step.output.buffer] = cost.arrangement
        for view in step.inputs:
            beyond[view.buffer] = max(beyond.get(view.buffer, 0), cost.reads_beyond)
        if step.scratch:
            life = Lifetime(cost.scratch_bytes, index, program.scratch_until.get(index, index))
            scratch.append((Block(step.scratch, cost.scratch_bytes), life))
    wanted: list[_Wanted] = []
    for held, (first, last) in program.uses.items():
        wanted.append((held, Lifetime(_bytes(graph, held, arrangements, beyond), first, last)))
    wanted += scratch
    lifetimes = [life for _, life in wanted]
    packings = [
        (_packed_in_waves(wanted, units, frames, banks.most), saved) for units, saved in _units(graph, program, wanted)
    ]
    offsets, _ = min(packings, key=lambda packing: extent(lifetimes, packing[0]) - packing[1])
    reads: Reads = {}
    if any(bank.waits for bank in banks.memories):
        reads = reads_of(program, _named(graph, wanted), [life.bytes for life in lifetimes])
    if banks.memories[1:] and extent(lifetimes, offsets) > banks.room:
        spread = [banks.spread(lifetimes, units, reads) for units, _ in _units(graph, program, wanted)]
        offsets = min(spread, key=lambda each: sum(banks.waits(lifetimes, each, reads).values()))
    buffers: list[Buffer] = []
    for (held, life), offset in zip(wanted, offsets, strict=True):
        span = life.bytes, offset, life.first, life.last
        shown = [(held.name, "", held.box)] if isinstance(held, Block) else _shown(graph, held)
        buffers += [Buffer(name, tensor, box, *span, arrangements.get(name)) for name, tensor, box in shown]
    return in_order(buffers), banks.extents(lifetimes, offsets), banks.waits(lifetimes, offsets, reads)


def _bytes(graph: Graph, held: Held, arrangements: Mapping[str, Arrangement], beyond: Mapping[str, int]) -> int:
    if isinstance(held, Block):
        return held.bytes
    arrangement = arrangements.get(held.name)
    size = arrangement.bytes if arrangement else held.box.elements * graph.element_bytes(held.tensor)
    return size + max(beyond.get(name, 0) for name in _names(graph, held))


_Wanted = tuple[Held, Lifetime]
"""A region or block to place, with its lifetime."""

Unit = Mapping[int, int]
"""The indices of buffers that stay together, each with its distance from the start of the unit."""


def _units(graph: Graph, program: PeProgram, wanted: Sequence[_Wanted]) -> Iterator[tuple[list[Unit], int]]:
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


def _chains(wanted: Sequence[_Wanted], shares: Mapping[int, int]) -> list[Unit]:
    return [dict.fromkeys(unit, 0) for unit in reuse_chains(len(wanted), shares)]


def _packed_in_waves(
    wanted: Sequence[_Wanted], units: Sequence[Unit], frames: int | None, room: int
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
    for offset, (_, same) in zip(_packed(tuple(life for life, _ in homes), room), homes, strict=True):
        for index, distance in (placed for number in same for placed in units[number].items()):
            offsets[index] = offset + distance
    return tuple(offsets)


_packed = lru_cache(maxsize=1024)(pack)
"""Cached offsets of buffers: PEs with the same work on other frames have equal lifetimes."""


def _kept(program: PeProgram, wanted: Sequence[_Wanted]) -> dict[int, int]:
    """The index of each state, with the index of its new value at the same address."""
    indices = {held: index for index, (held, _) in enumerate(wanted)}
    found = {indices[state]: indices[made] for state, made in program.kept.items()}
    late = (i for i, o in found.items() if wanted[i][1].last > wanted[o][1].first)
    assert next(late, None) is None, "a state is read after it is written"
    return found


def _named(graph: Graph, wanted: Sequence[_Wanted]) -> dict[str, int]:
    """The index of the region or block behind each buffer, by the buffer's name."""
    return {name: index for index, (held, _) in enumerate(wanted) for name in _names(graph, held)}


def _names(graph: Graph, held: Held) -> list[str]:
    """The names of the buffers of a block, or of a region and its reshapes."""
    if isinstance(held, Block):
        return [held.name]
    return [held.named(name) for name in (held.tensor, *graph.views[held.tensor])]


def _shares(program: PeProgram, wanted: Sequence[_Wanted], named: Mapping[str, int]) -> dict[int, int]:
    """The indices of operands at their last use, each with the output that may take its place."""
    indices = {held: index for index, (held, _) in enumerate(wanted)}
    found: dict[int, int] = {}
    for source, target in program.aliases.items():
        one, other = wanted[indices[source]][1], wanted[indices[target]][1]
        if one.bytes == other.bytes and one.first < other.first and one.last <= other.last:
            found[indices[source]] = indices[target]
    for step, compute, cost in program.computes():
        output = named[compute.output.buffer]
        for i in (named[compute.inputs[i].buffer] for i in cost.may_overwrite):
            if wanted[i][1].last == step == wanted[output][1].first and output not in found.values():
                found.setdefault(i, output)
    return found


def _arenas(
    program: PeProgram, wanted: Sequence[_Wanted], named: Mapping[str, int], elsewhere: Collection[int]
) -> list[Unit]:
    """Scratch memories with the operands inside: inputs without later readers, and the output. No operand lies in
    two."""
    found: list[Unit] = []
    taken = set(elsewhere)

    def may_lie_in(arena: Lifetime, operand: int, distance: int) -> bool:
        """True if an operand ends no later than the scratch memory, or begins no earlier, and fits at this distance."""
        life = wanted[operand][1]
        return (life.last <= arena.last or life.first >= arena.first) and distance + life.bytes <= arena.bytes

    for _, step, cost in program.computes():
        if cost.arena and step.scratch:
            home = named[step.scratch]
            operands = [named[view.buffer] for view in (*step.inputs, step.output)]
            places = [*dict(zip(operands, cost.arena, strict=True)).items()]
            within = {i: at for i, at in places if i not in taken and may_lie_in(wanted[home][1], i, at)}
            found += [{home: 0, **within}] if within else []
            taken |= within.keys()
    return found


def _shown(graph: Graph, region: Region) -> Iterator[tuple[str, str, Box]]:
    """The buffers of a region: the region itself and reshapes on the same bytes, as name, tensor, box."""
    shape = graph.shape(region.tensor)
    for name in (region.tensor, *graph.views[region.tensor]):
        box = reshaped_box(region.box, shape, graph.shape(name)) if name != region.tensor else region.box
        if box.elements == region.box.elements:
            yield region.named(name), name, box
