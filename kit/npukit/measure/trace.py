"""Trace: frames on the built-in emulator or a device, recorded for viewing."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from npukit.errors import NpukitError
from npukit.measure.cases import Cases
from npukit.measure.device_trace import record_on_device
from npukit.measure.perfetto import perfetto
from npukit.measure.recording import record_timeline
from npukit.measure.target import RTL, open_target
from npukit.plan.predict.timeline import Timeline
from npukit.project.build_folder import Build
from npukit.writing import write_file

EMULATOR = "emulator"
TRACED_PES = 64
"""Limit on the PEs of a trace: browsers display larger traces badly."""


@dataclass(frozen=True)
class Traced:
    """The contents of a trace file. `frames`: batches of `together` frames each, for builds that take several."""

    output: str
    frames: int
    cycles: int
    pes: tuple[int, ...]
    pes_used: int
    together: int = 1
    overwritten: int = 0
    """Events missing at the beginning, because of the device's limited buffer."""
    unit: str = "cycles"
    """The unit of `cycles`: `ticks` under QEMU, whose timer counts instructions."""

    def to_json(self) -> dict[str, Any]:
        return asdict(self)


def timeline_of(build: Build, cases: Cases, frames: int, on: str = EMULATOR) -> Timeline:
    """Frames of the first case, on a new emulator, or from the firmware's events on other targets."""
    if on not in (EMULATOR, RTL):
        build.spans()
    with open_target(build, on) as target:
        if target.emulator:
            return record_timeline(build, target.emulator, target.session, cases, frames)
        return replace(record_on_device(build, target.session, cases, frames), unit=target.unit)


def write_trace(build: Build, cases: Cases, frames: int, pes: str | None, output: Path, on: str = EMULATOR) -> Traced:
    """Record frames, and write the trace of the chosen PEs."""
    plan = build.plan()
    used = [pe.pe for pe in plan.pes]
    count = min(len(used), TRACED_PES)  # by default at even distances, from the root on
    chosen = _chosen(pes, used) if pes else [used[index * len(used) // count] for index in range(count)]
    timeline = timeline_of(build, cases, frames, on)
    write_file(output, json.dumps(perfetto(timeline, plan, chosen)) + "\n")
    frames, lost = len(timeline.frames), timeline.overwritten
    return Traced(str(output), frames, timeline.end, tuple(chosen), len(used), plan.frames, lost, timeline.unit)


def _chosen(text: str, used: Sequence[int]) -> list[int]:
    """The PEs in a text such as `0-3,8`. All must be in use."""
    wanted = sorted({pe for part in text.split(",") for pe in _range(part, text)})
    unknown = [pe for pe in wanted if pe not in set(used)]
    if unknown:
        raise NpukitError(
            f"the build does not use PE {unknown[0]}", tries=[f"one of its {len(used)} PEs, {used[0]} to {used[-1]}"]
        )
    return wanted


def _range(part: str, text: str) -> range:
    first, _, last = part.strip().partition("-")
    if not first.isdecimal() or not (last or first).isdecimal():
        raise NpukitError(f"--pes {text} is no list of PEs", tries=["--pes 0-3,8"])
    return range(int(first), int(last or first) + 1)
