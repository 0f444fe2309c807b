"""Cycles of the core for calls, messages and waits: measured on the emulator, beside the planner's constants.

    python benchmarks/core/core_cycles.py FOLDER_OF_MODELS [NETWORK ...] [--pes 16] [--board BOARD]

The constants of `kit/npukit/plan/tensors/core_cycles.py` are close to the printed medians. Frames are programs of
calls. Tables of steps cost more cycles a row.
"""

from __future__ import annotations

import argparse
import tempfile
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterator, Sequence
from itertools import pairwise
from pathlib import Path

import numpy as np

from npukit import api
from npukit.measure.cases import load_cases
from npukit.measure.trace import timeline_of
from npukit.plan.predict.timeline import CORE, COUNTED_FRAME, SEND, WAIT, Timeline, TimeSlice
from npukit.plan.tensors import core_cycles
from npukit.project.build_folder import Build

NETWORKS = ("ad01_int8", "kws_ref_model", "vww_96_int8")
FRAMES = {COUNTED_FRAME, "net_run"}
NAMES = (
    *("BEGIN_CYCLES", "END_CYCLES", "START_CYCLES", "STOP_CYCLES", "SEND_CYCLES", "DOORBELL_CYCLES"),
    *("WAIT_CYCLES", "DOZE_CYCLES", "LOOK_CYCLES", "WAKE_CYCLES"),
)

Found = tuple[str, int]
"""The name of a constant, and one observed value in cycles."""


def found_in(timeline: Timeline) -> Iterator[Found]:
    """Every observed value of the constants in one frame."""
    start, end = timeline.frames[0]
    for pe in timeline.pes:
        own = sorted((each for each in timeline.slices if each.pe == pe), key=lambda each: each.start)
        calls = [each for each in own if each.track == CORE and each.name not in FRAMES]
        engines = [each for each in own if each.track != CORE]
        if pe == timeline.root:
            yield "BEGIN_CYCLES", calls[0].start - start
            yield "END_CYCLES", end - calls[-1].end
        for call in calls:
            yield from _of_waits(call, timeline.sleeps[pe]) if call.name == WAIT else ()
        for before, call in pairwise(calls):
            if before.name == SEND:
                yield "SEND_CYCLES", call.start - before.start
            yield from _of_chains(before, call, engines)
    asked = {(each.sender, each.asked) for each in timeline.movements}
    sends = {(each.pe, each.start) for each in timeline.slices if each.name == SEND}
    yield from (
        ("DOORBELL_CYCLES", at - sent) for pe, at in asked for by, sent in sends if by == pe and 0 <= at - sent < 15
    )


def _of_chains(before: TimeSlice, call: TimeSlice, engines: Sequence[TimeSlice]) -> Iterator[Found]:
    """The cycles to start or stop an engine, from two successive calls of which one runs the engine."""
    if within := [each for each in engines if call.start <= each.start < call.end]:
        yield "START_CYCLES", within[0].start - before.end
    if within := [each for each in engines if before.start <= each.start < before.end]:
        yield "STOP_CYCLES", call.start - within[-1].end


def _of_waits(call: TimeSlice, sleeps: Sequence[tuple[int, int]]) -> Iterator[Found]:
    starts = [start for start, _ in sleeps]
    slept = sleeps[bisect_left(starts, call.start) : bisect_left(starts, call.end)]
    if not slept and call.cycles < core_cycles.DOZE_CYCLES:
        yield "WAIT_CYCLES", call.cycles
    if slept and call.start > 0:
        yield "DOZE_CYCLES", slept[0][0] - call.start
        yield "WAKE_CYCLES", call.end - slept[-1][1]
    yield from (("LOOK_CYCLES", after[0] - before[1]) for before, after in pairwise(slept))


def built(model: Path, board: str, pes: int, folder: Path) -> Build:
    return api.build(model, board=board, output=folder, options=api.Options(pes=pes, toolchain="zig"))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", type=Path)
    parser.add_argument("networks", nargs="*", default=NETWORKS, metavar="NETWORK")
    parser.add_argument("--pes", type=int, default=16)
    parser.add_argument("--board", default="pe-mesh")
    given = parser.parse_args()
    seen: dict[str, list[int]] = defaultdict(list)
    for name in given.networks:
        with tempfile.TemporaryDirectory() as scratch:
            build = built(given.models / f"{name}.tflite", given.board, given.pes, Path(scratch) / "out")
            cases = load_cases(given.models / f"{name}.npz", build.net(), None)
            for constant, cycles in found_in(timeline_of(build, cases, 1)):
                seen[constant].append(cycles)
    print(f"{'constant':16} {'counted':>8} {'10 %':>6} {'median':>7} {'90 %':>6} {'seen':>7}")
    for name in NAMES:
        low, median, high = np.percentile(seen[name] or [0], (10, 50, 90))
        counted = getattr(core_cycles, name)
        print(f"{name:16} {counted:>8} {low:>6.0f} {median:>7.0f} {high:>6.0f} {len(seen[name]):>7}")


if __name__ == "__main__":
    main()
