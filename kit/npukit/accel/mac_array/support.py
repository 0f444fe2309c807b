"""The ops that the array takes, and the reasons against others."""

from __future__ import annotations

from collections.abc import Callable
from math import prod

from npukit.accel.geometry import window_of
from npukit.accel.groups import groups_of
from npukit.accel.mac_array.additions import LARGEST_PRODUCT_SHIFT, adds_exactly, broadcasts
from npukit.accel.mac_array.blended import refusal_of_resize
from npukit.accel.mac_array.cycles import Figures
from npukit.accel.mac_array.filters import filter_of
from npukit.accel.mac_array.in_parts import parts_for
from npukit.net.net import Net, Op
from npukit.net.ops import (
    Add,
    Attributes,
    AveragePool,
    Conv2d,
    Dense,
    DepthwiseConv2d,
    Matmul,
    MaxPool,
    Mean,
    Multiply,
    ResizeBilinear,
    Subtract,
    Sums,
)
from npukit.net.requantize import product_rescaling, quantization

LARGEST_BYTE = 255


def refusal(net: Net, op: Op, figures: Figures) -> str | None:
    """The reason why the array cannot run the op, or None. Checks both parts of a fused convolution and addition."""
    reason = next(filter(None, (_refusal(net, part, figures) for part in op.parts)), None)
    if reason or len(op.parts) == 1:
        return reason
    if any(name in net.constants for name in op.parts[1].inputs):
        return "what is added to its results is constant"
    if set(op.parts[1].inputs) <= set(op.parts[0].outputs):
        return "its results are added to themselves"
    if len({net.tensor(name).shape for name in (*op.parts[1].inputs, op.output)}) > 1:
        return "what is added to its results is of another shape"
    main = op.parts[0]
    in_parts = isinstance(main.attributes, Conv2d | Dense) and parts_for(net, main, figures)
    return "the core requantises its sums, so that the array cannot add to them" if in_parts else None


def _refusal(net: Net, op: Op, figures: Figures) -> str | None:
    if (rules := _RULES.get(type(op.attributes))) is None:
        return f"the MAC array has no {op.kind}"
    reasons = (rule(net, op, figures) for rule in (_int8, _one_batch, *rules))
    return next((reason for reason in reasons if reason), None)


def _int8(net: Net, op: Op, _: Figures) -> str | None:
    asked = (*net.activations(op), *(() if isinstance(op.attributes, Sums) else (op.output,)))
    wrong = [n for n in asked if net.tensor(n).dtype != "int8"]
    return f"{wrong[0]} is {net.tensor(wrong[0]).dtype}, the MAC array takes int8" if wrong else None


def _one_batch(net: Net, op: Op, _: Figures) -> str | None:
    shape = net.tensor(op.output).shape
    if isinstance(op.attributes, Matmul):
        return None
    return f"a batch of {shape[0]}: the MAC array takes one" if len(shape) == 4 and shape[0] != 1 else None


def _constant_weights(net: Net, op: Op, _: Figures) -> str | None:
    return None if op.inputs[1] in net.constants else "the weights are not constant"


def _one_group(net: Net, op: Op, _: Figures) -> str | None:
    groups = groups_of(net, op)
    return f"{groups} groups: the MAC array takes one" if groups != 1 else None


def _none_before(net: Net, op: Op, _: Figures) -> str | None:
    return "sums are added to others by the core" if len(op.inputs) > len({*op.inputs[:2]}) else None


def _multiplier_one(net: Net, op: Op, _: Figures) -> str | None:
    multiplier = net.tensor(op.output).shape[-1] // net.tensor(op.inputs[0]).shape[-1]
    return f"a depth multiplier of {multiplier}: the MAC array takes 1" if multiplier != 1 else None


def _small_window(net: Net, op: Op, _: Figures) -> str | None:
    attributes = op.attributes
    sizes: list[int] = []
    if isinstance(attributes, Conv2d | DepthwiseConv2d | Sums):
        sizes = [*window_of(net, op).kernel, *attributes.strides, *attributes.dilation, *attributes.padding]
    elif isinstance(attributes, AveragePool | MaxPool):
        sizes = [*attributes.window, *attributes.strides, *attributes.padding]
    elif isinstance(attributes, Mean):
        sizes = [*window_of(net, op).kernel]
    largest = max(sizes, default=0)
    return f"a window or padding of {largest}: the MAC array takes {LARGEST_BYTE}" if largest > LARGEST_BYTE else None


def _bounded(net: Net, op: Op, figures: Figures) -> str | None:
    bits = filter_of(net, op, figures.accumulator_bits).bits
    if bits <= figures.accumulator_bits:
        return None
    return f"its sums can need {bits} bits, the accumulators have {figures.accumulator_bits}"


def _bounded_in_parts(net: Net, op: Op, figures: Figures) -> str | None:
    parts = parts_for(net, op, figures)
    return parts if isinstance(parts, str) else None


def _bounded_products(net: Net, op: Op, figures: Figures) -> str | None:
    reach = [128 + abs(quantization(net, name).zero_point) for name in op.inputs]
    largest = net.tensor(op.inputs[0]).shape[-1] * prod(reach)
    if largest < 1 << (figures.accumulator_bits - 1):
        return None
    return f"its sums can reach {largest}, the accumulators have {figures.accumulator_bits} bits"


def _two_activations(net: Net, op: Op, _: Figures) -> str | None:
    return "one operand is constant" if len(list(net.activations(op))) < 2 else None


def _same_shapes(net: Net, op: Op, _: Figures) -> str | None:
    shapes, constants = [net.tensor(name).shape for name in op.inputs], [n for n in op.inputs if n in net.constants]
    if any(net.tensor(name).dtype != "int8" for name in constants):
        return "one operand is a constant that is not int8"
    if broadcasts(net, op):
        return None
    return f"shapes {shapes[0]} and {shapes[1]} differ"


def _exact_difference(net: Net, op: Op, _: Figures) -> str | None:
    return None if adds_exactly(net, op) else "a sum with a negative factor rounds some differences otherwise"


def _small_product(net: Net, op: Op, _: Figures) -> str | None:
    shift = product_rescaling(net, op).shift
    return None if shift <= LARGEST_PRODUCT_SHIFT else f"its products are shifted left by {shift} bits"


def _blends_neighbours(net: Net, op: Op, _: Figures) -> str | None:
    return refusal_of_resize(net, op)


def _over_pixels(net: Net, op: Op, _: Figures) -> str | None:
    images = len(net.tensor(op.inputs[0]).shape) == 4 and sorted(op.of(Mean).axes) == [1, 2]
    return None if images else "the MAC array takes the mean over all pixels of an image only"


def _same_scale(net: Net, op: Op, _: Figures) -> str | None:
    source, result = (net.tensor(name).quantization for name in (op.inputs[0], op.output))
    return None if source == result else "input and output have different scales"


_Rule = Callable[[Net, Op, Figures], str | None]
_RULES: dict[type[Attributes], tuple[_Rule, ...]] = {
    Conv2d: (_constant_weights, _one_group, _small_window, _bounded_in_parts),
    DepthwiseConv2d: (_constant_weights, _multiplier_one, _small_window, _bounded),
    Dense: (_constant_weights, _bounded_in_parts),
    Matmul: (_two_activations, _bounded_products),
    Add: (_same_shapes,),
    Subtract: (_same_shapes, _exact_difference),
    Multiply: (_same_shapes, _small_product),
    AveragePool: (_small_window, _same_scale),
    MaxPool: (_small_window, _same_scale),
    ResizeBilinear: (_blends_neighbours,),
    Mean: (_over_pixels, _small_window),
    Sums: (_none_before, _constant_weights, _one_group, _small_window, _bounded),
}
