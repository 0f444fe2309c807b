"""Effect of the tuned constants of the core's kernels: the same networks planned with other values.

    PYTHONPATH=kit:tests:. python benchmarks/core/kernel_constants.py MODEL... [--transformers]

Each constant of `TUNED` is set in turn to each of the other values, and each model is planned for a single Cortex-M4. A
line shows, model by model, how much longer the chosen kernels take than with the current value (instructions and
cycles, weighted alike), and in brackets the additional bytes of flash and of SRAM.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from benchmarks.large.planner_constants import constant

from end_to_end import language_models, transformers
from npukit.accel.cortex_m.code.block_shape import Unrolling
from npukit.board.board import load_board
from npukit.options import Options
from npukit.pipeline import Prepared, plan_on, prepare
from npukit.plan.ir.plan import PePlan
from npukit.progress import Silent

BOARD = "mps2-an386"
TUNED: Mapping[str, Sequence[Any]] = {
    "network._MACS_PER_BYTE_WORTH": (100_000, 1_000_000),
    "network._WORTH_SAVING": (0.5, 0.9),
    "network._WORTH_SPENDING": (1.0, 1.1),
    "code.gather._UNROLLED_WORDS": (8, 64),
    "code.gather._LOOPED_WORDS": (4, 16),
    "kernels.convolution._UNROLLINGS": ((Unrolling(2, 4),), (Unrolling(8, 32),)),
    "kernels.dense._UNROLLINGS": (((2, 2),), ((8, 20),)),
    "kernels.depthwise._COLUMN_ROUNDS": ((1,), (1, 4)),
    "kernels.pool._UNROLLED_TAPS": (5, 50),
    "kernels.add._UNROLLED": (4, 64),
    "kernels.border._UNROLLED_CHUNKS": (1, 16),
    "kernels.to_planes._UNROLLED_PAIRS": (1, 16),
    "kernels.transpose._UNROLLED_WORDS": (1, 16),
    "kernels.transpose._UNROLLED_BYTES": (4, 64),
    "kernels.product._UNROLLED": (4, 64),
    "kernels.product._AT_ONCE": (1,),
    "kernels.rows.UNROLLED": (4, 64),
    "kernels.written._UNROLLED": (16, 128),
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", type=Path, nargs="*")
    parser.add_argument("--transformers", action="store_true")
    parser.add_argument("--constants", nargs="*", default=list(TUNED))
    given = parser.parse_args()
    nets = {model.stem: prepared(model, Options()) for model in given.models}
    if given.transformers:
        nets |= small_transformers()
    usual = planned(nets.values())
    print("| constant | value | " + " | ".join(nets) + " |")
    print("|---|---|" + "--:|" * len(nets))
    for name in given.constants:
        values = TUNED[name]
        for value in values:
            with constant(f"accel.cortex_m.{name}", value):
                found = planned(nets.values())
            cells = map(compared, usual, found)
            print(f"| `{name}` | {value} | " + " | ".join(cells) + " |", flush=True)


def prepared(model: Path, options: Options) -> Prepared:
    return prepare(model, load_board(BOARD), options, Silent())


def small_transformers() -> dict[str, Prepared]:
    """Two small transformers, for images and for tokens."""
    with TemporaryDirectory() as folder:
        model, samples = Path(folder, "model.onnx"), Path(folder, "samples.npz")
        images = transformers.Sizes(side=8, width=32, heads=4)
        transformers.save_model(model, images)
        transformers.save_samples(samples, images)
        found = {"2 blocks, images": prepared(model, Options(calibration=samples, io="int8"))}
        tokens = language_models.Sizes(64, 4, 128, 2, 32)
        states = language_models.save_model(model, tokens)
        language_models.save_samples(samples, tokens)
        options = Options(calibration=samples, io="int8", states=tuple(states.items()))
        return found | {"2 blocks, tokens": prepared(model, options)}


def planned(nets: Iterable[Prepared]) -> list[PePlan]:
    """The core's plan of each network, with its kernels generated again: caches are cleared first."""
    modules = [vars(module) for name, module in sys.modules.items() if name.startswith("npukit.accel")]
    for each in {id(value): value for names in modules for value in names.values()}.values():
        if hasattr(each, "cache_clear"):
            each.cache_clear()
    board = load_board(BOARD)
    return [plan_on(board, net, Options(), Silent()).plan.pes[0] for net in nets]


def compared(usual: PePlan, found: PePlan) -> str:
    longer = cycles(found) / cycles(usual) - 1
    flash = found.memory.code + found.memory.constants - usual.memory.code - usual.memory.constants
    return f"{longer:+.1%} ({flash:+,}, {found.memory.activations - usual.memory.activations:+,})"


def cycles(pe: PePlan) -> int:
    return sum(step.predicted_cycles for step in pe.computes())


if __name__ == "__main__":
    main()
