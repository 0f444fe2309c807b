"""Invariants of a Net. Every Net from outside is checked once; later code relies on the result."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from math import isfinite, prod

import numpy as np

from npukit.errors import NpukitError
from npukit.net.attributes import MOST_CYCLES, TvmCode
from npukit.net.c_code.function import C_TYPES, check_code
from npukit.net.c_code.rows import check_rows
from npukit.net.limits import COLUMNS, EXTENT, MACS, SCRATCH, WINDOW, check_shape
from npukit.net.net import Fused, Net, Op, fuse
from npukit.net.ops.kind import Scales
from npukit.net.ops.table import SPECS, total_macs
from npukit.net.tensor import Quantization, Tensor
from npukit.net.text import print_tensor

_LONGEST_NAME = 256
LEAST_SCALE, LARGEST_SCALE = 2.0**-100, 2.0**122
"""Exclusive bounds on the scale of an activation. Numbers from the least to the largest float, as of a mask, have a
scale below the upper bound."""


def check_net(net: Net) -> Net:
    """Return the net, or raise an error that names the op or tensor and the violation."""
    for name, tensor in net.tensors.items():
        with _named(f"{net.name}: tensor {name!r}"):
            _check_tensor(net, name, tensor)
    known = {*net.begins, *net.constants}
    _check_ops(net, net.ops, known)
    MACS.check(total_macs(net), net.name)
    known |= {name for op in net.ops for name in op.outputs}
    with _named(net.name):
        _check_ends(net, known)
    for state in net.states:
        with _named(f"{net.name}: state {state.input!r}"):
            before, after = net.tensor(state.input), net.tensor(state.output)
            if replace(after, name=before.name) != before:
                raise NpukitError(f"it becomes {print_tensor(after)}, and is {print_tensor(before)}")
            if (state.initial.shape, str(state.initial.dtype)) != (before.shape, before.dtype):
                raise NpukitError(f"it begins as {state.initial.dtype}{list(state.initial.shape)}")
    return net


def _check_ops(net: Net, ops: Sequence[Op], before: set[str]) -> None:
    known, names = set(before), set[str]()
    for op in ops:
        with _named(f"{net.name}: op {op.name!r} ({op.kind})"):
            if op.name in names:
                raise NpukitError("another op has the same name")
            for name in (*op.inputs, *op.outputs):
                if name not in net.tensors:
                    raise NpukitError(f"there is no tensor {name!r}")
            for name in op.inputs:
                if name not in known:
                    raise NpukitError(f"it reads {name!r} before anything writes it")
            for name in op.outputs:
                if name in known:
                    raise NpukitError(f"{name!r} is written twice")
            if isinstance(op.attributes, Fused):
                _check_fused(net, op, known)
            else:
                _check_op(net, op)
        known |= set(op.outputs)
        names.add(op.name)


def _check_fused(net: Net, op: Op, known: set[str]) -> None:
    """Check that parts are plain ops, and that the fused op's inputs and outputs match its parts."""
    if not op.parts or any(isinstance(part.attributes, Fused) for part in op.parts):
        raise NpukitError("it has no parts, or parts within parts")
    expected = fuse(op.parts)
    if (expected.inputs, expected.outputs) != (op.inputs, op.outputs):
        raise NpukitError(f"its parts have the inputs {list(expected.inputs)} and the outputs {list(expected.outputs)}")
    _check_ops(net, op.parts, known)


@contextmanager
def _named(what: str) -> Iterator[None]:
    """Prefix errors raised inside with `what`."""
    try:
        yield
    except NpukitError as error:
        raise NpukitError(f"{what}: {error.message}", tries=error.tries) from error


def _check_tensor(net: Net, name: str, tensor: Tensor) -> None:
    if name != tensor.name or not 0 < len(name) <= _LONGEST_NAME:
        raise NpukitError("its name is empty, too long or not its own")
    if any(size < 1 for size in tensor.shape):
        raise NpukitError(f"the shape {list(tensor.shape)} is impossible")
    check_shape(tensor.shape, "it")
    value = net.constants.get(name)
    if value is not None and (value.shape != tensor.shape or value.dtype != tensor.dtype):
        raise NpukitError(f"its value is {value.dtype}{list(value.shape)}, not {tensor.dtype}{list(tensor.shape)}")
    if tensor.dtype not in C_TYPES:
        raise NpukitError(f"its type is {tensor.dtype}; npukit has {', '.join(C_TYPES)}")
    if tensor.quantization:
        _check_quantization(tensor, tensor.quantization)
    if tensor.quantization and value is None and not LEAST_SCALE < tensor.quantization.scales[0] < LARGEST_SCALE:
        raise NpukitError(f"its scale {tensor.quantization.scales[0]:g} is beyond what single precision computes with")


def _check_quantization(tensor: Tensor, quantization: Quantization) -> None:
    if tensor.dtype == "float32":
        raise NpukitError("it is float32, and has a scale")
    limits = np.iinfo(np.dtype(tensor.dtype))
    if not all(isfinite(scale) and scale > 0 for scale in quantization.scales):
        raise NpukitError("one of its scales is zero, negative or not a number")
    if not all(limits.min <= zero <= limits.max for zero in quantization.zero_points):
        raise NpukitError(f"one of its zero points does not fit {tensor.dtype}")
    if quantization.axis is not None and not 0 <= quantization.axis < len(tensor.shape):
        raise NpukitError(f"its scales are along axis {quantization.axis} of {len(tensor.shape)}")
    expected = 1 if quantization.axis is None else tensor.shape[quantization.axis]
    if {len(quantization.scales), len(quantization.zero_points)} != {expected}:
        raise NpukitError(f"it has {len(quantization.scales)} scales where {expected} belong")


def _check_op(net: Net, op: Op) -> None:
    if op.kind not in SPECS:
        raise NpukitError("there is no such kind of op")
    spec = SPECS[op.kind]
    fewest, most = spec.operands
    if not fewest <= len(op.inputs) <= most:
        raise NpukitError(f"it has {len(op.inputs)} inputs")
    if op.inputs[0] in net.constants and not spec.constant_first:
        raise NpukitError(f"its input {op.inputs[0]!r} is a constant")
    if spec.weights and any(name not in net.constants for name in op.inputs[1:]):
        raise NpukitError("its weights or bias are not constant")
    if isinstance(op.attributes, TvmCode):
        check_code(op.attributes.code)
        if not 0 <= op.attributes.cycles <= MOST_CYCLES:
            raise NpukitError(f"its predicted cycles are {op.attributes.cycles}")
        check_rows(net, op, op.attributes)
        if op.attributes.work_bytes < 0:
            raise NpukitError(f"its workspace has {op.attributes.work_bytes:,} bytes")
        SCRATCH.check(op.attributes.work_bytes, "it")
    expected, stated = SPECS[op.kind].shape(net, op), net.tensor(op.output).shape
    if expected != stated:
        raise NpukitError(f"its output is {list(expected)}, not {list(stated)}")
    _check_window(net, op)
    _check_types(net, op)
    SPECS[op.kind].check(net, op)


def _check_window(net: Net, op: Op) -> None:
    """Raise an error with the limit if the op's window, or an image under it, exceeds it."""
    if not (window := SPECS[op.kind].window(net, op)):
        return
    *sides, channels = window
    WINDOW.check(prod(sides), "it")
    attributes, (_, height, width, _) = op.attributes, net.tensor(op.inputs[0]).shape
    top, left, bottom, right = (max(side, 0) for side in attributes.padding)  # type: ignore[attr-defined]
    gaps = getattr(attributes, "dilation", (1, 1))
    dilated = (extent * gap for extent, gap in zip(sides, gaps, strict=True))
    strides = attributes.strides  # type: ignore[attr-defined]
    for size in (height + top + bottom, width + left + right, *dilated, *strides):
        EXTENT.check(size, "it")
    COLUMNS.check(prod(net.tensor(op.output).shape[:3]) * prod(sides) * channels, "it")


def _check_types(net: Net, op: Op) -> None:
    spec = SPECS[op.kind]
    for name in (op.inputs[0], op.output):
        if spec.scales in (Scales.ONE, Scales.EQUAL) and not net.tensor(name).has_one_scale:
            raise NpukitError(f"{name!r} needs one scale and one zero point")
    if spec.scales in (Scales.EQUAL, Scales.EQUAL_OR_NONE):
        after = net.tensor(op.output)
        for before in map(net.tensor, op.inputs):
            if before.quantization != after.quantization or before.dtype != after.dtype:
                raise NpukitError("it must not change type, scale or zero point")
    if spec.weights:
        weights, channels = net.tensor(op.inputs[1]), net.tensor(op.output).shape[-1]
        if weights.dtype != "int8" or weights.quantization is None or any(weights.quantization.zero_points):
            raise NpukitError("its weights must be int8 with zero point 0")
        if len(weights.quantization.scales) not in (1, channels):
            raise NpukitError(f"its weights have {len(weights.quantization.scales)} scales for {channels} outputs")
        bias = net.constant(op, 2)
        if bias is not None and (bias.dtype != np.int32 or bias.shape != (channels,)):
            raise NpukitError(f"its bias is {bias.dtype}{list(bias.shape)}, not int32[{channels}]")


def _check_ends(net: Net, known: set[str]) -> None:
    if not net.outputs:
        raise NpukitError("it has no output")
    for name in (*net.begins, *net.ends):
        if name not in net.tensors or name not in known:
            raise NpukitError(f"nothing writes {name!r}")
    if len(set(net.begins)) != len(net.begins) or set(net.begins) & set(net.constants):
        raise NpukitError("an input or a state is named twice, or is a constant")
