"""A maker for each kind of ONNX op: random shapes and attributes, on an earlier result or a new input."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np

from differential.onnx_graph import Floats

OpMaker: TypeAlias = Callable[[Floats], Any]


def unary(kind: str, *, positive: bool = False, **attributes: Any) -> OpMaker:
    def made(g: Floats) -> None:
        data = g.data()
        if positive:
            data = g.add("Add", [g.add("Abs", [data]), g.number(0.25)])
        g.add(kind, [data], **attributes)

    return made


def within_one(kind: str) -> OpMaker:
    """A function of numbers between -1 and 1."""

    def made(g: Floats) -> None:
        g.add(kind, [g.add("Clip", [g.data(), g.number(-0.9), g.number(0.9)])])

    return made


def slope(kind: str, low: float, high: float, *names: str) -> OpMaker:
    """An op with random real attributes."""

    def made(g: Floats) -> None:
        drawn: dict[str, Any] = {name: float(g.random.uniform(low, high)) for name in names}
        g.add(kind, [g.data()], **drawn)

    return made


def binary(kind: str) -> OpMaker:
    def made(g: Floats) -> None:
        data = g.data()
        shape = g.shape(data)
        other = g.one_of([shape, tuple(g.one_of((1, size)) for size in shape), shape[-1:], ()])
        fixed = g.often(0.4) or not other
        second = g.real(*other, low=0.3 if kind == "Div" else None) if fixed else g.data(shape=other)
        if kind == "Div" and not fixed:
            second = g.add("Add", [g.add("Abs", [second]), g.number(0.5)])
        g.add(kind, [second, data] if g.often(0.3) and kind != "Div" else [data, second])

    return made


def window(g: Floats, image: tuple[int, ...], *, dilates: bool = True) -> dict[str, Any]:
    """A window that fits, with strides, dilations, and stated or automatic padding."""
    axes = len(image)
    kernel = [g.pick(1, min(3, size)) for size in image]
    attributes: dict[str, Any] = {"kernel_shape": kernel, "strides": g.sizes(1, 2, axes)}
    if dilates and g.often(0.3):
        attributes["dilations"] = [
            g.pick(1, 2) if 2 * (k - 1) < size else 1 for k, size in zip(kernel, image, strict=True)
        ]
    if "dilations" not in attributes and g.often(0.3):
        return attributes | {"auto_pad": g.one_of(["SAME_UPPER", "SAME_LOWER", "VALID"])}
    return attributes | {"pads": [g.pick(0, (k - 1) // 2) for k in kernel * 2]}


def conv(axes: int, *, depthwise: bool = False) -> OpMaker:
    def made(g: Floats) -> None:
        data = g.data(axes + 2, axes + 2)
        _, channels, *image = g.shape(data)
        groups = channels if depthwise else g.one_of([each for each in (1, 1, 2, 3) if channels % each == 0])
        filters = groups * g.pick(1, 2 if depthwise else 4)
        attributes = window(g, tuple(image))
        weights = g.weight((filters, channels // groups, *attributes["kernel_shape"]), 0)
        bias = [g.bias(filters, data, weights)] if g.often(0.7) else []
        g.add("Conv", [data, weights, *bias], group=groups, **attributes)
        if g.often(0.4):
            g.add(g.one_of(["Relu", "HardSwish"]), [g.free[-1]])

    return made


def deform_conv(g: Floats) -> None:
    data = g.data(4, 4)
    (images, channels, *image), kernel = g.shape(data), [1, 1]
    parts = g.one_of([each for each in (1, 2) if channels % each == 0])
    offsets = g.data(shape=(images, 2 * parts, *image))
    weights = g.weight((g.pick(1, 4), channels, *kernel), 0)
    g.add("DeformConv", [data, weights, offsets], kernel_shape=kernel, offset_group=parts)


def conv_transpose(g: Floats) -> None:
    data = g.data(4, 4)
    channels, filters = g.shape(data)[1], g.pick(1, 4)
    kernel, strides = g.sizes(1, 3, 2), g.sizes(1, 2, 2)
    weights = g.weight((channels, filters, *kernel), 1)
    bias = [g.bias(filters, data, weights)] if g.often() else []
    g.add("ConvTranspose", [data, weights, *bias], strides=strides, kernel_shape=kernel)


def gemm(g: Floats) -> None:
    data = g.data(2, 2)
    depth, outputs, turned = g.shape(data)[1], g.pick(1, 9), g.often(0.7)
    weights = g.weight((outputs, depth) if turned else (depth, outputs), 0 if turned else 1)
    bias = [g.bias(outputs, data, weights)] if g.often(0.7) else []
    g.add("Gemm", [data, weights, *bias], transB=int(turned))


def matmul(g: Floats) -> None:
    data = g.data(2, 4)
    g.add("MatMul", [data, g.weight((g.shape(data)[-1], g.pick(1, 9)), 1)])


def matmul_of_two(g: Floats) -> None:
    data = g.data(2, 4)
    *leading, _, depth = g.shape(data)
    g.add("MatMul", [data, g.data(shape=(*leading, depth, g.pick(1, 6)))])


def pool(kind: str, **fixed: Any) -> OpMaker:
    def made(g: Floats) -> None:
        axes = g.one_of([1, 2, 2, 2])
        data = g.data(axes + 2, axes + 2)
        attributes = window(g, g.shape(data)[2:], dilates=kind == "MaxPool") | fixed
        if kind == "AveragePool" and g.often():
            attributes["count_include_pad"] = 1
        g.add(kind, [data], keeps=kind == "MaxPool", **attributes)

    return made


def whole(kind: str) -> OpMaker:
    return lambda g: g.add(kind, [g.data(4, 4)], keeps=kind == "GlobalMaxPool")


def reduced(kind: str) -> OpMaker:
    def made(g: Floats) -> None:
        data = g.data(2, 4)
        count = len(g.shape(data))
        axes = sorted({g.pick(0, count - 1) for _ in range(g.pick(1, count - 1))})
        g.add(kind, [data, g.integers(*axes)], keepdims=g.pick(0, 1), keeps=kind in ("ReduceMax", "ReduceMin"))

    return made


def extreme(kind: str) -> OpMaker:
    def made(g: Floats) -> None:
        data = g.input(g.sizes(1, 7, g.pick(2, 4)))
        g.add(kind, [data], axis=g.pick(-1, 1), keepdims=g.pick(0, 1))

    return made


def along(kind: str, **fixed: Any) -> OpMaker:
    def made(g: Floats) -> None:
        data = g.data(2, 4)
        g.add(kind, [data], axis=g.one_of([-1, -1, 1, len(g.shape(data)) - 1]), **fixed)

    return made


def transpose(g: Floats) -> None:
    data = g.data(2, 4)
    g.add("Transpose", [data], perm=g.random.permutation(len(g.shape(data))).tolist(), keeps=True)


def reshape(g: Floats) -> None:
    data = g.data()
    shape = g.shape(data)
    g.add("Reshape", [data, g.integers(*g.one_of([shape[::-1], (-1,), (1, -1, shape[-1]), (*shape, 1)]))], keeps=True)


def flatten(g: Floats) -> None:
    data = g.data(2, 4)
    g.add("Flatten", [data], axis=g.pick(0, len(g.shape(data))), keeps=True)


def squeeze(g: Floats) -> None:
    data = g.data(1, 3)
    opened = g.add("Unsqueeze", [data, g.integers(g.pick(0, len(g.shape(data))))], keeps=True)
    if g.often():
        g.add("Squeeze", [opened], keeps=True)


def concat(g: Floats) -> None:
    data = g.data(1, 4)
    shape, axis = g.shape(data), g.pick(0, len(g.shape(data)) - 1)
    others = [(*shape[:axis], g.pick(1, 4), *shape[axis + 1 :]) for _ in range(g.pick(1, 2))]
    g.add("Concat", [data, *(g.data(shape=other) for other in others)], axis=axis)


def split(g: Floats) -> None:
    data = g.data(1, 4)
    if (axis := len(g.shape(data)) - 1) >= 0 and g.shape(data)[axis] > 1:
        first = g.pick(1, g.shape(data)[axis] - 1)
        g.add("Split", [data, g.integers(first, g.shape(data)[axis] - first)], 2, axis=axis, keeps=True)
    else:
        g.add("Split", [data], 1, axis=0, num_outputs=1, keeps=True)


def slice_(g: Floats) -> None:
    data = g.data(1, 4)
    axis = g.pick(0, len(g.shape(data)) - 1)
    size = g.shape(data)[axis]
    begin = g.pick(0, size - 1)
    ends = (begin, g.one_of([size, 1 << 40, begin + 1]), 1) if g.often(0.7) else (size - 1, -(1 << 40), -1)
    g.add("Slice", [data, *map(g.integers, ends[:2]), g.integers(axis), g.integers(ends[2])], keeps=True)


def pad(mode: str) -> OpMaker:
    def made(g: Floats) -> None:
        data = g.data(1, 4)
        widths = [g.pick(0, 2 if mode != "reflect" else min(2, size - 1)) for size in g.shape(data) * 2]
        value = [g.number(float(g.random.uniform(-1, 1)))] if mode == "constant" and g.often() else []
        g.add("Pad", [data, g.integers(*widths), *value], mode=mode, keeps=not value)

    return made


def gather(g: Floats) -> None:
    data = g.data(1, 4)
    axis = g.pick(0, len(g.shape(data)) - 1)
    places = g.random.integers(0, g.shape(data)[axis], g.sizes(1, 3, g.pick(0, 2)))
    g.add("Gather", [data, g.constant(np.asarray(places, np.int64))], axis=axis, keeps=True)


def resize(mode: str) -> OpMaker:
    def made(g: Floats) -> None:
        data = g.data(4, 4)
        turned = g.one_of(["half_pixel", "asymmetric", "align_corners", "pytorch_half_pixel"])
        nearest = {"nearest_mode": g.one_of(["floor", "ceil", "round_prefer_floor", "round_prefer_ceil"])}
        attributes = {"coordinate_transformation_mode": turned, **(nearest if mode == "nearest" else {})}
        sizes = (*g.shape(data)[:2], *g.sizes(1, 14, 2))
        g.add("Resize", [data, "", "", g.integers(*sizes)], mode=mode, keeps=mode == "nearest", **attributes)

    return made


def depth_to_space(g: Floats) -> None:
    shape = (g.pick(1, 2), 4 * g.pick(1, 3), *g.sizes(2, 5, 2))
    g.add("DepthToSpace", [g.data(shape=shape)], blocksize=2, mode=g.one_of(["DCR", "CRD"]), keeps=True)


def space_to_depth(g: Floats) -> None:
    shape = (g.pick(1, 2), g.pick(1, 3), *(2 * size for size in g.sizes(1, 4, 2)))
    g.add("SpaceToDepth", [g.data(shape=shape)], blocksize=2, keeps=True)


def repeated(kind: str) -> OpMaker:
    def made(g: Floats) -> None:
        data = g.data(1, 3)
        shape = g.shape(data)
        counts = g.sizes(1, 3, len(shape)) if kind == "Tile" else (g.pick(1, 3), *shape)
        g.add(kind, [data, g.integers(*counts)], keeps=True)

    return made


def condition(g: Floats, kind: str, inputs: list[str]) -> str:
    """Add an op with a result of booleans, which stays inside."""
    g.kept.remove(made := g.add(kind, inputs))
    return made


def chosen(g: Floats, data: str, by: str) -> None:
    shape = g.shape(data)
    g.add("Where", [by, g.data(shape=shape), g.real(*shape)])


def comparison(kind: str) -> OpMaker:
    def made(g: Floats) -> None:
        data = g.input(g.sizes(1, 6, g.pick(1, 4)))
        chosen(g, data, condition(g, kind, [data, g.real(*g.shape(data))]))

    return made


def logical(kind: str, count: int = 2) -> OpMaker:
    def made(g: Floats) -> None:
        data = g.input(g.sizes(1, 6, g.pick(1, 4)))
        kinds = [g.one_of(COMPARISONS) for _ in range(count)]
        chosen(g, data, condition(g, kind, [condition(g, each, [data, g.real(*g.shape(data))]) for each in kinds]))

    return made


def clip(g: Floats) -> None:
    ends = [g.number(-0.6), g.number(0.9)]
    g.add("Clip", [g.data(), *(ends[:1] if g.often(0.3) else ends)])


def batch_norm(g: Floats) -> None:
    data = g.data(2, 4)
    channels = g.shape(data)[1]
    names = [g.real(channels), g.real(channels), g.real(channels), g.real(channels, low=0.2)]
    g.add("BatchNormalization", [data, *names])


def norm(kind: str, **fixed: Any) -> OpMaker:
    def made(g: Floats) -> None:
        data = g.data(3, 4)
        size = g.shape(data)[-1 if kind == "LayerNormalization" else 1]
        g.add(kind, [data, g.real(size, low=0.2), g.real(size)], **fixed)

    return made


def prelu(g: Floats) -> None:
    data = g.data(3, 4)
    g.add("PRelu", [data, g.real(g.shape(data)[1], *[1] * (len(g.shape(data)) - 2))])


def power(g: Floats) -> None:
    g.add("Pow", [g.data(), g.number(g.one_of([2, 3]))])


def cumsum(g: Floats) -> None:
    g.add("CumSum", [g.data(1, 4), g.constant(np.array(0, np.int64))], reverse=g.pick(0, 1), exclusive=g.pick(0, 1))


def of_several(kind: str) -> OpMaker:
    def made(g: Floats) -> None:
        data = g.data()
        g.add(kind, [data, *(g.data(shape=g.shape(data)) for _ in range(g.pick(1, 2)))])

    return made


def grid_sample(g: Floats) -> None:
    data = g.data(4, 4)
    grid = g.input((g.shape(data)[0], *g.sizes(1, 5, 2), 2))
    g.add("GridSample", [data, grid], mode=g.one_of(["linear", "nearest"]), align_corners=g.pick(0, 1))


def modulo(g: Floats) -> None:
    g.add("Mod", [g.data(), g.number(float(g.random.uniform(0.5, 2)))], fmod=1)


def lrn(g: Floats) -> None:
    g.add("LRN", [g.data(4, 4)], size=g.one_of([1, 3, 5]), alpha=float(g.random.uniform(0.01, 1)), bias=1.0)


def gather_elements(g: Floats) -> None:
    data = g.data(1, 3)
    shape = g.shape(data)
    axis = g.pick(0, len(shape) - 1)
    g.add("GatherElements", [data, g.constant(g.random.integers(0, shape[axis], shape))], axis=axis, keeps=True)


def scatter(kind: str) -> OpMaker:
    """Elements or rows in place of others. No place has two."""

    def made(g: Floats) -> None:
        data = g.data(1, 3)
        first, *others = g.shape(data)
        count = g.pick(1, first)
        rows = g.random.permutation(first)[:count].reshape(count, *[1] * len(others))
        places = np.broadcast_to(rows, (count, *others)) if kind == "ScatterElements" else rows.reshape(count, 1)
        g.add(kind, [data, g.constant(np.array(places, np.int64)), g.real(count, *others)])

    return made


def trilu(g: Floats) -> None:
    g.add("Trilu", [g.data(2, 4), g.constant(np.array(g.pick(-1, 1), np.int64))], upper=g.pick(0, 1))


def top_k(g: Floats) -> None:
    data = g.input((*g.sizes(1, 4, g.pick(0, 2)), g.pick(2, 9)))
    g.add("TopK", [data, g.integers(g.pick(1, g.shape(data)[-1]))], 2, largest=g.pick(0, 1))


def einsum(g: Floats) -> None:
    rows, depth, columns = g.sizes(1, 6, 3)
    equation, shapes = g.one_of(
        [
            ("ij,jk->ik", [(rows, depth), (depth, columns)]),
            ("bij,bkj->bik", [(2, rows, depth), (2, columns, depth)]),
            ("ij->ji", [(rows, depth)]),
            ("bihd,bjhd->bhij", [(1, rows, 2, depth), (1, columns, 2, depth)]),
        ]
    )
    g.add("Einsum", [g.data(shape=shape) for shape in shapes], equation=equation)


def recurrent(kind: str, gates: int) -> OpMaker:
    def made(g: Floats) -> None:
        steps, width, size, ways = g.pick(1, 4), g.pick(1, 6), g.pick(1, 5), g.pick(1, 2)
        data = g.data(shape=(steps, 1, width))
        weights = [g.weight((ways, gates * size, each), 1) for each in (width, size)]
        bias = [g.real(ways, 2 * gates * size)] if g.often() else []
        direction = g.one_of(["forward", "reverse"]) if ways == 1 else "bidirectional"
        g.add(kind, [data, *weights, *bias], hidden_size=size, direction=direction)

    return made


COMPARISONS = ("Equal", "Greater", "GreaterOrEqual", "Less", "LessOrEqual")
UNARY = (
    *("Abs", "Neg", "Floor", "Ceil", "Round", "Sin", "Cos", "Exp", "Mish", "Sign", "Asinh", "Atan", "Sinh", "Cosh"),
    *("Hardmax", "Shrink"),
)
REDUCED = ("ReduceMean", "ReduceSum", "ReduceMax", "ReduceMin", "ReduceL1", "ReduceL2", "ReduceLogSumExp", "ReduceProd")
MAKERS: dict[str, OpMaker] = {
    **{kind.lower(): unary(kind) for kind in ("Relu", "Sigmoid", "Tanh", "HardSwish", "Softplus", "Softsign", "Erf")},
    **{kind.lower(): unary(kind) for kind in UNARY},
    **{kind.lower(): unary(kind, positive=True) for kind in ("Log", "Sqrt", "Reciprocal")},
    **{kind.lower(): slope(kind, 0.05, 1.2, "alpha") for kind in ("LeakyRelu", "Elu", "Celu", "ThresholdedRelu")},
    **{kind.lower(): binary(kind) for kind in ("Add", "Sub", "Mul", "Div", "Max", "Min")},
    **{kind.lower(): reduced(kind) for kind in REDUCED},
    **{kind.lower(): comparison(kind) for kind in COMPARISONS},
    **{kind.lower(): logical(kind) for kind in ("And", "Or", "Xor")},
    "not": logical("Not", 1),
    **{kind.lower(): within_one(kind) for kind in ("Asin", "Acos", "Atanh")},
    **{kind.lower(): scatter(kind) for kind in ("ScatterElements", "ScatterND")},
    "argmax": extreme("ArgMax"),
    "argmin": extreme("ArgMin"),
    "averagepool": pool("AveragePool"),
    "batchnorm": batch_norm,
    "clip": clip,
    "concat": concat,
    "conv": conv(2),
    "conv1d": conv(1),
    "conv3d": conv(3),
    "convtranspose": conv_transpose,
    "cumsum": cumsum,
    "deformconv": deform_conv,
    "depthtospace": depth_to_space,
    "depthwise": conv(2, depthwise=True),
    "einsum": einsum,
    "expand": repeated("Expand"),
    "flatten": flatten,
    "gather": gather,
    "gatherelements": gather_elements,
    "gelu": unary("Gelu"),
    "gelu_tanh": unary("Gelu", approximate="tanh"),
    "gemm": gemm,
    "globalaveragepool": whole("GlobalAveragePool"),
    "globalmaxpool": whole("GlobalMaxPool"),
    "globallppool": whole("GlobalLpPool"),
    "gridsample": grid_sample,
    "groupnorm": norm("GroupNormalization", num_groups=1),
    "gru": recurrent("GRU", 3),
    "hardsigmoid": slope("HardSigmoid", 0.1, 0.6, "alpha", "beta"),
    "instancenorm": norm("InstanceNormalization"),
    "layernorm": norm("LayerNormalization"),
    "logsoftmax": along("LogSoftmax"),
    "lpnorm": along("LpNormalization"),
    "lppool": pool("LpPool", p=2),
    "lrn": lrn,
    "lstm": recurrent("LSTM", 4),
    "matmul": matmul,
    "matmul_of_two": matmul_of_two,
    "maxpool": pool("MaxPool"),
    "mean": of_several("Mean"),
    "meanvariancenorm": lambda g: g.add("MeanVarianceNormalization", [g.input((1, g.pick(1, 4), *g.sizes(3, 6, 2)))]),
    "mod": modulo,
    "pad": pad("constant"),
    "pad_edge": pad("edge"),
    "pad_reflect": pad("reflect"),
    "power": power,
    "prelu": prelu,
    "reducesumsquare": reduced("ReduceSumSquare"),
    "reshape": reshape,
    "resize": resize("nearest"),
    "resize_linear": resize("linear"),
    "rnn": recurrent("RNN", 1),
    "selu": unary("Selu"),
    "slice": slice_,
    "softmax": along("Softmax"),
    "spacetodepth": space_to_depth,
    "split": split,
    "squeeze": squeeze,
    "sum": of_several("Sum"),
    "tile": repeated("Tile"),
    "top_k": top_k,
    "transpose": transpose,
    "trilu": trilu,
}
