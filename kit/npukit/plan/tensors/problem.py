"""The planning problem: what every search, emission and prediction of the planner is given."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from math import inf

from npukit.accel.engines import engines_on
from npukit.accel.interface import Cost, Engines
from npukit.board.board import Board
from npukit.net.box import Box
from npukit.net.net import CORE, Net, Op
from npukit.plan.tensors.boxes import Places
from npukit.plan.tensors.graph import Graph
from npukit.plan.tensors.routes import pes_to_use

Tell = Callable[[str], None]
"""Takes how far a search has come, for whoever waits."""


def silent(text: str) -> None:
    del text


MOST = 750_000
"""Steps and messages that a call of the planner may have emitted: a minute of the processor. MobileNetV2 on 152 PEs
takes 640,000."""


@dataclass
class Work:
    """Steps and messages that have been emitted, and how many may be: all that a call of the planner spends.

    It is what takes the time, and the same on every machine, so that the same call ends with the same plan.
    """

    done: int = 0
    most: int = MOST
    seconds: float = 0.0
    """Seconds that they have taken here, to tell what is left."""
    plans: int = 0
    best: tuple[float, str] = (inf, "")
    """The least figure of a plan that fits, of all searches, and what is said of it."""

    @property
    def is_spent(self) -> bool:
        return self.done >= self.most

    def compared(self, figure: float, told: str) -> str:
        """A remark on the best plan so far and how many there were, this one included."""
        self.plans, self.best = self.plans + 1, min(self.best, (figure, told))
        return f"best of {self.plans} plan{'s' if self.plans > 1 else ''} so far {self.best[1]}"

    @property
    def left(self) -> str:
        """A remark on the time that the longest search would still take, once enough is done to know."""
        seconds = self.seconds * (self.most - self.done) / max(self.done, 1)
        if self.done < self.most // 100:
            return ""
        return f"; at most {seconds / 60:.0f} min more" if seconds > 90 else f"; at most {seconds:.0f} s more"


@dataclass(frozen=True, eq=False)
class Problem:
    """A graph of ops, the board and the engines that run them, and the PEs they may use.

    PEs that follow each other in `order` are neighbours on the mesh. Unless given they are the first live ones, at most
    `max_pes`; without a limit, those of the root's chip, and other chips may do the same.
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
        """The places in the order whose PEs carry an engine that some PEs of the board lack, of the engines in use."""
        return {
            name: tuple(place for place, pe in enumerate(self.order) if pe not in without)
            for name, without in self.board.lacking.items()
            if name in self.engines_in_use
        }

    @cached_property
    def fewest(self) -> int:
        """The number of PEs of the order from the first on by which every engine in use is carried; one more than all,
        if none carries one."""
        return max((min(places, default=len(self.order)) + 1 for places in self.places.values()), default=1)

    @property
    def equipped(self) -> Problem:
        """The same on those PEs alone that carry every engine in use, if there are any."""
        places = set(range(len(self.order))).intersection(*self.places.values())
        lacking = 0 < len(places) < len(self.order)
        return self.on([self.order[place] for place in sorted(places)]) if lacking else self

    @property
    def alike(self) -> Problem:
        """The same on the equipped PEs with the core that most of them have: groups of a batch do the same."""
        equipped = self.equipped
        count = Counter(equipped.cpus.values())
        most = max(count, key=count.__getitem__, default=None)
        return equipped.on([pe for pe, cpu in equipped.cpus.items() if cpu == most]) if len(count) > 1 else equipped

    def unlike(self, count: int) -> Sequence[int]:
        """One PE with each core of so many PEs, the first of the order."""
        first: dict[str | None, int] = {}
        for pe in self.order[: count if self.cpus else 1]:
            first.setdefault(self.cpus.get(pe), pe)
        return tuple(first.values())

    @cached_property
    def cpus(self) -> Mapping[int, str]:
        """The core of each PE of the order, if the board has several."""
        return {pe: self.board.cpu_of(pe) for pe in self.order} if len(self.board.cpus) > 1 else {}

    @property
    def net(self) -> Net:
        return self.graph.net

    def on(self, order: Sequence[int]) -> Problem:
        """The same on other PEs."""
        return replace(self, order=order, max_pes=len(order))

    def with_engines(self, engines: Engines) -> Problem:
        return replace(self, engines=engines)

    def cost(self, op: Op, box: Box, pe: int | None = None) -> Cost:
        """The cost of a tile of an op on its engine, if not of another PE then of the first, asked for once."""
        cpu = self.cpus.get(self.order[0] if pe is None else pe, "") if op.engine == CORE else ""
        key = op.name, box, cpu
        if key not in self._costs:
            self._costs[key] = engines_on(self.engines, cpu)[op.engine].cost(self.net, op, box)
        return self._costs[key]

    @cached_property
    def _costs(self) -> dict[tuple[str, Box, str], Cost]:
        return {}
