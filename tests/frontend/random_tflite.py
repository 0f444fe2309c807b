"""Random int8 ops of TFLite, with a maker for each kind, and the comparison with LiteRT's reference kernels."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np

from frontend import random_tflite_further as further
from frontend import random_tflite_layers as layers
from frontend import random_tflite_moves as moves
from frontend.random_tflite_layers import ACTIVATIONS
from frontend.tflite_bundle import Bundle, Quantized, Shape, some_image, some_shape
from frontend.tflite_models import run_litert
from npukit.frontend.models import load_net_from_model
from npukit.net.net import Net
from npukit.net.ops import dense
from npukit.net.ops.table import SPECS
from npukit.net.reference import run_reference
from npukit.net.tables import quantised


def _two(bundle: Bundle, given: Quantized | None = None) -> tuple[list[str], Shape]:
    """Operands of equal or broadcasting shapes, at most one of them constant."""
    shape = some_shape(bundle)
    other = bundle.one_of([shape, tuple(bundle.one_of((1, size)) for size in shape), shape[-1:]])
    first = bundle.input(shape, given)
    if bundle.often(0.6):
        second = bundle.input(other, given)
    else:
        stated = given or bundle.quantized()
        second = bundle.activation(other, stated)
    return ([first, second] if bundle.often() else [second, first]), shape


def arithmetic(code: str) -> Callable[[Bundle], None]:
    def made(bundle: Bundle) -> None:
        operands, shape = _two(bundle)
        result, activation = bundle.output(shape, bundle.quantized()), bundle.one_of(ACTIVATIONS)
        bundle.op(code, operands, result, code.capitalize(), FusedActivationFunction=activation)

    return made


def choice(code: str) -> Callable[[Bundle], None]:
    def made(bundle: Bundle) -> None:
        given = bundle.quantized()
        operands, shape = _two(bundle, given)
        bundle.op(code, operands, bundle.output(shape, given), "MaximumMinimum")

    return made


def softmax(bundle: Bundle) -> None:
    shape = (*bundle.sizes(1, 4, bundle.pick(1, 3)), bundle.pick(1, 300) if bundle.often(0.2) else bundle.pick(2, 20))
    source, result = bundle.input(shape), bundle.output(shape, bundle.fitting(Quantized(1 / 256, -128)))
    beta = float(np.float32(bundle.random.uniform(0.3, 2))) if bundle.often() else 1.0
    bundle.op("SOFTMAX", [source], result, "Softmax", Beta=beta)


def function(
    code: str, fixed: Quantized | None = None, *, table: str = "", positive: bool = False
) -> Callable[[Bundle], None]:
    """A unary op. `fixed`: required quantisation of the result; `positive`: the operand is above 0. The logarithm of a
    negative number is defined in int8 only."""

    def made(bundle: Bundle) -> None:
        shape, source = some_shape(bundle), bundle.quantized()
        least = bundle.fitting(Quantized(1, -128)).zero
        above = positive or (code == "LOG" and bundle.dtype != "int8")
        name = bundle.input(shape, Quantized(source.scale, least) if above else source)
        if above:
            bundle.data[-1] = np.maximum(bundle.data[-1], 0.01 if bundle.dtype == "float32" else least + 1)
        result = bundle.fitting(fixed) if fixed else bundle.one_of([source, bundle.quantized()])
        bundle.op(code, [name], bundle.output(shape, result), table)

    return made


def leaky_relu(bundle: Bundle) -> None:
    shape, slope = some_shape(bundle), float(np.float32(bundle.random.uniform(-1, 1.5)))
    bundle.op("LEAKY_RELU", [bundle.input(shape)], bundle.output(shape, bundle.quantized()), "LeakyRelu", Alpha=slope)


def prelu(bundle: Bundle) -> None:
    image, slopes = some_image(bundle), bundle.quantized()
    constant = bundle.activation((1, 1, image[3]), slopes)
    bundle.op("PRELU", [bundle.input(image), constant], bundle.output(image, bundle.quantized()))


def quantize(bundle: Bundle) -> None:
    shape = some_shape(bundle)
    before, after = bundle.one_of([("int8", "int8"), ("uint8", "int8"), ("int8", "uint8")])
    source = bundle.input(shape, _shifted(bundle.quantized(), before), before)
    bundle.op("QUANTIZE", [source], bundle.output(shape, _shifted(bundle.quantized(), after), after))


def _shifted(given: Quantized, dtype: str) -> Quantized:
    return Quantized(given.scale, given.zero + 128) if dtype == "uint8" else given


def float_ends(bundle: Bundle) -> None:
    """Float inputs and outputs around int8 ops, as converters leave them by default."""
    shape = some_shape(bundle)
    inside, beyond = (bundle.between(shape) for _ in range(2))
    bundle.op("QUANTIZE", [bundle.real_input(shape)], inside)
    bundle.op("LEAKY_RELU", [inside], beyond, "LeakyRelu", Alpha=0.25)
    bundle.op("DEQUANTIZE", [beyond], bundle.output(shape, dtype="float32"))


MAKERS: dict[str, Callable[[Bundle], None]] = {
    **further.MAKERS,
    **further.ROUNDED,
    "abs": function("ABS"),
    "add": arithmetic("ADD"),
    "arg_max": moves.arg_max,
    "average_pool_2d": layers.pool("AVERAGE_POOL_2D"),
    "batch_matmul": layers.batch_matmul,
    "concatenation": moves.concatenation,
    "conv_2d": layers.conv_2d,
    "depthwise_conv_2d": layers.depthwise_conv_2d,
    "exp": function("EXP"),
    "float_ends": float_ends,
    "fully_connected": layers.fully_connected,
    "gelu": function("GELU", table="Gelu"),
    "hard_swish": function("HARD_SWISH", table="HardSwish"),
    "leaky_relu": leaky_relu,
    "log": function("LOG"),
    "logistic": function("LOGISTIC", Quantized(1 / 256, -128)),
    "max_pool_2d": layers.pool("MAX_POOL_2D"),
    "maximum": choice("MAXIMUM"),
    "mean": layers.mean,
    "minimum": choice("MINIMUM"),
    "mul": arithmetic("MUL"),
    "pack": moves.pack,
    "pad": moves.pad,
    "pad_v2": moves.pad_v2,
    "prelu": prelu,
    "quantize": quantize,
    "relu": function("RELU"),
    "relu6": function("RELU6"),
    "relu_0_to_1": function("RELU_0_TO_1"),
    "relu_n1_to_1": function("RELU_N1_TO_1"),
    "reshape": moves.reshape,
    "resize_bilinear": moves.resize("RESIZE_BILINEAR", "ResizeBilinear"),
    "resize_nearest": moves.resize("RESIZE_NEAREST_NEIGHBOR", "ResizeNearestNeighbor"),
    "rsqrt": function("RSQRT", positive=True),
    "slice": moves.slice_,
    "softmax": softmax,
    "split": moves.split,
    "split_v": moves.split_v,
    "strided_slice": moves.strided_slice,
    "sub": arithmetic("SUB"),
    "tanh": function("TANH", Quantized(1 / 128, 0)),
    "transpose": moves.transpose,
    "transpose_conv": layers.transpose_conv,
}


def bundle_of(seed: int, makers: Sequence[str]) -> Bundle:
    bundle = Bundle(np.random.default_rng(seed))
    for name in makers:
        bundle.maker = name
        MAKERS[name](bundle)
    return bundle


def differing(bundle: Bundle, folder: Path) -> list[str]:
    """The differences between the results of npukit's reference and of LiteRT's reference kernels."""
    path = folder / "model.tflite"
    path.write_bytes(bundle.bytes())
    net = load_net_from_model(path)
    theirs, ours = run_litert(path, bundle.data), _run(net, bundle.data)
    told = (
        _difference(_as_real(net, name, got) if wanted.dtype == np.float32 else got, wanted, maker in further.ROUNDED)
        for (maker, _), name, got, wanted in zip(bundle.results, net.outputs, ours, theirs, strict=True)
    )
    return [f"{maker}: {said}" for (maker, _), said in zip(bundle.results, told, strict=True) if said]


def _run(net: Net, data: Sequence[np.ndarray]) -> list[np.ndarray]:
    """Runs the net on integers in place of real inputs that the model quantises at once."""
    inputs = [_as_integers(net, *pair) for pair in zip(net.inputs, data, strict=True)]
    with dense_rounded_once():
        return run_reference(net, inputs)


@contextmanager
def dense_rounded_once() -> Iterator[None]:
    """Dense layers round once, as in LiteRT. TFLite Micro and npukit round twice."""

    def once(*given: Any) -> np.ndarray:
        with patch("npukit.net.ops.convolution.multiply_by_quantized_multiplier", rounded_once):
            return dense.dense(*given)

    with patch.dict(SPECS, {"dense": replace(SPECS["dense"], reference=once)}):
        yield


def rounded_once(value: np.ndarray, multipliers: np.ndarray, shifts: np.ndarray) -> np.ndarray:
    """LiteRT's rescaling of a dense layer's sums. TFLite Micro rounds twice here."""
    right = 31 - shifts.astype(np.int64)
    return (value * multipliers.astype(np.int64) + (np.int64(1) << (right - 1))) >> right


def _as_integers(net: Net, name: str, value: np.ndarray) -> np.ndarray:
    given = net.tensor(name).quantization
    if value.dtype != np.float32 or given is None:
        return value
    return quantised(value, np.zeros(1), np.array(given.scale), given.zero_point)


def _as_real(net: Net, name: str, value: np.ndarray) -> np.ndarray:
    """The real numbers of the net's integers, for comparison with the model's float outputs."""
    given = net.tensor(name).quantization
    assert given is not None
    return (value.astype(np.float32) - given.zero_point) * np.float32(given.scale)


def _difference(ours: np.ndarray, theirs: np.ndarray, within: int) -> str:
    """The difference as text; empty if within `within`."""
    if (ours.dtype, ours.shape) != (theirs.dtype, theirs.shape):
        return f"{ours.dtype} {ours.shape}, not {theirs.dtype} {theirs.shape}"
    distance = np.abs(ours.astype(np.float64) - theirs)
    return (
        f"{np.count_nonzero(distance)} of {ours.size} are up to {distance.max()} off" if distance.max() > within else ""
    )
