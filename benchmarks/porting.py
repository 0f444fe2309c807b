"""Work to add an accelerator: lines of each part of the skeleton and of the examples.

    python benchmarks/porting.py

Lines include comments and blank lines. The skeleton is also built and validated, which is timed.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
import time
from pathlib import Path

EXAMPLES = Path(__file__).resolve().parents[1] / "examples/accelerators"
PARTS = ("plug-in", "vendor's compiler", "driver", "stand-in", "model")
COMPILERS = ("graphnpuc.py", "velac.py")
NPUKIT = [sys.executable, "-c", "from npukit.cli.main import run; run()"]


def part_of(path: Path) -> str:
    if path.suffix == ".py":
        return "vendor's compiler" if path.name in COMPILERS else "plug-in"
    endings = {"_on_core": "stand-in", "_model": "model"}
    return next((part for ending, part in endings.items() if path.stem.endswith(ending)), "driver")


def row(package: Path) -> str:
    lines: dict[str, int] = dict.fromkeys(PARTS, 0)
    for path in (each for each in package.rglob("*") if each.suffix in (".py", ".c", ".h")):
        lines[part_of(path)] += len(path.read_text().splitlines())
    cells = " | ".join(str(lines[part] or "") for part in PARTS)
    return f"| {package.name} | {cells} | {sum(lines.values())} |"


def main() -> None:
    print(f"| | {' | '.join(PARTS)} | lines |\n|---{'|--:' * (len(PARTS) + 1)}|")
    with tempfile.TemporaryDirectory() as scratch:
        begin = time.perf_counter()
        for words in (
            ["new", "accelerator", "skeleton"],
            ["build", "skeleton/small.tflite", "--board", "skeleton/skeleton.toml", "-o", "out"],
            ["validate", "out", "--board", "skeleton/skeleton.toml"],
        ):
            subprocess.run([*NPUKIT, *words, "-q"], cwd=scratch, check=True, stdout=subprocess.DEVNULL)
        seconds = time.perf_counter() - begin
        print(row(Path(scratch) / "skeleton/skeleton"))
    for name in ("systolic8x8", "vector16", "graphnpu", "ethos_u"):
        print(row(EXAMPLES / name / name))
    print(f"\nThe skeleton was there, built and validated after {seconds:.0f} seconds.")


if __name__ == "__main__":
    main()
