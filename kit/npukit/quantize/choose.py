"""Scales of quantised results, from their ranges or as TFLite's integer kernels require."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from npukit.frontend.recurrent import group
from npukit.net.importer.expressions import callee, dtype_of, operands, shape_of
from npukit.net.tables import SIGMOID_OUTPUT, TANH_OUTPUT
from npukit.net.tensor import Quantization
from npukit.quantize.function import constant, count_reads, variables
from npukit.quantize.observe import ObservedRange
from npukit.quantize.points import Points
from npukit.quantize.scales import held, of_activation

FIXED_SCALE: Mapping[str, Quantization] = {
    "nn.softmax": SIGMOID_OUTPUT,
    "sigmoid": SIGMOID_OUTPUT,
    "tanh": TANH_OUTPUT,
}
JOINING_OPS = ("concat", "where")
"""Operators whose results contain the numbers of several tensors."""
AS_INPUT = ("nn.avg_pool2d", "nn.max_pool2d")
"""Pools keep their input's scale."""


def choose(
    points: Points, ranges: Mapping[Any, ObservedRange], given: Mapping[Any, Quantization] = {}
) -> dict[Any, Quantization]:
    """The quantisation of each quantised variable. `given`: quantisations fixed already."""
    chosen: dict[Any, Quantization] = {}
    # Variables with a common group, given by an importer, share the union of all ranges.
    shared: dict[str, ObservedRange] = {}
    for variable, around in ranges.items():
        if name := group(variable.name):
            shared[name] = shared[name].joined(around) if name in shared else around
    for variable, around in ranges.items():
        name = callee(points.values.get(points.core(variable)))
        if variable in given:
            chosen[variable] = given[variable]
        elif name in AS_INPUT:
            chosen[variable] = chosen[points.origin(variables(points.values[points.core(variable)])[0])]
        else:
            around = shared.get(group(variable.name) or "", around)
            chosen[variable] = (
                FIXED_SCALE.get(name) or _of_parts(points, variable, chosen) or of_range(points, variable, around)
            )
    return chosen | _parts_as_wholes(points, chosen)


def of_range(points: Points, variable: Any, around: ObservedRange) -> Quantization:
    """The quantisation for a range of values, as the quantizer allows."""
    return held(points.quantizer, variable.name, shape_of(variable), of_activation(around))


def _of_parts(points: Points, variable: Any, chosen: Mapping[Any, Quantization]) -> Quantization | None:
    """The quantisation of a joined tensor, if all parts have the same and constants lie within it; else None."""
    value = points.values.get(points.core(variable))
    if callee(value) not in JOINING_OPS or points.core(variable) is not variable:
        return None
    parts = {chosen.get(points.origin(part)) for part in _parts(value)}
    known = [each for each in map(constant, operands(value)) if each is not None and each.dtype.kind == "f"]
    whole = parts.pop() if len(parts) == 1 else None
    return whole if whole and all(_lies_within(each, whole) for each in known) else None


def _lies_within(values: np.ndarray, whole: Quantization) -> bool:
    limits = np.iinfo(np.int8)
    steps = values / whole.scale + whole.zero_point
    return bool(np.all((steps > limits.min - 0.5) & (steps < limits.max + 0.5)))


def _parts_as_wholes(points: Points, chosen: Mapping[Any, Quantization]) -> dict[Any, Quantization]:
    """The whole's quantisation for parts that are only read to be joined. Joining then needs no rescaling."""
    reads, taken = count_reads(points.module), {}
    for whole in chosen:
        joined = points.values.get(points.core(whole))
        for part in _parts(joined) if callee(joined) in JOINING_OPS else ():
            name = callee(points.values.get(points.core(part)))
            if reads[part] == 1 and part in chosen and name not in (*FIXED_SCALE, *AS_INPUT, *JOINING_OPS, ""):
                taken[part] = chosen[whole]
    return taken


def _parts(joined: Any) -> list[Any]:
    """The variables with the numbers of a joined tensor, without the condition of a choice."""
    return [each for each in variables(joined) if dtype_of(each) != "bool"]
