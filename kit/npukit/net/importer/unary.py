"""Functions of one number, in any spelling, evaluated for all 256 values into a lookup table."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from math import erf, sqrt
from typing import TYPE_CHECKING, Any

import numpy as np

from npukit.errors import NpukitError
from npukit.net.importer.assembly import AxesView
from npukit.net.importer.by_channel import filtered
from npukit.net.importer.expressions import callee, constant_value, dtype_of, resolve, shape_of
from npukit.net.importer.site import Site
from npukit.net.ops import Lookup
from npukit.net.tables import (
    EVERY,
    abs_table,
    float_table,
    hard_swish_table,
    leaky_relu_table,
    rsqrt_table,
    sigmoid_table,
    tanh_table,
)
from npukit.net.tensor import Quantization

if TYPE_CHECKING:
    from npukit.net.importer.walk import Walk

MOST_LOOKUPS = 100
"""Maximum number of calls, constants and tensors between two quantisations. Larger expressions run in float."""

SELU = 1.0507009873554805, 1.6732632423543772
"""Scale and alpha of SELU."""

_erf = np.vectorize(erf, otypes=[np.float64])

_SAME_IN_NUMPY = (
    "abs add ceil cos cosh divide equal exp floor floor_divide greater greater_equal isfinite isinf isnan less "
    "less_equal logical_and logical_not logical_or logical_xor maximum minimum multiply negative not_equal ones_like "
    "power sign sin sinh sqrt square subtract tan tanh trunc where zeros_like"
)
_ARCS = ("cos", "cosh", "sin", "sinh", "tan", "tanh")
FUNCTIONS: Mapping[str, Callable[..., np.ndarray]] = {
    **{name: getattr(np, name) for name in _SAME_IN_NUMPY.split()},
    **{f"a{name}": getattr(np, f"arc{name}") for name in _ARCS},
    "erf": _erf,
    "floor_mod": np.mod,
    "log": lambda x: np.log(np.maximum(x, 0)),
    "mod": np.fmod,
    "nn.gelu": lambda x: x * (1 + _erf(x / sqrt(2))) / 2,
    "nn.gelu_tanh": lambda x: x * (1 + np.tanh(sqrt(2 / np.pi) * (x + 0.044715 * x**3))) / 2,
    "nn.relu": lambda x: np.maximum(x, 0),
    "nn.relu6": lambda x: np.clip(x, 0, 6),
    "nn.selu": lambda x: np.where(x > 0, SELU[0] * x, SELU[0] * SELU[1] * np.expm1(x)),
    "nn.silu": lambda x: x / (1 + np.exp(-x)),
    "round": np.rint,
    "rsqrt": lambda x: 1 / np.sqrt(x),
    "sigmoid": lambda x: 1 / (1 + np.exp(-x)),
}
"""Relax's elementwise operators as functions of float arrays."""

_TABLES: Mapping[str, Callable[[Quantization, Quantization], np.ndarray]] = {
    "abs": abs_table,
    "rsqrt": rsqrt_table,
    "sigmoid": sigmoid_table,
    "tanh": tanh_table,
}
"""Functions with an integer algorithm in TFLite."""

WITH_ATTRIBUTES: Mapping[str, Callable[[Any, np.ndarray], np.ndarray]] = {
    "astype": lambda call, x: x.astype(dtype_of(call)),
    "clip": lambda call, x: np.clip(x, number(call.args[1]), number(call.args[2])),
    "nn.leakyrelu": lambda call, x: np.where(x > 0, x, x * float(call.attrs.alpha)),
    "nn.softplus": lambda call, x: np.log1p(np.exp(float(call.attrs.beta) * x)) / float(call.attrs.beta),
}


def number(expression: Any) -> float:
    """A literal number in an operator's arguments."""
    value = expression.value
    return float(value.value if hasattr(value, "value") else value)


def lookup(walk: Walk, site: Site) -> AxesView:
    """Import an expression of one dequantised tensor as a lookup table."""
    parts = _parts(walk, site.core)
    leaf = _leaf(walk, parts)
    if leaf is None:
        raise NpukitError("it is computed in float from several tensors; between two quantisations npukit takes one op")
    source = walk.assembly.scaled(leaf.name)
    if any(_is_by_channel(walk, part) for part in parts):
        return filtered(walk, site, leaf, _by_channel(walk, site, source))
    return tabulated(walk, site, leaf, np.clip(_table(walk, site, source), *site.clamp))


def _leaf(walk: Walk, parts: Sequence[Any]) -> AxesView | None:
    """The tensor in an expression; None if there are several, or none."""
    views = [view for part in parts if _constant(walk, part) is None and (view := walk.operand(part))]
    return views[0] if len({view.name for view in views}) == 1 else None


def condition(walk: Walk, call: Any) -> AxesView:
    """Import a condition on one dequantised tensor, and numbers, as a lookup table of 0 and 1."""
    parts = _parts(walk, call)
    leaf = _leaf(walk, parts)
    if leaf is None or any(_is_by_channel(walk, part) for part in parts):
        raise NpukitError("it is a condition on several tensors")
    source = walk.assembly.scaled(leaf.name)
    if sorted(walk.assembly.shape(leaf.name)) != sorted(shape_of(call)):
        raise NpukitError("it is a condition on a tensor of another shape")
    with np.errstate(all="ignore"):
        table = _evaluated(walk, call, source.real(EVERY).astype(np.float32)).astype(np.int8)
    return walk.assembly.looked_up(leaf, table, "bool")


def _is_by_channel(walk: Walk, part: Any) -> bool:
    value = _constant(walk, part)
    return value is not None and value.size > 1


def _by_channel(walk: Walk, site: Site, source: Quantization) -> np.ndarray:
    """The real results of all bytes in the first axis, with the axes of the model behind it."""
    with np.errstate(all="ignore"):
        return _evaluated(walk, site.core, source.real(EVERY).reshape(-1, *(1,) * len(site.shape)))


def tabulated(walk: Walk, site: Site, view: AxesView, table: np.ndarray) -> AxesView:
    name = walk.assembly.new_name(Lookup.kind)
    constant = walk.assembly.constant(f"{name}_table", table, None)
    return walk.add(site, Lookup(), [view.name, constant], view.order, name)


def _table(walk: Walk, site: Site, source: Quantization) -> np.ndarray:
    """The table, by TFLite's integer algorithm if the file is TFLite's and there is one, else in float."""
    core, target = site.core, site.quantization
    if walk.as_tflite and _is_hard_swish(walk, core):
        return hard_swish_table(source, target)
    if walk.as_tflite and walk.operand(core.args[0]) is not None:
        if callee(core) in _TABLES:
            return _TABLES[callee(core)](source, target)
        if callee(core) == "nn.leakyrelu":
            return leaky_relu_table(source, target, float(core.attrs.alpha))
    with np.errstate(all="ignore"):
        return float_table(lambda real: _evaluated(walk, core, real), source, target)


def _is_hard_swish(walk: Walk, core: Any) -> bool:
    """True for x * (clip(x + 3, 0, 6) / 6)."""
    expression = core
    for name, argument in (("multiply", 1), ("divide", 0), ("clip", 0), ("add", 0)):
        if callee(expression) != name:
            return False
        expression = resolve(expression.args[argument], walk.definitions)
    return True


def _parts(walk: Walk, core: Any) -> list[Any]:
    """The calls, tensors and numbers in an expression, each once and after its operands."""
    found: dict[Any, None] = {}
    wanted = [resolve(core, walk.definitions)]
    while wanted:
        missing = dict.fromkeys(read for read in _reads(walk, wanted[-1]) if read not in found)
        if missing:
            wanted += reversed(missing)
        else:
            found[wanted.pop()] = None
        if max(len(wanted), len(found)) > MOST_LOOKUPS:
            raise NpukitError(f"more than {MOST_LOOKUPS} steps between two quantisations have no int8 form in npukit")
    return list(found)


def _reads(walk: Walk, part: Any) -> list[Any]:
    """The operands of a call; none for a number or a tensor."""
    if _constant(walk, part) is not None or walk.operand(part) is not None:
        return []
    name = callee(part)
    if name not in FUNCTIONS and name not in WITH_ATTRIBUTES:
        raise NpukitError(f"{name or 'a float tensor'} between two quantisations has no int8 form in npukit yet")
    arguments = part.args if name in FUNCTIONS else part.args[:1]
    return [resolve(argument, walk.definitions) for argument in arguments]


def _constant(walk: Walk, expression: Any) -> np.ndarray | None:
    """The value of a constant with at most one axis of several numbers, else None."""
    constant = walk.constant(expression)
    value = constant.real if constant else constant_value(expression, walk.definitions)
    if value is None or value.size != max(value.shape, default=1):
        return None
    return np.asarray(value.item() if value.size == 1 else value, np.float32)


def _evaluated(walk: Walk, core: Any, real: np.ndarray) -> np.ndarray:
    values: dict[Any, np.ndarray] = {}
    for part in (parts := _parts(walk, core)):
        held, name = _constant(walk, part), callee(part)
        if held is not None or walk.operand(part) is not None:
            values[part] = real if held is None else held
        elif name in WITH_ATTRIBUTES:
            values[part] = WITH_ATTRIBUTES[name](part, values[_reads(walk, part)[0]])
        else:
            values[part] = FUNCTIONS[name](*(values[read] for read in _reads(walk, part)))
    return values[parts[-1]]


OPERATORS = {"astype": lookup}
"""A cast of bytes to real numbers is a table of its results, rounded like other functions of one number."""
