"""Nets small enough to read, built by hand."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from npukit.net.net import Net, Op, State
from npukit.net.ops import Add, Attributes, Conv2d, Dense, Softmax
from npukit.net.tensor import Quantization, Tensor


def quantized(name: str, shape: Sequence[int], scale: float, zero_point: int = 0, dtype: str = "int8") -> Tensor:
    return Tensor(name, tuple(shape), dtype, Quantization((scale,), (zero_point,)))


def net_of(
    name: str, inputs: Sequence[Tensor], ops: Sequence[tuple[Op, Tensor]], constants: Mapping[Tensor, np.ndarray]
) -> Net:
    """A net whose output is the last op's."""
    tensors = [*inputs, *constants, *(tensor for _, tensor in ops)]
    return Net(
        name,
        tuple(tensor.name for tensor in inputs),
        (ops[-1][1].name,),
        tuple(op for op, _ in ops),
        {tensor.name: tensor for tensor in tensors},
        {tensor.name: value for tensor, value in constants.items()},
    )


def op_net(
    attributes: Attributes, inputs: Sequence[Tensor], output: Tensor, constants: Mapping[Tensor, np.ndarray]
) -> Net:
    """A single-op net; the op is called `it`."""
    names = (*(tensor.name for tensor in inputs), *(tensor.name for tensor in constants))
    return net_of("one", inputs, [(Op("it", attributes, names, (output.name,)), output)], constants)


def sine_net() -> Net:
    """Two dense layers with a number in and a number out, as in the well-known sine model."""
    hidden = Op("hidden", Dense((-128, 100)), ("x", "hidden_weights", "hidden_bias"), ("hidden",))
    last = Op("last", Dense(), ("hidden", "sine_weights", "sine_bias"), ("sine",), reason="too small")
    return net_of(
        "sine",
        [quantized("x", (1, 1), 0.025, -128)],
        [(hidden, quantized("hidden", (1, 4), 0.1, -128)), (last, quantized("sine", (1, 1), 1 / 128, 5))],
        {
            quantized("hidden_weights", (4, 1), 0.5): np.array([[-9], [54], [71], [-127]], np.int8),
            Tensor("hidden_bias", (4,), "int32"): np.array([0, -5438, 3396, 1981], np.int32),
            quantized("sine_weights", (1, 4), 0.25): np.array([[39, -59, 21, 127]], np.int8),
            Tensor("sine_bias", (1,), "int32"): np.array([429], np.int32),
        },
    )


def image_net() -> Net:
    """A convolution with per-channel scales, an add of the convolution's input, a softmax."""
    shape, scales = (1, 5, 4, 6), tuple(float(np.float32(0.001 * (channel + 1))) for channel in range(6))
    weights = Tensor("weights", (6, 3, 3, 6), "int8", Quantization(scales, (0,) * 6, 0))
    values = np.arange(6 * 3 * 3 * 6, dtype=np.int64).reshape(6, 3, 3, 6) * 7 % 255 - 127
    conv = Op("conv", Conv2d(padding=(1, 1, 1, 1)), ("image", "weights"), ("conv",), engine="mac_array")
    return net_of(
        "image",
        [quantized("image", shape, 0.02, 3)],
        [
            (conv, quantized("conv", shape, 0.03, -7)),
            (Op("sum", Add(), ("conv", "image"), ("sum",)), quantized("sum", shape, 0.04, 1)),
            (Op("softmax", Softmax(), ("sum",), ("softmax",)), quantized("softmax", shape, 1 / 256, -128)),
        ],
        {weights: values.astype(np.int8)},
    )


def remembering_net(size: int = 64) -> Net:
    """Two states. All ops read `fast` before its next value is written: no copy. The op for the next value of `slow`
    reads `slow` itself, and needs a copy."""
    random, tensors = np.random.default_rng(3), {}
    for name, width in (("x", 16), *((name, size) for name in ("fast", "slow", "a", "b", "sum", "y", "z", "mixed"))):
        tensors[name] = quantized(name, (1, width), 0.05, 3)
    weights = {"wide": (size, size), "narrow": (size, 16)}
    values = {name: random.integers(-127, 128, shape).astype(np.int8) for name, shape in weights.items()}
    tensors |= {name: quantized(name, shape, 0.01) for name, shape in weights.items()}
    dense = {"a": ("fast", "wide"), "b": ("x", "narrow"), "y": ("sum", "wide"), "z": ("slow", "wide")}
    ops = [Op(name, Dense(), dense[name], (name,)) for name in ("a", "b")]
    ops += [Op("sum", Add(), ("a", "b"), ("sum",)), Op("y", Dense(), dense["y"], ("y",))]
    ops += [Op("z", Dense(), dense["z"], ("z",)), Op("mixed", Add(), ("slow", "y"), ("mixed",))]
    ops += [Op("last", Add(), ("z", "mixed"), ("last",))]
    tensors["last"] = quantized("last", (1, size), 0.05, 3)
    begins = random.integers(-128, 128, (1, size)).astype(np.int8)
    states = State("fast", "sum", np.full((1, size), 3, np.int8)), State("slow", "mixed", begins)
    return Net("remembering", ("x",), ("last",), tuple(ops), tensors, values, states)
