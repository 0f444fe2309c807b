"""The timeline of frames from the firmware's own events, read over the link: on any board and any emulator."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate, pairwise

from npukit.errors import NpukitError
from npukit.link.messages import FRAME_END, Event
from npukit.link.session import Session
from npukit.measure.cases import Cases, rounds
from npukit.measure.validate import write_inputs
from npukit.plan.ir.plan import Compute, Join, PePlan, Restore, Send, Step, Wait
from npukit.plan.predict.timeline import CORE, RESTORE, SEND, WAIT, Timeline, TimeSlice
from npukit.project.build_folder import Build
from npukit.project.images.calls import FRAME

_NO_MORE = 0xFFFF_FFFF


def record_on_device(build: Build, session: Session, cases: Cases, frames: int) -> Timeline:
    """Run frames of the first case, and read the events of every PE of the network."""
    plan, spans = build.plan(), build.spans()
    write_inputs(session, cases, rounds(cases.count, plan.frames)[0])
    before = {pe.pe: session.events(pe.pe, _NO_MORE).written for pe in plan.pes}
    session.run(frames=frames)
    session.settle()
    noted = [_noted(session, pe, before[pe.pe], spans[pe.pe]) for pe in plan.pes]
    return _timeline(build, noted)


@dataclass(frozen=True)
class _Noted:
    """One PE's events of a run."""

    plan: PePlan
    spans: Sequence[int]
    events: Sequence[Event]
    overwritten: int

    def frames(self) -> Iterator[tuple[int, int]]:
        """The start of the first step, and the end, of each complete frame."""
        begun = None
        for event in self.events:
            if event.step == 0:
                begun = event.cycle
            elif event.step == FRAME_END and begun is not None:
                yield begun, event.cycle

    def whole_frames(self) -> Iterator[TimeSlice]:
        return (TimeSlice(self.plan.pe, CORE, FRAME, start, end) for start, end in self.frames())

    def slices(self) -> Iterator[TimeSlice]:
        """Each step until the start of the next. A step without a recorded end is left out. A row of the program
        without a step of the plan counts as part of the step before."""
        starts = [0, *accumulate(self.spans)]
        begun = (event for event in self.events if event.step == FRAME_END or self.spans[event.step])
        for event, following in pairwise(begun):
            if event.step != FRAME_END:
                first = starts[event.step]
                steps = self.plan.steps[first : first + self.spans[event.step]]
                yield _slice(self.plan.pe, first, steps, event.cycle, following.cycle)


def _noted(session: Session, pe: PePlan, first: int, spans: Sequence[int]) -> _Noted:
    """A PE's events, with the last event before the run: PEs other than the root have been waiting since."""
    wanted = max(first - 1, 0)
    told = session.events(pe.pe, wanted)
    unknown = {event.step for event in told.events} - {*range(len(spans)), FRAME_END}
    if unknown:
        raise NpukitError(f"PE {pe.pe} tells of step {min(unknown)} of a frame of {len(spans)} steps")
    return _Noted(pe, spans, told.events, told.first - wanted)


def _timeline(build: Build, noted: Sequence[_Noted]) -> Timeline:
    frames = list(noted[0].frames())
    if not frames:
        raise NpukitError("not one whole frame is left in the events of the root PE", tries=["--frames 1"])
    zero = frames[0][0]
    return Timeline(
        model=build.net().name,
        board=build.board.name,
        clock_hz=build.board.core.clock_hz,
        frames=tuple((start - zero, stop - zero) for start, stop in frames),
        slices=tuple(
            replace(piece, start=piece.start - zero, end=piece.end - zero)
            for each in noted
            for piece in (*each.whole_frames(), *each.slices())
        ),
        root=noted[0].plan.pe,
        overwritten=sum(each.overwritten for each in noted),
    ).from_zero()


def _slice(pe: int, first: int, steps: Sequence[Step], start: int, end: int) -> TimeSlice:
    layers = list(dict.fromkeys(step.op for step in steps if isinstance(step, Compute)))
    only = layers[0] if len(layers) == 1 else ""
    return TimeSlice(pe, CORE, " + ".join(layers) or _title(steps[0]), start, end, only, first if layers else None)


def _title(step: Step) -> str:
    """The name, in the emulator's timeline, of a step other than a layer."""
    match step:
        case Send():
            return SEND
        case Wait():
            return WAIT
        case Join():
            return f"{step.engine}_wait"
        case Restore():
            return RESTORE
        case Compute():
            return step.op
