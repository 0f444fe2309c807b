"""The timeline of frames: which PE did what when, to the cycle, on the built-in emulator."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import cycle

import numpy as np

from npukit.emulator.builtin import Emulator
from npukit.emulator.happenings import Happenings, Kind
from npukit.link.session import Session
from npukit.measure.calls import FRAME, CallSites, call_sites
from npukit.measure.cases import Cases, rounds
from npukit.measure.validate import run_round, write_inputs
from npukit.net.net import Net
from npukit.plan.plan import Compute, Plan
from npukit.project.build_folder import Build

CORE = "core"
_Spans = Sequence[tuple[int, int]]
_BEGIN, _END = "net_begin_layer", "net_end_layer"
_RUNTIME = "net_", "noc_"


@dataclass(frozen=True)
class Slice:
    """A stretch of a PE's time: of its core (`CORE`), or of an accelerator by its name.

    `step` is the step of the PE's plan it belongs to; `layer` the op that step computes, empty for all else, and
    `frame` the frame of a round that it computes it for.
    """

    pe: int
    track: str
    name: str
    start: int
    end: int
    layer: str = ""
    step: int | None = None
    frame: int = 0

    @property
    def cycles(self) -> int:
        return self.end - self.start


@dataclass(frozen=True)
class Movement:
    """Bytes on their way from one place to another; a place at or above `DRAM` is a chip's DRAM."""

    source: int
    target: int
    bytes: int
    start: int
    end: int


@dataclass(frozen=True)
class LinkUse:
    """Cycles in which a link between neighbours is taken. Two chips may have several `lane`s between them."""

    source: int
    target: int
    lane: int
    bytes: int
    start: int
    end: int


@dataclass(frozen=True)
class Timeline:
    """What a run of frames was made of, or of rounds where the plan takes `together` frames at once.

    Cycle 0 is where the first one starts on the root PE.
    """

    model: str
    board: str
    clock_hz: int
    frames: tuple[tuple[int, int], ...]
    """Of the root PE: start and end of each."""
    slices: tuple[Slice, ...]
    together: int = 1
    sleeps: Mapping[int, tuple[tuple[int, int], ...]] = field(default_factory=dict)
    """By PE, when its core slept."""
    movements: tuple[Movement, ...] = ()
    links: tuple[LinkUse, ...] = ()
    overwritten: int = 0
    """Events that a device had overwritten before they were read: what they tell of is missing."""

    @property
    def end(self) -> int:
        return self.frames[-1][1]

    def layer_cycles(self) -> dict[str, int]:
        """By layer: the cycles of the PE that spends most on it in a frame, on its core or on an accelerator.

        Of a round's frames the first one stands for all.
        """
        spans: dict[tuple[str, int], list[tuple[int, int]]] = defaultdict(list)
        for piece in self.slices:
            if piece.layer and piece.frame == 0:
                spans[piece.layer, piece.pe].append((piece.start, piece.end))
        spent: Counter[str] = Counter()
        for (layer, _), own in spans.items():
            spent[layer] = max(spent[layer], _covered(own))
        return {layer: cycles // len(self.frames) for layer, cycles in spent.items()}

    @property
    def pes(self) -> tuple[int, ...]:
        return tuple(sorted({piece.pe for piece in self.slices}))


def record_timeline(build: Build, emulator: Emulator, session: Session, cases: Cases, frames: int) -> Timeline:
    """Run an observed frame, to learn which work belongs to which layer, then `frames` frames as they always run.

    Where chips do the same it is about the root's.
    """
    net, plan = build.net(), build.plan()
    sites = {pe: site for image, site in _sites(build) for pe in image}
    marks = [(pe.pe, address) for pe in plan.pes for address in sites[pe.pe].marks()]
    emulator.trace(True, marks)
    chosen = rounds(cases.count, plan.frames_of_all)[0]
    run_round(session, net, cases, chosen, observe=True)
    names = [slot.name for slot in build.board.accelerator if slot.base is not None]
    learnt = _learn(plan, _Reader(sites, names, _traced(build, plan, emulator)))
    write_inputs(session, cases, chosen)
    emulator.traced()
    session.run(frames=frames)
    emulator.trace(False)
    return _timeline(build, net, plan, learnt, _Reader(sites, names, _traced(build, plan, emulator)))


def _traced(build: Build, plan: Plan, emulator: Emulator) -> Happenings:
    seen, count = emulator.traced(), build.board.mesh.pes.count
    return seen.of_pes(plan.home * count, (plan.home + 1) * count) if len(plan.chips) > 1 else seen


def _sites(build: Build) -> Iterator[tuple[tuple[int, ...], CallSites]]:
    return ((image.pes, call_sites(image)) for image in build.images())


@dataclass(frozen=True)
class _Call:
    """A call of a frame's, from its branch to the instruction after it."""

    name: str
    start: int
    end: int


@dataclass(frozen=True)
class _Reader:
    """What happened, in the words of the images that ran."""

    sites: Mapping[int, CallSites]
    accelerators: Sequence[str]
    happenings: Happenings

    def calls(self) -> dict[int, list[_Call]]:
        """By PE, in the order of time."""
        return {pe: list(_calls(self.sites[pe], marks)) for pe, marks in _by_pe(self.happenings.of(Kind.MARK)).items()}

    def work(self) -> dict[tuple[int, str], list[tuple[int, int]]]:
        """By PE and accelerator: its commands."""
        found: dict[tuple[int, str], list[tuple[int, int]]] = defaultdict(list)
        for record in self.happenings.of(Kind.WORK):
            key = int(record["pe"]), self.accelerators[int(record["a"])]
            found[key].append((int(record["start"]), int(record["end"])))
        return found


def _by_pe(records: np.ndarray) -> dict[int, np.ndarray]:
    return {int(pe): records[records["pe"] == pe] for pe in np.unique(records["pe"])}


def _calls(sites: CallSites, marks: np.ndarray) -> Iterator[_Call]:
    """Calls do not nest, but for the frame's own, which holds all the others; with it ends one in its place."""
    open_calls: list[tuple[str, int, int]] = []
    for mark in marks:
        address, time = int(mark["a"]), int(mark["start"])
        ended = next((n for n, (_, _, after) in enumerate(open_calls) if after == address), len(open_calls))
        yield from (_Call(name, start, time) for name, start, _ in reversed(open_calls[ended:]))
        del open_calls[ended:]
        if address in sites.callees:
            open_calls.append((sites.callees[address], time, sites.after[address]))


def _covered(spans: Iterable[tuple[int, int]]) -> int:
    """Cycles in at least one of them."""
    covered, end = 0, 0
    for start, stop in sorted(spans):
        covered += max(stop - max(start, end), 0)
        end = max(end, stop)
    return covered


@dataclass(frozen=True)
class _Learnt:
    """By PE, in the order of a frame: the steps that an accelerator's commands, and a function's calls, belong to."""

    work: Mapping[tuple[int, str], Sequence[int]]
    calls: Mapping[tuple[int, str], Sequence[int]]


def _learn(plan: Plan, seen: _Reader) -> _Learnt:
    work: dict[tuple[int, str], list[int]] = {}
    kernels: dict[tuple[int, str], list[int]] = defaultdict(list)
    calls, commands = seen.calls(), _by_owner(seen.work())
    for pe in plan.pes:
        steps = [index for index, step in enumerate(pe.steps) if isinstance(step, Compute)]
        own = calls.get(pe.pe, [])
        windows = dict(zip(steps, _windows(own), strict=True))
        for name, spans in commands.get(pe.pe, {}).items():
            work[pe.pe, name] = [_step_at(windows, start) for start, _ in spans]
        for call in filter(_is_kernel, own):
            kernels[pe.pe, call.name].append(_step_at(windows, call.start))
    return _Learnt(work, kernels)


def _by_owner(work: Mapping[tuple[int, str], _Spans]) -> Mapping[int, Mapping[str, _Spans]]:
    found: dict[int, dict[str, _Spans]] = defaultdict(dict)
    for (owner, name), spans in work.items():
        found[owner][name] = spans
    return found


def _is_kernel(call: _Call) -> bool:
    """Not the runtime's; an accelerator's driver still is one."""
    return not call.name.startswith(_RUNTIME)


def _windows(calls: Iterable[_Call]) -> Iterator[tuple[int, int]]:
    """From the end of each begin to the start of its end."""
    begun = 0
    for call in calls:
        if call.name == _BEGIN:
            begun = call.end
        elif call.name == _END:
            yield begun, call.start


def _step_at(windows: Mapping[int, tuple[int, int]], time: int) -> int:
    return next(step for step, (start, end) in windows.items() if start <= time <= end)


def _timeline(build: Build, net: Net, plan: Plan, learnt: _Learnt, seen: _Reader) -> Timeline:
    calls, root = seen.calls(), plan.pes[0].pe
    frames = [(call.start, call.end) for call in calls[root] if call.name == FRAME]
    zero = frames[0][0]
    slices = [*_core_slices(plan, learnt, calls), *_accelerator_slices(plan, learnt, seen.work())]
    return Timeline(
        model=net.name,
        board=build.board.name,
        clock_hz=build.board.core.clock_hz,
        frames=tuple((start - zero, end - zero) for start, end in frames),
        slices=tuple(
            replace(s, start=s.start - zero, end=s.end - zero)
            for s in slices
            if s.end > zero and s.start < frames[-1][1]
        ),
        sleeps={pe: tuple(_spans(records, zero)) for pe, records in _by_pe(seen.happenings.of(Kind.SLEEP)).items()},
        together=plan.frames,
        movements=tuple(_movements(seen.happenings, zero)),
        links=tuple(_links(seen.happenings, zero)),
    )


def _core_slices(plan: Plan, learnt: _Learnt, calls: Mapping[int, Sequence[_Call]]) -> Iterator[Slice]:
    for pe in plan.pes:
        steps = {name: cycle(taken) for (owner, name), taken in learnt.calls.items() if owner == pe.pe}
        for call in sorted(calls.get(pe.pe, ()), key=lambda call: call.start):
            step = next(steps[call.name]) if call.name in steps else None
            yield Slice(pe.pe, CORE, call.name, call.start, call.end, *_layer(plan, pe.pe, step))


def _accelerator_slices(
    plan: Plan, learnt: _Learnt, work: Mapping[tuple[int, str], Sequence[tuple[int, int]]]
) -> Iterator[Slice]:
    for (pe, name), spans in work.items():
        for (start, end), step in zip(spans, cycle(learnt.work[pe, name])):
            layer, _, frame = _layer(plan, pe, step)
            yield Slice(pe, name, layer, start, end, layer, step, frame)


def _layer(plan: Plan, pe: int, step: int | None) -> tuple[str, int | None, int]:
    """The op of a step, the step, and the frame it works on."""
    if step is None:
        return "", None, 0
    computed = plan.by_pe[pe].steps[step]
    assert isinstance(computed, Compute)
    return computed.op, step, computed.frame


def _spans(records: np.ndarray, zero: int) -> Iterator[tuple[int, int]]:
    return ((int(r["start"]) - zero, int(r["end"]) - zero) for r in records if int(r["end"]) > zero)


def _movements(happenings: Happenings, zero: int) -> Iterator[Movement]:
    for r in happenings.of(Kind.TRANSFER):
        yield Movement(int(r["a"]), int(r["b"]), int(r["c"]), int(r["start"]) - zero, int(r["end"]) - zero)


def _links(happenings: Happenings, zero: int) -> Iterator[LinkUse]:
    for r in happenings.of(Kind.LINK):
        yield LinkUse(int(r["pe"]), int(r["a"]), int(r["b"]), int(r["c"]), int(r["start"]) - zero, int(r["end"]) - zero)
