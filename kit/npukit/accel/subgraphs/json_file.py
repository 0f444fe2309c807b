"""A subgraph as a JSON file for a vendor's network compiler, complete in itself, with every integer exact.

`docs/plug-in.md` has the schema.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from npukit.net.net import Net, Op
from npukit.net.ops import Add, Conv2d, Dense, DepthwiseConv2d, Multiply, Requantize, Subtract, TransposeConv2d
from npukit.net.requantize import Multiplier, product_rescaling, requantization, scale_ratio, sum_rescaling
from npukit.net.tensor import Tensor
from npukit.net.text import attribute_values

FORMAT, VERSION = "npukit-subgraph", 1


def subgraph_text(net: Net, op: Op, figures: Mapping[str, int]) -> str:
    """The op's parts as JSON, with the accelerator's figures from the board file."""
    alone = net.alone(op)
    content = {
        "format": FORMAT,
        "version": VERSION,
        "name": op.name,
        "figures": dict(figures),
        "inputs": list(alone.inputs),
        "outputs": list(alone.outputs),
        "tensors": {name: _tensor(tensor) for name, tensor in sorted(alone.tensors.items())},
        "constants": {name: _bytes(value) for name, value in sorted(alone.constants.items())},
        "ops": [_op(alone, part) for part in alone.ops],
    }
    return json.dumps(content, indent=1) + "\n"


def _tensor(tensor: Tensor) -> dict[str, Any]:
    described: dict[str, Any] = {"dtype": tensor.dtype, "shape": list(tensor.shape)}
    if tensor.quantization:
        described["scales"] = list(tensor.quantization.scales)
        described["zero_points"] = list(tensor.quantization.zero_points)
        described["axis"] = tensor.quantization.axis
    return described


def _bytes(value: np.ndarray) -> str:
    little = np.ascontiguousarray(value).astype(value.dtype.newbyteorder("<"), copy=False)
    return base64.b64encode(little.tobytes()).decode("ascii")


def _op(net: Net, op: Op) -> dict[str, Any]:
    return {
        "name": op.name,
        "kind": op.kind,
        "inputs": list(op.inputs),
        "outputs": list(op.outputs),
        "attributes": attribute_values(op.attributes),
        "factors": [{"multiplier": int(m), "shift": int(s)} for m, s in _factors(net, op)],
    }


def _factors(net: Net, op: Op) -> Iterator[tuple[int, int]]:
    """The fixed-point factors: one per channel of a filter; two operands and the sum; a product; a ratio."""
    match op.attributes:
        case Conv2d() | DepthwiseConv2d() | Dense() | TransposeConv2d():
            scaling = requantization(net, op)
            yield from zip(scaling.multipliers.tolist(), scaling.shifts.tolist(), strict=True)
        case Add() | Subtract():
            sums = sum_rescaling(net, op)
            yield from map(_pair, (sums.first, sums.second, sums.output))
        case Multiply():
            yield _pair(product_rescaling(net, op))
        case Requantize():
            yield _pair(scale_ratio(net, op))
        case _:
            pass


def _pair(factor: Multiplier) -> tuple[int, int]:
    return factor.multiplier, factor.shift
