"""The layer, for which kernels are generated, of an op of a Net."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np

from npukit.accel.cortex_m import layer as layers
from npukit.net.net import Net, Op
from npukit.net.ops import Add, AveragePool, Conv2d, Dense, DepthwiseConv2d, MaxPool, Softmax, TvmCode
from npukit.net.reference.softmax import exp_table
from npukit.net.requantize import Multiplier, add_rescaling, quantization, requantization


def layer_of(net: Net, op: Op) -> layers.Layer | str:
    """An op as a layer, or why there are no kernels for it."""
    make = _MAKERS.get(type(op.attributes))
    if make is None:
        return "made by TVM" if isinstance(op.attributes, TvmCode) else f"there are no kernels for {op.kind}"
    if any(net.tensor(name).dtype != "int8" for name in (*net.activations(op), op.output)):
        return "an activation is not int8"
    return make(net, op)


def _shape(net: Net, name: str) -> layers.Shape:
    """Height, width and channels; a tensor of fewer dimensions is a line of pixels."""
    shape = net.tensor(name).shape
    shape = shape[1:] if len(shape) == 4 else shape
    height, width, channels = (1,) * (3 - len(shape)) + tuple(shape)
    return height, width, channels


def _convolution(net: Net, op: Op) -> layers.Layer | str:
    attributes, weights = op.attributes, net.constant(op, 1)
    assert isinstance(attributes, Conv2d)
    shape = _shape(net, op.inputs[0])
    if weights is None:
        return "its weights are not constant"
    if weights.shape[3] != shape[2]:
        return "it has groups"
    return layers.ConvLayer(
        op.name,
        shape,
        weights,
        _bias(net, op, len(weights)),
        quantization(net, op.inputs[0]).zero_point,
        _requantization(net, op, attributes.clamp),
        attributes.strides,
        attributes.padding,
        attributes.dilation,
    )


def _depthwise(net: Net, op: Op) -> layers.Layer | str:
    attributes, weights = op.attributes, net.constant(op, 1)
    assert isinstance(attributes, DepthwiseConv2d)
    shape = _shape(net, op.inputs[0])
    if weights is None:
        return "its weights are not constant"
    if weights.shape[3] != shape[2]:
        return "it has several outputs for each channel"
    if attributes.dilation != (1, 1):
        return "it is dilated"
    return layers.DepthwiseLayer(
        op.name,
        shape,
        weights[0],
        _bias(net, op, shape[2]),
        quantization(net, op.inputs[0]).zero_point,
        _requantization(net, op, attributes.clamp),
        attributes.strides,
        attributes.padding,
    )


def _dense(net: Net, op: Op) -> layers.Layer | str:
    attributes, weights = op.attributes, net.constant(op, 1)
    assert isinstance(attributes, Dense)
    if weights is None:
        return "its weights are not constant"
    if net.tensor(op.inputs[0]).elements != weights.shape[1]:
        return "it has several rows of inputs"
    return layers.DenseLayer(
        op.name,
        weights,
        _bias(net, op, len(weights)),
        quantization(net, op.inputs[0]).zero_point,
        _requantization(net, op, attributes.clamp),
    )


def _add(net: Net, op: Op) -> layers.Layer | str:
    assert isinstance(op.attributes, Add)
    if len(list(net.activations(op))) != 2 or net.tensor(op.inputs[0]).shape != net.tensor(op.inputs[1]).shape:
        return "it is not a sum of two activations of one shape"
    factors = add_rescaling(net, op)
    zeros = [quantization(net, name).zero_point for name in (*op.inputs, op.output)]
    return layers.AddLayer(
        op.name,
        _shape(net, op.output),
        _multiplier(factors.first),
        _multiplier(factors.second),
        _multiplier(factors.output),
        (zeros[0], zeros[1], zeros[2]),
        op.attributes.clamp,
    )


def _pool(net: Net, op: Op) -> layers.Layer | str:
    attributes = op.attributes
    assert isinstance(attributes, AveragePool | MaxPool)
    if any(attributes.padding):
        return f"windows reach outside the input by {attributes.padding}"
    kind = "average" if isinstance(attributes, AveragePool) else "max"
    shape = _shape(net, op.inputs[0])
    return layers.PoolLayer(op.name, kind, shape, attributes.window, attributes.strides, attributes.clamp)


def _softmax(net: Net, op: Op) -> layers.Layer | str:
    assert isinstance(op.attributes, Softmax)
    height, width, length = _shape(net, op.output)
    scale = quantization(net, op.inputs[0]).scale
    return layers.SoftmaxLayer(op.name, height * width, length, exp_table(scale, op.attributes.beta))


_MAKERS: Mapping[type, Callable[[Net, Op], layers.Layer | str]] = {
    Conv2d: _convolution,
    DepthwiseConv2d: _depthwise,
    Dense: _dense,
    Add: _add,
    AveragePool: _pool,
    MaxPool: _pool,
    Softmax: _softmax,
}


def _bias(net: Net, op: Op, channels: int) -> np.ndarray:
    found = net.constant(op, 2)
    return np.zeros(channels, np.int32) if found is None else found


def _requantization(net: Net, op: Op, clamp: layers.Pair) -> layers.Requantization:
    found = requantization(net, op)
    return layers.Requantization(found.multipliers, found.shifts, quantization(net, op.output).zero_point, clamp)


def _multiplier(factor: Multiplier) -> layers.Multiplier:
    return layers.Multiplier(factor.multiplier, factor.shift)
