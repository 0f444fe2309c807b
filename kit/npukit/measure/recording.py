"""Recording of a timeline: the built-in emulator's records of frames, related to the steps of the plan."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import cycle

import numpy as np

from npukit.emulator.builtin import Emulator
from npukit.emulator.trace_records import RecordKind, TraceRecords
from npukit.errors import NpukitError
from npukit.link.session import Session
from npukit.measure.cases import Cases, rounds
from npukit.measure.validate import run_round, write_inputs
from npukit.net.net import Net
from npukit.plan.ir.plan import Compute, Plan
from npukit.plan.predict.timeline import CORE, COUNTED_FRAME, LinkUse, Movement, Timeline, TimeSlice
from npukit.project.build_folder import Build
from npukit.project.images.calls import FRAME, CallSites, call_sites

_Span = tuple[int, int]
_BEGIN, _END = "net_begin_layer", "net_end_layer"
_RUNTIME = "net_", "noc_"


def record_timeline(build: Build, emulator: Emulator, session: Session, cases: Cases, frames: int) -> Timeline:
    """Run an observed frame, to learn the layer of each piece of work, then `frames` deployed frames. If several chips
    do the same, the timeline is the root chip's."""
    net, plan = build.net(), build.plan()
    sites = {pe: site for image in build.images() for site in [call_sites(image)] for pe in image.pes}
    emulator.trace(True, {pe.pe: sites[pe.pe].marks() for pe in plan.pes})
    chosen = rounds(cases.count, plan.frames_of_all)[0]
    run_round(session, net, cases, chosen, observe=True)
    names = [slot.name for slot in build.board.accelerator if slot.base is not None]
    observed = _Reader(sites, names, _traced(build, plan, emulator))
    write_inputs(session, cases, chosen)
    between = _Reader(sites, names, _traced(build, plan, emulator), observed.under_way())
    session.run(frames=frames)
    emulator.trace(False)
    seen = _Reader(sites, names, _traced(build, plan, emulator), between.under_way())
    return _timeline(build, net, plan, _learn(plan, observed), seen)


def work_spans(build: Build, emulator: Emulator, run: Callable[[], object]) -> dict[tuple[int, int], list[_Span]]:
    """The cycles of accelerators' works in an observed round, which `run` runs, by PE and step of the plan."""
    plan, found = build.plan(), defaultdict[tuple[int, int], list[_Span]](list)
    sites = {pe: site for image in build.images() for site in [call_sites(image)] for pe in image.pes}
    emulator.trace(True, {pe.pe: sites[pe.pe].marks() for pe in plan.pes})
    run()
    emulator.trace(False)
    names = [slot.name for slot in build.board.accelerator if slot.base is not None]
    seen = _Reader(sites, names, _traced(build, plan, emulator))
    for (pe, name), steps in _learn(plan, seen).work.items():
        for step, span in zip(steps, seen.work()[pe, name], strict=True):
            found[pe, step].append(span)
    return found


def _traced(build: Build, plan: Plan, emulator: Emulator) -> TraceRecords:
    seen, count = emulator.traced(), build.board.mesh.pes.count
    return seen.of_pes(plan.home * count, (plan.home + 1) * count) if len(plan.chips) > 1 else seen


@dataclass(frozen=True)
class _Call:
    """A call within a frame, from the branch to the instruction after it."""

    name: str
    start: int
    end: int


@dataclass(frozen=True)
class _Reader:
    """A reader of a recording, with the symbols of the images."""

    sites: Mapping[int, CallSites]
    accelerators: Sequence[str]
    traced: TraceRecords
    begun: Mapping[int, list[_Span]] = field(default_factory=dict)
    """Marks of calls that began in an earlier recording and have not ended: most PEs but the root are in a wait."""

    def under_way(self) -> dict[int, list[_Span]]:
        """The marks to pass as `begun` to the reader of the next recording."""
        return {pe: _open_calls(self.sites[pe], marks) for pe, marks in self._marks.items()}

    @cached_property
    def calls(self) -> dict[int, list[_Call]]:
        """The calls of each PE in the order of time."""
        return {pe: list(_calls(self.sites[pe], marks)) for pe, marks in self._marks.items()}

    @cached_property
    def _marks(self) -> dict[int, list[_Span]]:
        """Each PE's marks in the order of time: an address, and the cycle at which the PE reached it."""
        own = {
            pe: list(zip(marks["a"].tolist(), marks["start"].tolist(), strict=True))
            for pe, marks in _by_pe(self.traced.of(RecordKind.MARK)).items()
        }
        return {pe: [*self.begun.get(pe, ()), *own.get(pe, ())] for pe in {**self.begun, **own}}

    def counted(self, pe: int) -> Iterator[_Span]:
        """The frames of a run, as the root counts them. Each frame begins where the frame before ends."""
        begun, sites = 0, self.sites[pe]
        for address, time in self._marks[pe]:
            if address in sites.count_begins:
                begun = time
            elif address in sites.count_ends:
                yield begun, time
                begun = time

    def work(self) -> dict[tuple[int, str], list[_Span]]:
        """The commands of each PE's accelerators."""
        found: dict[tuple[int, str], list[_Span]] = defaultdict(list)
        for pe, which, start, end in _columns(self.traced.of(RecordKind.WORK), "pe", "a", "start", "end"):
            found[pe, self.accelerators[which]].append((start, end))
        return found


def _columns(records: np.ndarray, *names: str) -> Iterator[tuple[int, ...]]:
    """The records as tuples of Python numbers, which is much faster than single numbers."""
    return zip(*(records[name].tolist() for name in names), strict=True)


def _by_pe(records: np.ndarray) -> dict[int, np.ndarray]:
    """The records of each PE, in their order."""
    by_pe = records[np.argsort(records["pe"], kind="stable")]
    pes, first = np.unique(by_pe["pe"], return_index=True)
    return dict(zip(pes.tolist(), np.split(by_pe, first[1:]), strict=True)) if len(pes) else {}


def _calls(sites: CallSites, marks: Iterable[_Span]) -> Iterator[_Call]:
    """The calls in the marks. Calls do not nest, except that the frame's own call holds all others and ends them."""
    open_calls: list[_Span] = []
    for address, time in marks:
        ended = _ended_at(sites, open_calls, address)
        yield from (_Call(sites.callees[site], start, time) for site, start in reversed(open_calls[ended:]))
        del open_calls[ended:]
        _begin(sites, open_calls, address, time)


def _open_calls(sites: CallSites, marks: Iterable[_Span]) -> list[_Span]:
    """The marks of calls that have begun and not ended."""
    open_calls: list[_Span] = []
    for address, time in marks:
        del open_calls[_ended_at(sites, open_calls, address) :]
        _begin(sites, open_calls, address, time)
    return open_calls


def _begin(sites: CallSites, open_calls: list[_Span], address: int, time: int) -> None:
    """Open the call at this address, if there is one. Another open call has ended unseen, between two recordings."""
    if address not in sites.callees:
        return
    if open_calls and sites.callees[open_calls[-1][0]] != FRAME:
        open_calls.pop()
    open_calls.append((address, time))


def _ended_at(sites: CallSites, open_calls: Sequence[_Span], address: int) -> int:
    """The index of the first open call that ends at this address."""
    return next((n for n, (site, _) in enumerate(open_calls) if sites.after[site] == address), len(open_calls))


@dataclass(frozen=True)
class _Learnt:
    """The plan's steps of each accelerator's commands, and of each function's calls, by PE in the order of a frame."""

    work: Mapping[tuple[int, str], Sequence[int]]
    calls: Mapping[int, Mapping[str, Sequence[int]]]


def _learn(plan: Plan, seen: _Reader) -> _Learnt:
    windows = {pe.pe: _Windows.of(plan, pe.pe, seen.calls.get(pe.pe, [])) for pe in plan.pes}
    work = {
        (pe, name): windows[pe].steps_at([start for start, _ in spans]) for (pe, name), spans in seen.work().items()
    }
    return _Learnt(work, {pe: _kernels(seen.calls.get(pe, []), own) for pe, own in windows.items()})


def _kernels(calls: Iterable[_Call], windows: _Windows) -> dict[str, list[int]]:
    starts: dict[str, list[int]] = defaultdict(list)
    for call in calls:
        if not call.name.startswith(_RUNTIME):  # a kernel, or an accelerator's driver
            starts[call.name].append(call.start)
    return {name: windows.begun_at(times) for name, times in starts.items()}


def _other_work(what: str) -> NpukitError:
    """The error for firmware edited by hand that no longer follows the plan."""
    return NpukitError(f"the firmware does not follow the plan of its build: {what}", tries=["build again"])


@dataclass(frozen=True)
class _Windows:
    """The spans of all compute steps of an observed frame, in order."""

    steps: np.ndarray
    starts: np.ndarray
    ends: np.ndarray

    @classmethod
    def of(cls, plan: Plan, pe: int, calls: Iterable[_Call]) -> _Windows:
        steps = [index for index, step in enumerate(plan.by_pe[pe].steps) if isinstance(step, Compute)]
        spans = np.array(list(_layers(calls)), dtype=np.int64).reshape(-1, 2)
        if len(steps) != len(spans):
            raise _other_work(f"PE {pe} ran {len(spans)} layers of {len(steps)}")
        return cls(np.array(steps, dtype=np.int64), spans[:, 0], spans[:, 1])

    def steps_at(self, times: Sequence[int]) -> list[int]:
        found = np.searchsorted(self.ends, times)
        if (found >= len(self.ends)).any() or (self.starts[found] > times).any():
            raise _other_work("an accelerator works between layers, or behind the last one")
        return self.steps[found].tolist()

    def begun_at(self, times: Sequence[int]) -> list[int]:
        """The steps of calls. Between two layers a PE may still wait for an accelerator's work of the first."""
        return self.steps[np.maximum(np.searchsorted(self.starts, times, side="right") - 1, 0)].tolist()


def _layers(calls: Iterable[_Call]) -> Iterator[_Span]:
    """The layers' spans, from the return of `net_begin_layer` to the call of `net_end_layer`."""
    begun = 0
    for call in calls:
        if call.name == _BEGIN:
            begun = call.end
        elif call.name == _END:
            yield begun, call.start


def _timeline(build: Build, net: Net, plan: Plan, learnt: _Learnt, seen: _Reader) -> Timeline:
    root = plan.pes[0].pe
    frames = list(seen.counted(root))
    zero = frames[0][0]
    slices = [
        *(TimeSlice(root, CORE, COUNTED_FRAME, start - zero, stop - zero) for start, stop in frames),
        *_core_slices(plan, learnt, seen.calls, zero),
        *_accelerator_slices(plan, learnt, seen.work(), zero),
    ]
    sleeps = _by_pe(seen.traced.of(RecordKind.SLEEP))
    return Timeline(
        model=net.name,
        board=build.board.name,
        clock_hz=build.board.core.clock_hz,
        frames=tuple((start - zero, stop - zero) for start, stop in frames),
        slices=tuple(slices),
        sleeps={pe: tuple(_spans(records, zero)) for pe, records in sleeps.items()},
        together=plan.frames,
        movements=tuple(_movements(seen.traced, zero)),
        links=tuple(_links(seen.traced, zero)),
        root=root,
    ).from_zero()


def _core_slices(plan: Plan, learnt: _Learnt, calls: Mapping[int, Sequence[_Call]], zero: int) -> Iterator[TimeSlice]:
    for pe in plan.pes:
        steps = {name: cycle(taken) for name, taken in learnt.calls[pe.pe].items()}
        for call in sorted(calls.get(pe.pe, ()), key=lambda call: call.start):
            step = next(steps[call.name]) if call.name in steps else None
            at = _layer(plan, pe.pe, step)
            yield TimeSlice(pe.pe, CORE, call.name, call.start - zero, call.end - zero, *at)


def _accelerator_slices(
    plan: Plan, learnt: _Learnt, work: Mapping[tuple[int, str], Sequence[_Span]], zero: int
) -> Iterator[TimeSlice]:
    for (pe, name), spans in work.items():
        for (start, end), step in zip(spans, cycle(learnt.work[pe, name])):
            layer, _, frame = _layer(plan, pe, step)
            yield TimeSlice(pe, name, layer, start - zero, end - zero, layer, step, frame)


def _layer(plan: Plan, pe: int, step: int | None) -> tuple[str, int | None, int]:
    """The op of a step, the step, and its frame."""
    if step is None:
        return "", None, 0
    computed = plan.by_pe[pe].steps[step]
    assert isinstance(computed, Compute)
    return computed.op, step, computed.frame


def _spans(records: np.ndarray, zero: int) -> Iterator[_Span]:
    return ((start - zero, end - zero) for start, end in _columns(records, "start", "end"))


def _movements(traced: TraceRecords, zero: int) -> Iterator[Movement]:
    records = traced.of(RecordKind.TRANSFER)
    names = "a", "b", "c", "start", "end", "pe", "queued"
    for source, target, size, start, end, sender, queued in _columns(records, *names):
        yield Movement(source, target, size, start - zero, end - zero, sender, start - queued - zero)


def _links(traced: TraceRecords, zero: int) -> Iterator[LinkUse]:
    records = traced.of(RecordKind.LINK)
    for source, target, lane, size, start, end in _columns(records, "pe", "a", "b", "c", "start", "end"):
        yield LinkUse(source, target, lane, size, start - zero, end - zero)
