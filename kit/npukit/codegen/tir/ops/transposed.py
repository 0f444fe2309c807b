"""Transposed convolution and the product of two activations."""

from __future__ import annotations

from npukit.accel.interface import Tile
from npukit.codegen.tir.door import Expr, Local, Pointed, let, loop, quotient, select
from npukit.codegen.tir.ops.finish import Finish, finished, rescaled, wide
from npukit.codegen.tir.ops.strided import Layout, Strided, each_pixel, each_position
from npukit.net.ops import Matmul, TransposeConv2d
from npukit.net.ops.dense import operand_axes
from npukit.net.requantize import matmul_rescaling, quantization
from npukit.net.tensor import untransposed


def transpose_conv2d(tile: Tile, source: Pointed, weights: Pointed, *rest: Pointed) -> None:
    *constants, output = rest
    attributes, given, made = tile.op.of(TransposeConv2d), Layout.of(tile.inputs[0]), Layout.of(tile.output)
    finish, zero = Finish(tile, tuple(constants)), quantization(tile.net, tile.op.inputs[0]).zero_point
    _, height, width, depth = tile.net.tensor(tile.op.inputs[1]).shape
    (stride_y, stride_x), (top, left, *_), start = attributes.strides, attributes.padding, tile.output.box.start
    held, (_, rows, columns, _) = tile.inputs[0].box.start, tile.inputs[0].tensor.shape
    with each_pixel(made) as (n, y, x):
        base_y, first_y, end_y = _reached("y", y + start[1] + top, height, stride_y, rows)
        base_x, first_x, end_x = _reached("x", x + start[2] + left, width, stride_x, columns)
        with loop("c", 0, made.channels) as c:
            total = Local("sum", "int32", finish.initial([c])[0])
            with loop("row", first_y, end_y) as row, loop("column", first_x, end_x) as column:
                pixel = let("pixel", given.index(n, row - held[1], column - held[2]))
                tap_y, tap_x = base_y - row * stride_y, base_x - column * stride_x
                tap = let("tap", ((c * height + tap_y) * width + tap_x) * depth)
                with loop("i", 0, depth) as i:
                    total.set(total.value + wide(source[pixel + i], zero) * wide(weights[tap + i]))
            finish.store(output, made.index(n, y, x), [c], [total])


def _reached(name: str, place: Expr, taps: int, stride: int, size: int) -> tuple[Expr, Expr, Expr]:
    """The position in the uncropped result, the first input whose window covers it, and the input after the last."""
    base = let(f"{name}_base", place)
    first = let(f"{name}_first", select(base >= taps, quotient(base - taps + stride, stride), 0))
    last = let(f"{name}_last", quotient(base, stride))
    return base, first, let(f"{name}_end", select(last < size, last + 1, size))


def matmul(tile: Tile, first: Pointed, second: Pointed, output: Pointed) -> None:
    attributes, made = tile.op.of(Matmul), Strided.of(tile.output)
    left, right = (
        Strided.of(operand).transposed(axes) for operand, axes in zip(tile.inputs, operand_axes(tile.op), strict=True)
    )
    depth, leading = left.shape[-1], untransposed(made.shape, attributes.result)[:-2]
    rows, columns = left.broadcast((*leading, *left.shape[-2:])), right.broadcast((*leading, *right.shape[-2:]))
    zeros = [quantization(tile.net, name).zero_point for name in tile.op.inputs]
    factor = matmul_rescaling(tile.net, tile.op)
    with each_position(made.shape) as position:
        *outer, row, column = untransposed(position, attributes.result)
        total = Local("sum", "int32", 0)
        with loop("k", 0, depth) as k:
            a, b = first[rows.index([*outer, row, k])], second[columns.index([*outer, k, column])]
            total.set(total.value + wide(a, zeros[0]) * wide(b, zeros[1]))
        output[made.index(position)] = finished(tile, rescaled(total.value, factor))


KERNELS = {"matmul": matmul, "transpose_conv2d": transpose_conv2d}
