"""The first hour of each kind of user: lines typed and written in a tutorial, and the time of its commands.

    PYTHONPATH=kit:tests:. python benchmarks/first_hour.py

Every page runs in a process of its own, as in its test (`tests/docs/pages.py`), and the output is compared. Commands
are shell lines, Python counts lines at a prompt, and lines written are those of the files shown on a page. Processor
seconds include all processes. The installation is not timed.
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
    """Wall-clock seconds and processor seconds of all of a page's commands."""
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
