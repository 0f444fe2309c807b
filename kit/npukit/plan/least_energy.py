"""The plan with the least energy per frame at a frame rate, among the best plans for time on 1, 2, 4, ... PEs.

More PEs take more power for a shorter time. The energy is known of a whole plan only.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import inf

from npukit.board.board import Board
from npukit.errors import DoesNotFit, NpukitError
from npukit.plan.planner import Planned
from npukit.plan.predict.energy import FrameEnergy, predicted_energies

ENERGY = "energy"


EnergyTrial = tuple[Planned, FrameEnergy | None]
"""A plan, and the energy of a frame at the voltage where it is least; None if the plan misses the rate."""


def described(trial: EnergyTrial) -> str:
    planned, energy = trial
    return f"{planned.plan.headline()}: {energy or 'the rate is missed'}"


def _merit(trial: EnergyTrial) -> tuple[float, float]:
    """Less is better. Time counts among plans that miss the rate."""
    planned, energy = trial
    return energy.microjoules if energy else inf, planned.plan.predicted.interval_cycles


def least_energy(
    board: Board,
    most: int,
    frames_per_second: float | None,
    objectives: Sequence[str],
    plan: Callable[[int, str], Planned],
) -> list[EnergyTrial]:
    """Trials of plans for each objective on 1, 2, 4, ... and `most` PEs, the best first."""
    if board.energy is None:
        raise NpukitError(
            f"board {board.name} does not say what power it takes",
            tries=["[energy] in the board file (docs/board-file.md)", "--objective latency, throughput or memory"],
        )
    trials, idle, fault = list[EnergyTrial](), 0, None
    for pes in (*(1 << power for power in range((most - 1).bit_length())), most):
        before = min(map(_merit, trials), default=(inf, inf))
        for objective in objectives:
            try:
                planned = plan(pes, objective)
            except DoesNotFit as error:
                fault = error
                continue
            energies = predicted_energies(board, planned.net, planned.plan, frames_per_second)
            trials.append((planned, min(energies, key=lambda each: each.microjoules, default=None)))
        best = min(map(_merit, trials), default=(inf, inf))
        idle = idle + 1 if best == before < (inf, 0) else 0
        if idle == 2:  # numbers of PEs in a row without gain
            break
    if not trials and fault:
        raise fault
    return sorted(trials, key=_merit)
