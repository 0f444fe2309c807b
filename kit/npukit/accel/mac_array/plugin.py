"""The plug-in of the MAC array."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from npukit import __version__
from npukit.accel.geometry import Plane, window_of
from npukit.accel.interface import Abilities, Choice, CommandFormat, Cost, Lowered, Tile
from npukit.accel.mac_array.additions import held_bytes
from npukit.accel.mac_array.blended import Blended
from npukit.accel.mac_array.cycles import ADDITIONS, Figures, along_pixels, cycles_of, patch_of
from npukit.accel.mac_array.filters import KnownFilters
from npukit.accel.mac_array.in_parts import InParts, parts_for
from npukit.accel.mac_array.lower import lower
from npukit.accel.mac_array.packing import WeightLayout, parameter_bytes
from npukit.accel.mac_array.products import Products
from npukit.accel.mac_array.support import refusal
from npukit.board.board import AcceleratorSlot, Board
from npukit.data import data_folder
from npukit.net.box import Box
from npukit.net.net import Net, Op
from npukit.net.ops import Matmul, ResizeBilinear
from npukit.structs import bytes_of

COMMAND_BYTES, ADDITION_BYTES = bytes_of("mac_array_command"), bytes_of("mac_array_addition")


class MacArray:
    """The MAC array of one board."""

    name = "mac_array"
    version = __version__
    model: Path | None = None
    commands: CommandFormat | None = CommandFormat(
        struct="mac_array_command",
        next_field="next",
        tag_field="tag",
        align=16,
        bytes=COMMAND_BYTES,
        run="mac_array_run",
        header="mac_array.h",
        submit="mac_array_submit",
    )

    def __init__(self, slot: AcceleratorSlot) -> None:
        self.figures = Figures.of(slot)
        self.abilities = Abilities(
            patterns=(("conv2d", "add"), ("depthwise_conv2d", "add"), ("dense", "add")),
            wait="mac_array_wait",
            products_per_cycle=self.figures.width * self.figures.lanes,
        )
        self._filters = KnownFilters(self.figures.accumulator_bits)
        self._known: dict[str, tuple[np.ndarray, np.ndarray | None, int]] = {}

    def choices(self, net: Net, op: Op) -> Sequence[Choice]:
        return ()

    def refusal(self, net: Net, op: Op) -> str | None:
        return refusal(net, op, self.figures)

    def cost(self, net: Net, op: Op, output: Box) -> Cost:
        plane, parts = Plane.of(output), self._parts(net, op)
        if parts:
            tile = InParts(net, op, plane, parts, self.figures)
            return Cost(tile.cycles, tile.constant_bytes, tile.scratch_bytes, commands=0)
        saved = self.figures.setup_cycles - self.figures.chain_cycles
        if op.kind == ResizeBilinear.kind:
            blended = Blended.of(net, op, output, self.figures)
            constants, commands = blended.constant_bytes(COMMAND_BYTES), len(blended.pairs)
            return Cost(blended.cycles, constants, chained=saved, commands=commands)
        if op.kind == Matmul.kind:
            products = Products.of(net, op, output, self.figures)
            constants = products.parameter_bytes + products.count * COMMAND_BYTES
            return Cost(products.cycles, constants, chained=saved, commands=products.count)
        constants = sum(self._constant_bytes_of(net, part, plane) for part in op.parts) + COMMAND_BYTES
        main, form = op.parts[0], None
        if main.kind in ("conv2d", "depthwise_conv2d", "dense", "sums"):
            form = f"blocks of {self._filter_form(net, main, plane)[1].block}"
        nibbles = self._filters.four_bits(net, main)
        cycles, added = cycles_of(net, op, plane, self.figures, nibbles=nibbles), _added(net, op)
        return Cost(cycles, constants, constants_key=form, aliases=added, chained=saved)

    def lower(self, tile: Tile) -> Lowered:
        return lower(tile, self.figures, self._filters, self._parts(tile.net, tile.op))

    def sources(self, board: Board) -> tuple[Path, ...]:
        slot = board.accelerator_named(self.name)
        name = "mac_array.c" if slot and slot.base is not None else "mac_array_on_core.c"
        return tuple(data_folder("firmware") / "mac_array" / each for each in (name, "mac_array_parts.c"))

    def _parts(self, net: Net, op: Op) -> int:
        """The number of partial sums, 0 if a single sum is enough. Cached, because the planner calls often."""
        if op.kind not in ("conv2d", "dense"):
            return 0
        weights, bias = net.constants[op.inputs[1]], net.constant(op, 2)
        known = self._known.get(op.name)
        if known is None or known[0] is not weights or known[1] is not bias:
            parts = parts_for(net, op, self.figures)
            assert isinstance(parts, int), "a refused op has no cost"
            known = self._known[op.name] = (weights, bias, parts)
        return known[2]

    def _constant_bytes_of(self, net: Net, op: Op, plane: Plane) -> int:
        if op.kind in ADDITIONS:
            return ADDITION_BYTES + held_bytes(net, op, plane)
        if op.kind in ("average_pool", "max_pool"):
            return 0
        depth, layout = self._filter_form(net, op, plane)
        per_channel = self.figures.parameter_bytes_per_channel
        return layout.bytes(plane.channels, depth) + parameter_bytes(plane.channels, layout.block, per_channel)

    def _filter_form(self, net: Net, op: Op, plane: Plane) -> tuple[int, WeightLayout]:
        """Depth of the filter, and memory layout of its weights."""
        nibbles = self._filters.four_bits(net, op)
        if op.kind in ("depthwise_conv2d", "mean"):
            return window_of(net, op).taps, WeightLayout(self.figures.width, nibbles=nibbles)
        patch = patch_of(net, op)
        wide = along_pixels(self.figures, plane, patch, nibbles=nibbles)
        return patch.depth, WeightLayout(self.figures.lanes if wide else self.figures.width, not wide, nibbles)


def _added(net: Net, op: Op) -> tuple[int, ...]:
    """Indices of inputs added element by element: the operands of an addition, or the addend of a fused convolution."""
    if op.kind in ADDITIONS:
        shape = net.tensor(op.output).shape
        return tuple(i for i, name in enumerate(net.activations(op)) if net.tensor(name).shape == shape)
    return (1,) if op.parts[-1].kind == "add" else ()
