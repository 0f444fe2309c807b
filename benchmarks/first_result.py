"""Time until a user's first result: seconds and memory of `npukit fit` and `npukit build` for a board's default plan.

    python benchmarks/first_result.py [MODEL...] [--board pe-mesh] [--save benchmarks/first_result.md]

Each command starts as on a user's machine, with npukit's bytecode compiled as by an installation. Processor seconds sum
all processes on all cores; work on two cores at once takes less wall-clock time. Megabytes sum all processes and count
shared pages once. The first build after an installation has an empty Zig cache.
"""

from __future__ import annotations

import argparse
import compileall
import os
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from state import CHECKOUT, commit

DIGITS = CHECKOUT / "examples/digits/digits_int8.tflite"
NPUKIT = (sys.executable, "-c", "from npukit.cli.main import run; run()")
EVERY = 0.05
"""Seconds between two samples of the memory."""


@dataclass(frozen=True)
class Taken:
    """Processor and wall-clock seconds and peak memory of a command."""

    processor: float
    wall: float
    megabytes: int

    @property
    def cells(self) -> str:
        return f"{self.processor:.1f} | {self.wall:.1f} | {self.megabytes}"


def measured(*words: str, cache: Path | None = None) -> Taken:
    """The cost of one npukit command in a process of its own. `cache`: the Zig cache to use."""
    with tempfile.TemporaryDirectory() as scratch:
        own = {"NPUKIT_TUNED": f"{scratch}/tuned.json"} | ({"ZIG_GLOBAL_CACHE_DIR": str(cache)} if cache else {})
        begun, most = time.perf_counter(), [0]
        process = subprocess.Popen(
            [*NPUKIT, *words, "-q"], cwd=scratch, env=os.environ | own, stdout=subprocess.DEVNULL
        )
        watcher = threading.Thread(target=_watch, args=(process.pid, most), daemon=True)
        watcher.start()
        _, status, used = os.wait4(process.pid, 0)
        wall = time.perf_counter() - begun
        process.returncode = os.waitstatus_to_exitcode(status)
        watcher.join()
    if process.returncode:
        raise SystemExit(f"npukit {' '.join(words)} ended with status {process.returncode}")
    return Taken(used.ru_utime + used.ru_stime, wall, most[0] >> 10)


def _watch(pid: int, most: list[int]) -> None:
    """Keep in `most` the peak kilobytes of a process and its descendants together."""
    while Path(f"/proc/{pid}/smaps_rollup").exists() and (now := sum(map(_kilobytes, _tree(pid)))):
        most[0] = max(most[0], now)
        time.sleep(EVERY)


def _tree(pid: int) -> Iterator[int]:
    yield pid
    for task in Path(f"/proc/{pid}/task").glob("*/children"):
        try:
            children = task.read_text().split()
        except OSError:
            continue
        for child in map(int, children):
            yield from _tree(child)


def _kilobytes(pid: int) -> int:
    """The process's proportional share (PSS) of memory in kilobytes; 0 if it has ended."""
    try:
        rows = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
    except OSError:
        return 0
    return sum(int(row.split()[1]) for row in rows if row.startswith("Pss:"))


def rows(models: Sequence[Path], board: str) -> Iterator[str]:
    """The table, row by row."""
    yield "| network | command | seconds of the processor | seconds | megabytes |"
    yield "|---|---|--:|--:|--:|"
    with tempfile.TemporaryDirectory() as cache:
        for model in models:
            to_fit = ("fit", str(model), "--board", board)
            to_build = ("build", str(model), "--board", board, "--toolchain", "zig", "-o", "out")
            yield f"| {model.stem} | fit | {measured(*to_fit).cells} |"
            if model == models[0]:
                yield f"|  | the first build | {measured(*to_build, cache=Path(cache)).cells} |"
            yield f"|  | build | {measured(*to_build, cache=Path(cache)).cells} |"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", nargs="*", type=Path, default=[DIGITS])
    parser.add_argument("--board", default="pe-mesh")
    parser.add_argument("--save", type=Path, help="the page whose table to write anew")
    given = parser.parse_args()
    compileall.compile_dir(CHECKOUT / "kit", quiet=1)
    found = []
    for row in rows([model.absolute() for model in given.models], given.board):
        print(row, flush=True)
        found.append(row)
    if given.save:
        _write(given.save, found)


def _write(page: Path, table: Sequence[str]) -> None:
    """Replace the table of the page and the commit above it; keep all other text."""
    begin, end = "<!-- table -->", "<!-- end of table -->"
    before, rest = page.read_text().split(begin)
    after = rest.split(end)[1]
    names = f"Measured at {commit()} by `python benchmarks/first_result.py` with these networks:"
    page.write_text(f"{before}{begin}\n{names}\n\n" + "\n".join(table) + f"\n{end}{after}")


if __name__ == "__main__":
    main()
