"""A token of a language model of seeded weights, resident on chips of 152 PEs: cycles, every tile exact.

    PYTHONPATH=kit:tests:. python benchmarks/transformers/language_model.py --blocks 1 --chips 1
        [--width 512] [--tokens 128] [--plan-only]

The blocks are LLaMA's: RMS norms, rotary embeddings, a gate of SiLU, keys and values of the last tokens kept on the
PEs. The first frame, which zeroes keys and values, is not counted. Tiles are compared on frames of noise; cycles are
measured on tokens. The default sizes are TinyLlama-42M's as in Bochem et al. (arXiv 2412.04372): 512 numbers a token, 8
heads, feed-forward layers of 2048, 8 blocks. Chips lie in one row, and a border carries `--link` bytes a cycle each
way.
"""

from __future__ import annotations

import argparse
import json
import resource
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
from benchmarks.state import commit, processor_seconds
from benchmarks.transformers.smollm2 import as_taken

from end_to_end.language_models import Sizes, save_model, save_samples
from npukit import api
from npukit.board.board import load_board
from npukit.link.session import Session
from npukit.measure.target import open_target
from npukit.pipeline import compile_network
from npukit.progress import Silent

BOARD = """
like = "pe-mesh"
name = "chips"
summary = "Chips of 152 PEs in a row"
[mesh]
chips = {{ columns = {chips}, rows = 1 }}
pes = {{ columns = 19, rows = 8 }}
[noc]
{noc}
"""
HEADER = ("blocks", "chips", "PEs", "weights", "predicted", "emulated", "difference", "us a token", "seconds to build")
CLOCK_MHZ = 300
TOKENS = 4
"""Tokens run for timing. The first is not reported."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--blocks", type=int, default=8)
    parser.add_argument("--chips", type=int, nargs="+", default=[4, 8])
    parser.add_argument("--width", type=int, default=512)
    parser.add_argument("--heads", type=int, default=8)
    parser.add_argument("--shared", type=int, default=1, help="heads that ask the same keys and values")
    parser.add_argument("--wide", type=int, help="numbers of a feed-forward layer; without it four times the width")
    parser.add_argument("--tokens", type=int, default=128)
    parser.add_argument("--link", type=float, default=2.5)
    parser.add_argument("--plan-only", action="store_true", help="predict, without a build and the emulator")
    given = parser.parse_args()
    print(f"| {' | '.join((*HEADER, 'peak MB', 'commit'))} |\n|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|---|")
    for chips in given.chips:
        wide = given.wide or 4 * given.width
        sizes = Sizes(given.width, given.heads, wide, given.blocks, given.tokens, given.shared)
        with TemporaryDirectory() as folder:
            case = Case(Path(folder), sizes, chips, given.link)
            told = columns(case, *(case.planned() if given.plan_only else case.measured()))
            print(f"| {given.blocks} | {chips} | {' | '.join(told)} | {commit()} |", flush=True)


def board_of(folder: Path, chips: int, link: float) -> str:
    """Write the board file and return its path."""
    board, noc = folder / "chips.toml", load_board("pe-mesh").noc
    assert noc is not None
    values = {**noc.model_dump(), "chip_links_per_border": 1, "chip_link_bytes_per_cycle": link}
    lines = (f"{key} = {json.dumps(value)}" for key, value in values.items())
    board.write_text(BOARD.format(chips=chips, noc="\n".join(lines)))
    return str(board)


@dataclass(frozen=True)
class Case:
    """A model on `chips` chips, in a folder of its own."""

    folder: Path
    sizes: Sizes
    chips: int
    link: float

    def given(self) -> tuple[Path, str, api.Options]:
        """Write model, samples and board; return the model, the board and the options."""
        model, samples = (self.folder / name for name in ("llama.onnx", "samples.npz"))
        states = save_model(model, self.sizes)
        save_samples(samples, self.sizes)
        options = api.Options(
            calibration=samples, target_db=0, io="int8", states=tuple(states.items()), pes=152 * self.chips
        )
        return model, board_of(self.folder, self.chips, self.link), options

    def planned(self) -> tuple[None, int, int, float]:
        """Number of PEs, predicted cycles of a token and processor seconds to plan, as `measured` without a run."""
        model, board, options = self.given()
        begun = processor_seconds()
        plan = compile_network(model, load_board(board), options, Silent()).plan
        return None, plan.pes_used, plan.predicted.latency_cycles, processor_seconds() - begun

    def measured(self) -> tuple[int, int, int, float]:
        """The largest emulated cycles of a token, PEs, predicted cycles and seconds to build. Asserts that every tile
        is exact."""
        model, board, options = self.given()
        begun, out = processor_seconds(), self.folder / "out"
        api.build(model, board=board, output=out, options=options)
        taken = processor_seconds() - begun
        found = api.validate(out)
        assert found.passed, found.mismatches
        plan = api.load(out).plan()
        return max(self.cycles(out)[1:]), plan.pes_used, plan.predicted.latency_cycles, taken

    def cycles(self, out: Path) -> list[int]:
        """Cycles of each of the first tokens of the samples. The first token zeroes keys and values.

        Each frame's inputs are written here, because frames run without new inputs read noise as slots, and write a
        token to many slots.
        """
        built = api.load(out)
        net, given = built.net(), np.load(self.folder / "samples.npz")
        taken = as_taken(net, [array[:TOKENS] for array in given.values()])
        with open_target(built, None) as target:
            target.session.reset_states()
            return [_cycles(target.session, frame) for frame in zip(*taken, strict=True)]


def _cycles(session: Session, frame: Sequence[np.ndarray]) -> int:
    """Cycles of a frame with the given inputs."""
    for index, array in enumerate(frame):
        session.write_input(index, array.tobytes())
    return session.run().cycles


def columns(case: Case, emulated: int | None, pes: int, predicted: int, seconds: float) -> Iterator[str]:
    yield from (str(pes), f"{case.sizes.weights:,}", f"{predicted:,}")
    cycles = predicted if emulated is None else emulated
    yield from ("-", "-") if emulated is None else (f"{emulated:,}", f"{predicted / emulated - 1:+.1%}")
    yield from (f"{cycles / CLOCK_MHZ:.0f}", f"{seconds:.0f}")
    yield f"{resource.getrusage(resource.RUSAGE_SELF).ru_maxrss >> 10:,}"


if __name__ == "__main__":
    main()
