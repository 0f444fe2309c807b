"""Broken nets are refused; the error names the op or tensor and the fault."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from small_nets import image_net, sine_net

from npukit.errors import NpukitError
from npukit.net.check import check_net
from npukit.net.net import Net, State
from npukit.net.ops import AveragePool, Conv2d, Transpose
from npukit.net.ops.table import macs, total_macs
from npukit.net.tensor import Quantization, Tensor


def with_tensor(net: Net, tensor: Tensor) -> Net:
    return replace(net, tensors={**net.tensors, tensor.name: tensor})


def with_op(net: Net, index: int, **changes: object) -> Net:
    ops = list(net.ops)
    ops[index] = replace(ops[index], **changes)  # type: ignore[arg-type]
    return net.with_ops(tuple(ops))


def scaled(net: Net, name: str, *scales: float, zero: int = 0, axis: int | None = None) -> Net:
    quantization = Quantization(scales, (zero,) * len(scales), axis)
    return with_tensor(net, replace(net.tensor(name), quantization=quantization))


SINE, IMAGE = sine_net(), image_net()
BROKEN = {
    r"sine: op 'last' \(dense\): it reads 'nothing' before|there is no tensor 'nothing'": with_op(
        SINE, 1, inputs=("nothing", "sine_weights")
    ),
    "it reads 'sine' before anything writes it": with_op(SINE, 0, inputs=("sine", "hidden_weights")),
    "'hidden' is written twice": with_op(SINE, 1, outputs=("hidden",)),
    "another op has the same name": with_op(SINE, 1, name="hidden"),
    r"its output is \[1, 4\], not \[1, 5\]": with_tensor(SINE, replace(SINE.tensor("hidden"), shape=(1, 5))),
    "it has 1 inputs": with_op(SINE, 0, inputs=("x",)),
    "is a constant": with_op(SINE, 0, inputs=("hidden_weights", "hidden_weights")),
    "not a number": scaled(SINE, "x", float("nan")),
    "zero, negative": scaled(SINE, "x", 0.0),
    "does not fit int8": scaled(SINE, "x", 0.1, zero=128),
    "weights must be int8 with zero point 0": scaled(SINE, "sine_weights", 0.1, zero=3),
    "2 scales where 1 belong": scaled(SINE, "x", 0.1, 0.1),
    "needs one scale": scaled(SINE, "x", 0.1, axis=0),
    "its scales are along axis 2 of 2": scaled(SINE, "x", 0.1, axis=2),
    "shape .* is impossible": with_tensor(SINE, replace(SINE.tensor("x"), shape=(1, -1))),
    "its name is empty": with_tensor(SINE, Tensor("", (1,), "int8")),
    "nothing writes 'lost'": replace(SINE, outputs=("lost",)),
    "it has no output": replace(SINE, outputs=()),
    "its value is": replace(SINE, constants={**SINE.constants, "sine_bias": np.zeros(2, np.int32)}),
    "does not fit into 5 x 4": with_op(IMAGE, 0, attributes=Conv2d(dilation=(3, 3))),
    "make no sense": with_op(IMAGE, 0, attributes=Conv2d(strides=(0, 1))),
    "its type is float64; npukit has": with_tensor(SINE, Tensor("x", (1, 1), "float64")),
    "it is float32, and has a scale": with_tensor(SINE, replace(SINE.tensor("x"), dtype="float32")),
    r"its bias is int16\[1\], not int32\[1\]": replace(
        with_tensor(SINE, Tensor("sine_bias", (1,), "int16")),
        constants={**SINE.constants, "sine_bias": np.zeros(1, np.int16)},
    ),
    "an input or a state is named twice": replace(SINE, inputs=("x", "x")),
    "it becomes .* and is": replace(SINE, inputs=(), states=(State("x", "hidden", np.zeros((1, 1), np.int8)),)),
    r"it begins as int8\[2\]": replace(SINE, inputs=(), states=(State("x", "x", np.zeros(2, np.int8)),)),
    "its weights or bias are not constant": with_op(SINE, 1, inputs=("hidden", "hidden", "sine_bias")),
    "must not change": with_op(IMAGE, 1, attributes=AveragePool(), inputs=("conv",)),
    "axes .* do not suit": with_op(IMAGE, 1, attributes=Transpose((0, 1)), inputs=("conv",)),
}
IMAGE_SMALL = replace(IMAGE.tensor("image"), shape=(1, 5, 4, 5))


@pytest.mark.parametrize(("message", "net"), BROKEN.items())
def test_broken(message: str, net: Net) -> None:
    with pytest.raises(NpukitError, match=message):
        check_net(net)


def test_whole_nets_pass() -> None:
    assert check_net(SINE) is SINE
    assert check_net(IMAGE) is IMAGE


def test_channels_must_go_together() -> None:
    with pytest.raises(NpukitError, match="do not suit an input of 5 channels"):
        check_net(with_tensor(IMAGE, IMAGE_SMALL))


def test_costs() -> None:
    conv, total, _ = IMAGE.ops
    assert macs(IMAGE, conv) == 5 * 4 * 6 * 3 * 3 * 6
    assert macs(IMAGE, total) == 0
    assert total_macs(SINE) == 8
