"""Bench: the cost of a frame, measured on the target."""

from __future__ import annotations

from collections import Counter as Tally
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from itertools import chain, islice
from typing import Any

import numpy as np

from npukit.board.board import Board
from npukit.display import counted, table
from npukit.errors import Differs, NpukitError
from npukit.link.messages import Counters, Malformed, PeState, RunResult
from npukit.link.session import Session
from npukit.measure import validate
from npukit.measure.cases import Cases, filled, reference_of, sequences
from npukit.measure.messages import sends, waits
from npukit.measure.target import Target
from npukit.measure.tiles import RecordedTile, recorded_tiles
from npukit.net.net import Net, Op
from npukit.net.ops.table import total_macs
from npukit.net.reference import evaluate
from npukit.plan.ir.plan import Plan
from npukit.plan.multi_chip import twins
from npukit.plan.predict import frame_table
from npukit.plan.predict.energy import FrameEnergy, frame_energies, frame_work
from npukit.plan.predict.frame_table import MESSAGES, FrameTable
from npukit.plan.predict.noc import port_cycles
from npukit.plan.predict.timeline import CORE, Timeline
from npukit.progress import Progress

IN_A_ROW = "deployed, the last in a row,"
_WAYS = ("npukit validate BUILD names the layer",)


@dataclass(frozen=True)
class LayerCost:
    """The cost of a layer: cycles of the slowest PE, instructions of all PEs. `predicted_cycles`: from the plan.

    The built-in emulator measures the cycles within a frame. Elsewhere a frame runs layer by layer for the measurement.
    The emulator also measures the core's cycles in waits for messages before the layer (`wait`) and in sends of its
    results (`send`), each on the PE with the most.
    """

    name: str
    engine: str
    cycles: int | None
    npu_cycles: int
    instructions: int | None
    predicted_cycles: int
    wait: int | None = None
    send: int | None = None
    title: str = ""
    """The layer's name in the user's model."""


@dataclass(frozen=True)
class PeCost:
    """The cycles of one PE in a frame: core awake (`busy`), accelerators running (`npu_busy`), neither (`wait`).
    `send`: cycles in which the SRAM port reads or writes messages, by the plan. Overlaps the others."""

    pe: int
    busy: int
    npu_busy: int
    wait: int
    send: int
    instructions: int | None


@dataclass(frozen=True)
class Bench:
    """The cost of one frame: `instructions` of all cores without boot and link; latency; interval in steady state.

    If rounds take several frames, latency is the whole round's, and the layers are the first frame's. Cycles are None
    if unknown: QEMU counts instructions only. Instructions are None if not counted, as on stock boards.
    """

    engine: str
    instructions: int | None
    latency_cycles: int | None
    interval_cycles: int | None
    predicted_latency_cycles: int
    macs: int
    macs_per_cycle: float | None
    clock_hz: int
    layers: tuple[LayerCost, ...]
    pes: tuple[PeCost, ...]
    utilisation: float | None = None
    """The share of all PEs' time in which a core or an accelerator works."""
    energy: tuple[FrameEnergy, ...] = ()
    """Estimates for each supply voltage, from the power figures in the board file's `[energy]`, if there are any."""
    timeline: Timeline | None = None
    frame: FrameTable | None = None
    """The rows of the frame in the timeline."""
    manual: Bench | None = None
    """The same frames with the C models, by the hardware manual's cycles. None except for a measurement in RTL."""

    rtl_parts: tuple[str, ...] = ()
    """The parts of the board in RTL."""

    def to_json(self) -> dict[str, Any]:
        rows = frame_table.to_json(self.frame) if self.frame else []
        told = {**asdict(replace(self, timeline=None, frame=None, manual=None)), "frame": rows}
        told["manual"] = self.manual.to_json() if self.manual else None
        return told

    def _repr_html_(self) -> str:
        rows = [(each.name, each.engine, each.cycles, each.predicted_cycles, each.instructions) for each in self.layers]
        title = f"{self.engine}: {self.latency_cycles or 0:,} cycles, {counted(self.instructions)} a frame"
        return table(title, ("layer", "engine", "cycles", "predicted", "instructions"), rows)

    @classmethod
    def from_json(cls, found: dict[str, Any]) -> Bench:
        """The measurement from the JSON of `to_json`."""
        layers = tuple(LayerCost(**layer) for layer in found["layers"])
        pes = tuple(PeCost(**pe) for pe in found["pes"])
        energy = tuple(FrameEnergy(**each) for each in found["energy"])
        frame = frame_table.from_json(found["frame"]) if found["frame"] else None
        manual = cls.from_json(found["manual"]) if found.get("manual") else None
        parts = {"layers": layers, "pes": pes, "energy": energy, "frame": frame, "manual": manual}
        parts["rtl_parts"] = tuple(found.get("rtl_parts", ()))
        return cls(**{**found, **parts})


def bench(
    target: Target,
    net: Net,
    plan: Plan,
    cases: Cases,
    clock_hz: int,
    frames: int,
    progress: Progress,
    timeline: Timeline | None = None,
    frames_per_second: float | None = None,
) -> Bench:
    """Run `frames` frames one by one and report the slowest, then as many in a row, then one layer by layer.

    If the plan takes several frames together, rounds replace frames, as many rounds as hold `frames`. `timeline`: the
    recorded frame that gives the layers' cycles. `frames_per_second`: the rate for the energy of a frame; without a
    rate, frames follow each other without a pause.

    Wrong outputs are an error, because figures of a wrong frame are worthless. The comparison follows each timed run,
    outside the timing. The first, unmeasured frame takes other cases: no measured frame may find its own results in
    memory. With states, the frames are those of the first sequence.
    """
    together, work = plan.frames_of_all, total_macs(net)
    measured = _measured(target, net, plan, cases, -(-frames // together), progress)
    slowest = measured.slowest
    cycles = slowest.result.cycles if target.counts_cycles else None
    instructions = sum(pe.instructions for pe in slowest.pes.values()) // together
    pes = _pes(target.board, net, plan, measured, timeline) if target.counts_cycles else ()
    found = Bench(
        engine=target.name,
        instructions=instructions,
        latency_cycles=cycles,
        interval_cycles=measured.interval if target.counts_cycles else None,
        predicted_latency_cycles=plan.predicted.latency_cycles,
        macs=work,
        macs_per_cycle=round(work * together / cycles, 3) if cycles else None,
        clock_hz=clock_hz,
        layers=tuple(_layers(target, net, measured.tiles, timeline)),
        pes=pes,
        utilisation=round(1 - sum(pe.wait for pe in pes) / (len(pes) * cycles), 3) if pes and cycles else None,
        energy=_energy(target.board, net, plan, measured, frames_per_second) if target.counts_cycles else (),
        timeline=timeline,
        frame=_frame(timeline, cycles or 0) if timeline else None,
        rtl_parts=target.in_rtl.parts if target.in_rtl else (),
    )
    return found if target.counts_instructions else _without_instructions(found)


def _frame(timeline: Timeline, cycles: int) -> FrameTable:
    """The rows of the recorded frame. It meets other refreshes of a DRAM than the measured frame of `cycles`: messages
    are charged with the difference."""
    table = frame_table.frame_table(timeline)
    return {**table, MESSAGES: table[MESSAGES] + cycles - sum(table.values())}


def _without_instructions(found: Bench) -> Bench:
    layers = tuple(replace(each, instructions=None) for each in found.layers)
    pes = tuple(replace(pe, instructions=None) for pe in found.pes)
    return replace(found, instructions=None, layers=layers, pes=pes)


@dataclass(frozen=True)
class _Run:
    """One frame, with the counters of each PE."""

    result: RunResult
    pes: Mapping[int, Counters]


@dataclass(frozen=True)
class _Measured:
    """The slowest frame, the cycles between frames, and the tiles of an observed frame."""

    slowest: _Run
    interval: int
    tiles: Sequence[RecordedTile]


def _measured(target: Target, net: Net, plan: Plan, cases: Cases, rounds: int, progress: Progress) -> _Measured:
    together, session = plan.frames_of_all, target.session
    cases = filled(net, cases, together, least=2)
    sequence, *_ = sequences(cases, together)
    first, *rest = chosen = sequence[0]
    others = (*rest, first) if rest else ((first + cases.length) % cases.count,)
    check = partial(_check, target, net, cases, _reference(net, cases, {*others, *chain(*sequence[:rounds])}))
    check(others, validate.run_round(session, net, cases, others, observe=False), validate.DEPLOYED)
    runs = list[_Run]()
    for number in progress.track(range(rounds), f"bench on {target.name}"):
        measured = sequence[number % len(sequence)]
        runs.append(_measured_run(session, cases, measured))
        check(measured, validate.read_outputs(session, net, together), validate.DEPLOYED)
    slowest = max(runs, key=lambda run: run.result.cycles)
    interval = _interval(session, cases, chosen, slowest.result.cycles, rounds)
    if target.counts_cycles and min(slowest.result.cycles, interval) < 1:
        told = f"{slowest.result.cycles} cycles for a frame, {interval} between frames"
        raise NpukitError(
            f"bench on {target.name}: the device says {told}", tries=["reset the device, and bench again"]
        )
    if inputs_stay(net, plan):
        check(chosen, validate.read_outputs(session, net, together), IN_A_ROW)
    else:
        _check_in_a_row(target, net, cases, chosen, rounds)
    check(chosen, validate.run_round(session, net, cases, chosen, observe=True), validate.OBSERVED)
    return _Measured(slowest, interval, recorded_tiles(session, net, target.board, plan))


def _reference(net: Net, cases: Cases, used: Iterable[int]) -> dict[int, dict[str, np.ndarray]]:
    """The reference's outputs of the cases in `used` without an expectation for every output."""
    known = min((len(cases.expected.get(index, ())) for index in range(len(net.outputs))), default=0)
    unknown = sorted({case for case in used if case >= known})
    if cases.sequence:
        values = dict(enumerate(islice(reference_of(net, cases), max(unknown, default=-1) + 1)))
    else:
        values = {case: evaluate(net, [array[case] for array in cases.inputs]) for case in unknown}
    return {case: {name: values[case][name] for name in net.outputs} for case in unknown}


def _check(
    target: Target,
    net: Net,
    cases: Cases,
    reference: Mapping[int, Mapping[str, np.ndarray]],
    chosen: Sequence[int],
    outputs: Sequence[Sequence[np.ndarray]],
    path: str,
) -> None:
    """Raise Differs if an output differs from the reference, or from the case's expectation."""
    for mismatch in validate.differing_outputs(net, cases, chosen, outputs, path, reference):
        raise Differs(f"bench on {target.name}: {mismatch}", tries=_WAYS)


def _energy(
    board: Board, net: Net, plan: Plan, measured: _Measured, frames_per_second: float | None
) -> tuple[FrameEnergy, ...]:
    awake = sum(pe.cycles - pe.asleep for pe in measured.slowest.pes.values()) // plan.frames_of_all
    work = frame_work(board, net, plan, measured.interval, awake)
    return tuple(frame_energies(board, work, frames_per_second))


def _measured_run(session: Session, cases: Cases, chosen: Sequence[int]) -> _Run:
    """Run a round. The root's figures come from the run's result, because its counters include work for the link."""
    validate.write_inputs(session, cases, chosen)
    before = session.pes()
    result = session.run()
    spent = {old.pe: _difference(old, new) for old, new in zip(before, session.pes(), strict=True)}
    return _Run(result, {**spent, before[0].pe: result})


def _difference(before: PeState, after: PeState) -> Counters:
    if after.frames != before.frames + 1:
        raise NpukitError(f"PE {after.pe} has run {after.frames - before.frames} frames where one was asked for")
    try:
        return after.since(before)
    except Malformed as error:
        raise NpukitError(f"PE {after.pe} was read before a frame and behind it: {error}") from error


def _interval(session: Session, cases: Cases, chosen: Sequence[int], latency: int, rounds: int) -> int:
    """Cycles between frames in steady state: the additional cycles of `rounds` rounds after a first one."""
    validate.write_inputs(session, cases, chosen)
    return round((session.run(frames=1 + rounds).cycles - latency) / (rounds * len(chosen)))


def inputs_stay(net: Net, plan: Plan) -> bool:
    """True if a frame leaves its inputs unchanged, so that the next computes the same: no states, no shared bytes."""
    inputs, buffers = set(net.inputs), plan.dram or plan.pes[0].buffers
    kept = [each for each in buffers if each.tensor in inputs]
    shared = (
        a is not b and a.offset < b.offset + b.bytes and b.offset < a.offset + a.bytes for a in kept for b in buffers
    )
    return bool(kept) and not net.states and not any(shared)


def _check_in_a_row(target: Target, net: Net, cases: Cases, chosen: Sequence[int], rounds: int) -> None:
    """Raise Differs if frames in a row end with other outputs than the same frames run singly. The reference covers
    the first frame alone: later frames start from the inputs as the frame before left them."""
    session, frames = target.session, len(chosen)
    in_a_row = validate.read_outputs(session, net, frames)
    validate.write_inputs(session, cases, chosen)
    for _ in range(1 + rounds):
        session.run()
    for got, want in zip(in_a_row, validate.read_outputs(session, net, frames), strict=True):
        if not validate.same_outputs(got, want):
            raise Differs(f"bench on {target.name}: frames in a row give other outputs than one by one", tries=_WAYS)


def _pes(board: Board, net: Net, plan: Plan, measured: _Measured, timeline: Timeline | None) -> tuple[PeCost, ...]:
    """The cost of each PE in the slowest frame."""
    run, npu_busy, found = measured.slowest, _npu_busy(measured.tiles, timeline), []
    of_one = port_cycles(board.noc, net, plan) if board.noc else {}
    ports = {pe: of_one.get(like, 0) for pe, like in twins(board, plan)}
    for pe, spent in run.pes.items():
        busy, working = spent.cycles - spent.asleep, npu_busy.get(pe, 0)
        wait = max(run.result.cycles - busy - working, 0)
        found.append(PeCost(pe, busy, working, wait, ports.get(pe, 0), spent.instructions))
    return tuple(found)


def _npu_busy(tiles: Sequence[RecordedTile], timeline: Timeline | None) -> Mapping[int, int]:
    """The cycles of each PE's accelerators in a frame. Without a timeline, the sum of each command's cycles alone: in a
    frame messages sometimes delay an accelerator's memory accesses."""
    busy = Tally[int]()
    if timeline is None:
        for tile in tiles:
            busy[tile.pe] += tile.npu_cycles
    else:
        for piece in timeline.slices:
            busy[piece.pe] += piece.cycles if piece.track != CORE else 0
    return busy


def _layers(
    target: Target, net: Net, recorded: Sequence[RecordedTile], timeline: Timeline | None
) -> Iterator[LayerCost]:
    """The cost of each layer in the first frame, and of the messages around it."""
    tiles = defaultdict[str, list[RecordedTile]](list)
    for tile in recorded:
        if tile.frame == 0:
            tiles[tile.step.op].append(tile)
    spent = timeline.layer_cycles() if timeline else None
    waited, sent = (waits(timeline), sends(timeline)) if timeline else ({}, {})
    for op in (op for op in net.ops if op.name in tiles):
        found = replace(_layer(target, op, tiles[op.name], spent), title=net.tensor(op.output).title)
        if timeline:
            found = replace(found, wait=waited.get(op.name, 0), send=sent.get(op.name, 0))
        yield found


def _layer(target: Target, op: Op, tiles: Sequence[RecordedTile], spent: Mapping[str, int] | None) -> LayerCost:
    """The cost of a layer. `spent`: the cycles of each layer within a frame, if known."""
    by_pe: dict[int, list[RecordedTile]] = {}
    for tile in tiles:
        by_pe.setdefault(tile.pe, []).append(tile)
    slowest = max(by_pe.values(), key=lambda own: sum(tile.record.cycles for tile in own))
    alone = sum(tile.record.cycles for tile in slowest) if target.counts_cycles else None
    return LayerCost(
        name=op.name,
        engine=op.engine,
        cycles=alone if spent is None else spent.get(op.name, 0),
        npu_cycles=sum(tile.npu_cycles for tile in slowest),
        instructions=sum(tile.record.instructions for own in by_pe.values() for tile in own),
        predicted_cycles=max(sum(tile.step.predicted_cycles for tile in own) for own in by_pe.values()),
    )
