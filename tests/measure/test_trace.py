"""A trace agrees with the tables to the cycle, and Perfetto can open the trace."""

from __future__ import annotations

import json
from collections import defaultdict
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from end_to_end.builds import shared_build
from helpers import CHECKOUT
from npukit import api
from npukit.emulator.builtin import Emulator
from npukit.errors import NpukitError
from npukit.link.session import Session
from npukit.measure.cases import load_cases
from npukit.measure.recording import record_timeline
from npukit.measure.validate import run_case, write_inputs
from npukit.plan.ir.plan import Compute
from npukit.plan.predict.timeline import CORE, COUNTED_FRAME, Timeline
from npukit.project.build_folder import GOLDEN, Build

PES, FRAMES = 4, 3
WHOLE = ("net_run", COUNTED_FRAME)
NEEDED = {"X": {"ts", "dur", "pid", "tid", "name"}, "s": {"id", "ts"}, "f": {"id", "ts", "bp"}, "C": {"ts", "args"}}


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Build:
    folder = tmp_path_factory.mktemp("digits") / "out"
    return shared_build(CHECKOUT / "examples/digits/digits_int8.tflite", folder, pes=PES, toolchain="zig")


@pytest.fixture(scope="module")
def counted(built: Build) -> tuple[Timeline, dict[int, int]]:
    """A timeline, and the emulator's count of accelerator cycles of each PE for the same frames."""
    cases = load_cases(built.folder / GOLDEN, built.net(), None)
    pes = [pe.pe for pe in built.plan().pes]
    with Emulator(built.board, built.images()) as emulator, Session(emulator, built.build_id) as session:
        run_case(session, built.net(), cases, 0, observe=True)
        write_inputs(session, cases, [0])
        before = {pe: emulator.counters(pe).npu_busy for pe in pes}
        session.run(frames=FRAMES)
        spent = {pe: emulator.counters(pe).npu_busy - before[pe] for pe in pes}
    with Emulator(built.board, built.images()) as emulator, Session(emulator, built.build_id) as session:
        return record_timeline(built, emulator, session, cases, FRAMES), spent


@pytest.mark.exhaustive
def test_every_cycle_of_the_accelerators_is_in_the_timeline(counted: tuple[Timeline, dict[int, int]]) -> None:
    timeline, spent = counted
    traced = {pe: sum(s.cycles for s in timeline.slices if s.pe == pe and s.track == "mac_array") for pe in spent}
    assert traced == spent


@pytest.mark.exhaustive
def test_every_computed_tile_is_in_every_frame_under_its_layer(
    built: Build, counted: tuple[Timeline, dict[int, int]]
) -> None:
    timeline, _ = counted
    for pe in built.plan().pes:
        wanted = {index: step.op for index, step in enumerate(pe.steps) if isinstance(step, Compute)}
        layered = [(s.step, s.layer) for s in timeline.slices if s.pe == pe.pe and s.layer]
        assert set(layered) == set(wanted.items())
        assert all(layered.count(pair) % FRAMES == 0 for pair in set(layered))


@pytest.mark.exhaustive
def test_the_table_and_the_timeline_agree_on_the_frames(tmp_path: Path) -> None:
    built = shared_build(CHECKOUT / "examples/digits/digits_int8.tflite", tmp_path / "out", pes=1, toolchain="zig")
    measured, traced = api.bench(built.folder, frames=2), api.trace(built.folder, tmp_path / "t.json", frames=3)
    events = json.loads((tmp_path / "t.json").read_text())["traceEvents"]
    starts = [e["args"]["cycle"] for e in events if e.get("name") == "net_run"]
    assert [b - a for a, b in pairwise(starts)] == [measured.interval_cycles] * 2
    assert whole_frames(events) == [measured.latency_cycles, measured.interval_cycles, measured.interval_cycles]
    assert traced.frames == 3
    chain = {
        e["name"]: e["args"]["cycles"] for e in events if e.get("cat") == "compute" and e["args"]["cycle"] < starts[1]
    }
    layers = {layer.name: layer.cycles for layer in measured.layers if layer.engine == "mac_array"}
    assert {name: chain[name] for name in layers} == layers
    told = {op["name"]: op["predicted_cycles"] for op in built.manifest.summary["ops"] if op["engine"] == "mac_array"}
    assert told == layers


@pytest.mark.exhaustive
def test_a_trace_of_rounds_agrees_with_the_table_to_the_cycle(tmp_path: Path) -> None:
    board = tmp_path / "without_refresh.toml"  # the two runs meet refreshes of the DRAM at different cycles
    described = (CHECKOUT / "boards/pe-mesh.toml").read_text()
    board.write_text(described.replace("dram_refresh_interval = 1170", "dram_refresh_interval = 0"))
    model = CHECKOUT / "examples/digits/digits_int8.tflite"
    built = shared_build(model, tmp_path / "out", str(board), pes=PES, objective="throughput", toolchain="zig")
    together = built.plan().frames
    assert together > 1
    measured, traced = api.bench(built.folder, frames=1), api.trace(built.folder, tmp_path / "t.json", frames=2)
    assert (traced.frames, traced.together) == (2, together)
    events = json.loads((tmp_path / "t.json").read_text())["traceEvents"]
    starts = [e["args"]["cycle"] for e in events if e.get("name") == "net_run" and e["pid"] == 1]
    assert round((starts[1] - starts[0]) / together) == measured.interval_cycles
    assert whole_frames(events)[0] == measured.latency_cycles
    computed = [e for e in events if e.get("cat") == "compute" and e["args"]["cycle"] < starts[1]]
    assert {e["args"]["frame"] for e in computed} == set(range(together))
    for layer in (each for each in measured.layers if each.engine == "mac_array"):
        first = [e for e in computed if e["name"] == layer.name and e["args"]["frame"] == 0]
        by_pe = defaultdict(list)
        for event in first:
            by_pe[event["pid"]].append((event["args"]["cycle"], event["args"]["cycle"] + event["args"]["cycles"]))
        assert layer.cycles == max(_covered(spans) for spans in by_pe.values())


def whole_frames(events: list[dict[str, Any]]) -> list[int]:
    """Cycles of each whole frame, from the frames' slices."""
    return [e["args"]["cycles"] for e in events if e.get("name") == COUNTED_FRAME and e["ph"] == "X"]


def _covered(spans: list[tuple[int, int]]) -> int:
    """Cycles inside any of `spans`."""
    return len({cycle for span in spans for cycle in range(*span)})


def test_a_core_does_one_thing_at_a_time(counted: tuple[Timeline, dict[int, int]]) -> None:
    timeline, _ = counted
    for pe in timeline.pes:
        calls = sorted(
            (s.start, s.end) for s in timeline.slices if (s.pe, s.track) == (pe, CORE) and s.name not in WHOLE
        )
        assert all(a[1] <= b[0] for a, b in pairwise(calls))


def test_the_trace_is_one_that_perfetto_opens(built: Build, tmp_path: Path) -> None:
    """Checks the format's rules, because Perfetto's Python package lacks the trace processor and would download it."""
    file = tmp_path / "trace.json"
    api.trace(built.folder, file)
    events: list[dict[str, Any]] = json.loads(file.read_text())["traceEvents"]
    for event in events:
        assert NEEDED.get(event["ph"], {"pid"}) <= set(event)
    starts = {e["id"]: e["ts"] for e in events if e["ph"] == "s"}
    ends = {e["id"]: e["ts"] for e in events if e["ph"] == "f"}
    assert starts
    assert starts.keys() == ends.keys()
    assert all(starts[number] <= ends[number] for number in starts)
    _check_nesting(events)


def _check_nesting(events: list[dict[str, Any]]) -> None:
    """Slices of the same track are nested or disjoint, in the whole nanoseconds that Perfetto reads."""
    tracks: dict[tuple[int, int], list[tuple[int, int]]] = defaultdict(list)
    for event in events:
        if event["ph"] == "X":
            start = int(event["ts"] * 1000)
            tracks[event["pid"], event["tid"]].append((start, -(start + int(event["dur"] * 1000))))
    for slices in tracks.values():
        open_ends: list[int] = []
        for start, end in sorted(slices):
            while open_ends and open_ends[-1] <= start:
                open_ends.pop()
            assert not open_ends or -end <= open_ends[-1]
            open_ends.append(-end)


NETWORKS = {
    "a mesh": ("digits_int8.tflite", {"pes": 16}),
    "one PE": ("digits_int8.tflite", {"pes": 1}),
    "the core alone": ("digits_qdq.onnx", {"pes": 1, "engine": "cpu"}),
    "batches": ("digits_int8.tflite", {"pes": 4, "objective": "throughput"}),
}


@pytest.mark.exhaustive
@pytest.mark.parametrize("name", NETWORKS)
def test_nothing_in_a_trace_is_before_its_beginning_or_overlaps(name: str, tmp_path: Path) -> None:
    model, options = NETWORKS[name]
    built = shared_build(CHECKOUT / "examples/digits" / model, tmp_path / "out", toolchain="zig", **options)
    api.trace(built, tmp_path / "t.json", frames=2)
    events: list[dict[str, Any]] = json.loads((tmp_path / "t.json").read_text())["traceEvents"]
    timed = [event for event in events if event["ph"] != "M"]
    assert min(event["ts"] for event in timed) == 0
    assert all(event["dur"] >= 0 and event["args"]["cycles"] >= 0 for event in timed if event["ph"] == "X")
    assert all(event["args"]["value"] >= 0 for event in timed if event["ph"] == "C")
    _check_nesting(events)


@pytest.mark.exhaustive
def test_only_the_chosen_pes(built: Build, tmp_path: Path) -> None:
    used = [pe.pe for pe in built.plan().pes]
    traced = api.trace(built.folder, tmp_path / "t.json", pes=f"{used[1]}")
    assert traced.pes == (used[1],)
    with pytest.raises(NpukitError, match="does not use PE"):
        api.trace(built.folder, tmp_path / "t.json", pes="0-15")
    with pytest.raises(NpukitError, match="no list of PEs"):
        api.trace(built.folder, tmp_path / "t.json", pes="all")
