"""Cycles of each kind of op alone, per value: networks of an int8 op on four cores, beside TFLite Micro.

    python benchmarks/lone_ops.py [NAME ...] [--on COLUMN ...] [--tflm CLONE] [--write]

The command writes the networks as TFLite and ONNX files. A value is an element of the larger of input and output. The
cycles are of the layers on the built-in emulator, without the frame around layers and the stop after each layer;
outputs equal the reference. `--tflm`: measures TensorFlow Lite Micro too, from a clone with its library
(`benchmarks/core/tflite_micro.py`). The command compares the cycles with lone_ops.json; `--write` writes lone_ops.json
and the page lone_ops.md.
"""

from __future__ import annotations

import argparse
import json
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from textwrap import fill, wrap
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests"))

from benchmarks.core import tflite_micro
from benchmarks.state import commit

from frontend.onnx_models import Graph
from frontend.tflite_bundle import Bundle, Quantized
from npukit import api
from npukit.board.board import load_board
from npukit.errors import NpukitError
from npukit.net.net import Net
from npukit.net.reference import evaluate
from npukit.options import Options
from object_cache import share_objects

HERE = Path(__file__).parent
KEPT, PAGE = HERE / "lone_ops.json", HERE / "lone_ops.md"
BOARDS = {
    "pe-mesh": "pe-mesh",
    "M4F": "mps2-an386",
    "M0+": str(HERE / "core" / "an385-m0plus.toml"),
    "RV32IMC": "riscv-virt",
}
"""The board of each column."""
TFLM = "TFLM on M4F"
COLUMNS = ("pe-mesh", "M4F", TFLM, "M0+", "RV32IMC")
OBSERVED = 44
"""Cycles added to a layer by the stop after the layer."""
CYCLES_OF_A_BIT = 20
IMAGE = (1, 16, 16, 32)
ROWS = (1, 64, 128)
USUAL, WIDE, SHARE = Quantized(0.05, 3), Quantized(0.08, -5), Quantized(1 / 256, -128)
HEAD = (f"| op | values | engine of pe-mesh | {' | '.join(COLUMNS)} |", f"|---|--:|---|{'--:|' * len(COLUMNS)}")
SOURCE = """Cycles a value of networks of a single int8 op. Measured at {commits} by
`python benchmarks/lone_ops.py --write`, which says how; `make lone-ops` compares them again."""
ABOUT = """# Ops alone

{source}

- *pe-mesh*: a PE with its accelerator. *Engine*: `cpu` is the core. *M4F*, *M0+*, *RV32IMC*: the
  core of a board without accelerator, memory without wait states.
- Cycles of the cores are of the built-in emulator's model: the instruction timings of Arm's
  reference manuals for the Cortex-M4 and M0+ (multiplier of one cycle), of the CV32E40P for RISC-V.
- *TFLM*: TensorFlow Lite Micro at 90b983c2 with CMSIS-NN at 4ab83cc3, compiled by GCC 12.2 with
  upstream's flags, in the same emulator. Empty: it does not take the network, or the file is of
  ONNX. Its outputs equal npukit's, except where ≠ stands.
- Code is compiled by GCC, or by zig where GCC's functions have no bound of the stack. A cell in
  **bold** is slower than TensorFlow Lite Micro.
"""

FEW = 4.0
"""Cycles a value that an elementwise op may take on pe-mesh without a reason on the page."""
REASONS = {
    "squared difference": "the array multiplies bytes, and TFLite's differences have 16 bits; the core loads two "
    "bytes and two entries of tables, squares and rescales",
    "div": "the array does not divide; the core loads two bytes, a dividend and a reciprocal, and multiplies",
    "quantize floats": "the array reads bytes, not words; the core converts each word to a float and back",
    "softmax": "exponentials and their sum have 32 bits: each value takes two lookups, a sum and a product on the core",
    "resize bilinear, aligned corners": "each pixel has shares of its own in 1/1024, too fine for the bytes of the "
    "array's weights; the core adds four products",
    "l2 norm": "as of LayerNormalization",
    "LayerNormalization": "each row has a factor of its own in 32 bits, found at run time; the factors of the array "
    "are constant",
    "InstanceNormalization": "as of LayerNormalization, of each channel",
}
"""The reason for each op that takes more."""

Maker = Callable[[Bundle], None]


@dataclass(frozen=True)
class Measured:
    """The cycles of a network of an op. `refused`: the reason against it. `differs`: TensorFlow Lite Micro's outputs
    are not the reference's. `commit`: the measured state."""

    values: int = 0
    cycles: int = 0
    ops: tuple[str, ...] = ()
    engines: tuple[str, ...] = ()
    refused: str = ""
    differs: bool = False
    commit: str = ""

    @property
    def rate(self) -> float:
        return round(self.cycles / max(self.values, 1), 1)

    def __str__(self) -> str:
        return "refused" if self.refused else f"{self.rate:.1f}{' ≠' * self.differs}"


Kept = Mapping[str, Mapping[str, Measured]]
"""The cycles of each op by column."""


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


def integers(bundle: Bundle, shape: tuple[int, ...]) -> Any:
    """An input of int32."""
    bundle.model.inputs.append(bundle.model.tensor(bundle.name(), shape, dtype="int32"))
    bundle.data.append(bundle.random.integers(0, 100, shape).astype(np.int32))
    return bundle.model.inputs[-1]


def embedding(bundle: Bundle) -> None:
    table = bundle.constant(bundle.values((100, 64)), 0.05, 3)
    indices = integers(bundle, (1, 32))
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


def quantized(bundle: Bundle, dtype: str) -> None:
    """Integers as floats, and on as int8."""
    between = bundle.model.tensor(bundle.name(), IMAGE, dtype="float32")
    source = bundle.input(IMAGE, USUAL) if dtype == "int8" else integers(bundle, IMAGE)
    bundle.op("CAST", [source], between, "Cast")
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
    """Channels times a number each, an activation: squeeze and excitation."""
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
    "quantize floats": partial(quantized, dtype="int32"),
    "cast int8 and quantize": partial(quantized, dtype="int8"),
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


def bundle_of(name: str) -> Bundle:
    """The TFLite model of a network of an op, with inputs."""
    bundle = Bundle(np.random.default_rng(1))
    MAKERS[name](bundle)
    return bundle


def written(name: str, folder: Path) -> Path:
    """The file of a network of an op."""
    if name in ONNX:
        path = folder / "op.onnx"
        shape, attributes = ONNX[name]
        path.write_bytes(graph_of(name, **attributes).model({"x": shape}, "y").SerializeToString())
        return path
    path = folder / "op.tflite"
    path.write_bytes(bundle_of(name).bytes())
    return path


# ---- measurement ----


def measured(name: str, board: str, compiler: str = "gcc") -> Measured:
    """The cycles of an op on a board."""
    with tempfile.TemporaryDirectory() as folder:
        model, options = written(name, Path(folder)), Options(pes=1, toolchain=compiler)
        fast = str(_with_a_fast_line(board, Path(folder)))
        built = api.build(model, board=fast, output=Path(folder) / "out", options=options, check=False)
        net, layers = built.net(), api.bench(built, frames=1, on="emulator").layers
    kinds, engines = ({op.name: getattr(op, field) for op in net.ops} for field in ("kind", "engine"))
    costly = [each for each in layers if kinds.get(each.name, "") != "reshape"]
    cycles = sum(max((each.cycles or 0) - OBSERVED, 0) for each in costly)
    by = tuple(dict.fromkeys(engines[each.name] for each in costly))
    return Measured(_values(net), cycles, tuple(kinds[each.name] for each in costly), by)


def _with_a_fast_line(name: str, folder: Path) -> Path:
    """The board with a line on which the emulator waits less for inputs and outputs."""
    board, here = load_board(name), folder / "board.toml"
    assert board.uart is not None
    baud = max(board.uart.baud, board.core.clock_hz // CYCLES_OF_A_BIT)
    head = f'like = "{board.name}"\nname = "{board.name}-alone"\nsummary = "{board.summary}"\n'
    here.write_text(f"{head}\n[uart]\nbase = {board.uart.base}\nbaud = {baud}\n", encoding="utf-8")
    if name.endswith(".toml"):
        shutil.copy(name, folder)
    return here


def _values(net: Net) -> int:
    return max(sum(net.tensor(name).elements for name in names) for names in (net.inputs[:1], net.outputs))


def of_tflite_micro(name: str, clone: Path) -> Measured:
    """The cycles of TensorFlow Lite Micro, with a comparison of its outputs."""
    from npukit.frontend.models import load_net_from_model

    with tempfile.TemporaryDirectory() as folder:
        model, data = written(name, Path(folder)), bundle_of(name).data
        net = load_net_from_model(model)
        found = evaluate(net, data)
        wanted = b"".join(found[output].tobytes() for output in net.outputs)
        cycles, outputs = tflite_micro.run(clone, model, data, len(wanted))
    return Measured(_values(net), cycles, differs=outputs != wanted)


def _by_either(name: str, board: str) -> Measured:
    """The cycles of GCC's code, or of zig's: GCC's division of floats for an M0+ has no bound of the stack."""
    try:
        return measured(name, board)
    except NpukitError as error:
        if "stack" not in error.message:
            raise
        return measured(name, board, "zig")


def cell(name: str, column: str, clone: Path | None) -> Measured:
    """The cycles of an op in a column, or the reason against the op."""
    try:
        found = of_tflite_micro(name, clone) if clone and column == TFLM else _by_either(name, BOARDS[column])
    except Exception as error:
        found = Measured(refused=str(error))
    return Measured(**{**asdict(found), "commit": commit()})


# ---- page ----


def known() -> dict[str, dict[str, Measured]]:
    """The cells of lone_ops.json."""
    rows = json.loads(KEPT.read_text(encoding="utf-8")) if KEPT.is_file() else {}
    return {name: {column: Measured(**found) for column, found in row.items()} for name, row in rows.items()}


def page(kept: Kept) -> str:
    commits = ", ".join(dict.fromkeys(each.commit for row in kept.values() for each in row.values() if each.commit))
    lines = (line(name, kept[name]) for name in NAMES if name in kept)
    source = fill(SOURCE.format(commits=commits), 100, break_on_hyphens=False)
    return "\n".join([ABOUT.format(source=source), *HEAD, *lines, "", *_reasons(kept)])


def slow(kept: Kept) -> list[str]:
    """The ops that take more than a few cycles a value on pe-mesh."""
    return [name for name in NAMES if name in kept and kept[name]["pe-mesh"].rate > FEW]


def _reasons(kept: Kept) -> Iterator[str]:
    yield f"Above {FEW:.0f} cycles a value on pe-mesh:"
    yield ""
    for name in filter(REASONS.get, slow(kept)):
        yield from wrap(f"- *{name}*: {REASONS[name]}.", 100, subsequent_indent="  ")
    yield ""


def line(name: str, row: Mapping[str, Measured]) -> str:
    """A row of the table."""
    values = max(found.values for found in row.values())
    engines = " ".join(row["pe-mesh"].engines) if "pe-mesh" in row else ""
    return f"| {name} | {values:,} | {engines} | {' | '.join(_shown(row, column) for column in COLUMNS)} |"


def _shown(row: Mapping[str, Measured], column: str) -> str:
    found, other = row.get(column), row.get(TFLM)
    if found is None or (column == TFLM and found.refused):
        return ""
    slower = column == "M4F" and other and not other.refused and found.rate > other.rate
    return f"**{found}**" if slower else str(found)


def worse(before: Measured | None, now: Measured) -> bool:
    """True if a kept op is refused, or takes more cycles."""
    return before is not None and not before.refused and (bool(now.refused) or now.cycles > before.cycles)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", default=NAMES, metavar="NAME")
    parser.add_argument("--on", nargs="+", choices=COLUMNS, metavar="COLUMN")
    parser.add_argument("--tflm", type=Path)
    parser.add_argument("--write", action="store_true")
    given = parser.parse_args()
    kept, lost = known(), list[str]()
    with tempfile.TemporaryDirectory() as objects:
        share_objects(Path(objects))
        for name, column, found in _cells(given.names, given.on or COLUMNS, given.tflm):
            print(f"{name} on {column}: {found} {' '.join(found.ops)} {found.refused}", flush=True)
            if worse(kept.get(name, {}).get(column), found):
                lost.append(f"{name} on {column}: {found.cycles:,} cycles, {kept[name][column].cycles:,} before")
            kept.setdefault(name, {})[column] = found
            if given.write:
                rows = {name: {at: asdict(each) for at, each in row.items()} for name, row in kept.items()}
                KEPT.write_text(json.dumps(rows, indent=1) + "\n", encoding="utf-8")
                PAGE.write_text(page(kept), encoding="utf-8")
    print(*lost, sep="\n")
    return int(bool(lost) and not given.write)


def _cells(names: Sequence[str], columns: Sequence[str], clone: Path | None) -> Iterator[tuple[str, str, Measured]]:
    for name in names:
        for column in columns:
            if column != TFLM or (clone and name in MAKERS):
                yield name, column, cell(name, column, clone)


if __name__ == "__main__":
    sys.exit(main())
