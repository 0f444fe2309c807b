"""Output tensors renamed after the user's model."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from npukit.net.net import Fused, Net, Op
from npukit.net.text import plain_name


def with_output_names(net: Net, names: Sequence[str]) -> Net:
    """The net whose output tensors have the model's names, in order. A tensor that is also an input, or several outputs
    at once, keeps its name. Ops keep their names."""
    renamed: dict[str, str] = {}
    for tensor, name in zip(net.outputs, names, strict=False):
        if tensor not in net.inputs and net.outputs.count(tensor) == 1 and name:
            renamed[tensor] = plain_name(name, "output", {*net.tensors, *renamed.values()} - {tensor})
    tensors = {renamed.get(key, key): replace(each, name=renamed.get(key, key)) for key, each in net.tensors.items()}
    constants = {renamed.get(key, key): value for key, value in net.constants.items()}
    ops = tuple(_renamed(op, renamed) for op in net.ops)
    outputs = _each(net.outputs, renamed)
    return replace(net, outputs=outputs, ops=ops, tensors=tensors, constants=constants)


def _renamed(op: Op, names: Mapping[str, str]) -> Op:
    attributes = op.attributes
    if isinstance(attributes, Fused):
        attributes = replace(attributes, ops=tuple(_renamed(part, names) for part in attributes.ops))
    return replace(op, attributes=attributes, inputs=_each(op.inputs, names), outputs=_each(op.outputs, names))


def _each(tensors: Sequence[str], names: Mapping[str, str]) -> tuple[str, ...]:
    return tuple(names.get(each, each) for each in tensors)
