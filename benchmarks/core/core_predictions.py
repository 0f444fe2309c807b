"""Predicted and emulated cycles of the core's ops, for every kind, in C and in assembly where the planner chooses
assembly.

    python benchmarks/core/core_predictions.py [KIND ...] [--shapes 6] [--toolchain gcc zig]

Ops of random shapes, each of a thousand cycles or more, run on one PE of `pe-mesh`. The ops of a network do not depend
on each other. Rows `in assembly` count the ops with assembly kernels. The others are C made by TVM, with cycles that
depend on the compiler. The error is the prediction's excess: the mean over shapes and compilers, and the worst. Every
output is compared with the reference.

    python benchmarks/core/core_predictions.py --functions [NAME ...]

Cycles of the mathematical functions called by C in float (`MATH` in `kit/npukit/net/c_code/function.py`). Each function
is a separate op, called for 256 numbers from -8 to 8, the range of golden cases, or from a part of the function's
domain. The printed cycles of a call leave out the loop around the call, the call instruction, loads and stores.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tests"))

from codegen.random_ops import MAKERS, Bundle
from npukit.accel.cpu import Cpu
from npukit.board.board import load_board
from npukit.codegen.generate import generate
from npukit.emulator.builtin import Emulator
from npukit.link.session import Session
from npukit.measure.bench import bench
from npukit.measure.golden import golden
from npukit.measure.target import Target
from npukit.net.c_code.function import MATH
from npukit.net.check import check_net
from npukit.net.importer.tir.cycles import CALL, FLOAT, LOAD, STORE, TURN
from npukit.net.net import Net, Op
from npukit.net.ops import TvmCode
from npukit.net.tensor import Tensor
from npukit.plan.planner import Planned, plan_network, plan_with_kernels
from npukit.plan.tensors.graph import Graph
from npukit.plan.tensors.problem import Problem
from npukit.progress import Silent
from npukit.project.compile import build_images
from npukit.project.images.image import Image
from npukit.project.render import About, render_project
from npukit.project.toolchain import find_toolchain

BUILD_ID = "5b" * 16
BOARD = load_board("pe-mesh")
SCALE = 2
"""Factor by which axes are longer than in the tests of exactness."""
SMALL = 1000
"""Least cycles of a measured op. In shorter ops the cost of a call outweighs the op."""
OBSERVED = 44
"""Cycles added to a layer by the stop after it, needed to measure the layer."""


@dataclass(frozen=True)
class Measured:
    """Predicted and measured cycles of an op."""

    kind: str
    name: str
    shape: tuple[int, ...]
    assembled: bool
    predicted: int
    cycles: int

    @property
    def error(self) -> float:
        return self.predicted / self.cycles - 1


def random_net(kinds: Sequence[str], seed: int) -> Net:
    """A network with an op of each kind."""
    bundle = Bundle(np.random.default_rng(seed), scale=SCALE)
    for kind in kinds:
        MAKERS[kind](bundle)
    return check_net(bundle.net())


def planned(net: Net, *, plain: bool) -> Planned:
    """The net's plan on one PE. `plain`: everything in C."""
    if plain:
        engines = {"cpu": Cpu()}
        return Planned(plan_network(net, BOARD, engines, max_pes=1), net, engines, {})
    return plan_with_kernels(Problem(Graph(net), BOARD, {"cpu": Cpu()}, max_pes=1), "latency")


def measured(net: Net, toolchain: str, *, plain: bool) -> Iterator[Measured]:
    found = planned(net, plain=plain)
    with tempfile.TemporaryDirectory() as folder:
        sources = generate(net, found.plan, BOARD, found.engines, bytes.fromhex(BUILD_ID))
        project = render_project(sources, BOARD, About(net.name, BUILD_ID), Path(folder) / "project")
        (image,) = build_images(project, find_toolchain(toolchain), Path(folder) / "images")
        emulator = Emulator(BOARD, [Image(image.elf, image.pes)])
        with emulator, Session(emulator, bytes.fromhex(BUILD_ID)) as session:
            target = Target("emulator", session, BOARD)
            run = bench(target, net, found.plan, golden(net).cases, BOARD.core.clock_hz, 1, Silent())
    ops = {op.name: op for op in net.ops}
    for layer in run.layers:
        assembled = not found.kernels.get(layer.name, "plain C").startswith("plain C")
        op = ops[layer.name]
        shape, taken = net.tensor(op.output).shape, (layer.cycles or 0) - OBSERVED
        yield Measured(op.kind, layer.name, shape, assembled, layer.predicted_cycles, taken)


def table(rows: Mapping[tuple[str, bool], Sequence[Measured]]) -> Iterator[str]:
    """A line for each kind, in assembly and in C."""
    yield "| op | made | ops | mean error | worst |"
    yield "|---|---|---:|---:|---:|"
    for (kind, assembled), found in sorted(rows.items()):
        mean = sum(each.predicted for each in found) / sum(each.cycles for each in found) - 1
        worst = max((each.error for each in found), key=abs)
        yield f"| {kind} | in {'assembly' if assembled else 'C'} | {len(found)} | {mean:+.1%} | {worst:+.1%} |"


# ---- functions of floats ----

CALLS = 256
DOMAINS: Mapping[str, tuple[float, float]] = {
    **dict.fromkeys(("acosf", "asinf", "atanhf"), (-0.95, 0.95)),
    **dict.fromkeys(("log10f", "log1pf", "log2f", "logf", "powf", "sqrtf"), (0.05, 4)),
    "acoshf": (1, 4),
}
SECOND = {"atan2f": "p2[i]", "copysignf": "p2[i]", "fmodf": "p2[i]", "hypotf": "p2[i]", "powf": "p2[i]", "ldexpf": "3"}


def code_of(name: str) -> str:
    given = ", ".join(("p1[i]", *([SECOND[name]] if name in SECOND else [])))
    loop = f"  for (int32_t i = 0; i < {CALLS}; ++i) {{\n    output[i] = {name}({given});\n  }}\n"
    return f"{loop}  output[0] = output[0] + p0[0];\n"


def net_of(name: str) -> Net:
    """A network of one function's calls. Arguments are constants, because an activation may lie outside the domain."""
    random = np.random.default_rng(5)
    low, high = DOMAINS.get(name, (-8, 8))
    constants = {
        "first": random.uniform(low, high, CALLS).astype(np.float32),
        "second": random.uniform(0.5, 3, CALLS).astype(np.float32),
    }
    tensors = [Tensor("x", (1, 1), "float32"), Tensor("y", (1, CALLS), "float32")]
    tensors += [Tensor(each, (CALLS,), "float32") for each in constants]
    inputs = ("x", "first", *(["second"] if "p2" in code_of(name) else []))
    op = Op("y", TvmCode(name, code_of(name)), inputs, ("y",))
    kept = {each.name: each for each in tensors if each.name in (*inputs, "y")}
    return check_net(Net(name, ("x",), ("y",), (op,), kept, {each: constants[each] for each in inputs[1:]}))


def function_cycles(name: str, toolchain: str) -> float:
    """The cycles of a call."""
    (found,) = measured(net_of(name), toolchain, plain=True)
    loads = LOAD[FLOAT] * (2 if "p2" in code_of(name) else 1)
    return found.cycles / CALLS - (TURN + loads + CALL + STORE[FLOAT])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("kinds", nargs="*", default=sorted(MAKERS), metavar="KIND")
    parser.add_argument("--shapes", type=int, default=6)
    parser.add_argument("--toolchain", nargs="+", default=["gcc", "zig"])
    parser.add_argument("--each", action="store_true", help="a line for each op too")
    parser.add_argument("--functions", nargs="*", metavar="NAME", help="functions of floats instead of ops")
    given = parser.parse_args()
    if given.functions is not None:
        for name in given.functions or sorted(MATH):
            print(f"{name} {function_cycles(name, given.toolchain[0]):.0f}", flush=True)
        return
    rows: dict[tuple[str, bool], list[Measured]] = {}
    for seed in range(given.shapes):
        net = random_net(given.kinds, seed)
        for toolchain in given.toolchain:
            for plain in (False, True):
                for each in measured(net, toolchain, plain=plain):
                    if each.assembled != plain and each.cycles >= SMALL:
                        rows.setdefault((each.kind, each.assembled), []).append(each)
                        if given.each:
                            print(toolchain, each, f"{each.error:+.1%}", flush=True)
    print("\n".join(table(rows)))


if __name__ == "__main__":
    main()
