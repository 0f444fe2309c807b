"""The planning problem: the input of every search, emission and prediction of the planner."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

from npukit.accel.engines import engines_on
from npukit.accel.interface import Accelerator, Cost, Engines
from npukit.board.board import Board
from npukit.net.box import Box
from npukit.net.net import CORE, Net, Op
from npukit.plan.tensors.boxes import Places
from npukit.plan.tensors.graph import Graph
from npukit.plan.tensors.routes import pes_to_use

Tell = Callable[[str], None]
"""Receives progress messages of a search for the user."""


def silent(text: str) -> None:
    del text


MOST = 1_000_000
"""Limit of steps and messages emitted per call of the planner: about two minutes of the processor. MobileNets on 152
PEs take all of it."""


@dataclass
class Work:
    """The planner's budget for a call: steps and messages emitted so far, and their limit.

    Emission takes most of the time, and its count is the same on every machine. The same call therefore ends with the
    same plan.
    """

    done: int = 0
    most: int = MOST
    seconds: float = 0.0
    """Seconds spent on emission here, for the estimate of the time left."""

    def share(self, most: int) -> Callable[[], bool]:
        """A function: True once this much work from now on, or the whole budget, is spent."""
        until = min(self.done + most, self.most)
        return lambda: self.done >= until

    @property
    def left(self) -> str:
        """A remark on the time left for the longest search; empty in the first 1 % of the budget."""
        seconds = self.seconds * (self.most - self.done) / max(self.done, 1)
        if self.done < self.most // 100:
            return ""
        return f"; at most {seconds / 60:.0f} min more" if seconds > 90 else f"; at most {seconds:.0f} s more"


@dataclass(frozen=True, eq=False)
class Problem:
    """A graph of ops, the board, the engines of the ops, and the PEs for the plan.

    Consecutive PEs in `order` are neighbours on the mesh. The default is `pes_to_use`: at most `max_pes` PEs; without a
    limit, the PEs of the root's chip, and other chips may repeat the plan.
    """

    graph: Graph
    board: Board
    engines: Engines
    order: Sequence[int] = ()
    tell: Tell = silent
    work: Work = field(default_factory=Work)
    max_pes: int | None = None

    def __post_init__(self) -> None:
        order = self.order or pes_to_use(self.board, self.max_pes, self.engines_in_use)
        object.__setattr__(self, "order", tuple(order))

    @property
    def engines_in_use(self) -> set[str]:
        return {op.engine for op in self.graph.ops}

    @cached_property
    def places(self) -> Places:
        """The places in the order whose PEs carry an engine, for each engine in use that some PEs of the board lack."""
        return {
            name: tuple(place for place, pe in enumerate(self.order) if pe not in without)
            for name, without in self.board.lacking.items()
            if name in self.engines_in_use
        }

    @cached_property
    def fewest(self) -> int:
        """The number of first PEs of the order that together carry every engine in use. If no PE carries one of the
        engines, one more than all PEs."""
        return max((min(places, default=len(self.order)) + 1 for places in self.places.values()), default=1)

    @property
    def equipped(self) -> Problem:
        """The problem on the PEs that carry every engine in use, or the same problem if there are none."""
        places = set(range(len(self.order))).intersection(*self.places.values())
        lacking = 0 < len(places) < len(self.order)
        return self.on([self.order[place] for place in sorted(places)]) if lacking else self

    @property
    def alike(self) -> Problem:
        """The problem on the equipped PEs with the most common core, because groups of a batch must be equal."""
        equipped = self.equipped
        count = Counter(equipped.cpus.values())
        most = max(count, key=count.__getitem__, default=None)
        return equipped.on([pe for pe, cpu in equipped.cpus.items() if cpu == most]) if len(count) > 1 else equipped

    def unlike(self, count: int) -> Sequence[int]:
        """The first PE with each type of core, among the first `count` PEs of the order."""
        first: dict[str | None, int] = {}
        for pe in self.order[: count if self.cpus else 1]:
            first.setdefault(self.cpus.get(pe), pe)
        return tuple(first.values())

    @cached_property
    def cpus(self) -> Mapping[int, str]:
        """The core of each PE of the order; empty if the board has a single type of core."""
        return {pe: self.board.cpu_of(pe) for pe in self.order} if len(self.board.cpus) > 1 else {}

    @property
    def net(self) -> Net:
        return self.graph.net

    def on(self, order: Sequence[int]) -> Problem:
        """The problem on other PEs."""
        return replace(self, order=order, max_pes=len(order))

    def with_core(self, core: Accelerator) -> Problem:
        """The problem with other kernels of the core."""
        return replace(self, engines={**self.engines, CORE: core})

    def cost(self, op: Op, box: Box, pe: int | None = None) -> Cost:
        """The cost of a tile of an op on its engine, cached. `pe`: the PE of the tile, by default the first."""
        cpu = self.cpus.get(self.order[0] if pe is None else pe, "") if op.engine == CORE else ""
        key = op.name, box, cpu
        if key not in self._costs:
            self._costs[key] = engines_on(self.engines, cpu)[op.engine].cost(self.net, op, box)
        return self._costs[key]

    @cached_property
    def _costs(self) -> dict[tuple[str, Box, str], Cost]:
        return {}
