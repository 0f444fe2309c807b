"""Conversions by the link, in the firmware's form."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import prod

import numpy as np

from npukit.codegen.names import c_float
from npukit.net.net import Net, Op
from npukit.net.ops import Dequantize, Quantize, Transpose
from npukit.net.passes.at_link import AS_IT_ARRIVES, swapped
from npukit.net.reference.interpreter import run_reference
from npukit.net.requantize import quantization


@dataclass(frozen=True, eq=False)
class Conversion:
    """`struct net_conversion`: ops by the link. At most one op changes numbers, and at most one transposes."""

    name: str
    net: Net
    ops: Sequence[Op]

    @property
    def op(self) -> Op:
        """The op that changes numbers, or else the first op."""
        return next((op for op in self.ops if not isinstance(op.attributes, Transpose)), self.ops[0])

    @property
    def kind(self) -> str:
        """The firmware's function for the conversion."""
        kinds = {Quantize.kind: "net_quantize", Dequantize.kind: "net_dequantize", Transpose.kind: "net_move"}
        return kinds.get(self.op.kind, "net_look_up")

    @property
    def order(self) -> list[tuple[str, object]]:
        """The members for a transpose: planes from the host become interleaved elements, or the reverse."""
        op = next((op for op in self.ops if isinstance(op.attributes, Transpose)), None)
        numbers = swapped(self.net, op) if op else None
        if numbers is None:
            return []
        planes, plane = numbers if self.ops[0].reason == AS_IT_ARRIVES else numbers[::-1]
        return [("planes", planes), ("plane", plane)]

    @property
    def table(self) -> tuple[int, ...]:
        """The output byte for each input byte. Empty for conversions from or to float."""
        if isinstance(self.op.attributes, Quantize | Dequantize | Transpose):
            return ()
        alone = self.net.alone(self.op)
        every = np.arange(256).astype(np.uint8).view(self.net.tensor(self.op.inputs[0]).dtype)
        sizes = {name: replace(alone.tensor(name), shape=every.shape) for name in (self.op.inputs[0], self.op.output)}
        (found,) = run_reference(replace(alone, tensors={**alone.tensors, **sizes}), [every])
        return tuple(found.view(np.uint8).tolist())

    @property
    def scales(self) -> list[tuple[str, str]]:
        """Offset and step of each channel. Empty if numbers are not scaled."""
        if not isinstance(self.op.attributes, Quantize | Dequantize):
            return []
        offsets, steps = self._scales
        pairs = zip(offsets.ravel().tolist(), steps.ravel().tolist(), strict=True)
        return [(c_float(offset), c_float(step)) for offset, step in pairs]

    @property
    def _scales(self) -> list[np.ndarray]:
        if isinstance(self.op.attributes, Dequantize):
            return [np.zeros(1, np.float32), np.array([quantization(self.net, self.op.inputs[0]).scale], np.float32)]
        return list(np.broadcast_arrays(*(self.net.constants[name] for name in self.op.inputs[1:])))

    @property
    def fields(self) -> list[tuple[str, object]]:
        """The struct's members other than 0."""
        return [("kind", self.kind.upper()), *self._numbers, *self.order]

    @property
    def _numbers(self) -> list[tuple[str, object]]:
        """The members for the arithmetic."""
        if isinstance(self.op.attributes, Transpose):
            return [("host_bytes", 1)]
        if self.table:
            return [("host_bytes", 1), ("table", f"{self.name}_table")]
        inwards, shape = isinstance(self.op.attributes, Quantize), self._scales[0].shape
        axis = next((axis for axis, size in enumerate(shape) if size > 1), len(shape) - 1) - len(shape)
        scaled = quantization(self.net, self.op.output if inwards else self.op.inputs[0])
        return [
            ("host_bytes", 4),
            ("scales", f"{self.name}_scales"),
            ("channels", prod(shape)),
            ("channel_elements", prod(self.net.tensor(self.op.inputs[0]).shape[axis:][1:])),
            ("zero_point", scaled.zero_point),
            ("away", "true" if isinstance(self.op.attributes, Quantize) and self.op.attributes.away else "false"),
            ("is_signed", "true" if self.net.tensor(self.op.inputs[0]).dtype == "int8" else "false"),
        ]
