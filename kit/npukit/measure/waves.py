"""Waveforms of a tile: the work of a PE's accelerators in RTL for a layer, or between two cycles of a run."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from npukit.emulator.here import usual
from npukit.emulator.rtl import Waves
from npukit.errors import NpukitError
from npukit.measure.cases import Cases, filled, sequences
from npukit.measure.recording import work_spans
from npukit.measure.stopped import op_of
from npukit.measure.target import C_MODELS, RTL, Emulation, Target, open_target
from npukit.measure.validate import run_round
from npukit.net.net import Net
from npukit.plan.ir.plan import Compute, Plan
from npukit.progress import Progress
from npukit.project.build_folder import Build

_FOLDER = "waves"

_CYCLES, _LAYER = re.compile(r"(\d+):(\d+)-(\d+)"), re.compile(r"(\d+):(.+?)(?:@(\d+))?")


@dataclass(frozen=True)
class WavesOf:
    """The wanted waveforms: of PE, and of a layer in the frame of a case, or of the cycles of a run."""

    pe: int
    layer: str = ""
    case: int = 0
    cycles: tuple[int, int] = (0, 0)

    def __str__(self) -> str:
        first, last = self.cycles
        of_case = f"@{self.case}" if self.case else ""
        return f"{self.pe}:{self.layer}{of_case}" if self.layer else f"{self.pe}:{first}-{last}"

    @classmethod
    def parse(cls, text: str) -> WavesOf:
        """PE:LAYER, PE:LAYER@CASE, or PE:FIRST-LAST in cycles."""
        if found := _CYCLES.fullmatch(text):
            pe, first, last = map(int, found.groups())
            return cls(pe, cycles=(first, last))
        if found := _LAYER.fullmatch(text):
            return cls(int(found[1]), found[2], int(found[3] or 0))
        raise NpukitError(
            f"--waves {text} names no tile", tries=["--waves PE:LAYER", "--waves PE:FIRST-LAST, in cycles"]
        )


def begin(
    build: Build, cases: Cases, given: str | None, on: str | None, shown: Progress
) -> tuple[Waves | None, tuple[str, ...]]:
    """The waveforms: for PE:FIRST-LAST those of the coming run, for PE:LAYER the files, written now."""
    if given is None:
        return None, ()
    if on != RTL:
        raise NpukitError(f"--waves is for accelerators in RTL, not for {on or usual(build.board)}", tries=["--on rtl"])
    wanted = WavesOf.parse(given)
    if not 0 <= wanted.pe < build.board.pe_count:
        raise NpukitError(f"--waves {given}: board {build.board.name} has no PE {wanted.pe}")
    if wanted.layer:
        return None, written(build, _write_tile(build, cases, wanted, shown))
    return _prepared(build, wanted), ()


def written(build: Build, waves: Waves | None) -> tuple[str, ...]:
    """The files that are there."""
    return tuple(str(path) for path in _files(build, waves) if path.is_file()) if waves else ()


@contextmanager
def naming(build: Build, waves: Waves | None) -> Iterator[None]:
    """Errors name the files of waveforms."""
    try:
        yield
    except NpukitError as error:
        error.facts = (*error.facts, *(f"waveform: {path}" for path in written(build, waves)))
        raise


def _files(build: Build, waves: Waves) -> list[Path]:
    return [waves.of(slot.name) for slot in build.board.accelerator]


def _prepared(build: Build, wanted: WavesOf) -> Waves:
    """The waveforms of the cycles, named like the tile. Removes the files of an earlier run."""
    name = re.sub(r"[^\w.@-]", "_", str(wanted).replace(":", "-", 1))
    waves = Waves(wanted.pe, *wanted.cycles, build.folder / _FOLDER / f"pe{name}")
    waves.file.parent.mkdir(exist_ok=True)
    for path in _files(build, waves):
        path.unlink(missing_ok=True)
    return waves


def _write_tile(build: Build, cases: Cases, wanted: WavesOf, shown: Progress) -> Waves:
    """Write the waveforms of a layer on a PE in an observed frame. The C models tell the cycles of the work first."""
    net, plan = build.net(), build.plan()
    whole, op = filled(net, cases, plan.frames_of_all), op_of(net, wanted.layer)
    rounds = _rounds(whole, plan, wanted)
    run = partial(_run, net=net, cases=whole)
    shown.stage(f"look for {wanted} on the C models")
    with open_target(build, C_MODELS) as target:
        assert target.emulator
        run(target, rounds=rounds[:-1], observe=False)
        spans = work_spans(build, target.emulator, partial(run, target, rounds=rounds[-1:], observe=True))
    cycles = _cycles(plan, wanted, op, rounds[-1].index(wanted.case), spans)
    waves = _prepared(build, replace(wanted, layer=op, cycles=cycles))
    with naming(build, waves), open_target(build, RTL, Emulation(waves=waves), shown) as target:
        run(target, rounds=rounds[:-1], observe=False)
        run(target, rounds=rounds[-1:], observe=True)
    return waves


def _rounds(cases: Cases, plan: Plan, wanted: WavesOf) -> list[tuple[int, ...]]:
    """The rounds of the case's sequence up to the round with the case."""
    for rounds in sequences(cases, plan.frames_of_all):
        for number, chosen in enumerate(rounds):
            if wanted.case in chosen:
                return rounds[: number + 1]
    raise NpukitError(f"--waves {wanted}: there are {cases.count} cases", tries=[f"a case below {cases.count}"])


def _run(target: Target, *, net: Net, cases: Cases, rounds: list[tuple[int, ...]], observe: bool) -> None:
    for chosen in rounds:
        run_round(target.session, net, cases, chosen, observe=observe)


def _cycles(
    plan: Plan, wanted: WavesOf, op: str, frame: int, spans: dict[tuple[int, int], list[tuple[int, int]]]
) -> tuple[int, int]:
    """The first and the last cycle of the works for a layer."""
    by_pe, found = dict[int, None](), list[tuple[int, int]]()
    for (pe, number), of_step in spans.items():
        step = plan.by_pe[pe].steps[number]
        if isinstance(step, Compute) and (step.op, step.frame) == (op, frame):
            by_pe[pe] = None
            found += of_step if pe == wanted.pe else []
    if not found:
        others = [f"--waves {pe}:{op}" for pe in by_pe] or ["a layer on an accelerator: npukit fit"]
        raise NpukitError(f"no accelerator of PE {wanted.pe} works for {op}", tries=others)
    return min(first for first, _ in found), max(last for _, last in found)
