"""An order of a net's ops for parallel work of the core and the asynchronous engines."""

from __future__ import annotations

from bisect import insort
from dataclasses import dataclass, field

from npukit.accel.interface import Engines
from npukit.net.box import Box
from npukit.net.net import LINK, Net, Op
from npukit.plan.tensors.core_cycles import CHAIN_CYCLES


def in_overlapping_order(net: Net, engines: Engines) -> Net:
    """The net with its ops ordered for the shortest waits of the core.

    Ties keep the model's order. A net for a single engine is therefore unchanged.
    """
    schedule, readers = _Schedule(net, engines), dict[str, list[int]]()
    missing = [set(net.activations(op)) - set(net.begins) for op in net.ops]
    for index, names in enumerate(missing):
        for name in names:
            readers.setdefault(name, []).append(index)
    ready = [index for index, names in enumerate(missing) if not names]
    while ready:
        best = min(ready, key=lambda index: schedule.rank(net.ops[index]))
        ready.remove(best)
        schedule.take(net.ops[best])
        for name in net.ops[best].outputs:
            for reader in readers.get(name, ()):
                missing[reader].discard(name)
                if not missing[reader]:
                    insort(ready, reader)
    return net.with_ops(tuple(schedule.order))


@dataclass
class _Schedule:
    """The ops in order up to here, and the completion times of the core and each engine."""

    net: Net
    engines: Engines
    order: list[Op] = field(default_factory=list)
    core: int = 0
    free: dict[str, int] = field(default_factory=dict)
    """Completion time of each asynchronous engine."""
    made: dict[str, tuple[str, int]] = field(default_factory=dict)
    """Engine and completion time of each tensor."""

    def __post_init__(self) -> None:
        self.made.update(dict.fromkeys(self.net.begins, ("", 0)))

    def rank(self, op: Op) -> tuple[int, bool]:
        """The sort key: earliest start first, and of equal starts ops on asynchronous engines first."""
        return self.start(op), not self._runs_alone(op)

    def start(self, op: Op) -> int:
        """The earliest start of the op on the core, or of its submission to an asynchronous engine.

        The core must be free, and inputs from other engines complete. An asynchronous engine must be free, unless the
        op continues its chain.
        """
        waits = [self.core]
        for name in self.net.activations(op):
            engine, time = self.made[name]
            waits += [time] if engine != op.engine else []
        if self._runs_alone(op) and not (self.order and self.order[-1].engine == op.engine):
            waits.append(self.free.get(op.engine, 0))
        return max(waits)

    def take(self, op: Op) -> None:
        start = self.start(op)
        cycles = self._cycles(op)
        if self._runs_alone(op):
            self.core = start + (0 if self.order and self.order[-1].engine == op.engine else CHAIN_CYCLES)
            self.free[op.engine] = done = max(self.core, self.free.get(op.engine, 0)) + cycles
        else:
            self.core = done = start + cycles
        self.made |= dict.fromkeys(op.outputs, (op.engine, done))
        self.order.append(op)

    def _runs_alone(self, op: Op) -> bool:
        return op.engine != LINK and self.engines[op.engine].abilities.wait is not None

    def _cycles(self, op: Op) -> int:
        if op.kind == "reshape" or op.engine == LINK:
            return 0
        return self.engines[op.engine].cost(self.net, op, Box.whole(self.net.tensor(op.output).shape)).cycles
