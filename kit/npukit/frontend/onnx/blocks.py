"""Rewrites ONNX layers whose weights have a scale for each block of inputs.

On 8-bit data a layer becomes a sum of layers, each on a block of the inputs, with a scale for each channel. The sums of
products are then integers. ONNX Runtime's MatMulNBits, which has float data, becomes a product with float weights.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import onnx
from onnx import helper, numpy_helper

from npukit.errors import NpukitError
from npukit.frontend.onnx.qoperator import Rewriting

PACKED = "MatMulNBits"


@dataclass(frozen=True)
class WeightBlocks:
    """Weights [inputs, channels] in blocks of `size` inputs; scales and zero points [block, channels]."""

    weights: np.ndarray
    scales: np.ndarray
    zeros: np.ndarray
    size: int

    @property
    def real(self) -> np.ndarray:
        spread = (np.repeat(each, self.size, 0)[: len(self.weights)] for each in (self.zeros, self.scales))
        zeros, scales = spread
        return ((self.weights.astype(np.int32) - zeros.astype(np.int32)) * scales).astype(np.float32)


def in_blocks(model: onnx.ModelProto, name: str) -> onnx.ModelProto:
    """The model without scales by block, where npukit computes the layer otherwise; else unchanged."""
    known = {tensor.name: numpy_helper.to_array(tensor) for tensor in model.graph.initializer}
    made = {output: node for node in model.graph.node for output in node.output}
    rewriting, kept = Rewriting(known), len(model.graph.node)
    for index, node in enumerate(model.graph.node):
        if node.op_type == PACKED:
            try:
                _unpack(rewriting, node)
            except (KeyError, ValueError, IndexError) as fault:
                raise NpukitError(f"{name}: node {index} ({node.name or 'unnamed'}, {PACKED}) is malformed") from fault
        elif (found := _blocks_of(node, made, known)) is not None:
            _split(rewriting, node, found)
        else:
            rewriting.nodes.append(node)
            kept -= 1
    return rewriting.of(model) if kept else model


def _blocks_of(
    node: onnx.NodeProto, made: Mapping[str, onnx.NodeProto], known: Mapping[str, np.ndarray]
) -> WeightBlocks | None:
    """The weights of a product of 8-bit data, if they have scales by block of inputs."""
    options = _options(node)
    plain = node.op_type == "MatMul" or (node.op_type == "Gemm" and not {"alpha", "beta", "transA"} & options.keys())
    if not plain or not all(each in made for each in node.input[:2]):
        return None
    data, weights = (made[each] for each in node.input[:2])
    if data.op_type != "DequantizeLinear" or weights.op_type != "DequantizeLinear":
        return None
    inside, turned = _options(weights), bool(options.get("transB", 0))
    size, axis = inside.get("block_size", 0), inside.get("axis", 1)
    ends = [known.get(each) for each in weights.input]
    if not size or ends[0] is None or ends[1] is None or ends[0].ndim != 2 or axis % 2 != turned:
        return None
    zeros = np.zeros(ends[1].shape, np.int8) if len(ends) < 3 else ends[2]
    if zeros is None:
        return None
    held, scales, zeros = (each.T if turned else each for each in (ends[0], ends[1], zeros))
    return WeightBlocks(held, scales, zeros, size)


def _options(node: onnx.NodeProto) -> dict[str, int]:
    return {each.name: helper.get_attribute_value(each) for each in node.attribute}


def _split(rewriting: Rewriting, node: onnx.NodeProto, blocks: WeightBlocks) -> None:
    """The sum of the products of each block, and the bias."""
    depth, terms = len(blocks.weights), list[str]()
    for number, begin in enumerate(range(0, depth, blocks.size)):
        end = min(begin + blocks.size, depth)
        limits = [rewriting.constant(np.array([each], np.int64)) for each in (begin, end, -1)]
        data = node.input[0] if end - begin == depth else rewriting.node("Slice", [node.input[0], *limits])
        values = (blocks.weights[begin:end], blocks.scales[number], blocks.zeros[number])
        weights = rewriting.dequantized([rewriting.constant(np.ascontiguousarray(each)) for each in values], 1)
        terms.append(rewriting.node("MatMul", [data, weights]))
    _sum(rewriting, node, [*terms, *node.input[2:]])


def _sum(rewriting: Rewriting, node: onnx.NodeProto, terms: Sequence[str]) -> None:
    """The sum of the terms, of which the last node made at least one, as the node's result."""
    total, *others = (each for each in terms if each)
    for each in others:
        total = rewriting.node("Add", [total, each])
    rewriting.nodes[-1].output[0] = node.output[0]


def _unpack(rewriting: Rewriting, node: onnx.NodeProto) -> None:
    """The product with weights [K, N] that the file packs as [N][block][bits]."""
    options, names = _options(node), [*node.input, "", "", ""]
    if names[4]:
        raise NpukitError(f"{PACKED} ({node.name or 'unnamed'}) has a block for each input, in any order (g_idx)")
    bits, size, depth, channels = options.get("bits", 4), options["block_size"], options["K"], options["N"]
    count = -(-depth // size)
    packed = rewriting.value(names[1]).reshape(channels, count, -1)
    scales = rewriting.value(names[2]).reshape(channels, count)
    weights = _numbers(packed, bits)[..., :size].reshape(channels, -1)[:, :depth]
    zeros = np.full(scales.shape, 1 << bits - 1)
    if names[3]:
        zeros = _numbers(rewriting.value(names[3]).reshape(channels, -1), bits)[:, :count]
    real = WeightBlocks(weights.T, scales.T, zeros.T, size).real
    _sum(rewriting, node, [rewriting.node("MatMul", [names[0], rewriting.constant(real)]), *names[5:]])


def _numbers(packed: np.ndarray, bits: int) -> np.ndarray:
    """The numbers in the bytes of the last axis, the first in the low bits."""
    if packed.dtype != np.uint8 or 8 % bits:
        return packed
    parts = [packed >> shift & (1 << bits) - 1 for shift in range(0, 8, bits)]
    return np.stack(parts, -1).reshape(*packed.shape[:-1], -1)
