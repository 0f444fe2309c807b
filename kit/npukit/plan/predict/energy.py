"""Energy of a frame: estimated from cycles, work and traffic by the power figures of the board file's `[energy]`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from npukit.board.board import Board, Energy, EnergyLevel
from npukit.board.noc import DRAM
from npukit.net.net import CORE, Net
from npukit.net.ops.table import macs
from npukit.plan.ir.plan import Compute, Plan, Send, Step, Wait
from npukit.plan.predict.noc import link_bytes, message_bytes
from npukit.plan.tensors.core_cycles import (
    BEGIN_CYCLES,
    CHAIN_CYCLES,
    DOZE_CYCLES,
    END_CYCLES,
    SEND_CYCLES,
    WAKE_CYCLES,
)


@dataclass(frozen=True)
class FrameWork:
    """Work of a frame on a board: cycles between frames, cycles with a core awake, products, bytes moved.

    `drams`: the number of DRAMs that hold data of the network.
    """

    cycles: int
    pes: int
    core_cycles: int
    products: int
    sram_bytes: float
    """Bytes read and written by messages in PEs' memories."""
    byte_hops: float
    """Bytes over links, times hops."""
    dram_bytes: float
    """Bytes from and to DRAM."""
    drams: int = 0


@dataclass(frozen=True)
class FrameEnergy:
    """The energy of a frame at one supply voltage, by consumer, with the board file's uncertainty.

    `milliseconds`: the shortest interval between frames.
    """

    volts: float
    clock_hz: int
    milliseconds: float
    microjoules: float
    margin: float
    parts: Mapping[str, float]

    def __str__(self) -> str:
        return f"{self.amount} at {self.level}"

    @property
    def amount(self) -> str:
        return f"{self.microjoules:.3g} ± {self.margin:.2g} uJ"

    @property
    def level(self) -> str:
        return f"{self.volts:g} V and {self.clock_hz / 1e6:g} MHz"


def frame_work(board: Board, net: Net, plan: Plan, cycles: int, core_cycles: int) -> FrameWork:
    """The work of a frame in a sequence of equal frames.

    `cycles`: from one frame to the next. `core_cycles`: cycles with a core awake.
    """
    ends = Counter[bool]()
    for message in plan.messages:
        for place in (message.source_pe, *(landing.pe for landing in message.landings)):
            ends[place >= DRAM] += message_bytes(net, message)
    return FrameWork(
        cycles=cycles,
        pes=plan.pes_used,
        core_cycles=core_cycles,
        products=sum(macs(net, op) for op in net.ops if op.engine != CORE),
        sram_bytes=ends[False] / plan.frames,
        byte_hops=link_bytes(board, net, plan).total() / plan.frames,
        dram_bytes=ends[True] / plan.frames,
        drams=len(plan.chips) if plan.dram else 0,
    )


def predicted_energies(
    board: Board, net: Net, plan: Plan, frames_per_second: float | None = None
) -> Sequence[FrameEnergy]:
    """The predicted energy of a frame of the plan, at each voltage that reaches the rate."""
    if board.energy is None:
        return ()
    awake = sum(_awake(pe.steps) for pe in plan.pes) + BEGIN_CYCLES + END_CYCLES
    work = frame_work(board, net, plan, plan.predicted.interval_cycles, awake // plan.frames)
    return frame_energies(board, work, frames_per_second)


def _awake(steps: Sequence[Step]) -> int:
    """Cycles with the core awake: its own computing, and the start and end of every other step."""
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


def frame_energies(board: Board, work: FrameWork, frames_per_second: float | None = None) -> Sequence[FrameEnergy]:
    """The energy at each of the board's voltages that reaches the rate. Without a rate, frames follow without a gap.

    PEs outside the plan are off. The others sleep while there is no work.
    """
    if board.energy is None:
        return ()
    longest = 1 / frames_per_second if frames_per_second else None
    levels = [level for level in board.energy.level if longest is None or work.cycles / level.clock_hz <= longest]
    return tuple(_at(board, board.energy, level, work, longest or work.cycles / level.clock_hz) for level in levels)


def _at(board: Board, energy: Energy, level: EnergyLevel, work: FrameWork, seconds: float) -> FrameEnergy:
    # 1e-6: microjoules per picojoule
    asleep_uw = board.pe_count * energy.pe_off_uw + work.pes * level.pe_asleep_uw
    traffic = {
        "SRAM": work.sram_bytes * energy.pj_per_sram_byte * 1e-6,
        "network": work.byte_hops * energy.pj_per_byte_hop * 1e-6,
        "DRAM": work.dram_bytes * energy.pj_per_dram_byte * 1e-6 + seconds * work.drams * energy.dram_idle_uw,
    }
    parts = {
        "idle": seconds * asleep_uw,
        "cores": work.core_cycles * level.pj_per_core_cycle * 1e-6,
        "accelerators": work.products * level.pj_per_mac * 1e-6,
        **traffic,
    }
    whole, carried = sum(parts.values()), sum(traffic.values())
    margin = (whole - carried) * energy.uncertainty_percent + carried * energy.traffic_uncertainty_percent
    return FrameEnergy(
        volts=level.volts,
        clock_hz=level.clock_hz,
        milliseconds=round(1e3 * work.cycles / level.clock_hz, 6),
        microjoules=round(whole, 6),
        margin=round(margin / 100, 6),
        parts={name: round(part, 6) for name, part in parts.items()},
    )
