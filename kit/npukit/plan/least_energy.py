"""The plan that takes least energy at a frame rate, of those that the searches for time find on few PEs and on many.

More PEs take more power and need it for a shorter time; what each of them costs is only known of a whole plan.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from math import inf
from typing import Generic, Protocol, TypeVar

from npukit.board.board import Board
from npukit.dump import lost
from npukit.errors import DoesNotFit, NpukitError
from npukit.net.net import Net
from npukit.plan.core_plan import HasPlan
from npukit.plan.predict.energy import FrameEnergy, predicted_energies

ENERGY = "energy"
PATIENCE = 2
"""Numbers of PEs, each twice the one before, that bring nothing: more are not tried."""


class HasNet(HasPlan, Protocol):
    """A plan with the net that it is of."""

    @property
    def net(self) -> Net: ...


Found = TypeVar("Found", bound=HasNet)


@dataclass(frozen=True)
class EnergyTrial(Generic[Found]):
    """A plan, and what a frame takes at the voltage where that is least; None if none reaches the rate."""

    found: Found
    energy: FrameEnergy | None

    def __str__(self) -> str:
        return f"{self.found.plan.headline()}: {self.energy or 'the rate is missed'}"


def least_energy(
    board: Board, most: int, frames_per_second: float | None, plans: Callable[[int], Iterator[Found]]
) -> tuple[Found, list[str]]:
    """The best of the plans on 1, 2, 4, ... and at last `most` PEs, and a line on each that was compared."""
    if board.energy is None:
        raise NpukitError(
            f"board {board.name} does not say what power it takes",
            tries=["[energy] in the board file (docs/board-file.md)", "--objective latency, throughput or memory"],
        )
    trials = _compared(board, most, frames_per_second, plans)
    if not trials:
        raise DoesNotFit(f"no plan on up to {most} PEs of {board.name} fits", tries=["--objective memory"])
    best, *others = sorted(trials, key=_merit)
    for trial in others:
        lost(trial.found.plan.headline, partial(str, trial))
    return best.found, list(map(str, trials))


def _compared(
    board: Board, most: int, frames_per_second: float | None, plans: Callable[[int], Iterator[Found]]
) -> list[EnergyTrial[Found]]:
    """The plans on more and more PEs, until that brings nothing any more."""
    trials = list[EnergyTrial[Found]]()
    idle = 0
    for pes in _doubled(most):
        before = min(map(_merit, trials), default=(inf, inf))
        trials += [_trial(board, each, frames_per_second) for each in plans(pes)]
        best = min(map(_merit, trials), default=(inf, inf))
        idle = idle + 1 if best == before < (inf, 0) else 0
        if idle == PATIENCE:
            break
    return trials


def _merit(trial: EnergyTrial[Found]) -> tuple[float, float]:
    """Less is better; where the rate is missed, time counts."""
    return trial.energy.microjoules if trial.energy else inf, trial.found.plan.predicted.interval_cycles


def _doubled(most: int) -> Iterator[int]:
    pes = 1
    while pes < most:
        yield pes
        pes *= 2
    yield most


def _trial(board: Board, found: Found, frames_per_second: float | None) -> EnergyTrial[Found]:
    energies = predicted_energies(board, found.net, found.plan, frames_per_second)
    return EnergyTrial(found, min(energies, key=lambda each: each.microjoules, default=None))
