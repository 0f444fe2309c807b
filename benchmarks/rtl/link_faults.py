"""Faults of packets, one in each run of two frames: named, harmless, or silent (other outputs without an error).

    python benchmarks/rtl/link_faults.py [--faults 10000] [--seed 1] >benchmarks/rtl/link_faults.md

Any packet of a message is lost, comes again, or has a flipped bit, on any link of its way (hardware manual, section
4.8). Packets of the network and of the host's questions are struck alike. The digits network, on the built-in emulator.
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
from npukit.measure.cases import load_cases
from npukit.measure.target import Emulation, open_target
from npukit.measure.validate import run_case, same_outputs
from npukit.project.build_folder import GOLDEN

KINDS, PACKETS = ("drop", "duplicate", "flip"), 40  # the first packets of a run
NAMES = (
    (r"error code 7", "wrong CRC (error 7)"),
    (r"error code 8", "lost or repeated (error 8)"),
    (r"refused: a PE of the network", "refused: a PE does not answer"),
    (r"waits? for", "a wait without end, named"),
    (r"did not answer", "no answer to the host"),
)
"""What an error's text says, and the heading under which it is counted."""
_load = cache(api.load)
HARMLESS, SILENT, OTHER = "same outputs", "SILENT: other outputs", "another error"


@cache
def _worker(memory: int) -> WorkerProcess:
    """A worker for one board after the other, to the end of this process: its start takes longer than a run."""
    worker = WorkerProcess(memory)
    mock.patch.object(worker, "close").start()
    return worker


def frames(folder: Path, plan: FaultPlan | None) -> list[list[np.ndarray]]:
    build = _load(folder)
    cases = load_cases(folder / GOLDEN, build.net(), None)
    emulation = Emulation(strict=False, races=False, faults=plan)
    with mock.patch.object(builtin, "WorkerProcess", _worker), open_target(build, "emulator", emulation) as target:
        return [run_case(target.session, build.net(), cases, case, observe=False) for case in range(2)]


STRUCK = "A fault strikes any packet of a message, on any link of its way (`boards/pe-mesh.md`, 4.8)."


def outcome(folder: Path, wanted: list[list[np.ndarray]], fault: dict[str, object]) -> tuple[str, str]:
    """The fault's kind and how it ended."""
    try:
        found = frames(folder, FaultPlan.model_validate({"fault": [fault]}))
    except NpukitError as error:
        text = " ".join((error.message, *error.facts))
        return str(fault["kind"]), next((name for pattern, name in NAMES if re.search(pattern, text)), OTHER)
    return str(fault["kind"]), HARMLESS if all(map(same_outputs, found, wanted)) else SILENT


def faults(count: int, seed: int) -> Iterator[dict[str, object]]:
    random = np.random.default_rng(seed)
    for _ in range(count):
        kind, packet = str(random.choice(KINDS)), int(random.integers(0, PACKETS))
        extra = {name: int(random.integers(0, 1 << 16)) for name in ("hop", "part")}
        if kind != "drop":
            name, end = ("bit", 1 << 16) if kind == "flip" else ("cycles", 200)
            extra[name] = int(random.integers(1, end))
        yield {"kind": kind, "packet": packet, **extra}


def lines(ended: Counter[tuple[str, str]], asked: argparse.Namespace) -> Iterator[str]:
    """A page: command, state and table."""
    command = f"python benchmarks/rtl/link_faults.py --faults {asked.faults} --seed {asked.seed}"
    yield f"# Faults on links\n\nMeasured at {commit()} by `{command}`.\n{STRUCK}\n"
    yield f"| outcome | {' | '.join(KINDS)} | all |\n|---|{'--:|' * (len(KINDS) + 1)}"
    for name in (*(name for _, name in NAMES), OTHER, HARMLESS, SILENT):
        counts = [ended[kind, name] for kind in KINDS]
        yield f"| {name} | {' | '.join(f'{count:,}' for count in (*counts, sum(counts)))} |"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--faults", type=int, default=10_000)
    parser.add_argument("--seed", type=int, default=1)
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch, ProcessPoolExecutor(2) as pool:
        folder = api.build(DIGITS, output=Path(scratch) / "build", options=api.Options(pes=4)).folder
        run = partial(outcome, folder, pool.submit(frames, folder, None).result())
        ended = Counter(pool.map(run, faults(asked.faults, asked.seed), chunksize=16))
    print("\n".join(lines(ended, asked)))
    raise SystemExit(any(ended[kind, SILENT] for kind in KINDS))


if __name__ == "__main__":
    main()
