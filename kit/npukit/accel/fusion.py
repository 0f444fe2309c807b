"""Ops that an engine takes as one: patterns of a few, and subgraphs of as many as it can.

A group has one output. Whatever else its ops make is read by them alone, so that nothing outside can depend on the
group and the group on that: it can run where its last op stood.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

from npukit.accel.interface import Accelerator, Engines
from npukit.net.box import Box
from npukit.net.net import CORE, LINK, Fused, Net, Op, fuse
from npukit.net.ops import Reshape


def with_patterns(net: Net, engine: Accelerator, engines: Engines) -> Net:
    """The net with the engine's patterns fused where that is quicker than its ops one by one."""
    for pattern in engine.abilities.patterns:
        uses, fused, within = _Uses(net), dict[str, Op](), set[str]()
        for last in (op for op in net.ops if op.kind == pattern[-1]):
            for chain in uses.chains(last, pattern):
                names, whole = {op.name for op in chain}, fuse(chain)
                if names & within or engine.refusal(net, whole) is not None:
                    continue
                if _cycles(net, engine, whole) < _cycles_of(net, engines, chain):
                    fused[last.name] = whole.placed(engine.name)
                    within |= names
                    break
        kept = (op for op in net.ops if op.name in fused or op.name not in within)
        net = net.with_ops(tuple(fused.get(op.name, op) for op in kept))
    return net


def with_subgraphs(net: Net, engine: Accelerator, engines: Engines) -> Net:
    """The net with connected ops fused that the engine takes, the largest groups that it takes and is quicker at."""
    for last in reversed(net.ops):
        if last in net.ops and last.engine != LINK and not isinstance(last.attributes, Fused):
            net = _with_subgraph_ending_at(net, last, engine, engines)
    return net


def _with_subgraph_ending_at(net: Net, last: Op, engine: Accelerator, engines: Engines) -> Net:
    most, reason = len(net.ops), engine.refusal(net, last)
    while most and reason is None:
        group = _Uses(net).grown(last, engine, most)
        fused = fuse(group, whole=True)
        if all(isinstance(part.attributes, Reshape) for part in group):
            return net
        reason = engine.refusal(net, fused) or _slower(net, engine, fused, engines, group)
        if reason is None:
            return _replaced(net, group, fused.placed(engine.name))
        most, reason = len(group) // 2, None if len(group) > 1 else reason
    return _with_reason(net, last, reason)


def _slower(net: Net, engine: Accelerator, fused: Op, engines: Engines, group: Sequence[Op]) -> str | None:
    takes, others = _cycles(net, engine, fused), _cycles_of(net, engines, group)
    return None if takes < others else f"{engine.name} would take {takes:,} cycles, not {others:,}"


def _with_reason(net: Net, op: Op, reason: str | None) -> Net:
    """The net in which an op on the core says this too of why."""
    if op.engine != CORE or not reason or reason in op.reason:
        return net
    told = op.placed(op.engine, "; ".join(filter(None, (op.reason, reason))))
    return net.with_ops(tuple(told if each is op else each for each in net.ops))


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
        """Ops of the kinds of the pattern that end with this one, what was made last first."""
        if last.kind != pattern[-1]:
            return
        if len(pattern) == 1:
            yield (last,)
            return
        for maker in self._makers_for(last):
            if self._only_for(maker, {last.name}):
                yield from ((*chain, last) for chain in self.chains(maker, pattern[:-1]))

    def grown(self, last: Op, engine: Accelerator, most: int) -> tuple[Op, ...]:
        """The largest group that ends with an op, of ops that the engine takes, in the net's order."""
        group, front = {last.name: last}, [last]
        while front and len(group) < most:
            for maker in self._makers_for(front.pop(0)):
                may_join = maker.name not in group and self._only_for(maker, set(group))
                if may_join and len(group) < most and engine.refusal(self.net, maker) is None:
                    group[maker.name] = maker
                    front = list(group.values())
        return tuple(sorted(group.values(), key=lambda op: self._order[op.name]))

    def _makers_for(self, op: Op) -> list[Op]:
        """The ops of which it reads something, the last first; none that are fused, none of the link's."""
        found = {self._makers[name].name: self._makers[name] for name in op.inputs if name in self._makers}
        plain = [maker for maker in found.values() if maker.engine != LINK and not isinstance(maker.attributes, Fused)]
        return sorted(plain, key=lambda maker: -self._order[maker.name])

    def _only_for(self, maker: Op, group: set[str]) -> bool:
        """True if what an op makes is read by these alone."""
        return all(
            name not in self.net.ends and self._readers.get(name, set()) <= group and name in self._readers
            for name in maker.outputs
        )


def _replaced(net: Net, group: Sequence[Op], fused: Op) -> Net:
    names = {op.name for op in group}
    kept = (fused if op.name == fused.name else op for op in net.ops if op.name not in names - {fused.name})
    return net.with_ops(tuple(kept))


def _cycles_of(net: Net, engines: Engines, ops: Sequence[Op]) -> int:
    """Cycles of ops where they are placed; a reshape is no work."""
    return sum(_cycles(net, engines[op.engine], op) for op in ops if not isinstance(op.attributes, Reshape))


def _cycles(net: Net, engine: Accelerator, op: Op) -> int:
    return engine.cost(net, op, Box.whole(net.tensor(op.output).shape)).cycles
