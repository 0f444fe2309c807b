"""How long a build takes, and how fast the emulator runs the same network on the core alone.

python benchmarks/build_and_emulate.py MODEL
"""

from __future__ import annotations

import sys
import tempfile
import time
from pathlib import Path

from npukit import api

FRAMES = 20


def build_seconds(model: Path, folder: Path, options: api.Options) -> float:
    begin = time.perf_counter()
    api.build(model, output=folder, options=options)
    return time.perf_counter() - begin


def emulated_per_second(folder: Path) -> float:
    """Instructions of a frame over the seconds it takes, starting and link excluded."""
    frames = []
    for count in (1, 1 + FRAMES):
        begin = time.perf_counter()
        measured = api.bench(folder, frames=count)
        frames.append((time.perf_counter() - begin, measured.instructions))
    (short, instructions), (long, _) = frames
    return FRAMES * instructions / (long - short)


def main() -> None:
    model = Path(sys.argv[1])
    with tempfile.TemporaryDirectory() as scratch:
        seconds = build_seconds(model, Path(scratch) / "array", api.Options(pes=1))
        print(f"build of {model.name} for pe-mesh: {seconds:.1f} s")
        build_seconds(model, Path(scratch) / "core", api.Options(pes=1, engine="cpu"))
        speed = emulated_per_second(Path(scratch) / "core")
        print(f"emulated on the core alone: {speed / 1e6:.0f} million instructions a second")


if __name__ == "__main__":
    main()
