"""Random int8 layers of TFLite: convolutions, products, pools, means."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import tflite

from frontend.tflite_bundle import Bundle, Quantized, Shape, some_image, some_shape

SAME, VALID = tflite.Padding.SAME, tflite.Padding.VALID
Activation = tflite.ActivationFunctionType
ACTIVATIONS = (Activation.NONE, Activation.RELU, Activation.RELU6, Activation.RELU_N1_TO_1)


def _weighted(
    bundle: Bundle, source: Quantized, shape: Shape, axis: int, *, by_channel: bool, bias: float = 0.8
) -> list[str]:
    """Weights and, with the probability `bias`, a bias. Scales are spread to produce shifts of both signs."""
    channels, depth = shape[axis], int(np.prod(shape)) // shape[axis]
    count = channels if by_channel and bundle.dtype != "uint8" else 1
    scales = (np.exp(bundle.random.uniform(-6, 0, count)) / depth**0.5).astype(np.float32)
    name = _weights(bundle, bundle.random.integers(-127, 128, shape), scales, axis)
    if not bundle.often(bias):
        return [name]
    biases, scales = bundle.random.integers(-5000, 5000, channels), scales * np.float32(source.scale)
    if bundle.dtype == "float32":
        return [name, bundle.constant((biases / 1000).astype(np.float32))]
    return [name, bundle.constant(biases.astype(np.int64 if bundle.dtype == "int16" else np.int32), scales)]


def _weights(bundle: Bundle, integers: np.ndarray, scales: np.ndarray, axis: int) -> str:
    if bundle.dtype == "float32":
        along = scales.reshape(-1, *[1] * (integers.ndim - axis - 1))
        return bundle.constant((integers * along).astype(np.float32))
    if bundle.dtype == "uint8":
        return bundle.constant((integers + 128).astype(np.uint8), scales, bundle.pick(118, 138))
    if bundle.four_bits:
        return bundle.model.halves(bundle.name(), (integers // 16).astype(np.int8), scales, axis)
    return bundle.constant(integers.astype(np.int8), scales, axis=axis)


def _windowed(size: int, window: int, stride: int, dilation: int, padding: int) -> int:
    """The output size along one side; 0 or less if the window does not fit."""
    if padding == SAME:
        return -(-size // stride)
    return (size - (window - 1) * dilation - 1) // stride + 1


def _window(
    bundle: Bundle, image: Shape, largest: int = 4, *, dilates: bool = True
) -> tuple[Shape, Shape, dict[str, Any]]:
    """A window, the sides of the result, and the matching options."""
    while True:
        window, strides, padding = bundle.sizes(1, largest, 2), bundle.sizes(1, 3, 2), bundle.one_of((SAME, VALID))
        dilation = bundle.sizes(1, 3, 2) if dilates and bundle.often(0.4) else (1, 1)
        sides = tuple(_windowed(*each, padding) for each in zip(image[1:3], window, strides, dilation, strict=True))
        if min(sides) > 0:
            break
    options = {"Padding": padding, "StrideH": strides[0], "StrideW": strides[1]}
    if dilates:
        options |= {"DilationHFactor": dilation[0], "DilationWFactor": dilation[1]}
    return window, sides, options


def conv_2d(bundle: Bundle) -> None:
    groups, depth, given = bundle.pick(1, 3), bundle.pick(1, 5), bundle.quantized()
    image = some_image(bundle, groups * depth)
    window, sides, options = _window(bundle, image)
    filters = groups * bundle.pick(1, 4)
    source = bundle.input(image, given)
    weighted = _weighted(bundle, given, (filters, *window, depth), 0, by_channel=bundle.often(0.7), bias=1)
    result = bundle.output((image[0], *sides, filters), bundle.quantized())
    options["FusedActivationFunction"] = bundle.one_of(ACTIVATIONS)
    bundle.op("CONV_2D", [source, *weighted], result, "Conv2D", **options)


def depthwise_conv_2d(bundle: Bundle) -> None:
    multiplier, given, image = bundle.pick(1, 3), bundle.quantized(), some_image(bundle)
    window, sides, options = _window(bundle, image)
    source, filters = bundle.input(image, given), multiplier * image[3]
    weighted = _weighted(bundle, given, (1, *window, filters), 3, by_channel=bundle.often(0.7))
    result = bundle.output((image[0], *sides, filters), bundle.quantized())
    options |= {"FusedActivationFunction": bundle.one_of(ACTIVATIONS), "DepthMultiplier": multiplier}
    bundle.op("DEPTHWISE_CONV_2D", [source, *weighted], result, "DepthwiseConv2D", **options)


def transpose_conv(bundle: Bundle) -> None:
    image, given, window, strides = some_image(bundle), bundle.quantized(), bundle.sizes(1, 4, 2), bundle.sizes(1, 3, 2)
    padding, filters = bundle.one_of((SAME, VALID)), bundle.pick(1, 5)
    full = [(size - 1) * stride for size, stride in zip(image[1:3], strides, strict=True)]
    if padding == VALID:
        sides = tuple(size + extent for size, extent in zip(full, window, strict=True))
    else:
        sides = tuple(size + bundle.pick(1, stride) for size, stride in zip(full, strides, strict=True))
    shape = (image[0], *sides, filters)
    places, source = bundle.places(*shape), bundle.input(image, given)
    weighted = _weighted(bundle, given, (filters, *window, image[3]), 0, by_channel=bundle.often(0.7))
    options = {"Padding": padding, "StrideH": strides[0], "StrideW": strides[1]}
    inputs = [places, weighted[0], source, *weighted[1:]]
    bundle.op("TRANSPOSE_CONV", inputs, bundle.output(shape, bundle.quantized()), "TransposeConv", **options)


def fully_connected(bundle: Bundle) -> None:
    depth, outputs, given, keeps = bundle.pick(1, 40), bundle.pick(1, 12), bundle.quantized(), bundle.often()
    leading = bundle.sizes(1, 3, bundle.pick(1, 3))
    source = bundle.input((*leading, depth), given)
    weighted = _weighted(bundle, given, (outputs, depth), 0, by_channel=bundle.often())
    shape = (*(leading if keeps else (int(np.prod(leading)),)), outputs)
    options = {"KeepNumDims": keeps, "FusedActivationFunction": bundle.one_of(ACTIVATIONS)}
    result = bundle.output(shape, bundle.quantized())
    bundle.op("FULLY_CONNECTED", [source, *weighted], result, "FullyConnected", **options)


def batch_matmul(bundle: Bundle) -> None:
    rows, depth, columns = bundle.pick(1, 5), bundle.pick(1, 20), bundle.pick(1, 5)
    leading, first, second = bundle.sizes(1, 3, bundle.pick(1, 2)), bundle.often(), bundle.often()
    left = bundle.input((*leading, *((depth, rows) if first else (rows, depth))))
    right = bundle.input((*leading, *((columns, depth) if second else (depth, columns))))
    result = bundle.output((*leading, rows, columns), bundle.quantized(0.05, 5))
    bundle.op("BATCH_MATMUL", [left, right], result, "BatchMatMul", AdjX=first, AdjY=second)


def pool(code: str) -> Callable[[Bundle], None]:
    def made(bundle: Bundle) -> None:
        image, given = some_image(bundle), bundle.quantized()
        window, sides, options = _window(bundle, image, dilates=False)
        options |= {"FilterHeight": window[0], "FilterWidth": window[1]}
        options["FusedActivationFunction"] = bundle.one_of(ACTIVATIONS)
        source = bundle.input(image, given)
        bundle.op(code, [source], bundle.output((image[0], *sides, image[3]), given), "Pool2D", **options)

    return made


def mean(bundle: Bundle) -> None:
    shape = some_shape(bundle, 2)
    axes = sorted({bundle.pick(0, len(shape) - 1) for _ in shape})
    axes = axes[1:] if len(axes) == len(shape) else axes
    keeps = bundle.often()
    kept = [1 if axis in axes else size for axis, size in enumerate(shape) if keeps or axis not in axes]
    given = bundle.quantized()
    source, result = bundle.input(shape, given), bundle.output(tuple(kept), bundle.one_of([given, bundle.quantized()]))
    bundle.op("MEAN", [source, bundle.places(*axes)], result, "Reducer", KeepDims=keeps)
