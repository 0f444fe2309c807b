"""The tables that describe the network to the firmware: inputs, outputs, conversions by the link, layers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import prod
from typing import Literal

import numpy as np

from npukit.accel.interface import Address, Operand
from npukit.codegen.names import c_float, c_string
from npukit.codegen.program import Program
from npukit.errors import NpukitError
from npukit.net.arrangement import ONCE, Arrangement, Repeat
from npukit.net.box import Box
from npukit.net.net import Net, Op
from npukit.net.ops import Dequantize, Quantize, Transpose
from npukit.net.passes.at_link import AS_IT_ARRIVES, conversions_of, held, swapped
from npukit.net.reference.interpreter import run_reference
from npukit.net.requantize import quantization
from npukit.net.text import print_tensor
from npukit.plan.ir.names import in_frame, is_named
from npukit.plan.ir.plan import Buffer, Plan, View


@dataclass(frozen=True)
class TensorRow:
    """`struct net_tensor`. `meaning`: a description of the tensor. `frame_stride`: bytes between the frames of a round,
    if evenly spaced. Otherwise `frame_offsets`, a table named `offsets_name`."""

    name: str
    meaning: str
    address: str
    row_bytes: int
    rows: int
    stride: int
    in_dram: bool = False
    frame_stride: int = 0
    frame_offsets: tuple[int, ...] = ()
    offsets_name: str = ""
    conversion: Conversion | None = None


@dataclass(frozen=True)
class LayerTile:
    """`struct net_layer`, and the layer's name."""

    name: str
    place: Address
    row_bytes: int
    rows: Repeat
    planes: Repeat
    comment: str

    @property
    def address(self) -> str:
        return _address(self.place)


def tensor_rows(net: Net, plan: Plan, program: Program, end: Literal["input", "output"]) -> list[TensorRow]:
    """The rows of all inputs, or of all outputs."""
    names = net.inputs if end == "input" else net.outputs
    return [_row(net, plan, program, name, f"{end}_{index}") for index, name in enumerate(names)]


def _row(net: Net, plan: Plan, program: Program, name: str, end: str) -> TensorRow:
    """The row of an input or output in the host's form, with the conversion by the link."""
    dram, here = {buffer.name: buffer for buffer in plan.dram}, held(net, name)
    if here in dram:
        row = _in_dram(net, [dram[in_frame(here, frame)] for frame in range(plan.frames)])
    else:
        row = _in_arena(net, plan, program, here, f"{end}_frames")
    ops = conversions_of(net, name)
    if not ops:
        return row
    given = Conversion(f"{end}_conversion", net, ops)
    return replace(row, name=c_string(name), meaning=print_tensor(net.tensor(name)), conversion=given)


def _in_dram(net: Net, frames: Sequence[Buffer]) -> TensorRow:
    tensor, first = net.tensor(frames[0].tensor), frames[0]
    address, name = f"(uint8_t *)0x{first.offset:08X}U", c_string(tensor.name)
    row = TensorRow(name, print_tensor(tensor), address, first.bytes, 1, first.bytes, in_dram=True)
    return _in_frames(row, [buffer.offset for buffer in frames], "")


def _in_arena(net: Net, plan: Plan, program: Program, name: str, table: str) -> TensorRow:
    """The row of a tensor on the PE with the host link. The first frame need not have the lowest address."""
    places = [_whole_tensor(net, program, name, in_frame(name, frame)) for frame in range(plan.frames)]
    size, tensor = net.tensor(name).bytes, net.tensor(name)
    row = TensorRow(c_string(name), print_tensor(tensor), _address(places[0]), size, 1, size)
    return _in_frames(row, [program.offsets[place.symbol] + place.offset for place in places], table)


def _in_frames(row: TensorRow, offsets: Sequence[int], table: str) -> TensorRow:
    """The row with the offsets from the first frame to the other frames."""
    behind = [(offset - offsets[0]) % (1 << 32) for offset in offsets]
    stride = behind[1] if len(behind) > 1 else 0
    if behind == [n * stride for n in range(len(behind))]:
        return replace(row, frame_stride=stride)
    return replace(row, frame_offsets=tuple(behind), offsets_name=table)


def left_tiles(program: Program) -> list[LayerTile]:
    """The tile in each distinct place, in the order of the places' numbers."""
    places = program.layer_places or range(len(program.layers))
    first = dict(zip(reversed(places), reversed(program.layers), strict=True))
    return [_layer_tile(program, first[place]) for place in range(len(first))]


def layer_tiles(program: Program) -> list[LayerTile]:
    """The tile of each layer on this PE, in the order of the layers."""
    return [_layer_tile(program, output) for output in program.layers]


def _layer_tile(program: Program, output: Operand) -> LayerTile:
    place = output.address
    buffer = program.arena.of_place(place.symbol)
    dense = Arrangement(buffer.bytes, 0, output.box.shape, output.strides, output.tensor.dtype)
    arrangement = buffer.arrangement or dense
    place = Address(place.symbol, place.offset + arrangement.origin)
    row_bytes, loops = arrangement.rows()
    if len(loops) > 2:
        raise NpukitError(f"{output.tensor.name}: {output.box} of {buffer.box} is no rows of rows")
    rows, planes = (*loops, ONCE, ONCE)[:2]
    return LayerTile(c_string(output.tensor.name), place, row_bytes, rows, planes, f"{output.tensor.name} {output.box}")


def _whole_tensor(net: Net, program: Program, name: str, wanted: str) -> Address:
    """The address of a whole tensor, in the buffer `wanted` or in another buffer of the same frame."""
    whole = Box.whole(net.tensor(name).shape)
    for buffer in program.arena.buffers.values():
        if buffer.tensor == name and buffer.box == whole and is_named(buffer.name, wanted):
            return program.arena.operand(View(buffer.name, whole)).address
    raise NpukitError(f"the plan has no buffer for the whole of {name} on the PE with the host link")


def _address(place: Address) -> str:
    offset = f" + {place.offset}" if place.offset else ""
    return f"ARENA({place.symbol}{offset})"


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
