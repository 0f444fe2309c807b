"""MAC array commands in memory: the C struct, and a layer packed as the hardware manual says (section 3.4)."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence

import numpy as np

from firmware.array_reference import ADD, CONVOLUTION, DEPTHWISE, NIBBLES, PIXELS, RAW, SECOND, Layer


class Command(ctypes.Structure):
    """`struct mac_array_command` with the pointers of this machine."""

    _fields_ = (
        ("next", ctypes.c_void_p),
        ("kind", ctypes.c_uint8),
        ("flags", ctypes.c_uint8),
        ("tag", ctypes.c_uint16),
        *((name, ctypes.c_void_p) for name in ("input", "weights", "parameters", "output")),
        *((name, ctypes.c_uint16) for name in ("input_height", "input_width")),
        *((name, ctypes.c_int32) for name in ("input_row_stride", "input_pixel_stride")),
        *((name, ctypes.c_uint16) for name in ("output_height", "output_width")),
        *((name, ctypes.c_int32) for name in ("output_row_stride", "output_pixel_stride")),
        *((name, ctypes.c_uint16) for name in ("input_channels", "output_channels")),
        *((name, ctypes.c_uint8) for name in ("kernel_height", "kernel_width", "stride_y", "stride_x")),
        *((name, ctypes.c_uint8) for name in ("dilation_y", "dilation_x", "pad_top", "pad_left")),
        *((name, ctypes.c_int8) for name in ("input_zero", "output_zero", "clamp_min", "clamp_max")),
        ("extra", ctypes.c_void_p),
        *((name, ctypes.c_int32) for name in ("extra_row_stride", "extra_pixel_stride")),
        ("residual_parameters", ctypes.c_void_p),
        *((name, ctypes.c_int8) for name in ("residual_zero", "second_zero", "residual_min", "residual_max")),
        *((name, ctypes.c_int32) for name in ("second_row_stride", "second_pixel_stride")),
        ("reserved0", ctypes.c_uint32),
    )


class Packed:
    """A layer in memory with gaps between pixels and rows, and the command for the layer."""

    def __init__(self, layer: Layer, gap: int = 0, row_gap: int = 0) -> None:
        self._kept: list[np.ndarray] = []
        self.layer, self._gap, self._row_gap = layer, gap, row_gap
        wide = layer.kind == CONVOLUTION and layer.flags & RAW
        self._type = np.dtype(np.int32 if wide else np.int8)
        self.output = np.full(self._memory_shape(layer.output_shape), 0x55, dtype=self._type)
        self.command = Command(kind=layer.kind, flags=layer.flags, output=self._address(self.output))
        self._fill()

    def result(self) -> np.ndarray:
        height, width, channels = self.layer.output_shape
        return self.output[:height, :width, :channels].astype(np.int64)

    def untouched(self) -> bool:
        """True if nothing but the output was written."""
        height, width, channels = self.layer.output_shape
        rest = self.output.copy()
        rest[:height, :width, :channels] = 0x55
        return bool((rest == 0x55).all())

    def _fill(self) -> None:
        layer, command = self.layer, self.command
        command.input_height, command.input_width, command.input_channels = layer.input.shape
        command.output_height, command.output_width, command.output_channels = layer.output_shape
        command.kernel_height, command.kernel_width = layer.kernel
        command.stride_y, command.stride_x = layer.stride
        command.dilation_y, command.dilation_x = layer.dilation
        command.pad_top, command.pad_left = layer.pad
        command.input_zero, command.output_zero = layer.input_zero, layer.output_zero
        command.clamp_min, command.clamp_max = layer.clamp
        command.residual_zero = layer.residual_zero
        command.residual_min, command.residual_max = layer.residual_clamp
        self._strides("output", self.output)
        self._place("input", layer.input, np.int8)
        self._operands()

    def _operands(self) -> None:
        layer, command = self.layer, self.command
        addition = self._address(np.array(layer.addition.constants, dtype=np.int32)) if layer.addition else None
        if layer.kind == ADD:
            self._place("second", layer.second, np.int8)
            command.weights, command.parameters = command.extra, addition
            command.extra = None
        elif layer.kind in (CONVOLUTION, DEPTHWISE):
            command.residual_parameters = addition
            self._filter(layer)
            command.parameters = self._address(pack_parameters(layer))
            if layer.extra.size:
                self._place("extra", layer.extra, np.int8 if addition else np.int32)

    def _filter(self, layer: Layer) -> None:
        packed = pack_second(layer, self._gap) if layer.flags & SECOND else pack_filter(layer)
        self.command.second_row_stride, self.command.second_zero = packed.strides[0], layer.second_zero
        self.command.weights = self._address(packed)

    def _place(self, name: str, values: np.ndarray, kind: type) -> None:
        memory = np.full(self._memory_shape(values.shape), 0x33, dtype=kind)
        memory[: values.shape[0], : values.shape[1], : values.shape[2]] = values
        setattr(self.command, "input" if name == "input" else "extra", self._address(memory))
        self._strides(name, memory)

    def _strides(self, name: str, memory: np.ndarray) -> None:
        setattr(self.command, f"{name}_row_stride", memory.strides[0])
        setattr(self.command, f"{name}_pixel_stride", memory.strides[1])

    def _memory_shape(self, shape: tuple[int, ...]) -> tuple[int, int, int]:
        return shape[0], shape[1] + self._row_gap, shape[2] + self._gap

    def _address(self, array: np.ndarray) -> int:
        kept = np.ascontiguousarray(array)
        self._kept.append(kept)
        return kept.ctypes.data


def block_of(layer: Layer) -> int:
    """Channels in a block of weights and parameters."""
    return 4 if layer.kind == CONVOLUTION and layer.flags & PIXELS else 16


def pack_filter(layer: Layer) -> np.ndarray:
    """Bytes of blocks [K][channel of the block], missing channels 0. The last block of a convolution across channels
    has 4 or 8 columns, if these suffice. With `NIBBLES` two weights a byte, at least 8 columns, and an even K along
    pixels."""
    channels, block, nibbles = layer.output_shape[2], block_of(layer), bool(layer.flags & NIBBLES)
    rows = layer.filter.reshape(channels, -1)
    if nibbles and block == 4:
        rows = np.pad(rows, ((0, 0), (0, rows.shape[1] % 2)))
    widths = (block,) if layer.kind != CONVOLUTION or block == 4 else (8, 16) if nibbles else (4, 8, 16)
    packed = np.concatenate([_columns(rows[at : at + block], widths) for at in range(0, channels, block)])
    return (packed[::2] & 15 | packed[1::2] << 4).astype(np.int8) if nibbles else packed


def _columns(rows: np.ndarray, widths: Sequence[int]) -> np.ndarray:
    width = next(each for each in widths if each >= len(rows))
    columns = np.zeros((rows.shape[1], width), dtype=np.int8)
    columns[:, : len(rows)] = rows.T
    return columns.ravel()


def pack_second(layer: Layer, gap: int) -> np.ndarray:
    """Rows of a second input, with gaps: a byte per output channel, or with `PIXELS` all factors of one channel."""
    rows = layer.filter.reshape(layer.output_shape[2], -1)
    rows = rows if layer.flags & PIXELS else rows.T
    return np.pad(rows, ((0, 0), (0, gap)), constant_values=0x33).astype(np.int8, order="C")


def pack_parameters(layer: Layer) -> np.ndarray:
    """Blocks of biases, multipliers and shifts."""
    channels, block = layer.output_shape[2], block_of(layer)
    packed = b""
    for start in range(0, channels, block):
        for values, kind in ((layer.bias, np.int32), (layer.multiplier, np.int32), (layer.shift, np.int8)):
            part = np.zeros(block, dtype=kind)
            taken = values[start : start + block]
            part[: len(taken)] = taken
            packed += part.tobytes()
    return np.frombuffer(packed, dtype=np.uint8)
