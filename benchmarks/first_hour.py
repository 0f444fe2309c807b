"""The first hour of each kind of user: what a tutorial has them type and write, and how long its commands take.

PYTHONPATH=kit:tests:. python benchmarks/first_hour.py

Every page is run as its test runs it (`tests/docs/pages.py`), what it prints compared, in a process of its own.
Commands are lines for a shell, Python those at a prompt, lines written those of the files that a page shows. Seconds
of the processor are those of all processes; the installation is not in them.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from docs.pages import PROMPT, commands, files_of, run_commands

TUTORIALS = Path(__file__).resolve().parents[1] / "docs/tutorials"
USERS = {
    "stock-board": "an engineer with a stock board",
    "chip-maker": "a chip maker with an accelerator",
    "own-mesh": "the designer of a mesh",
    "notebook": "a notebook's user",
    "farm": "the owner of a farm of boards",
}


def seconds_of(page: Path) -> tuple[float, float]:
    """Seconds, and those of the processor, that all of a page's commands take."""
    before, begun = os.times(), time.perf_counter()
    subprocess.run([sys.executable, __file__, str(page)], check=True, stdout=subprocess.DEVNULL)
    after = os.times()
    processor = after.children_user + after.children_system - before.children_user - before.children_system
    return time.perf_counter() - begun, processor


def row(name: str) -> str:
    page = TUTORIALS / f"{name}.md"
    written = sum(len(text.strip().splitlines()) for text in files_of(page).values())
    wall, processor = seconds_of(page)
    typed = f"{len(commands(page))} | {page.read_text().count(PROMPT)} | {written}"
    return f"| {USERS[name]} | {typed} | {wall:.0f} | {processor:.0f} |"


def main() -> None:
    print("| | commands | Python | lines written | seconds | of the processor |\n|---|--:|--:|--:|--:|--:|")
    for name in USERS:
        print(row(name), flush=True)


if __name__ == "__main__":
    if sys.argv[1:]:
        with tempfile.TemporaryDirectory() as scratch:
            run_commands(Path(sys.argv[1]), Path(scratch))
    else:
        main()
