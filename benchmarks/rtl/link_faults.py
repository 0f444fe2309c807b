"""Faults of packets, one in each run of two frames: named, harmless, or silent (other outputs without an error).

    python benchmarks/rtl/link_faults.py [--faults 10000] [--seed 1] [--pes 4] [--write]

A packet is lost, comes again, or has a flipped bit, on any link of its way (hardware manual, section 4.8). Packets of
the network and of the host's questions are struck alike. The digits network, on the built-in emulator.
"""

from __future__ import annotations

import argparse
import re
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from functools import cache, partial
from pathlib import Path
from unittest import mock

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from benchmarks.state import DIGITS, commit

from npukit import api
from npukit.emulator import builtin
from npukit.emulator.fault_plan import FaultPlan
from npukit.emulator.process import WorkerProcess
from npukit.errors import NpukitError
from npukit.measure.cases import Cases, load_cases
from npukit.measure.target import Emulation, open_target
from npukit.measure.validate import run_case, same_outputs
from npukit.project.build_folder import GOLDEN, Build

KINDS = ("drop", "duplicate", "flip")
NAMES = (
    (r"error code 7", "wrong CRC (error 7)"),
    (r"error code 8", "lost or repeated (error 8)"),
    (r"refused: a PE of the network", "refused: a PE does not answer"),
    (r"waits? for", "a wait without end, named"),
    (r"did not answer", "no answer to the host"),
)
"""What an error's text says, and the heading under which it is counted."""
HARMLESS, SILENT, OTHER = "same outputs", "SILENT: other outputs", "another error"


class KeptWorker(WorkerProcess):
    """A worker for one board after the other: to start it takes longer than a run."""

    def close(self) -> None:
        """The worker's input closes with this process."""


@cache
def _worker(memory: int) -> KeptWorker:
    return KeptWorker(memory)


@cache
def _loaded(folder: Path) -> tuple[Build, Cases]:
    build = api.load(folder)
    return build, load_cases(build.folder / GOLDEN, build.net(), None)


def frames(folder: Path, plan: FaultPlan | None) -> list[list[np.ndarray]]:
    """The outputs of two frames."""
    build, cases = _loaded(folder)
    emulation = Emulation(strict=False, races=False, faults=plan)
    with mock.patch.object(builtin, "WorkerProcess", _worker), open_target(build, "emulator", emulation) as target:
        return [run_case(target.session, build.net(), cases, case, observe=False) for case in range(2)]


def heading(error: NpukitError) -> str:
    text = " ".join((error.message, *error.facts))
    return next((name for pattern, name in NAMES if re.search(pattern, text)), OTHER)


def outcome(folder: Path, wanted: list[list[np.ndarray]], fault: dict[str, object]) -> tuple[str, str]:
    """The fault's kind and how it ended."""
    plan = FaultPlan.model_validate({"fault": [fault]})
    try:
        found = frames(folder, plan)
    except NpukitError as error:
        return str(fault["kind"]), heading(error)
    same = all(map(same_outputs, found, wanted))
    return str(fault["kind"]), HARMLESS if same else SILENT


def faults(count: int, seed: int, packets: int) -> Iterator[dict[str, object]]:
    random = np.random.default_rng(seed)
    for _ in range(count):
        kind, packet = str(random.choice(KINDS)), int(random.integers(0, packets))
        extra = {"hop": int(random.integers(0, 1 << 16))}
        if kind != "drop":
            name, end = ("bit", 1 << 16) if kind == "flip" else ("cycles", 200)
            extra[name] = int(random.integers(1, end))
        yield {"kind": kind, "packet": packet, **extra}


def page(ended: Counter[tuple[str, str]], asked: argparse.Namespace) -> str:
    """Command, state and table."""
    rows = [(name, [ended[kind, name] for kind in KINDS]) for name in (*(n for _, n in NAMES), OTHER, HARMLESS, SILENT)]
    lines = [f"| {name} | {' | '.join(f'{n:,}' for n in (*counts, sum(counts)))} |" for name, counts in rows]
    head = f"| outcome | {' | '.join(KINDS)} | all |\n|---|{'--:|' * (len(KINDS) + 1)}\n"
    command = f"python benchmarks/rtl/link_faults.py --faults {asked.faults} --seed {asked.seed} --pes {asked.pes}"
    return f"# Faults on links\n\nMeasured at {commit()} by\n`{command}`.\n\n{head}" + "\n".join(lines) + "\n"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--faults", type=int, default=10_000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--pes", type=int, default=4)
    parser.add_argument("--packets", type=int, default=40, help="packets that are struck: the first ones of a run")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--write", action="store_true", help="the page benchmarks/rtl/link_faults.md")
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch, ProcessPoolExecutor(asked.jobs) as pool:
        folder = Path(scratch) / "build"
        api.build(DIGITS, output=folder, options=api.Options(pes=asked.pes))
        run = partial(outcome, folder, frames(folder, None))
        ended = Counter(pool.map(run, faults(asked.faults, asked.seed, asked.packets), chunksize=16))
    print(page(ended, asked))
    if asked.write:
        Path(__file__).with_suffix(".md").write_text(page(ended, asked))
    raise SystemExit(1 if any(ended[kind, SILENT] for kind in KINDS) else 0)


if __name__ == "__main__":
    main()
