"""Sharing of each kind of op: cycles of the op on a PE, and of the slowest tile on several PEs.

    python benchmarks/mesh/shares.py [NAME ...] [--board pe-mesh] [--pes 16] [--save FILE.md]
    python benchmarks/mesh/shares.py MODEL... [--float]

The first form takes networks of a single op: of `benchmarks/lone_ops.py`, and of float ops. Cycles are the planner's
costs, summed over the ops of the imported network, without messages. `PEs`: the PEs of the fastest split of the
costliest op.

The second form plans networks. It prints each op with more than a third of the predicted frame, if at least half of the
PEs have no tile of the op.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import prod
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tests"))

from benchmarks import lone_ops
from benchmarks.mesh.lonely import lonely
from benchmarks.planner import imported

from frontend.onnx_models import Graph as OnnxGraph
from npukit.board.board import load_board
from npukit.errors import NpukitError
from npukit.options import Options
from npukit.pipeline import Prepared, plan_on
from npukit.plan.layout.splits import Splits
from npukit.plan.predict.frame_table import predicted_frame
from npukit.plan.predict.kernels import with_kernels
from npukit.plan.tensors.graph import Graph
from npukit.plan.tensors.problem import Problem
from npukit.progress import Silent

HEAD = ("| op | ops | values | cycles a value, 1 PE | many PEs | speed-up | PEs |", "|---|---|--:|--:|--:|--:|--:|")
OF_MODELS = ("| network | op | frame | of it | PEs |", "|---|---|--:|--:|--:|")
CHOICES = 8
"""Splits of an op, as the planner lists them."""

ROW, ROWS, IMAGE = (1, 512), (1, 64, 128), (1, 32, 16, 16)
FLOATS: Mapping[str, tuple[str, tuple[int, ...], Sequence[tuple[int, ...] | list[int]], Mapping[str, Any]]] = {
    "float softmax of a row": ("Softmax", ROW, (), {"axis": -1}),
    "float layer norm of a row": ("LayerNormalization", ROW, ((512,), (512,)), {"axis": -1}),
    "float product of a row": ("MatMul", ROW, ((512, 128),), {}),
    "float dense of a row": ("Gemm", ROW, ((128, 512), (128,)), {"transB": 1}),
    "float L2 norm of a row": ("LpNormalization", ROW, (), {"axis": -1, "p": 2}),
    "float mean of a row": ("ReduceMean", ROW, (), {"axes": [1]}),
    "float argmax of a row": ("ArgMax", ROW, (), {"axis": 1}),
    "float running sum of a row": ("CumSum", ROW, ([1],), {}),
    "float softmax": ("Softmax", ROWS, (), {"axis": -1}),
    "float layer norm": ("LayerNormalization", ROWS, ((128,), (128,)), {"axis": -1}),
    "float product": ("MatMul", ROWS, ((128, 64),), {}),
    "float mean of rows": ("ReduceMean", ROWS, (), {"axes": [2]}),
    "float mean of channels": ("ReduceMean", IMAGE, (), {"axes": [1]}),
    "float mean of pixels": ("GlobalAveragePool", IMAGE, (), {}),
    "float instance norm": ("InstanceNormalization", IMAGE, ((32,), (32,)), {}),
    "float norm of one channel": ("InstanceNormalization", (1, 1, 4096), ((1,), (1,)), {}),
    "float norm of four channels": ("InstanceNormalization", (1, 4, 2048), ((4,), (4,)), {}),
    "float softmax of channels": ("Softmax", IMAGE, (), {"axis": 1}),
    "float resize": ("Resize", IMAGE, (), {"mode": "linear"}),
    "float convolution": ("Conv", IMAGE, ((32, 32, 3, 3),), {"pads": [1, 1, 1, 1]}),
    "float transpose": ("Transpose", IMAGE, (), {"perm": [0, 2, 3, 1]}),
    "float gather of channels": ("Gather", IMAGE, ([3, 1, 30, 7],), {"axis": 1}),
}
"""Networks of a float op: kind in ONNX, shape of the input, shapes of the constants or their integers, attributes."""


@dataclass(frozen=True)
class Shared:
    """The cycles of an op whole, and of the slowest tile of its fastest split on a number of PEs."""

    kind: str
    whole: int
    slowest: int
    pes: int


def shared(prepared: Prepared, board: str, pes: int) -> Iterator[Shared]:
    """The ops of a network without the free ones."""
    problem = with_kernels(Problem(Graph(prepared.net), load_board(board), prepared.engines, max_pes=pes))
    splits = Splits(problem, len(problem.order))
    for index, choices in enumerate(splits.candidates(CHOICES)):
        op = problem.graph.ops[index]
        whole = splits.cost(index, tuple(1 for _ in problem.net.tensor(op.output).shape)).cycles
        fastest = min(choices, key=lambda split: (splits.cost(index, split).cycles, prod(split)))
        yield Shared(op.kind, whole, splits.cost(index, fastest).cycles, prod(fastest))


def written(name: str, folder: Path) -> Path:
    """The file of a network of an op."""
    if name not in FLOATS:
        return lone_ops.written(name, folder)
    kind, shape, constants, attributes = FLOATS[name]
    random, graph = np.random.default_rng(1), OnnxGraph()
    values = [
        np.array(each) if isinstance(each, list) else random.normal(size=each).astype(np.float32) for each in constants
    ]
    given = ["x", *(graph.constant(f"c{place}", value) for place, value in enumerate(values))]
    given += ["", graph.constant("scales", np.array([1, 1, 2, 2], np.float32))] if kind == "Resize" else []
    graph.node(kind, given, "y", **attributes)
    model = graph.model({"x": shape}, "y", "float32", "int64" if kind == "ArgMax" else "")
    path = folder / "op.onnx"
    path.write_bytes(model.SerializeToString())
    return path


def row_of_op(name: str, board: str, pes: int) -> str:
    in_float = name in FLOATS
    with tempfile.TemporaryDirectory() as folder:
        prepared = imported(written(name, Path(folder)), board, Options(pes=pes, in_float=in_float))
    ops, net = [each for each in shared(prepared, board, pes) if each.whole], prepared.net
    values = max(sum(net.tensor(each).elements for each in names) for names in (net.inputs[:1], net.outputs))
    whole, slowest = sum(each.whole for each in ops), sum(each.slowest for each in ops)
    used = max(ops, key=lambda each: each.slowest).pes
    figures = f"{whole / values:.1f} | {slowest / values:.2f} | {whole / slowest:.1f} | {used}"
    return f"| {name} | {' '.join(each.kind for each in ops)} | {values:,} | {figures} |"


def rows_of_model(model: Path, board: str, pes: int, *, in_float: bool) -> Iterator[str]:
    """A row for each op with too much of the frame on too few PEs."""
    options = Options(pes=pes, in_float=in_float)
    compiled = plan_on(load_board(board), imported(model, board, options), options, Silent())
    table, plan = predicted_frame(compiled.net, load_board(board), compiled.plan), compiled.plan
    frame, found = sum(table.values()), list(lonely(compiled.net, plan, table, pes))
    for each in found:
        yield f"| {model.stem} | {each.op.name}: {each.op.title} | {frame:,} | {each.part:.0%} | {each.pes} |"
    if not found:
        yield f"| {model.stem} | none | {frame:,} | | {plan.pes_used} |"


def rows(given: argparse.Namespace) -> Iterator[str]:
    models = [Path(name) for name in given.names if Path(name).is_file()]
    yield from OF_MODELS if models else HEAD
    for name in given.names:
        try:
            if models:
                yield from rows_of_model(Path(name), given.board, given.pes, in_float=given.float)
            else:
                yield row_of_op(name, given.board, given.pes)
        except NpukitError as error:  # a kind that is refused is a row too
            yield f"| {name} | refused: {error.message} | | | | | |"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", default=(*lone_ops.NAMES, *FLOATS), metavar="NAME or MODEL")
    parser.add_argument("--board", default="pe-mesh")
    parser.add_argument("--pes", type=int, default=16)
    parser.add_argument("--float", action="store_true", help="computes a float model in float")
    parser.add_argument("--save", type=Path)
    given, lines = parser.parse_args(), list[str]()
    for line in rows(given):
        lines.append(line)
        print(line, flush=True)
    if given.save:
        given.save.write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
