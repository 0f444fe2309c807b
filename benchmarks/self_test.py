"""Cost of a build's self-test: bytes of code, cycles before the first frame, cycles between two frames.

    python benchmarks/self_test.py [MODEL...] [--pes N]

Each model is built with and without --self-test and run on the built-in emulator. The cycles a byte are the excess of
the root PE's first frame over the second, divided by all bytes tested on the root. The other PEs run their tests before
any frame.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "kit"))

from npukit import api
from npukit.measure.target import open_target
from npukit.project.build_folder import Build
from npukit.project.images.regions import regions_of

DIGITS = Path(__file__).resolve().parents[1] / "examples/digits/digits_int8.tflite"


@dataclass(frozen=True)
class Cost:
    """Costs of one network's self-test, on the root PE. The intervals are of the whole network."""

    name: str
    tested_bytes: int
    code_bytes: int
    start_cycles: int
    interval_before: int
    interval_after: int

    @property
    def row(self) -> Sequence[str]:
        a_byte = self.start_cycles / self.tested_bytes
        numbers = (self.tested_bytes, self.code_bytes, self.start_cycles)
        intervals = (self.interval_before, self.interval_after, self.interval_after - self.interval_before)
        return (self.name, *(f"{each:,}" for each in numbers), f"{a_byte:.2f}", *(f"{each:,}" for each in intervals))


HEADINGS = (
    *("network", "bytes tested", "bytes of code", "cycles at start", "a byte"),
    *("cycles between frames", "with it", "more"),
)


def measured(model: Path, pes: int, scratch: Path) -> Cost:
    options = api.Options(pes=pes)
    plain = api.build(model, output=scratch / "plain", options=options)
    tests = api.build(model, output=scratch / "tests", options=api.Options(pes=pes, self_test=True))
    root = tests.board.root_pe
    tested = sum(len(region.data) for image in tests.images() for region in regions_of(image) if region.pe == root)
    code = [next(pe.memory.code for pe in each.plan().pes if pe.pe == root) for each in (plain, tests)]
    intervals = [api.bench(each).interval_cycles or 0 for each in (plain, tests)]
    return Cost(model.stem, tested, code[1] - code[0], _start(tests), *intervals)


def _start(build: Build) -> int:
    with open_target(build) as target:
        first, second = target.session.run(), target.session.run()
    return first.cycles - second.cycles


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", nargs="*", type=Path, default=[DIGITS], metavar="MODEL")
    parser.add_argument("--pes", type=int, default=16)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        costs = [measured(model, given.pes, Path(scratch)) for model in given.models]
    print(f"| {' | '.join(HEADINGS)} |\n|---|{'--:|' * (len(HEADINGS) - 1)}")
    for cost in costs:
        print(f"| {' | '.join(cost.row)} |")


if __name__ == "__main__":
    main()
