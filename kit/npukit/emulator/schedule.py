"""Schedules: delays of messages, accelerators and cores of an emulated board, by a seed."""

from __future__ import annotations

from dataclasses import dataclass

from npukit.errors import NpukitError

_MOST = (1 << 32) - 1


@dataclass(frozen=True)
class Schedule:
    """The order in which the PEs of a board reach their steps, by a seed.

    Each start of a DMA or accelerator, and each wake-up of a core, is delayed by up to 4,095 cycles. A taken branch
    costs up to 15 more cycles, by PE. The hardware manual's order holds, so results are the same.
    """

    seed: int

    def __post_init__(self) -> None:
        if not 1 <= self.seed <= _MOST:
            raise NpukitError(f"{self.seed} is no seed of a schedule", tries=[f"a number from 1 to {_MOST}"])

    def __str__(self) -> str:
        return f"schedule {self.seed}"
