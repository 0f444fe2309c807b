"""Lowering of a tile to commands and their constants."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from npukit.accel.geometry import Plane, window_of
from npukit.accel.interface import Address, Commands, ConstantArray, Field, Lowered, Operand, Struct, Tile
from npukit.accel.mac_array.additions import addition_block, operands
from npukit.accel.mac_array.blended import Blended
from npukit.accel.mac_array.cycles import ADDITIONS, Figures, along_pixels, patch_of
from npukit.accel.mac_array.filters import Filter, KnownFilters
from npukit.accel.mac_array.in_parts import InParts
from npukit.accel.mac_array.packing import WeightLayout, pack_parameters
from npukit.accel.mac_array.products import Products
from npukit.net.net import Op
from npukit.net.ops import Multiply

Fields = tuple[tuple[str, Field], ...]
_STEPS = ("kernel_height", "kernel_width", "stride_y", "stride_x", "dilation_y", "dilation_x")


def lower(tile: Tile, figures: Figures, filters: KnownFilters, parts: int = 0) -> Lowered:
    """The commands of a tile of any supported op. An addition after a convolution is part of the convolution's command.
    `parts`: number of partial sums of a convolution; if not 0, the tile becomes a call."""
    if parts:
        in_parts = InParts(tile.net, tile.op, Plane.of(tile.output.box), parts, figures)
        fields = (*_operands(tile), *_window(tile), *_output_stage(tile))
        return in_parts.lower(tile, _chosen_channels(tile, filters), dict(fields))
    main, *rest = tile.op.parts
    lowered = _LOWERINGS[main.kind](replace(tile, op=main), figures, filters)
    return _with_residual(lowered, tile, *rest) if rest else lowered


def _with_residual(lowered: Lowered, tile: Tile, addition: Op) -> Lowered:
    """The command with the addition of the tile's second input to its results."""
    assert isinstance(lowered.code, Commands)
    symbol, other = f"{tile.name}_residual", tile.inputs[1]
    low, high = addition.attributes.clamp  # pyright: ignore[reportAttributeAccessIssue]
    fields = dict(lowered.code.structs[0].fields)
    fields["flags"] = " | ".join(str(flag) for flag in (fields.get("flags"), "MAC_ARRAY_RESIDUAL") if flag)
    fields |= {
        "extra": other.address,
        "extra_row_stride": other.row_stride,
        "extra_pixel_stride": other.pixel_stride,
        "residual_parameters": Address(symbol),
        "residual_zero": tile.net.tensor(addition.output).zero_point,
        "residual_min": low,
        "residual_max": high,
    }
    words = addition_block(tile.net, addition, first=tile.op.parts[0].output)
    constant = ConstantArray(symbol, words, 4, "scales of the result and of the added operand")
    return Lowered((*lowered.constants, constant), Commands((Struct(tuple(fields.items())),)))


def _convolution(tile: Tile, figures: Figures, filters: KnownFilters) -> Lowered:
    """A convolution. Sums are accumulators without requantisation."""
    nibbles = filters.four_bits(tile.net, tile.op)
    wide = along_pixels(figures, Plane.of(tile.output.box), patch_of(tile.net, tile.op), nibbles=nibbles)
    layout = WeightLayout(figures.lanes if wide else figures.width, not wide, nibbles)
    flags = ["MAC_ARRAY_RAW"] * (tile.op.kind == "sums") + ["MAC_ARRAY_PIXELS"] * wide
    return _filtered(tile, _chosen_channels(tile, filters), layout, "MAC_ARRAY_CONVOLUTION", flags)


def _products(tile: Tile, figures: Figures, _: KnownFilters) -> Lowered:
    """One convolution per pair of matrices, the second matrix in the place of the weights."""
    products = Products.of(tile.net, tile.op, tile.output.box, figures)
    parameters = products.parameters(tile)
    pixels = " | MAC_ARRAY_PIXELS" if products.along_pixels else ""
    zero, second_zero = products.in_turn(*(tile.net.tensor(name).zero_point for name in tile.op.inputs))
    shared = {
        "kind": "MAC_ARRAY_CONVOLUTION",
        "flags": f"MAC_ARRAY_SECOND{pixels}",
        "parameters": Address(parameters.symbol),
        "second_zero": second_zero,
        **dict.fromkeys(_STEPS, 1),
        **dict(_output_stage(tile)),
        "input_zero": zero,
    }
    return Lowered((parameters,), Commands(tuple(Struct((*shared.items(), *own)) for own in products.commands(tile))))


def _depthwise(tile: Tile, figures: Figures, filters: KnownFilters) -> Lowered:
    layout = WeightLayout(figures.width, nibbles=filters.four_bits(tile.net, tile.op))
    return _filtered(tile, _chosen_channels(tile, filters), layout, "MAC_ARRAY_DEPTHWISE", ())


def _filtered(tile: Tile, chosen: Filter, layout: WeightLayout, kind: str, flags: Sequence[str]) -> Lowered:
    weights, parameters = f"{tile.name}_weights", f"{tile.name}_parameters"
    flags = (*flags, *(("MAC_ARRAY_NIBBLES",) if layout.nibbles else ()))
    packed = pack_parameters(chosen.bias, chosen.multipliers, chosen.shifts, layout.block)
    bits = "weights of 4 bits" if layout.nibbles else "weights"
    constants = (
        ConstantArray(weights, layout.packed(chosen.weights), 16, bits),
        ConstantArray(parameters, packed, 4, "biases, multipliers, shifts"),
    )
    fields: Fields = (
        ("kind", kind),
        *((("flags", " | ".join(flags)),) if flags else ()),
        *_operands(tile),
        ("weights", Address(weights)),
        ("parameters", Address(parameters)),
        *_window(tile),
        *_output_stage(tile),
    )
    return Lowered(constants, Commands((Struct(fields),)))


def _blended(tile: Tile, figures: Figures, _: KnownFilters) -> Lowered:
    """One depthwise convolution for each way to blend. Zero points of 0: an average of any has theirs."""
    blended = Blended.of(tile.net, tile.op, tile.output.box, figures)
    shared = {
        "kind": "MAC_ARRAY_DEPTHWISE",
        **dict.fromkeys(_STEPS, 1),
        **dict(_clamps(tile)),
    }
    structs = (
        Struct(tuple({**shared, **dict(placed("input", source)), **dict(placed("output", target)), **own}.items()))
        for source, target, own in blended.commands(tile)
    )
    return Lowered(tuple(blended.constants(tile)), Commands(tuple(structs)))


def _addition(tile: Tile, _: Figures, __: KnownFilters) -> Lowered:
    symbol, first = f"{tile.name}_addition", next(iter(tile.net.activations(tile.op)))
    inputs, held = operands(tile)
    tile, second = replace(tile, inputs=inputs), inputs[1]
    fields: Fields = (
        ("kind", "MAC_ARRAY_ADD"),
        *((("flags", "MAC_ARRAY_PRODUCT"),) if tile.op.kind == Multiply.kind else ()),
        *_operands(tile),
        ("weights", second.address),
        ("second_row_stride", second.row_stride),
        ("second_pixel_stride", second.pixel_stride),
        ("parameters", Address(symbol)),
        *_output_stage(tile),
    )
    words = addition_block(tile.net, tile.op, first)
    constants = ConstantArray(symbol, words, 4, "scales of the two operands")
    return Lowered((*held, constants), Commands((Struct(fields),)))


def _pool(tile: Tile, _: Figures, __: KnownFilters) -> Lowered:
    kind = "MAC_ARRAY_MAXIMUM_POOL" if tile.op.kind == "max_pool" else "MAC_ARRAY_AVERAGE_POOL"
    fields: Fields = (("kind", kind), *_operands(tile), *_window(tile), *_clamps(tile))
    return Lowered((), Commands((Struct(fields),)))


def _chosen_channels(tile: Tile, filters: KnownFilters) -> Filter:
    box = tile.output.box
    return filters.of(tile.net, tile.op).select(box.start[-1], box.stop[-1])


def _operands(tile: Tile) -> Fields:
    return (*placed("input", tile.inputs[0]), *placed("output", tile.output))


def _window(tile: Tile) -> Fields:
    window = window_of(tile.net, tile.op)
    top, left = window.padding_of(tile.output.box, tile.inputs[0].box)
    values = (*window.kernel, *window.strides, *window.dilation, top, left)
    return tuple(zip((*_STEPS, "pad_top", "pad_left"), values, strict=True))


def _output_stage(tile: Tile) -> Fields:
    zeros = (("input_zero", tile.op.inputs[0]), ("output_zero", tile.op.output))
    return (*((name, tile.net.tensor(tensor).zero_point) for name, tensor in zeros), *_clamps(tile))


def _clamps(tile: Tile) -> Fields:
    """The limits of the results. Pools have no other numbers: zero points do not change them."""
    low, high = getattr(tile.op.attributes, "clamp", (-128, 127))
    return ("clamp_min", low), ("clamp_max", high)


_LOWERINGS = {
    "conv2d": _convolution,
    "depthwise_conv2d": _depthwise,
    "dense": _convolution,
    **dict.fromkeys(ADDITIONS, _addition),
    "average_pool": _pool,
    "max_pool": _pool,
    "mean": _depthwise,
    "sums": _convolution,
    "matmul": _products,
    "resize_bilinear": _blended,
}


def placed(prefix: str, operand: Operand) -> tuple[tuple[str, Field], ...]:
    """Address, size and strides of an operand as members of a command."""
    plane = Plane.of(operand.box)
    return (
        (prefix, operand.address),
        (f"{prefix}_height", plane.height),
        (f"{prefix}_width", plane.width),
        (f"{prefix}_row_stride", operand.row_stride),
        (f"{prefix}_pixel_stride", operand.pixel_stride),
        (f"{prefix}_channels", plane.channels),
    )
