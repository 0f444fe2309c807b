"""Energy of a frame: estimated from measured cycles by the power figures of the board file's `[energy]`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from npukit.board.board import Board, EnergyLevel
from npukit.measure.traffic import link_bytes
from npukit.net.cost import macs
from npukit.net.net import CORE, Net
from npukit.plan.ir.plan import Compute, Plan, Send, Step, Wait
from npukit.plan.predict.utilisation import dram_bytes
from npukit.plan.tensors.core_cycles import (
    BEGIN_CYCLES,
    CHAIN_CYCLES,
    DOZE_CYCLES,
    END_CYCLES,
    SEND_CYCLES,
    WAKE_CYCLES,
)

_PICOJOULES = 1e-6
"""Microjoules in one."""


@dataclass(frozen=True)
class Work:
    """Work of a frame on a board: its cycles, those in which cores are awake, products, bytes."""

    cycles: int
    pes: int
    core_cycles: int
    products: int
    byte_hops: float = 0
    dram_bytes: float = 0


@dataclass(frozen=True)
class FrameEnergy:
    """The energy of a frame at one supply voltage, as certain as the board file says its figures are."""

    volts: float
    clock_hz: int
    milliseconds: float
    microjoules: float
    uncertainty_percent: float

    def __str__(self) -> str:
        return f"{self.amount} at {self.level}"

    @property
    def amount(self) -> str:
        margin = self.microjoules * self.uncertainty_percent / 100
        return f"{self.microjoules:.3g} ± {margin:.2g} uJ"

    @property
    def level(self) -> str:
        return f"{self.volts:g} V and {self.clock_hz / 1e6:g} MHz"


def frame_work(board: Board, net: Net, plan: Plan, cycles: int, core_cycles: int) -> Work:
    """The work of a frame in a row of such: `cycles` from one to the next, `core_cycles` in which cores are awake."""
    return Work(
        cycles=cycles,
        pes=plan.pes_used,
        core_cycles=core_cycles,
        products=sum(macs(net, op) for op in net.ops if op.engine != CORE),
        byte_hops=sum(link_bytes(board, net, plan).values()) / plan.frames,
        dram_bytes=dram_bytes(net, plan) / plan.frames,
    )


def predicted_energies(board: Board, net: Net, plan: Plan, interval: int) -> Sequence[FrameEnergy]:
    """The energy of a frame by what the plan says of it, with so many cycles from one frame to the next."""
    awake = sum(_awake(pe.steps) for pe in plan.pes) + BEGIN_CYCLES + END_CYCLES
    return frame_energies(board, frame_work(board, net, plan, interval, awake // plan.frames))


def _awake(steps: Sequence[Step]) -> int:
    """Cycles in which a core is awake: what it computes itself, and to start and end all else."""
    spent, engine = 0, ""
    for step in steps:
        match step:
            case Compute(engine=name, cycles=cycles):
                chained = name != CORE and name == engine
                spent += 0 if chained else CHAIN_CYCLES
                spent += cycles if name == CORE else 0
            case Send():
                spent += SEND_CYCLES
            case Wait():
                spent += DOZE_CYCLES + WAKE_CYCLES
        engine = step.engine if isinstance(step, Compute) else ""
    return spent


def frame_energies(board: Board, work: Work) -> Sequence[FrameEnergy]:
    """The energy at each of the board's voltages. PEs without a part in the plan are off."""
    if board.energy is None:
        return ()
    return tuple(_at(board, level, work) for level in board.energy.level)


def _at(board: Board, level: EnergyLevel, work: Work) -> FrameEnergy:
    energy = board.energy
    assert energy is not None
    seconds = work.cycles / level.clock_hz
    standing = seconds * (board.pe_count * energy.pe_off_uw + work.pes * level.pe_asleep_uw)
    moved = work.byte_hops * energy.pj_per_byte_hop + work.dram_bytes * energy.pj_per_dram_byte
    worked = work.core_cycles * level.pj_per_core_cycle + work.products * level.pj_per_mac + moved
    return FrameEnergy(
        volts=level.volts,
        clock_hz=level.clock_hz,
        milliseconds=round(1e3 * seconds, 6),
        microjoules=round(standing + worked * _PICOJOULES, 6),
        uncertainty_percent=energy.uncertainty_percent,
    )
