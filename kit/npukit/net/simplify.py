"""What an importer leaves behind and nobody needs to run."""

from __future__ import annotations

from dataclasses import replace

from npukit.net.net import Net, Op
from npukit.net.ops import Conv2d, DepthwiseConv2d, Pad, Padding


def fold_padding(net: Net) -> Net:
    """Zeros padded around an image become the padding of the convolutions that read it."""
    pads = {op.output: op for op in net.ops if _surrounds_with_zeros(net, op)}
    ops = tuple(_with_padding(op, pads[op.inputs[0]]) if _takes(op, pads) else op for op in net.ops)
    return _without_unread(replace(net, ops=ops))


def _takes(op: Op, pads: dict[str, Op]) -> bool:
    return isinstance(op.attributes, Conv2d | DepthwiseConv2d) and op.inputs[0] in pads


def _surrounds_with_zeros(net: Net, op: Op) -> bool:
    attributes, quantization = op.attributes, net.tensor(op.inputs[0]).quantization
    if not isinstance(attributes, Pad) or quantization is None or len(attributes.before) != 4:
        return False
    sides = (attributes.before, attributes.after)
    return attributes.value == quantization.zero_point and not any(side[axis] for side in sides for axis in (0, 3))


def _with_padding(op: Op, pad: Op) -> Op:
    attributes, around = op.attributes, pad.attributes
    assert isinstance(attributes, Conv2d | DepthwiseConv2d)
    assert isinstance(around, Pad)
    added = (*around.before[1:3], *around.after[1:3])
    top, left, bottom, right = (own + more for own, more in zip(attributes.padding, added, strict=True))
    padding: Padding = (top, left, bottom, right)
    return replace(op, attributes=replace(attributes, padding=padding), inputs=(pad.inputs[0], *op.inputs[1:]))


def _without_unread(net: Net) -> Net:
    """Pads whose readers have all taken them over are gone."""
    read = {*net.outputs, *(name for op in net.ops for name in op.inputs)}
    gone = {op.output for op in net.ops if isinstance(op.attributes, Pad) and op.output not in read}
    tensors = {name: tensor for name, tensor in net.tensors.items() if name not in gone}
    return replace(net, ops=tuple(op for op in net.ops if op.output not in gone), tensors=tensors)
