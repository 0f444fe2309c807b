"""Cycles of each kind of op by itself, per value: of a network of one int8 op on one PE of a board.

    python benchmarks/lone_ops.py [NAME ...] [--board pe-mesh] [--save FILE.md]

Networks are TFLite and ONNX files that the command writes. A value is an element of the larger of input and output.
The cycles are those of the layers on the built-in emulator, without the frame around them and without the stop after
each layer; outputs equal the reference. `engine`: engines of the op's layers. `ops`: the layers' kinds.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests"))

from frontend.onnx_models import Graph
from frontend.tflite_bundle import Bundle, Quantized
from npukit import api
from npukit.net.net import Net
from npukit.options import Options

OBSERVED = 44
"""Cycles that the stop after a layer adds to the layer."""
IMAGE = (1, 16, 16, 32)
ROWS = (1, 64, 128)
USUAL, WIDE, SHARE = Quantized(0.05, 3), Quantized(0.08, -5), Quantized(1 / 256, -128)
HEAD = ("| op | ops | engine | values | cycles a value |", "|---|---|---|---:|---:|")

Maker = Callable[[Bundle], None]


@dataclass(frozen=True)
class Measured:
    """The cycles of a network of one op."""

    name: str
    ops: tuple[str, ...]
    engines: tuple[str, ...]
    values: int
    cycles: int

    def __str__(self) -> str:
        cells = (self.name, " ".join(self.ops), " ".join(self.engines), f"{self.values:,}")
        return f"| {' | '.join(cells)} | {self.cycles / self.values:.1f} |"


# ---- ops of TFLite ----


def one(bundle: Bundle, code: str, table: str = "", given: Quantized = WIDE, **options: Any) -> None:
    """An op with one input and a result of the same shape."""
    bundle.op(code, [bundle.input(IMAGE, USUAL)], bundle.output(IMAGE, given), table, **options)


def two(bundle: Bundle, code: str, table: str = "", other: Quantized = WIDE, result: Quantized = WIDE) -> None:
    bundle.op(code, [bundle.input(IMAGE, USUAL), bundle.input(IMAGE, other)], bundle.output(IMAGE, result), table)


def constant(
    bundle: Bundle, code: str, shape: tuple[int, ...], table: str = "", given: Quantized = USUAL, zero: int = 0
) -> None:
    """An op with a constant of a shape."""
    operand = bundle.constant(bundle.values(shape), given.scale, zero)
    bundle.op(code, [bundle.input(IMAGE, USUAL), operand], bundle.output(IMAGE, given), table)


def rescaling(bundle: Bundle) -> None:
    """Rescaling of Keras: a product and a sum with numbers."""
    numbers = [bundle.constant(np.array([value], np.int8), scale, -128) for value, scale in ((127, 1.5e-5), (90, 4e-3))]
    between = bundle.between(IMAGE)
    bundle.op("MUL", [bundle.input(IMAGE, Quantized(1.0, -128)), numbers[0]], between, "Mul")
    bundle.op("ADD", [between, numbers[1]], bundle.output(IMAGE, USUAL), "Add")


def reduced(bundle: Bundle, code: str, axes: tuple[int, ...], given: Quantized = USUAL) -> None:
    shape = tuple(1 if axis in axes else size for axis, size in enumerate(IMAGE))
    places = bundle.constant(np.array(axes, np.int32))
    bundle.op(code, [bundle.input(IMAGE, USUAL), places], bundle.output(shape, given), "Reducer", KeepDims=True)


def argmax(bundle: Bundle, axis: int, shape: tuple[int, ...] = IMAGE) -> None:
    place = bundle.constant(np.array(axis, np.int32))
    result = bundle.output((*shape[:axis], *shape[axis + 1 :]), dtype="int32")
    bundle.op("ARG_MAX", [bundle.input(shape, USUAL), place], result, "ArgMax", OutputType=2)


def resized(bundle: Bundle, code: str, table: str, factor: int = 2, **options: bool) -> None:
    _, height, width, channels = IMAGE
    size = bundle.places(height * factor, width * factor)
    made = bundle.output((1, height * factor, width * factor, channels), USUAL)
    bundle.op(code, [bundle.input(IMAGE, USUAL), size], made, table, **options)


def softmax(bundle: Bundle) -> None:
    bundle.op("SOFTMAX", [bundle.input(ROWS, USUAL)], bundle.output(ROWS, SHARE), "Softmax", Beta=1.0)


def dense(bundle: Bundle) -> None:
    weights = bundle.constant(bundle.values((64, 512)), [0.002], 0)
    bias = bundle.constant(bundle.random.integers(-500, 500, 64).astype(np.int32), [1e-4], 0)
    bundle.op(
        "FULLY_CONNECTED",
        [bundle.input((1, 512), USUAL), weights, bias],
        bundle.output((1, 64), WIDE),
        "FullyConnected",
    )


def embedding(bundle: Bundle) -> None:
    table = bundle.constant(bundle.values((100, 64)), 0.05, 3)
    indices = bundle.model.tensor(bundle.name(), (1, 32), dtype="int32")
    bundle.model.inputs.append(indices)
    bundle.data.append(bundle.random.integers(0, 100, (1, 32)).astype(np.int32))
    bundle.op("GATHER", [table, indices], bundle.output((1, 32, 64), USUAL), "Gather", Axis=0)


def transposed(bundle: Bundle) -> None:
    axes = bundle.constant(np.array((0, 3, 1, 2), np.int32))
    bundle.op("TRANSPOSE", [bundle.input(IMAGE, USUAL), axes], bundle.output((1, 32, 16, 16), USUAL), "Transpose")


def concatenated(bundle: Bundle) -> None:
    parts = [bundle.input((1, 16, 16, 16), USUAL) for _ in range(2)]
    bundle.op("CONCATENATION", parts, bundle.output(IMAGE, USUAL), "Concatenation", Axis=3)


def padded(bundle: Bundle) -> None:
    widths = bundle.constant(np.array([(0, 0), (1, 1), (1, 1), (0, 0)], np.int32))
    bundle.op("PAD", [bundle.input(IMAGE, USUAL), widths], bundle.output((1, 18, 18, 32), USUAL), "Pad")


def quantized_reals(bundle: Bundle) -> None:
    """Floats to int8 and on through an op of int8."""
    between = bundle.model.tensor(bundle.name(), IMAGE, dtype="float32")
    bundle.op("CAST", [bundle.input(IMAGE, USUAL)], between, "Cast")
    bundle.op("QUANTIZE", [between], bundle.output(IMAGE, USUAL))


def selected(bundle: Bundle) -> None:
    condition = bundle.model.tensor(bundle.name(), IMAGE, dtype="bool")
    limit = bundle.constant(bundle.values((1,)), USUAL.scale, USUAL.zero)
    choices = [bundle.input(IMAGE, USUAL) for _ in range(2)]
    bundle.op("GREATER", [choices[0], limit], condition, "Greater")
    bundle.op("SELECT_V2", [condition, *choices], bundle.output(IMAGE, USUAL), "SelectV2")


def cumulative(bundle: Bundle) -> None:
    axis = bundle.constant(np.array(1, np.int32))
    bundle.op("CUMSUM", [bundle.input(ROWS, USUAL), axis], bundle.output(ROWS, Quantized(0.5, 0)), "Cumsum")


def gated(bundle: Bundle) -> None:
    """Channels times a number each, which is an activation: squeeze and excitation."""
    operands = [bundle.input(IMAGE, USUAL), bundle.input(CHANNELS, SHARE)]
    bundle.op("MUL", operands, bundle.output(IMAGE, USUAL), "Mul")


def compared(bundle: Bundle, code: str, other: Quantized) -> None:
    condition = bundle.model.tensor(bundle.name(), IMAGE, dtype="bool")
    choices = [bundle.input(IMAGE, USUAL), bundle.input(IMAGE, other)]
    bundle.op(code, choices, condition, code.title())
    bundle.op("SELECT_V2", [condition, choices[0], choices[0]], bundle.output(IMAGE, USUAL), "SelectV2")


def gathered(bundle: Bundle) -> None:
    """Rows of an activation."""
    places = bundle.constant(bundle.random.integers(0, 16, 16).astype(np.int32))
    bundle.op("GATHER", [bundle.input(IMAGE, USUAL), places], bundle.output(IMAGE, USUAL), "Gather", Axis=1)


def tiled(bundle: Bundle) -> None:
    times = bundle.places(1, 2, 2, 1)
    bundle.op("TILE", [bundle.input((1, 8, 8, 32), USUAL), times], bundle.output(IMAGE, USUAL), "Tile")


def mirrored(bundle: Bundle) -> None:
    widths = bundle.constant(np.array([(0, 0), (1, 1), (1, 1), (0, 0)], np.int32))
    bundle.op("MIRROR_PAD", [bundle.input(IMAGE, USUAL), widths], bundle.output((1, 18, 18, 32), USUAL), "MirrorPad")


CHANNELS, NUMBER = (1, 1, 1, 32), (1,)
EQUAL = Quantized(USUAL.scale, USUAL.zero)
MAKERS: Mapping[str, Maker] = {
    "add": partial(two, code="ADD", table="Add"),
    "add of a number": partial(constant, code="ADD", shape=NUMBER, table="Add"),
    "add by channel": partial(constant, code="ADD", shape=CHANNELS, table="Add"),
    "sub": partial(two, code="SUB", table="Sub"),
    "sub by channel": partial(constant, code="SUB", shape=CHANNELS, table="Sub"),
    "mul": partial(two, code="MUL", table="Mul"),
    "mul by a number": partial(constant, code="MUL", shape=NUMBER, table="Mul"),
    "mul by channel": partial(constant, code="MUL", shape=CHANNELS, table="Mul"),
    "mul by activations of channels": gated,
    "mul by channel, zero -128": partial(constant, code="MUL", shape=CHANNELS, table="Mul", zero=-128),
    "Rescaling of Keras": rescaling,
    "maximum": partial(two, code="MAXIMUM", table="MaximumMinimum", other=EQUAL, result=EQUAL),
    "maximum of a number": partial(constant, code="MAXIMUM", shape=NUMBER, table="MaximumMinimum", zero=3),
    "squared difference": partial(two, code="SQUARED_DIFFERENCE", table="SquaredDifference"),
    "div": partial(two, code="DIV", table="Div"),
    "greater and select": selected,
    "greater of two": partial(compared, code="GREATER", other=EQUAL),
    "greater of two scales": partial(compared, code="GREATER", other=WIDE),
    "prelu by channel": partial(constant, code="PRELU", shape=(1, 1, 32)),
    "relu": partial(one, code="RELU"),
    "logistic": partial(one, code="LOGISTIC", given=SHARE),
    "hard swish": partial(one, code="HARD_SWISH", table="HardSwish"),
    "quantize int8": partial(one, code="QUANTIZE"),
    "quantize floats": quantized_reals,
    "softmax": softmax,
    "mean of pixels": partial(reduced, code="MEAN", axes=(1, 2)),
    "mean of channels": partial(reduced, code="MEAN", axes=(3,)),
    "sum of channels": partial(reduced, code="SUM", axes=(3,), given=Quantized(0.5, 0)),
    "sum of pixels": partial(reduced, code="SUM", axes=(1, 2), given=Quantized(0.5, 0)),
    "maximum of channels": partial(reduced, code="REDUCE_MAX", axes=(3,)),
    "maximum of pixels": partial(reduced, code="REDUCE_MAX", axes=(1, 2)),
    "argmax of channels": partial(argmax, axis=3),
    "argmax of a row": partial(argmax, axis=1, shape=(1, 4096)),
    "running sum": cumulative,
    "resize nearest": partial(resized, code="RESIZE_NEAREST_NEIGHBOR", table="ResizeNearestNeighbor"),
    "resize bilinear": partial(resized, code="RESIZE_BILINEAR", table="ResizeBilinear"),
    "resize bilinear, half pixels": partial(
        resized, code="RESIZE_BILINEAR", table="ResizeBilinear", HalfPixelCenters=True
    ),
    "resize bilinear, aligned corners": partial(
        resized, code="RESIZE_BILINEAR", table="ResizeBilinear", AlignCorners=True
    ),
    "transpose": transposed,
    "concatenation": concatenated,
    "pad": padded,
    "dense of one pixel": dense,
    "embedding": embedding,
    "gather of rows": gathered,
    "tile": tiled,
    "mirror pad": mirrored,
    "l2 norm": partial(one, code="L2_NORMALIZATION", table="L2Norm", given=Quantized(1 / 128, 0)),
    "minimum of channels": partial(reduced, code="REDUCE_MIN", axes=(3,)),
}


# ---- ops of ONNX ----


def graph_of(kind: str, **attributes: Any) -> Graph:
    graph = Graph()
    graph.node(kind, [graph.dequantized("x", 0.05, 3), *_numbers(graph, kind)], "r", **attributes)
    graph.quantized("r", 0.03, 2, "y")
    return graph


def _numbers(graph: Graph, kind: str) -> Iterator[str]:
    """The constant inputs of a norm, for 32 channels."""
    random = np.random.default_rng(2)
    for name in {"LayerNormalization": "gb", "InstanceNormalization": "gb", "BatchNormalization": "gbmv"}.get(kind, ""):
        size = ONNX[kind][0][-1 if kind == "LayerNormalization" else 1]
        yield graph.constant(name, random.uniform(0.5, 2, size).astype(np.float32))


ONNX: Mapping[str, tuple[tuple[int, ...], Mapping[str, Any]]] = {
    "LayerNormalization": (ROWS, {"axis": -1}),
    "InstanceNormalization": ((1, 32, 16, 16), {}),
    "BatchNormalization": ((1, 32, 16, 16), {}),
    "Erf": ((1, 32, 16, 16), {}),
}
NAMES = (*MAKERS, *ONNX)


def written(name: str, folder: Path) -> Path:
    """The file of a network of one op."""
    if name in ONNX:
        path = folder / "op.onnx"
        shape, attributes = ONNX[name]
        path.write_bytes(graph_of(name, **attributes).model({"x": shape}, "y").SerializeToString())
        return path
    bundle = Bundle(np.random.default_rng(1))
    MAKERS[name](bundle)
    path = folder / "op.tflite"
    path.write_bytes(bundle.bytes())
    return path


def measured(name: str, board: str) -> Measured:
    with tempfile.TemporaryDirectory() as folder:
        model = written(name, Path(folder))
        built = api.build(model, board=board, output=Path(folder) / "out", options=Options(pes=1), check=False)
        net, layers = built.net(), api.bench(built, frames=1, on="emulator").layers
    kinds, engines = ({op.name: getattr(op, field) for op in net.ops} for field in ("kind", "engine"))
    costly = [each for each in layers if kinds.get(each.name, "") != "reshape"]
    cycles = sum(max((each.cycles or 0) - OBSERVED, 0) for each in costly)
    return Measured(
        name,
        tuple(kinds[each.name] for each in costly),
        tuple(dict.fromkeys(engines[each.name] for each in costly)),
        _values(net),
        cycles,
    )


def _values(net: Net) -> int:
    return max(sum(net.tensor(name).elements for name in names) for names in (net.inputs[:1], net.outputs))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", default=NAMES, metavar="NAME")
    parser.add_argument("--board", default="pe-mesh")
    parser.add_argument("--save", type=Path)
    given = parser.parse_args()
    lines = [*HEAD]
    print(*HEAD, sep="\n")
    for name in given.names:
        try:
            lines.append(str(measured(name, given.board)))
        except Exception as error:  # a kind that is refused is a row too
            lines.append(f"| {name} | refused: {error} | | | |")
        print(lines[-1], flush=True)
    if given.save:
        given.save.write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
