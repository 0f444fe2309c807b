"""Fusion of ops for engines that take several ops as one: patterns of a few ops, and subgraphs of as many as possible.

A group has one output. Only the group reads its other tensors. No outside op can therefore depend on the group and also
feed the group: the group can run in the place of its last op.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence, Set
from dataclasses import dataclass
from functools import cached_property
from heapq import heapify, heappop, heappush
from itertools import pairwise

from npukit.accel.interface import Accelerator, Engines, whole_cycles
from npukit.net.net import CORE, LINK, Fused, Net, Op, fuse
from npukit.net.ops import Reshape

GROWS = 4
"""Size limit of the next group, as a multiple of the previous group's ops. Trying all remaining ops each time would
take quadratic time if the engine takes few at once."""


def with_patterns(net: Net, engine: Accelerator, engines: Engines) -> Net:
    """The net with the engine's patterns fused where the fused op is faster than the parts."""
    for pattern in engine.abilities.chains:
        uses, fused, within = _Uses(net), dict[str, Op](), set[str]()
        for last in (op for op in net.ops if op.kind == pattern[-1]):
            for chain in uses.chains(last, pattern):
                names, whole = {op.name for op in chain}, fuse(chain)
                if names & within or engine.refusal(net, whole) is not None:
                    continue
                if whole_cycles(net, whole, engine) < _cycles_of(net, engines, chain):
                    fused[last.name] = whole.placed(engine.name)
                    within |= names
                    break
        kept = (op for op in net.ops if op.name in fused or op.name not in within)
        net = net.with_ops(tuple(fused.get(op.name, op) for op in kept))
    return net


def with_matches(net: Net, engine: Accelerator, engines: Engines) -> Net:
    """The net with matches of the engine's Relax patterns fused, where the engine takes the match as one op and is
    faster. A match whose ops are no chain must not be cut into tiles."""
    groups: dict[str, list[Op]] = {}
    for op in net.ops:
        if op.pattern.startswith(f"{engine.name}.") and not isinstance(op.attributes, Fused) and op.engine != LINK:
            groups.setdefault(op.pattern, []).append(op)
    uses, fused, within = _Uses(net), dict[str, Op](), set[str]()
    for match, group in groups.items():
        names, last = {op.name for op in group}, group[-1]
        if len(group) > 1 and all(uses.only_for(op, names) for op in group[:-1]):
            chain = all(set(before.outputs) & set(op.inputs) for before, op in pairwise(group))
            whole = fuse(group, whole=not chain, pattern=match.partition(".")[2].rpartition(" ")[0])
            taken = engine.refusal(net, whole) is None
            if taken and whole_cycles(net, whole, engine) < _cycles_of(net, engines, group):
                fused[last.name] = whole.placed(engine.name)
                within |= names
    kept = (op for op in net.ops if op.name in fused or op.name not in within)
    return net.with_ops(tuple(fused.get(op.name, op) for op in kept))


def with_subgraphs(net: Net, engine: Accelerator, engines: Engines) -> Net:
    """The net with connected ops fused: the largest groups that the engine takes and computes faster."""
    uses, instead, within, most = _Uses(net), dict[str, Op](), set[str](), len(net.ops)
    for last in reversed(net.ops):
        if last.name not in within and last.engine != LINK and not isinstance(last.attributes, Fused):
            group, op = _subgraph_ending_at(uses, last, engine, engines, within, most)
            instead[last.name] = op
            within |= {each.name for each in group}
            most = GROWS * len(group) if group else most
    kept = (op for op in net.ops if op.name in instead or op.name not in within)
    return net.with_ops(tuple(instead.get(op.name, op) for op in kept))


def _subgraph_ending_at(
    uses: _Uses, last: Op, engine: Accelerator, engines: Engines, within: Collection[str], most: int
) -> tuple[Sequence[Op], Op]:
    """A group of at most `most` ops, outside all others, and the fused op; or no group, and the op with the reason."""
    net, reason = uses.net, engine.refusal(uses.net, last)
    while most and reason is None:
        group = uses.grown(last, engine, most, within)
        fused = fuse(group, whole=True)
        if all(isinstance(part.attributes, Reshape) for part in group):
            return (), last
        reason = engine.refusal(net, fused)
        if reason is None:
            takes, others = whole_cycles(net, fused, engine), _cycles_of(net, engines, group)
            if takes < others:
                return group, fused.placed(engine.name)
            reason = f"{engine.name} would take {takes:,} cycles, not {others:,}"
        most, reason = len(group) // 2, None if len(group) > 1 else reason
    if last.engine == CORE and reason and reason not in last.reason:
        last = last.placed(CORE, "; ".join(filter(None, (last.reason, reason))))
    return (), last


@dataclass(frozen=True, eq=False)
class _Uses:
    """The makers and readers of the tensors of a net."""

    net: Net

    @cached_property
    def _makers(self) -> dict[str, Op]:
        return {name: op for op in self.net.ops for name in op.outputs}

    @cached_property
    def _readers(self) -> dict[str, set[str]]:
        found: dict[str, set[str]] = {}
        for op in self.net.ops:
            for name in op.inputs:
                found.setdefault(name, set()).add(op.name)
        return found

    @cached_property
    def _order(self) -> dict[str, int]:
        return {op.name: index for index, op in enumerate(self.net.ops)}

    def chains(self, last: Op, pattern: Sequence[str]) -> Iterator[tuple[Op, ...]]:
        """Chains of the pattern's kinds of ops that end with `last`, latest first. Each op reads the op before once."""
        if last.kind != pattern[-1]:
            return
        if len(pattern) == 1:
            yield (last,)
            return
        for maker in self._makers_for(last):
            if self.only_for(maker, {last.name}) and sum(name in maker.outputs for name in last.inputs) == 1:
                yield from ((*chain, last) for chain in self.chains(maker, pattern[:-1]))

    def grown(self, last: Op, engine: Accelerator, most: int, within: Collection[str]) -> tuple[Op, ...]:
        """The largest group that ends with `last`, of ops that the engine takes, outside all other groups, in the net's
        order. The search goes backwards through the net: all readers of an op are decided before the op."""
        group, front = {last.name: last}, [-self._order[maker.name] for maker in self._makers_for(last)]
        heapify(front)
        while front and len(group) < most:
            maker = self.net.ops[-heappop(front)]
            may_join = maker.name not in group and maker.name not in within and self.only_for(maker, group.keys())
            if may_join and engine.refusal(self.net, maker) is None:
                group[maker.name] = maker
                for each in self._makers_for(maker):
                    heappush(front, -self._order[each.name])
        return tuple(sorted(group.values(), key=lambda op: self._order[op.name]))

    def _makers_for(self, op: Op) -> list[Op]:
        """The ops whose outputs the op reads, the last first; without fused ops and ops of the link."""
        found = {self._makers[name].name: self._makers[name] for name in op.inputs if name in self._makers}
        plain = [maker for maker in found.values() if maker.engine != LINK and not isinstance(maker.attributes, Fused)]
        return sorted(plain, key=lambda maker: -self._order[maker.name])

    def only_for(self, maker: Op, group: Set[str]) -> bool:
        """True if only ops of the group read the outputs of `maker`."""
        read = self._readers
        return all(name in read and read[name] <= group and name not in self.net.ends for name in maker.outputs)


def _cycles_of(net: Net, engines: Engines, ops: Sequence[Op]) -> int:
    """Cycles of ops on their engines; a reshape costs nothing."""
    return sum(whole_cycles(net, op, engines[op.engine]) for op in ops if not isinstance(op.attributes, Reshape))
