"""Generated Cortex-M4 kernels on the MLPerf Tiny networks: instructions beside TensorFlow Lite Micro with CMSIS-NN.

    python benchmarks/cortex_m_kernels.py MODELS [--layers]

MODELS holds NAME.tflite and NAME.npz (`in0`, and `out0_tflm` or `out0`). Every kernel runs on an emulated Cortex-M4,
every count is of executed instructions, and the outputs must equal the golden ones. Cycles are those of the reference
manual's table without wait states, not measured.
"""

from __future__ import annotations

import argparse
import sys
from dataclasses import dataclass
from pathlib import Path

import numpy as np

CHECKOUT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(CHECKOUT / "kit"), str(CHECKOUT / "tests")]

from codegen.cortex_m import laboratory  # noqa: E402
from npukit.codegen.cortex_m.from_net import nodes_of  # noqa: E402
from npukit.codegen.cortex_m.network import Choice, choose  # noqa: E402
from npukit.codegen.cortex_m.prune import without_dead_channels  # noqa: E402
from npukit.frontend.models import load_net_from_model  # noqa: E402


@dataclass(frozen=True)
class Peer:
    """TensorFlow Lite Micro with CMSIS-NN: instructions of one inference, the bytes of its code, its arena and stack.

    arm-none-eabi-gcc 12.2, kernels -O2, core -Os, default registrations; counted under QEMU.
    """

    instructions: int
    code: int
    ram: int


PEERS = {
    "kws_ref_model": Peer(7_701_741, 91_264, 24_360),
    "pretrainedResnet_quant": Peer(29_862_439, 86_080, 56_536),
    "vww_96_int8": Peer(24_102_778, 91_264, 102_248),
    "ad01_int8": Peer(583_201, 36_640, 3_624),
}
_WIDTHS = (13, 8, 12, 11, 8, 8)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", type=Path)
    parser.add_argument("--layers", action="store_true", help="a line for each kernel call")
    arguments = parser.parse_args()
    _print_row("network", "", "instructions", "share", "cycles", "constants", "code", "RAM")
    for name, peer in PEERS.items():
        nodes = nodes_of(load_net_from_model(arguments.models / f"{name}.tflite"))
        if isinstance(nodes, str):
            raise SystemExit(nodes)
        _print_row(name, "CMSIS-NN", peer.instructions, "1", "", "", peer.code, peer.ram)
        for objective in ("latency", "memory"):
            choice = choose(without_dead_channels(nodes), objective=objective)
            _check(arguments.models / f"{name}.npz", choice)
            _print_network(name, objective, choice, peer)
            if arguments.layers:
                _print_calls(choice)


def _check(golden: Path, choice: Choice) -> None:
    """Run the first case: the output must be the golden one, the instructions those predicted."""
    arrays = np.load(golden)
    wanted = arrays["out0_tflm" if "out0_tflm" in arrays else "out0"][0]
    output, instructions = laboratory.run_network(choice, arrays["in0"][0])
    if not np.array_equal(output.view(np.int8), wanted.ravel()):
        raise SystemExit(f"{golden.stem}: the output is not the golden one")
    if instructions != choice.instructions:
        raise SystemExit(f"{golden.stem}: {instructions} instructions, {choice.instructions} predicted")


def _print_network(name: str, objective: str, choice: Choice, peer: Peer) -> None:
    share = choice.instructions / peer.instructions
    ram = choice.live_bytes + max(kernel.stack_bytes for kernel in choice.kernels)
    sizes = (choice.constant_bytes, choice.code_bytes, ram)
    _print_row(name, objective, choice.instructions, f"{share:.4f}", choice.cycles, *sizes)


def _print_row(name: str, objective: str, *cells: int | str) -> None:
    texts = (f"{cell:,}" if isinstance(cell, int) else cell for cell in cells)
    row = "".join(text.rjust(width) for text, width in zip(texts, _WIDTHS, strict=True))
    print(f"{name:24}{objective:10}{row}", flush=True)


def _print_calls(choice: Choice) -> None:
    for kernel in choice.kernels:
        print(
            f"    {kernel.symbol:28}{kernel.variant:36}{kernel.instructions:11,}{kernel.cycles:12,}"
            f"{kernel.constant_bytes:9,}{kernel.code_bytes:8,}  {kernel.condition}"
        )


if __name__ == "__main__":
    main()
