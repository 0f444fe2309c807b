"""The tables by which the rest of the firmware knows the network: inputs, outputs, layers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from npukit.accel.interface import Address, Tile
from npukit.codegen.names import c_string
from npukit.codegen.program import Program
from npukit.errors import NpukitError
from npukit.net.arrangement import ONCE, Repeat
from npukit.net.box import Box
from npukit.net.net import Net
from npukit.net.text import print_tensor
from npukit.plan.plan import Buffer, Plan, View
from npukit.plan.regions import in_frame, is_named


@dataclass(frozen=True)
class TensorRow:
    """`struct net_tensor`. `meaning` says what its bytes stand for."""

    name: str
    meaning: str
    address: str
    row_bytes: int
    rows: int
    stride: int
    in_dram: bool = False


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


def input_rows(net: Net, plan: Plan, program: Program) -> list[TensorRow]:
    """Those of each frame of a round in turn. Only the first frame's have names: there may be hundreds."""
    dram = {buffer.name: buffer for buffer in plan.dram}
    names = [(name, in_frame(name, frame)) for frame in range(plan.frames) for name in net.inputs]
    return [
        _in_dram(net, dram[buffer], name if buffer == name else "")
        if buffer in dram
        else _whole_tensor(net, program, name, buffer)
        for name, buffer in names
    ]


def output_rows(net: Net, plan: Plan, program: Program) -> list[TensorRow]:
    """Those of each frame of a round in turn."""
    frames = range(plan.frames)
    return [_whole_tensor(net, program, name, in_frame(name, frame)) for frame in frames for name in net.outputs]


def _in_dram(net: Net, buffer: Buffer, name: str) -> TensorRow:
    address, meaning = f"(uint8_t *)0x{buffer.offset:08X}U", print_tensor(net.tensor(buffer.tensor))
    return TensorRow(c_string(name), meaning, address, buffer.bytes, 1, buffer.bytes, in_dram=True)


def layer_tiles(program: Program) -> list[LayerTile]:
    """What each layer leaves behind on this PE, in the order of the layers."""
    return [_layer_tile(program, part.tile) for part in program.parts]


def _layer_tile(program: Program, tile: Tile) -> LayerTile:
    place, output = tile.output.address, tile.output
    buffer = next(b for b in program.arena.buffers.values() if program.arena.place(b) == place.symbol)
    if buffer.arrangement:
        place = Address(place.symbol, place.offset + buffer.arrangement.origin)
        row_bytes, loops = buffer.arrangement.rows()
    else:
        row_bytes, loops = _rows(output.box.shape, buffer.box.shape, np.dtype(output.tensor.dtype).itemsize)
    if len(loops) > 2:
        raise NpukitError(f"{output.tensor.name}: {output.box} of {buffer.box} is no rows of rows")
    rows, planes = (*loops, ONCE, ONCE)[:2]
    return LayerTile(c_string(output.tensor.name), place, row_bytes, rows, planes, f"{output.tensor.name} {output.box}")


def _rows(shape: Sequence[int], whole: Sequence[int], item: int) -> tuple[int, tuple[Repeat, ...]]:
    """Contiguous bytes, and how they repeat, of a box of `shape` in a dense buffer of the shape `whole`."""
    row_bytes = stride = item
    loops: list[Repeat] = []
    for size, room in zip(reversed(shape), reversed(whole), strict=True):
        if row_bytes == stride:
            row_bytes *= size
        elif loops and loops[-1].count * loops[-1].stride == stride:
            loops[-1] = Repeat(loops[-1].count * size, loops[-1].stride)
        elif size > 1:
            loops.append(Repeat(size, stride))
        stride *= room
    return row_bytes, tuple(loops)


def _whole_tensor(net: Net, program: Program, name: str, wanted: str) -> TensorRow:
    """A tensor in the buffer of that name, or in another of the same frame."""
    whole = Box.whole(net.tensor(name).shape)
    for buffer in program.arena.buffers.values():
        if buffer.tensor == name and buffer.box == whole and is_named(buffer.name, wanted):
            place = program.arena.operand(View(buffer.name, whole)).address
            size = net.tensor(name).bytes
            shown = name if wanted == name else ""
            return TensorRow(c_string(shown), print_tensor(net.tensor(name)), _address(place), size, 1, size)
    raise NpukitError(f"the plan has no buffer for the whole of {name} on the PE with the host link")


def _address(place: Address) -> str:
    offset = f" + {place.offset}" if place.offset else ""
    return f"&net_activations.arena[{place.symbol}{offset}]"
