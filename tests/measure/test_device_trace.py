"""The firmware's record of its steps equals the emulator's record of the same run, to the cycle."""

from __future__ import annotations

import json
from collections.abc import Mapping
from itertools import pairwise
from pathlib import Path

import pytest

from end_to_end.builds import shared_build
from helpers import CHECKOUT, need
from npukit import api
from npukit.emulator.builtin import Emulator
from npukit.emulator.trace_records import RecordKind
from npukit.errors import NpukitError
from npukit.link.session import Session
from npukit.measure.cases import Cases, load_cases
from npukit.measure.device_trace import record_on_device
from npukit.measure.trace import timeline_of
from npukit.measure.validate import write_inputs
from npukit.plan.ir.plan import Compute
from npukit.plan.predict.timeline import CORE, COUNTED_FRAME, Timeline, TimeSlice
from npukit.project.build_folder import GOLDEN, Build
from npukit.project.images.calls import FRAME, call_sites

FRAMES = 2
COST = 60
"""Upper bound on the cost of an event in cycles: 39 in net_event(), compiled by gcc."""
DIGITS = CHECKOUT / "examples/digits/digits_int8.tflite"


def cases_of(build: Build) -> Cases:
    return load_cases(build.folder / GOLDEN, build.net(), None)


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Build:
    folder = tmp_path_factory.mktemp("digits") / "out"
    return shared_build(DIGITS, folder, pes=4, toolchain="zig", trace=True)


def settled(session: Session, frames: int) -> None:
    """Wait until every PE has finished `frames` frames."""
    while min(pe.frames for pe in session.pes()) < frames:
        pass


@pytest.mark.exhaustive
def test_each_event_is_as_far_from_its_call_as_any_other(built: Build) -> None:
    sites = {pe: call_sites(image) for image in built.images() for pe in image.pes}
    notes = {pe: [at for at, name in each.callees.items() if name == "net_event"] for pe, each in sites.items()}
    with Emulator(built.board, built.images()) as emulator, Session(emulator, built.build_id) as session:
        write_inputs(session, cases_of(built), [0])
        before = {pe: session.events(pe, 0).written for pe in notes}
        emulator.trace(True, notes)
        session.run(frames=FRAMES)
        settled(session, FRAMES)
        marks = emulator.traced().of(RecordKind.MARK)
        events = {pe: session.events(pe, before[pe]).events for pe in notes}
    for pe, noted in events.items():
        calls = marks[marks["pe"] == pe]["start"]
        assert len(noted) == len(calls) > FRAMES
        assert len({event.cycle - int(call) for event, call in zip(noted, calls, strict=True)}) == 1


@pytest.mark.exhaustive
def test_every_step_of_every_frame_is_there_in_order(built: Build) -> None:
    with Emulator(built.board, built.images()) as emulator, Session(emulator, built.build_id) as session:
        timeline = record_on_device(built, session, cases_of(built), FRAMES)
    assert len(timeline.frames) == FRAMES
    assert timeline.overwritten == 0
    for pe in built.plan().pes:
        computed = [piece.step for piece in timeline.slices if piece.pe == pe.pe and piece.step is not None]
        wanted = [index for index, step in enumerate(pe.steps) if isinstance(step, Compute)]
        assert set(computed) <= set(wanted)
        assert len(computed) % FRAMES == 0
        steps = sorted((p.start, p.end) for p in timeline.slices if p.pe == pe.pe and p.name != FRAME)
        assert all(a[1] <= b[0] for a, b in pairwise(steps))


@pytest.mark.exhaustive
def test_the_emulators_own_trace_of_the_build_has_the_same_steps(built: Build) -> None:
    """Apart from the cost of the events, both records give the same length of each wait, message and layer."""
    cases, moves = cases_of(built), ("noc_wait", "noc_send")
    with Emulator(built.board, built.images()) as emulator, Session(emulator, built.build_id) as session:
        device = record_on_device(built, session, cases, FRAMES)
    emulated = timeline_of(built, cases, FRAMES)
    assert abs(_cycles_of_all(emulated) - _cycles_of_all(device)) < COST
    for pe in emulated.pes:
        noted, seen = (
            [(s.name in moves, s.cycles) for s in sorted(each.slices, key=lambda s: s.start) if _is_step(s, pe)]
            for each in (device, emulated)
        )
        assert [moved for moved, _ in noted[: len(seen)]] == [moved for moved, _ in seen]
        whole = slice(int(pe != emulated.pes[0]), len(seen))  # PEs beside the root were waiting when the trace began
        assert all(0 < n - e < 2 * COST for (_, n), (_, e) in zip(noted[whole], seen[whole], strict=False))


def _cycles_of_all(timeline: Timeline) -> int:
    """Cycles from the first step of the first frame to the end of the last."""
    frames = [each for each in timeline.slices if (each.pe, each.name) == (timeline.pes[0], FRAME)]
    return max(each.end for each in frames) - min(each.start for each in frames)


def _is_step(piece: TimeSlice, pe: int) -> bool:
    return (piece.pe, piece.track) == (pe, CORE) and piece.name not in (FRAME, COUNTED_FRAME, "net_event")


def test_what_the_ring_has_no_room_for_is_counted(built: Build) -> None:
    frames = 60
    with Emulator(built.board, built.images()) as emulator, Session(emulator, built.build_id) as session:
        timeline = record_on_device(built, session, cases_of(built), frames)
    assert timeline.overwritten > 0
    assert 1 <= len(timeline.frames) < frames
    assert all(piece.track == CORE for piece in timeline.slices)


@pytest.mark.exhaustive
def test_builds_that_do_not_trace_say_so(tmp_path: Path) -> None:
    plain = shared_build(DIGITS, tmp_path / "out", pes=1, toolchain="zig")
    with pytest.raises(NpukitError, match="writes no events") as error:
        api.trace(plain.folder, tmp_path / "t.json", on="/dev/ttyS99")
    assert "npukit build MODEL --trace -o FOLDER" in error.value.tries


@pytest.mark.exhaustive
def test_the_same_outputs(built: Build) -> None:
    assert api.validate(built.folder, cases=2).outputs_equal


def test_a_board_that_qemu_runs(tmp_path: Path) -> None:
    need("qemu-system-arm")
    shared_build(DIGITS, tmp_path / "out", "mps2-an386", trace=True)
    traced = api.trace(tmp_path / "out", tmp_path / "t.json", frames=2)
    assert (traced.frames, traced.overwritten) == (2, 0)
    names: Mapping[str, object] = {
        e["name"]: e for e in json.loads((tmp_path / "t.json").read_text())["traceEvents"] if e["ph"] == "X"
    }
    assert {"conv2d_0", "softmax_0", FRAME} <= set(names)
