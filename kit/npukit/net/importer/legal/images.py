"""Loops of interpolation and transposed convolution. Positions and weights are computed in integers; no sum runs over
inserted zeros."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from math import gcd
from typing import Any, cast

import numpy as np
from tvm import relax, te, tirx
from tvm.ir import Op

from npukit.net.importer.legal import norms, sums
from npukit.net.places import RATIOS

Loops = Callable[[relax.BlockBuilder, Any], Any]
loops: Any = te


def own(name: str) -> Callable[[Loops], Loops]:
    """Decorator with a fallback: if npukit's own loops return None, TVM's loops are used."""

    def with_name(make: Loops) -> Loops:
        def made(builder: relax.BlockBuilder, call: Any) -> Any:
            found, usual = make(builder, call), cast(Any, Op.get(name)).get_attr("FLegalize")
            return usual(builder, call) if found is None else found

        return made

    return with_name


@own("relax.image.resize2d")
def resize2d(builder: Any, call: Any) -> Any:
    told = call.attrs
    layout, mode = str(told.layout), str(told.coordinate_transformation_mode)
    if str(told.method) != "linear" or mode not in RATIOS or set(layout) != set("NHWC"):
        return None
    return builder.call_te(_resized, call.args[0], [int(each) for each in call.args[1].values], layout, mode)


@dataclass(frozen=True)
class _Line:
    """The rows or columns of an image to resize. Result i lies at (i * `step` + `first`) / `whole`."""

    size: int
    step: int
    first: int
    whole: int

    @classmethod
    def of(cls, size: int, result: int, mode: str) -> _Line:
        step, first, whole = RATIOS[mode](size, result)
        common = gcd(step, first, whole)
        return cls(size, step // common, first // common, whole // common)

    def near(self, place: Any) -> list[tuple[Any, Any]]:
        """The two neighbouring input positions of a result, each with its weight."""
        at = loops.max(loops.min(place * self.step + self.first, (self.size - 1) * self.whole), 0)
        low = tirx.truncdiv(at, self.whole)
        share = (at - low * self.whole).astype("float32") * tirx.const(float(np.float32(1 / self.whole)), "float32")
        return [(low, tirx.const(1.0, "float32") - share), (loops.min(low + 1, self.size - 1), share)]


def _resized(data: Any, size: list[int], layout: str, mode: str) -> Any:
    axes = [layout.index(letter) for letter in "HW"]
    lines = [_Line.of(int(data.shape[axis]), made, mode) for axis, made in zip(axes, size, strict=True)]

    def blended(*place: Any) -> Any:
        rows, columns = (line.near(place[axis]) for line, axis in zip(lines, axes, strict=True))

        def across(row: Any) -> Any:
            near = (data(*_moved(place, axes, (row, column))) * share for column, share in columns)
            return next(near) + next(near)

        (above, upper), (below, lower) = rows
        return across(above) * upper + across(below) * lower

    return loops.compute(_moved(data.shape, axes, size), blended, name="resized")


def _moved(place: Any, axes: list[int], others: Any) -> list[Any]:
    """The position with other indices along some axes."""
    given = dict(zip(axes, others, strict=True))
    return [given.get(axis, at) for axis, at in enumerate(place)]


@own("relax.nn.conv2d_transpose")
def conv2d_transpose(builder: Any, call: Any) -> Any:
    told = call.attrs
    if int(told.groups) != 1 or any(int(step) != 1 for step in told.dilation):
        return None
    layouts = str(told.data_layout), str(told.kernel_layout)
    strides, begins = ([int(each) for each in given[:2]] for given in (told.strides, told.padding))
    made = [int(size) for size in call.ty.shape], str(call.ty.dtype)
    return builder.call_te(_transposed, *call.args, made, layouts, [*zip(strides, begins, strict=True)])


def _transposed(
    data: Any, weights: Any, made: tuple[list[int], str], layouts: tuple[str, str], sides: list[tuple[int, int]]
) -> Any:
    """The transposed convolution. Each result reads only the taps of its phase, in the order of input positions."""
    (shape, dtype), (layout, filters) = made, layouts
    axes = [layout.index(letter) for letter in "HW"]
    kernel = [int(weights.shape[filters.index(letter)]) for letter in "HW"]
    taps = [-(-size // stride) for size, (stride, _) in zip(kernel, sides, strict=True)]
    inner = loops.reduce_axis((0, weights.shape[filters.index("I")]), "inner")
    over = [loops.reduce_axis((0, each), name) for each, name in zip(taps, ("row", "column"), strict=True)]

    def summed(*place: Any) -> Any:
        at, of, held = {"N": place[layout.index("N")], "C": inner}, {"O": place[layout.index("C")], "I": inner}, []
        for letter, axis, (stride, cut), tap, count, size in zip("HW", axes, sides, over, taps, kernel, strict=True):
            moved, given = place[axis] + cut, int(data.shape[axis])
            at[letter] = tirx.truncdiv(moved, stride) - (count - 1) + tap
            of[letter] = tirx.truncmod(moved, stride) + (count - 1 - tap) * stride
            held += [of[letter] < size] if count * stride > size else []
            held += [at[letter] >= 0] if cut // stride < count - 1 else []
            held += [at[letter] < given] if (cut + shape[axis] - 1) // stride >= given else []
        terms = [data(*map(at.get, layout)), weights(*map(of.get, filters))]
        product = terms[0].astype(dtype) * terms[1].astype(dtype)
        whole = tirx.if_then_else(tirx.all(*held), product, tirx.const(0, dtype)) if held else product
        return loops.sum(whole, axis=[inner, *over])

    return loops.compute(shape, summed, name="conv2d_transpose")


OWN: Mapping[str, Loops] = {
    "relax.cumprod": own("relax.cumprod")(sums.cumprod),
    "relax.cumsum": own("relax.cumsum")(sums.cumsum),
    "relax.image.resize2d": resize2d,
    "relax.nn.conv2d_transpose": conv2d_transpose,
    **{name: own(name)(norms.norm_of_groups) for name in ("relax.nn.group_norm", "relax.nn.instance_norm")},
}
