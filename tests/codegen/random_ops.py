"""Random ops of every kind with a kernel on the core, as nets of many independent ops."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace

import numpy as np

from npukit.net import ops
from npukit.net.net import Net, Op
from npukit.net.ops.norm import norm_constants
from npukit.net.ops.table import SPECS
from npukit.net.tensor import Quantization, Tensor, untransposed

Shape = tuple[int, ...]


@dataclass
class Bundle:
    """A net under construction. `pick` draws integers. `extent` draws sizes of axes, up to `scale` times as large."""

    random: np.random.Generator
    scale: int = 1
    rounds_once: bool = False
    ops: list[Op] = field(default_factory=list)
    tensors: dict[str, Tensor] = field(default_factory=dict)
    constants: dict[str, np.ndarray] = field(default_factory=dict)
    inputs: list[str] = field(default_factory=list)

    def pick(self, low: int, high: int) -> int:
        """A random integer from `low` to `high`, both included."""
        return int(self.random.integers(low, high + 1))

    def extent(self, low: int, high: int) -> int:
        return self.pick(low, high * self.scale)

    def pair(self, low: int, high: int) -> tuple[int, int]:
        return self.pick(low, high), self.pick(low, high)

    def quantization(self, low: float = 0.01, high: float = 0.2) -> Quantization:
        return Quantization((float(self.random.uniform(low, high)),), (self.pick(-128, 127),))

    def int8(self, shape: Shape) -> np.ndarray:
        return self.random.integers(-128, 128, shape).astype(np.int8)

    def tensor(self, shape: Shape, quantization: Quantization | None, dtype: str = "int8") -> str:
        name = f"t{len(self.tensors)}"
        self.tensors[name] = Tensor(name, shape, dtype, quantization)
        return name

    def activation(self, shape: Shape, quantization: Quantization | None = None, dtype: str = "int8") -> str:
        name = self.tensor(shape, quantization or self.quantization(), dtype)
        self.inputs.append(name)
        return name

    def constant(self, values: np.ndarray, quantization: Quantization | None) -> str:
        name = self.tensor(values.shape, quantization, str(values.dtype))
        self.constants[name] = values
        return name

    def filter(self, shape: Shape, axis: int, depth: int) -> tuple[str, ...]:
        """Weights, and a bias in three of four cases. Scales are spread, so shifts of both signs occur."""
        channels = shape[axis]
        scales = tuple(float(s) for s in np.exp(self.random.uniform(-7, 1, channels)) / depth**0.5)
        weights = self.random.integers(-127, 128, shape).astype(np.int8)
        name = self.constant(weights, Quantization(scales, (0,) * channels, axis))
        if self.pick(0, 3) == 0:
            return (name,)
        return name, self.constant(self.random.integers(-5000, 5000, channels).astype(np.int32), None)

    def clamp(self) -> tuple[int, int]:
        return (-128, 127) if self.pick(0, 1) else (self.pick(-128, -20), self.pick(20, 127))

    def add(
        self,
        attributes: ops.Attributes,
        *inputs: str,
        quantization: Quantization | None = None,
        dtype: str = "int8",
        plain: bool = False,
    ) -> None:
        """Add the op, with an output of the required shape. `plain`: the output has no scale."""
        name = f"{attributes.kind}_{len(self.ops)}"
        self.tensors[name] = Tensor(name, (), dtype, None if plain else quantization or self.quantization())
        op = Op(name, attributes, inputs, (name,))
        shape = SPECS[op.kind].shape(self.net([op]), op)
        self.tensors[name] = Tensor(name, shape, dtype, self.tensors[name].quantization)
        self.ops.append(op)

    def net(self, ops: list[Op] | None = None) -> Net:
        chosen = self.ops if ops is None else ops
        outputs = tuple(op.output for op in chosen)
        ends = tuple(self.inputs), outputs
        held = dict(self.tensors), dict(self.constants)
        return Net("random", *ends, tuple(chosen), *held, rounds_once=self.rounds_once)


def _image(bundle: Bundle, channels: int | None = None, dtype: str = "int8") -> tuple[Shape, str]:
    shape = (1, bundle.extent(4, 9), bundle.extent(4, 9), channels or bundle.extent(1, 9))
    return shape, bundle.activation(shape, dtype=dtype)


def _padding(bundle: Bundle, window: tuple[int, int]) -> ops.Padding:
    """Padding smaller than the window on every side."""
    (top, left), (bottom, right) = ((bundle.pick(0, w - 1), bundle.pick(0, v - 1)) for w, v in (window, window))
    return top, left, bottom, right


def conv2d(bundle: Bundle) -> None:
    groups, depth, window = bundle.pick(1, 3), bundle.extent(1, 5), bundle.pair(1, 3)
    dilation = bundle.pair(1, 2) if max(window) > 1 else (1, 1)
    (_, height, width, _), source = _image(bundle, groups * depth)
    if (window[0] - 1) * dilation[0] >= height or (window[1] - 1) * dilation[1] >= width:
        dilation = (1, 1)
    weights = (groups * bundle.extent(1, 4), *window, depth)
    reach = tuple((w - 1) * d + 1 for w, d in zip(window, dilation, strict=True))
    padding = _padding(bundle, (max(reach[0], 2), max(reach[1], 2)))
    inputs = bundle.filter(weights, 0, weights[1] * weights[2] * depth)
    bundle.add(ops.Conv2d(bundle.pair(1, 2), padding, dilation, bundle.clamp()), source, *inputs)


def depthwise_conv2d(bundle: Bundle) -> None:
    window, (shape, source) = bundle.pair(1, 4), _image(bundle)
    weights = (1, *window, shape[3] * bundle.pick(1, 3))
    inputs = bundle.filter(weights, 3, weights[1] * weights[2])
    attributes = ops.DepthwiseConv2d(bundle.pair(1, 3), _padding(bundle, window), (1, 1), bundle.clamp())
    bundle.add(attributes, source, *inputs)


def dense(bundle: Bundle) -> None:
    depth = bundle.extent(1, 40)
    leading = tuple(bundle.pick(1, 3) for _ in range(bundle.pick(0, 3)))
    source = bundle.activation((*leading, depth))
    bundle.add(ops.Dense(bundle.clamp()), source, *bundle.filter((bundle.extent(1, 12), depth), 0, depth))


def transpose_conv2d(bundle: Bundle) -> None:
    window, (shape, source) = bundle.pair(1, 4), _image(bundle)
    weights = (bundle.extent(1, 5), *window, shape[3])
    inputs = bundle.filter(weights, 0, weights[1] * weights[2] * weights[3])
    bundle.add(ops.TransposeConv2d(bundle.pair(1, 3), _padding(bundle, window), bundle.clamp()), source, *inputs)


def average_pool(bundle: Bundle) -> None:
    window, (_, source) = bundle.pair(1, 4), _image(bundle)
    attributes = ops.AveragePool(window, bundle.pair(1, 3), _padding(bundle, window), bundle.clamp())
    given = bundle.tensors[source]
    bundle.add(attributes, source, quantization=given.quantization, dtype=given.dtype)


def max_pool(bundle: Bundle) -> None:
    window, (_, source) = bundle.pair(1, 4), _image(bundle)
    attributes = ops.MaxPool(window, bundle.pair(1, 3), _padding(bundle, window), bundle.clamp())
    given = bundle.tensors[source]
    bundle.add(attributes, source, quantization=given.quantization, dtype=given.dtype)


def softmax(bundle: Bundle) -> None:
    shape = tuple(bundle.pick(1, 4) for _ in range(bundle.pick(0, 2)))
    source = bundle.activation((*shape, bundle.pick(1, 700) if bundle.pick(0, 3) == 0 else bundle.extent(2, 20)))
    output = Quantization((1 / 256,), (-128,))
    bundle.add(ops.Softmax(float(bundle.random.uniform(0.5, 2))), source, quantization=output)


def norm(bundle: Bundle) -> None:
    shape = tuple(bundle.pick(1, 4) for _ in range(bundle.pick(0, 3)))
    length = bundle.pick(1, 700) if bundle.pick(0, 3) == 0 else bundle.extent(1, 20)
    source, target = bundle.quantization(), bundle.quantization()
    runs = bundle.pick(1, 4) if shape and bundle.pick(0, 1) else 0
    run, length = (length, length * runs) if runs else (0, length)
    gains, biases = bundle.random.normal(size=(2, shape[-1], runs) if runs else (2, length))
    epsilon, centred = 10.0 ** bundle.pick(-9, 1), bool(bundle.pick(0, 1))
    made = norm_constants(gains, biases, epsilon, source, target, centred=centred, run=run)
    constants = [bundle.constant(values, None) for values in (made.multipliers, made.offsets)]
    attributes = replace(made.attributes, clamp=bundle.clamp())
    bundle.add(attributes, bundle.activation((*shape, length), source), *constants, quantization=target)


def squares(bundle: Bundle) -> None:
    piece, rows = bundle.pick(1, 20), tuple(bundle.pick(1, 4) for _ in range(bundle.pick(0, 2)))
    source = bundle.activation((*rows, piece * bundle.extent(1, 8)))
    bundle.add(ops.Squares(piece), source, dtype="int32", plain=True)


def norm_by_squares(bundle: Bundle) -> None:
    length = 16 * bundle.extent(1, 20)
    source, target = bundle.quantization(), bundle.quantization()
    gains, biases = bundle.random.normal(size=(2, length))
    made = norm_constants(gains, biases, 10.0 ** bundle.pick(-9, 1), source, target, centred=False)
    given = bundle.activation((1, length), source)
    bundle.add(ops.Squares(16), given, dtype="int32", plain=True)
    squared = bundle.ops[-1].output
    constants = [bundle.constant(values, None) for values in (made.multipliers, made.offsets)]
    attributes = ops.NormBySquares(made.attributes.epsilon, made.attributes.shift, bundle.clamp())
    bundle.add(attributes, given, squared, *constants, quantization=target)


def _two_operands(bundle: Bundle, quantization: Quantization | None = None) -> tuple[str, str]:
    """Two operands of one shape, or broadcasting. At most one is constant."""
    shape = tuple(bundle.extent(1, 5) for _ in range(bundle.pick(1, 4)))
    other = [shape, tuple(1 if bundle.pick(0, 1) else size for size in shape), shape[-1:]][bundle.pick(0, 2)]
    if bundle.pick(0, 2):
        return bundle.activation(shape, quantization), bundle.activation(other, quantization)
    first = bundle.activation(shape, quantization)
    second = bundle.constant(bundle.int8(other), quantization or bundle.quantization())
    return (first, second) if bundle.pick(0, 1) else (second, first)


def _arithmetic(kind: Callable[..., ops.Attributes]) -> Callable[[Bundle], None]:
    return lambda bundle: bundle.add(kind(clamp=bundle.clamp()), *_two_operands(bundle))


def _choice(attributes: ops.Attributes) -> Callable[[Bundle], None]:
    def made(bundle: Bundle) -> None:
        shared = bundle.quantization()
        bundle.add(attributes, *_two_operands(bundle, shared), quantization=shared)

    return made


def prelu(bundle: Bundle) -> None:
    shape, source = _image(bundle)
    bundle.add(ops.Prelu(), source, bundle.constant(bundle.int8((1, 1, shape[3])), bundle.quantization()))


def select(bundle: Bundle) -> None:
    shape, _ = _image(bundle)
    alike = bundle.quantization()
    narrow = tuple(size if bundle.pick(0, 1) else 1 for size in shape)
    condition = bundle.tensor(narrow, None, ("bool", "int8")[bundle.pick(0, 1)])
    first = bundle.activation((*shape[:2], 1, shape[3]), alike)
    bundle.inputs.append(condition)
    bundle.add(ops.Select(), condition, first, bundle.activation(shape, alike), quantization=alike)


def lookup(bundle: Bundle) -> None:
    shape = tuple(bundle.extent(1, 6) for _ in range(bundle.pick(1, 4)))
    source = bundle.activation(shape, Quantization((0.1,), (5,)), ("int8", "uint8")[bundle.pick(0, 1)])
    tables = (256,) if bundle.pick(0, 1) else (shape[-1], 256)
    bundle.add(ops.Lookup(), source, bundle.constant(bundle.int8(tables), None))


def requantize(bundle: Bundle) -> None:
    kinds = [("int8", "int8"), ("int16", "int8"), ("int8", "int16"), ("int32", "int8"), ("int8", "int32")]
    before, after = kinds[bundle.pick(0, len(kinds) - 1)]
    source = bundle.activation((bundle.extent(1, 30),), dtype=before)
    bundle.add(ops.Requantize(), source, dtype=after)


def mean(bundle: Bundle) -> None:
    shape = tuple(bundle.extent(1, 6) for _ in range(bundle.pick(2, 4)))
    axes = tuple(axis for axis in range(len(shape)) if bundle.pick(0, 1)) or (len(shape) - 1,)
    bundle.add(ops.Mean(axes), bundle.activation(shape))


def pad(bundle: Bundle) -> None:
    shape = tuple(bundle.extent(1, 5) for _ in range(bundle.pick(1, 4)))
    before, after = (tuple(bundle.pick(0, 2) for _ in shape) for _ in range(2))
    _moved(bundle, ops.Pad(before, after, bundle.pick(-128, 127)), bundle.activation(shape))


def transpose(bundle: Bundle) -> None:
    shape = tuple(bundle.extent(1, 5) for _ in range(bundle.pick(1, 5)))
    axes = tuple(int(axis) for axis in bundle.random.permutation(len(shape)))
    _moved(bundle, ops.Transpose(axes), bundle.activation(shape))


def slice_(bundle: Bundle) -> None:
    shape = tuple(bundle.extent(1, 7) for _ in range(bundle.pick(1, 4)))
    begin = tuple(bundle.pick(0, size - 1) for size in shape)
    end = tuple(bundle.pick(start + 1, size) for start, size in zip(begin, shape, strict=True))
    _moved(bundle, ops.Slice(begin, end, tuple(bundle.pick(1, 3) for _ in shape)), bundle.activation(shape))


def concat(bundle: Bundle) -> None:
    shape, shared = [bundle.extent(1, 4) for _ in range(bundle.pick(1, 4))], bundle.quantization()
    axis = bundle.pick(0, len(shape) - 1)
    shapes = [(*shape[:axis], bundle.pick(1, 4), *shape[axis + 1 :]) for _ in range(bundle.pick(2, 4))]
    parts = [bundle.activation(shapes[0], shared)]
    for each in shapes[1:]:
        constant = bundle.pick(0, 3) == 0
        parts.append(bundle.constant(bundle.int8(each), shared) if constant else bundle.activation(each, shared))
    bundle.add(ops.Concat(axis), *parts, quantization=shared)


def resize_nearest(bundle: Bundle) -> None:
    shape, source = _image(bundle)
    rows, columns = (tuple(bundle.pick(0, size - 1) for _ in range(bundle.extent(1, 7))) for size in shape[1:3])
    _moved(bundle, ops.ResizeNearest(rows, columns), source)


def resize_bilinear(bundle: Bundle) -> None:
    """Images of 8 or 16 bits. Fractions in steps of a 1024th need products of 64 bits; fractions in steps of an eighth
    do not."""
    shape, source = _image(bundle, dtype="int16" if bundle.pick(0, 1) else "int8")
    step = 128 ** bundle.pick(0, 1)
    rows, columns = (
        tuple((*bundle.pair(0, size - 1), bundle.pick(0, 1024 // step) * step) for _ in range(bundle.extent(1, 7)))
        for size in shape[1:3]
    )
    _moved(bundle, ops.ResizeBilinear(rows, columns), source)


def argmax(bundle: Bundle) -> None:
    shape = tuple(bundle.extent(1, 6) for _ in range(bundle.pick(2, 4)))
    attributes = ops.ArgMax(bundle.pick(0, len(shape) - 1))
    bundle.add(attributes, bundle.activation(shape), dtype="int64" if bundle.pick(0, 1) else "int32")


def quantize(bundle: Bundle) -> None:
    """With powers of two as steps, results at exactly a half occur; with random steps, none."""
    channels = bundle.extent(1, 6)
    dtype = ("float32", "uint8", "int16", "int8")[bundle.pick(0, 3)]
    source = bundle.tensor((1, bundle.extent(1, 9), channels), None, dtype)
    bundle.inputs.append(source)
    sizes = (1, channels)[bundle.pick(0, 1)], (1, channels)[bundle.pick(0, 1)]
    offset = bundle.random.integers(-100, 100, sizes[0]).astype(np.float32) / 4
    step = (
        2.0 ** bundle.random.integers(-3, 3, sizes[1]) if bundle.pick(0, 1) else bundle.random.uniform(0.1, 5, sizes[1])
    )
    constants = (bundle.constant(each.astype(np.float32), None) for each in (offset, step))
    bundle.add(ops.Quantize(away=bool(bundle.pick(0, 1))), source, *constants)


def dequantize(bundle: Bundle) -> None:
    shape = tuple(bundle.extent(1, 6) for _ in range(bundle.pick(1, 4)))
    source = bundle.activation(shape)
    bundle.add(ops.Dequantize(), source, dtype="float32", plain=True)


def sums(bundle: Bundle) -> None:
    """Sums of a convolution or a dense layer, alone or added to other sums."""
    window, depth = bundle.pair(1, 3), bundle.extent(1, 4)
    shape, source = _image(bundle, depth + bundle.pick(0, 5))
    first, images = bundle.pick(0, shape[3] - depth), bundle.pick(0, 1)
    weights = bundle.constant(
        bundle.int8((bundle.pick(1, 9), *(window if images else ()), depth)), bundle.quantization()
    )
    padding = _padding(bundle, window) if images else (0, 0, 0, 0)
    strides = bundle.pair(1, 2) if images else (1, 1)
    attributes = ops.Sums(first, strides, padding)
    if bundle.pick(0, 1):
        bundle.add(attributes, source, weights, dtype="int32", plain=True)
        return
    made = SPECS["sums"].shape(bundle.net([]), Op("sums", attributes, (source, weights), ("made",)))
    before = bundle.tensor(made, None, "int32")
    bundle.inputs.append(before)
    bundle.add(attributes, source, weights, before, dtype="int32", plain=True)


def total(bundle: Bundle) -> None:
    shape = (1, bundle.extent(1, 4), bundle.extent(1, 4), bundle.extent(1, 9))
    parts = [bundle.tensor(shape, None, "int32") for _ in range(bundle.pick(1, 3))]
    bundle.inputs += parts
    low = bundle.pick(-20, 2)
    numbers = ((-(1 << 20), 1 << 20), (1 << 30, (1 << 31) - 1), (low, low if low < 0 else 2))
    constants = [bundle.random.integers(a, b + 1, shape[3]).astype(np.int32) for a, b in numbers]
    bundle.add(ops.Total(bundle.clamp()), *parts, *(bundle.constant(value, None) for value in constants))


def top_k(bundle: Bundle) -> None:
    shape = tuple(bundle.extent(1, 9) for _ in range(bundle.pick(1, 4)))
    source, values = bundle.activation(shape), bool(bundle.pick(0, 1))
    attributes = ops.TopK(bundle.pick(1, shape[-1]), values)
    bundle.add(
        attributes, source, quantization=bundle.tensors[source].quantization, dtype="int8" if values else "int32"
    )


def matmul(bundle: Bundle) -> None:
    rows, depth, columns = bundle.extent(1, 5), bundle.extent(1, 20), bundle.extent(1, 5)
    leading = tuple(bundle.pick(1, 3) for _ in range(bundle.pick(0, 2)))
    shapes = (*leading, rows, depth), (*(leading if bundle.pick(0, 1) else ()), depth, columns)
    axes = [_orders(bundle, len(shape), ends) for shape, ends in zip(shapes, (1, 2), strict=True)]
    first, second = (bundle.activation(untransposed(shape, order)) for shape, order in zip(shapes, axes, strict=True))
    result = _orders(bundle, len(shapes[0]), 1)
    bundle.add(ops.Matmul(bundle.clamp(), axes[0], axes[1], result), first, second)


def _orders(bundle: Bundle, rank: int, ends: int) -> tuple[int, ...]:
    """Axes of a transpose: the last axis becomes one of the last `ends`. Empty without a transpose."""
    others = [bundle.pick(0, 1) * (axis + 1) for axis in range(rank - 1)]
    moved = sorted(range(rank - 1), key=others.__getitem__)
    moved.insert(rank - 1 - bundle.pick(0, ends - 1), rank - 1)
    return tuple(moved) if bundle.pick(0, 2) else ()


def _moved(bundle: Bundle, attributes: ops.Attributes, source: str) -> None:
    given = bundle.tensors[source]
    bundle.add(attributes, source, quantization=given.quantization, dtype=given.dtype)


MAKERS: dict[str, Callable[[Bundle], None]] = {
    "add": _arithmetic(ops.Add),
    "argmax": argmax,
    "average_pool": average_pool,
    "concat": concat,
    "conv2d": conv2d,
    "dense": dense,
    "depthwise_conv2d": depthwise_conv2d,
    "dequantize": dequantize,
    "divide": _arithmetic(ops.Divide),
    "lookup": lookup,
    "matmul": matmul,
    "max_pool": max_pool,
    "maximum": _choice(ops.Maximum()),
    "mean": mean,
    "minimum": _choice(ops.Minimum()),
    "multiply": _arithmetic(ops.Multiply),
    "norm": norm,
    "norm_by_squares": norm_by_squares,
    "pad": pad,
    "prelu": prelu,
    "quantize": quantize,
    "requantize": requantize,
    "resize_bilinear": resize_bilinear,
    "resize_nearest": resize_nearest,
    "select": select,
    "squared_difference": _arithmetic(ops.SquaredDifference),
    "slice": slice_,
    "softmax": softmax,
    "squares": squares,
    "subtract": _arithmetic(ops.Subtract),
    "sums": sums,
    "top_k": top_k,
    "total": total,
    "transpose": transpose,
    "transpose_conv2d": transpose_conv2d,
}


def random_inputs(net: Net, random: np.random.Generator) -> list[np.ndarray]:
    """Values over the whole range of each input's type; int32 within the reach of sums of int8 products."""
    return [_values(net.tensor(name), random) for name in net.inputs]


def _values(tensor: Tensor, random: np.random.Generator) -> np.ndarray:
    if tensor.dtype == "float32":
        return _reals(tensor, random)
    if tensor.dtype == "bool":
        return random.integers(0, 2, tensor.shape).astype(bool)
    limits = np.iinfo(tensor.dtype)
    low, high = max(limits.min, -(1 << 20)), min(limits.max, 1 << 20)
    return random.integers(low, high + 1, tensor.shape).astype(tensor.dtype)


def _reals(tensor: Tensor, random: np.random.Generator) -> np.ndarray:
    """Multiples of an eighth, some values of any magnitude, infinities and NaN."""
    values = (random.integers(-2000, 2000, tensor.shape) / 8).astype(np.float32)
    odd = random.choice(np.array([np.nan, np.inf, -np.inf, 1e30, 1e-30, 0.1, -0.0], np.float32), tensor.shape)
    return np.where(random.integers(0, 5, tensor.shape) == 0, odd, values)
