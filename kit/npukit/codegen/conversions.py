"""Conversions that the link does, as the firmware has them."""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import prod

import numpy as np

from npukit.codegen.names import c_float
from npukit.net.net import Net, Op
from npukit.net.ops import Dequantize, Quantize
from npukit.net.reference.interpreter import run_reference
from npukit.net.requantize import quantization


@dataclass(frozen=True, eq=False)
class Conversion:
    """`struct net_conversion`: an op of the link's."""

    name: str
    net: Net
    op: Op

    @property
    def kind(self) -> str:
        """The firmware's function for it."""
        kinds = {Quantize.kind: "net_quantize", Dequantize.kind: "net_dequantize"}
        return kinds.get(self.op.kind, "net_look_up")

    @property
    def table(self) -> tuple[int, ...]:
        """The byte for each byte that is read; none for conversions from or to float."""
        if isinstance(self.op.attributes, Quantize | Dequantize):
            return ()
        alone = self.net.alone(self.op)
        every = np.arange(256).astype(np.uint8).view(self.net.tensor(self.op.inputs[0]).dtype)
        sizes = {name: replace(alone.tensor(name), shape=every.shape) for name in (self.op.inputs[0], self.op.output)}
        (found,) = run_reference(replace(alone, tensors={**alone.tensors, **sizes}), [every])
        return tuple(found.view(np.uint8).tolist())

    @property
    def scales(self) -> list[tuple[str, str]]:
        """Offset and step of each channel."""
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
        """The struct's members that are not 0."""
        if self.table:
            return [("kind", self.kind.upper()), ("host_bytes", 1), ("table", f"{self.name}_table")]
        inwards, shape = isinstance(self.op.attributes, Quantize), self._scales[0].shape
        axis = next((axis for axis, size in enumerate(shape) if size > 1), len(shape) - 1) - len(shape)
        scaled = quantization(self.net, self.op.output if inwards else self.op.inputs[0])
        return [
            ("kind", self.kind.upper()),
            ("host_bytes", 4),
            ("scales", f"{self.name}_scales"),
            ("channels", prod(shape)),
            ("channel_elements", prod(self.net.tensor(self.op.inputs[0]).shape[axis:][1:])),
            ("zero_point", scaled.zero_point),
            ("away", "true" if isinstance(self.op.attributes, Quantize) and self.op.attributes.away else "false"),
            ("is_signed", "true" if self.net.tensor(self.op.inputs[0]).dtype == "int8" else "false"),
        ]
