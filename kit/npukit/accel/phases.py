"""Transposed convolutions rewritten as convolutions.

Outputs that are whole strides apart use the same taps of the kernel: they form a phase. The convolution computes all
phases of an input position as channels, with exactly the same sums. Reshapes and a transpose then move the phases to
their rows and columns.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from npukit.accel.interface import Engines
from npukit.net.net import CORE, Net, Op
from npukit.net.ops import Attributes, Conv2d, Reshape, Slice, Transpose, TransposeConv2d
from npukit.net.passes.simplify import without_unread
from npukit.net.tensor import Quantization, Tensor


def with_phases(net: Net, engines: Engines, only: str | None = None) -> Net:
    """The net with convolutions instead of transposed convolutions that no accelerator takes."""
    accelerators = [engine for name, engine in engines.items() if name != CORE and only in (None, name)]
    for op in net.ops:
        if isinstance(op.attributes, TransposeConv2d) and op.inputs[1] in net.constants:
            taken = any(each.refusal(net, op) is None for each in accelerators)
            net = net if taken else _Phases(net, op, op.attributes).net_without()
    return net


@dataclass(frozen=True)
class PhasedAxis:
    """The rows or the columns of a transposed convolution."""

    size: int
    kernel: int
    stride: int
    cut: int
    """Positions removed before the first kept position."""
    kept: int

    @property
    def taps(self) -> int:
        return -(-self.kernel // self.stride)

    @property
    def first(self) -> int:
        return self.cut // self.stride

    @property
    def places(self) -> int:
        """Outputs of the convolution along the axis."""
        return (self.cut + self.kept - 1) // self.stride - self.first + 1

    @property
    def padding(self) -> tuple[int, int]:
        before = self.taps - 1 - self.first
        return before, self.places + self.taps - 1 - before - self.size


def weights_by_phase(weights: np.ndarray, rows: PhasedAxis, columns: PhasedAxis) -> np.ndarray:
    """Weights (OHWI) of each phase in turn, the last tap first; zeros for missing taps."""
    outputs, *_, inputs = weights.shape
    more = [axis.taps * axis.stride - axis.kernel for axis in (rows, columns)]
    whole = np.pad(weights, ((0, 0), (0, more[0]), (0, more[1]), (0, 0)))
    split = whole.reshape(outputs, rows.taps, rows.stride, columns.taps, columns.stride, inputs)
    turned = split[:, ::-1, :, ::-1].transpose(2, 4, 0, 1, 3, 5)
    return np.ascontiguousarray(turned).reshape(-1, rows.taps, columns.taps, inputs)


@dataclass(frozen=True)
class _Phases:
    """A transposed convolution of a net, and the equivalent ops."""

    net: Net
    op: Op
    attributes: TransposeConv2d

    def net_without(self) -> Net:
        """The net with the op replaced, or the same net if the convolution would need negative padding."""
        if min(*self.rows.padding, *self.columns.padding) < 0:
            return self.net
        weights, given = self._weights(), self.net.constants[self.op.inputs[1]]
        tensors = {**self.net.tensors, weights.name: weights}
        constants = {**self.net.constants, weights.name: weights_by_phase(given, self.rows, self.columns)}
        inputs = [self.op.inputs[0], weights.name]
        for old in self.op.inputs[2:]:
            bias = replace(self.net.tensor(old), name=f"{self.op.name}_phase_bias", shape=(self.phases * self.outputs,))
            tensors[bias.name], constants[bias.name] = bias, np.tile(self.net.constants[old], self.phases)
            inputs.append(bias.name)
        ops = list(self._ops(tuple(inputs)))
        tensors |= {tensor.name: tensor for _, tensor in ops}
        at = self.net.ops.index(self.op)
        made = (*self.net.ops[:at], *(op for op, _ in ops), *self.net.ops[at + 1 :])
        return without_unread(replace(self.net, ops=made, tensors=tensors, constants=constants))

    @property
    def rows(self) -> PhasedAxis:
        return self._axis(0)

    @property
    def columns(self) -> PhasedAxis:
        return self._axis(1)

    def _axis(self, axis: int) -> PhasedAxis:
        given, weights, made = (self.net.tensor(name).shape[1 + axis] for name in (*self.op.inputs[:2], self.op.output))
        return PhasedAxis(given, weights, self.attributes.strides[axis], self.attributes.padding[axis], made)

    @property
    def phases(self) -> int:
        return self.rows.stride * self.columns.stride

    @property
    def outputs(self) -> int:
        return self.net.tensor(self.op.output).shape[-1]

    def _weights(self) -> Tensor:
        old = self.net.tensor(self.op.inputs[1])
        given = old.quantization
        if given is not None and given.axis is not None:
            given = Quantization(given.scales * self.phases, given.zero_points * self.phases, 0)
        shape = (self.phases * self.outputs, self.rows.taps, self.columns.taps, old.shape[-1])
        return Tensor(f"{self.op.name}_phase_weights", shape, old.dtype, given)

    def _ops(self, inputs: tuple[str, ...]) -> Iterator[tuple[Op, Tensor]]:
        """The convolution of all phases and the moves after it. The last op produces the original output."""
        steps, result = list(self._steps()), self.net.tensor(self.op.output)
        for number, (attributes, shape) in enumerate(steps, 1):
            name = self.op.output if number == len(steps) else f"{self.op.name}_{attributes.kind}_{number}"
            yield Op(name, attributes, inputs, (name,)), replace(result, name=name, shape=shape)
            inputs = (name,)

    def _steps(self) -> Iterator[tuple[Attributes, tuple[int, ...]]]:
        """The attributes of each op with the shape of its result."""
        rows, columns, shape = self.rows, self.columns, self.net.tensor(self.op.output).shape
        images, down, across, line = shape[0], rows.places, columns.places, columns.stride * self.outputs
        padding = (rows.padding[0], columns.padding[0], rows.padding[1], columns.padding[1])
        yield Conv2d((1, 1), padding, (1, 1), self.attributes.clamp), (images, down, across, rows.stride * line)
        if rows.stride > 1:
            yield Reshape(), (images * down, across, rows.stride, line)
            yield Transpose((0, 2, 1, 3)), (images * down, rows.stride, across, line)
        whole = (images, down * rows.stride, across * columns.stride, self.outputs)
        if self.phases > 1:
            yield Reshape(), whole
        if whole != shape:
            begin = (0, rows.cut % rows.stride, columns.cut % columns.stride, 0)
            end = tuple(start + size for start, size in zip(begin, shape, strict=True))
            yield Slice(begin, end, (1, 1, 1, 1)), shape
