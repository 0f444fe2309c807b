"""Import of a Relax function. Each quantize, traced back to its dequantizes, becomes one op of the Net."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import cache, cached_property
from typing import Any

from tvm import relax
from tvm.ir import IRModule

from npukit.errors import NpukitError
from npukit.net import importer
from npukit.net.check import check_net
from npukit.net.importer import unary
from npukit.net.importer.assembly import AxesView, NetInMaking, Order, straight
from npukit.net.importer.expressions import (
    CONVOLUTIONS,
    IntegerConstant,
    bindings,
    callee,
    dtype_of,
    integer_constant,
    is_as_tflite,
    quantization_of,
    reads_of,
    resolve,
    shape_of,
    title_of,
    titles_of,
)
from npukit.net.importer.given import is_given
from npukit.net.importer.islands import PICKS, Islands
from npukit.net.importer.linear import LINEAR, SUMMED, of_integers
from npukit.net.importer.movement import MOVEMENTS, moved_from, padded
from npukit.net.importer.reduction import argmax
from npukit.net.importer.site import Site, site_of
from npukit.net.net import Net
from npukit.net.ops import Attributes, Requantize, Reshape
from npukit.net.ops.table import modules_of
from npukit.net.passes.simplify import fold_constants, fold_padding
from npukit.net.tables import float_table, relu_table, rounded_relu_table
from npukit.net.tensor import Quantization
from npukit.net.text import plain_name

IN_FLOAT = "the model computes it in float"
"""Reason recorded in a float op whose result is not quantised."""
IN_INTEGERS = "TVM makes code of its integers"
AT_RUN_TIME = "the model quantises at run time"
_AS_ASKED = "as asked"
_BYTES = ("int8", "uint8")
_NARROW = (*_BYTES, "int16")
_ANY = Quantization((1.0,), (0,))
EARLY = MOVEMENTS.keys() - {"image.resize2d"}
"""Moves that can run after quantisation instead of before."""
NO_MATCH: Mapping[Any, str] = {}


@dataclass
class Walk:
    """State of the import: definitions of variables, tensors of integer variables."""

    assembly: NetInMaking
    module: Any
    floats: frozenset[Any] = frozenset()
    """Float inputs that stay float in the net."""
    kept: frozenset[Any] = frozenset()
    """Integer variables to compute in float."""
    named: dict[Any, str] = field(default_factory=dict)
    """The model's layer name for each expression."""
    matched: Mapping[Any, str] = field(default_factory=dict)
    """The match of a plug-in's pattern for each matched expression."""
    definitions: dict[Any, Any] = field(default_factory=dict)
    views: dict[Any, AxesView] = field(default_factory=dict)
    _moved: dict[Any, AxesView | None] = field(default_factory=dict)
    """The tensor of each move's result. None if the move's source is no dequantised tensor."""

    @cached_property
    def as_tflite(self) -> bool:
        """True if functions of one number follow TensorFlow Lite's integer algorithms; else results are rounded."""
        return is_as_tflite(self.module)

    @cached_property
    def titles(self) -> Sequence[str]:
        """Names of the model's layers."""
        return titles_of(self.module)

    def operand(self, expression: Any) -> AxesView | None:
        """The int8 tensor behind a dequantised activation, seen through moves. None if there is none."""
        found, moves = resolve(expression, self.definitions), []
        while found not in self._moved and callee(found) in MOVEMENTS:
            moves.append(found)
            found = resolve(moved_from(found, self.definitions), self.definitions)
        if callee(found) == "astype" and found not in self._moved:
            self._moved[found] = self._cast(found)
        view = self._dequantized(found) if callee(found) == "dequantize" else self._moved.get(found)
        for move in reversed(moves):
            view = view and MOVEMENTS[callee(move)](self, view, move)
            self._moved[move] = view
        return view

    def _dequantized(self, call: Any) -> AxesView | None:
        """The tensor behind a dequantize. None also for scales by channel, as no integer op reads these."""
        view = self.view(call.args[0])
        if view is None or dtype_of(call.args[0]) not in _BYTES:
            return None
        wanted = as_int8(quantization_of(call, self.definitions), dtype_of(call.args[0]))
        if wanted.axis is not None:
            return None
        stated = self.assembly.quantization(view.name)
        if stated is None or stated.is_begin_of(wanted):
            dtype = self.assembly.tensors[view.name].dtype
            if dtype == "int8":
                self.assembly.requantify(view.name, wanted)
                return view
            self.assembly.requantify(view.name, quantization_of(call, self.definitions))
            self.views[call.args[0]] = self.converted(view, wanted, "int8")
            return self.views[call.args[0]]
        if stated != wanted:
            raise NpukitError(f"tensor {view.name} is quantised one way and dequantised another")
        return view

    def _cast(self, call: Any) -> AxesView | None:
        """The tensor behind a cast of bytes to real numbers: a dequantise with the scale 1."""
        view, dtype = self.view(call.args[0]), dtype_of(call.args[0])
        if view is None or (dtype_of(call), self.assembly.tensors[view.name].dtype) != ("float32", dtype):
            return None
        if dtype not in _BYTES:
            return None
        named = AxesView(self.assembly.relabelled(view.name, _ANY), view.order)
        return named if dtype == "int8" else self.converted(named, as_int8(_ANY, dtype), "int8")

    def activation(self, expression: Any) -> AxesView:
        """The int8 tensor behind a dequantised activation. Raises an error if there is none."""
        view = self.operand(expression)
        if view is None:
            source = resolve(expression, self.definitions)
            raise NpukitError(f"its input from {callee(source) or 'a float tensor'} is not quantised")
        return view

    def title(self, value: Any) -> str:
        """The model's layer name for a value, looked up behind its quantize and clips."""
        if callee(value) != "quantize":
            return self.named.get(value, "")
        core = site_of(Site(value.args[0], _ANY, "int8"), self.definitions).core
        return self.named.get(core) or self.named[value]

    def match(self, value: Any) -> str:
        """The pattern match of a value, or of the nearest one before it along first operands; else empty."""
        while callee(value) not in ("", "dequantize", "split_part") and value not in self.matched:
            value = resolve(value.args[0], self.definitions)
        return self.matched.get(value, "")

    def constant(self, expression: Any) -> IntegerConstant | None:
        return integer_constant(expression, self.definitions)

    @cached_property
    def islands(self) -> Islands:
        """The float islands."""
        return Islands(self, self.module, reads_of(self.module))

    @cached_property
    def only_cast(self) -> frozenset[Any]:
        """Variables read only by casts to int32 or int64. Their uncast values are not needed."""
        casts = Counter(value.args[0] for value in _values(self.module) if _casts(value))
        return frozenset(variable for variable, count in casts.items() if self.islands.reads[variable] == count)

    def view(self, expression: Any) -> AxesView | None:
        """The tensor of an integer variable, or None."""
        while expression not in self.views and isinstance(expression, relax.Var) and expression in self.definitions:
            expression = self.definitions[expression]
        return self.views.get(expression)

    def add(self, site: Site, attributes: Attributes, inputs: Sequence[str], order: Order, name: str = "") -> AxesView:
        """Add the op of a site. `order`: memory order of the result's axes."""
        shape = tuple(site.shape[axis] for axis in order)
        return AxesView(self.assembly.op(attributes, inputs, shape, site.dtype, site.quantization, name), order)

    def add_image(
        self, site: Site, attributes: Attributes, inputs: Sequence[str], order: Order, name: str = ""
    ) -> AxesView:
        """Add the op of a site that outputs images. One-dimensional images get a single row."""
        if len(order) == 4:
            return self.add(site, attributes, inputs, order, name)
        images, *line = (site.shape[axis] for axis in order)
        made = self.assembly.op(attributes, inputs, (images, 1, *line), site.dtype, site.quantization, name)
        return AxesView(self.assembly.derive(Reshape(), made, (images, *line)), order)

    def converted(self, view: AxesView, quantization: Quantization, dtype: str) -> AxesView:
        """The same real numbers with another quantisation."""
        given, source = self.assembly.tensors[view.name], self.assembly.quantization(view.name)
        wide = {given.dtype, dtype} - {*_BYTES}
        if wide:
            raise NpukitError(f"{view.name} is quantised another way, and {wide.pop()} is not int8 or uint8")
        if source is None or self.as_tflite or {given.dtype, dtype} != {"int8"}:
            made = self.assembly.op(Requantize(), [view.name], given.shape, dtype, quantization)
            return AxesView(made, view.order)
        table = float_table(lambda real: real, source, quantization)
        return self.assembly.looked_up(view, table, dtype, quantization)

    def computed(self, site: Site) -> AxesView:
        """The op of a site. Raises an error if the op has no integer form."""
        return _computed_at_once(self, site_of(site, self.definitions))

    def settled(self, view: AxesView, site: Site) -> AxesView:
        """The same real numbers, clipped and quantised as at the site."""
        source = self.assembly.scaled(view.name)
        if site.clamp == (-128, 127):
            return view if source == site.quantization else self.converted(view, site.quantization, "int8")
        made = relu_table if self.as_tflite else rounded_relu_table
        return unary.tabulated(self, site, view, made(source, site.quantization, site.clamp))


def as_int8(quantization: Quantization, dtype: str) -> Quantization:
    """The quantisation of integers stored as int8. uint8 integers are stored minus 128."""
    if dtype != "uint8":
        return quantization
    shifted = tuple(zero_point - 128 for zero_point in quantization.zero_points)
    return Quantization(quantization.scales, shifted, quantization.axis)


def net_from_relax(
    module: IRModule, name: str, *, in_float: bool = False, matched: Mapping[Any, str] = NO_MATCH
) -> Net:
    """The network of a module's function `main`: integer ops where the module is in QDQ form, float ops elsewhere. A
    module without any quantisation is refused, unless `in_float`."""
    return net_and_views(module, name, in_float=in_float, matched=matched)[0]


def net_and_views(
    module: IRModule,
    name: str,
    *,
    in_float: bool = False,
    kept: frozenset[Any] = frozenset(),
    matched: Mapping[Any, str] = NO_MATCH,
) -> tuple[Net, Mapping[Any, AxesView]]:
    """The network, and the tensor for each integer variable of the module. `kept`: integer variables to compute in
    float, even if an integer op exists. `matched`: pattern match of each expression, copied to its op."""
    main = module["main"]
    if not in_float:
        _refuse_float(module, name)
    walk = Walk(NetInMaking(name), module, _read_in_float(module), kept, matched=matched)
    inputs = [_input(walk, parameter) for parameter in main.params]
    for block in main.body.blocks:
        for binding in block.bindings:
            _bind(walk, binding)
    result = resolve(main.body.body, walk.definitions)
    fields = list(result.fields) if isinstance(result, relax.Tuple) else [main.body.body]
    outputs = [_output(walk, expression) for expression in fields]
    made = replace(walk.assembly.net(tuple(inputs), tuple(outputs)), rounds_once=not walk.as_tflite)
    return check_net(fold_padding(fold_constants(made))), walk.views


def is_float(module: IRModule) -> bool:
    """True if the module has floats and no quantised activation, static or dynamic. Constants may be quantised."""
    kinds, values = (_is_quantisation, _sums_integers, _computes_integers), _values(module)
    return any(map(_is_float, (*module["main"].params, *values))) and not any(
        kind(value) for kind in kinds for value in values
    )


def _is_float(value: Any) -> bool:
    return isinstance(value.ty, relax.TensorType) and dtype_of(value).startswith("float")


def is_dynamic(module: IRModule) -> bool:
    """True if floats are quantised only at run time."""
    values = _values(module)
    return any(map(_is_float, values)) and any(map(_sums_integers, values)) and not any(map(_is_quantisation, values))


def _values(module: IRModule) -> list[Any]:
    return [value for _, value in bindings(module)]


def _refuse_float(module: IRModule, name: str) -> None:
    if is_float(module):
        calls = [callee(value) for value in _values(module)]
        first = next((call for call in calls if call not in ("", "dequantize", *MOVEMENTS)), "none")
        raise NpukitError(
            f"{name} is a float model: its first op, {first}, has no int8 quantisation",
            tries=[
                "quantise it here: --calibration FILE.npz, with arrays in0, in1, ... of a hundred real inputs",
                "compute it in float, on the core alone: --float",
                "convert it to TFLite with full integer quantisation (int8)",
                "or quantise the ONNX file with onnxruntime.quantization.quantize_static (QDQ)",
            ],
        )


def _read_in_float(module: IRModule) -> frozenset[Any]:
    """Float inputs with any use other than a quantize, perhaps after moves."""
    main: Any = module["main"]
    made, reads = dict(bindings(module)), reads_of(module)
    names = {variable: value for variable, value in made.items() if isinstance(value, relax.Var)}
    counts: Counter[Any] = Counter()
    for variable, count in reads.items():
        counts[resolve(variable, names)] += count
    counts.subtract(resolve(name, names) for name in names)

    def source(variable: Any) -> Any:
        """The source of a chain of moves whose intermediate results have no other readers."""
        found = resolve(variable, names)
        while counts[found] == 1 and callee(made.get(found)) in EARLY:
            found = resolve(moved_from(made[found], made), names)
        return found

    quantised = Counter(source(value.args[0]) for value in _values(module) if callee(value) == "quantize")
    floats = (parameter for parameter in main.params if dtype_of(parameter).startswith("float"))
    return frozenset(parameter for parameter in floats if counts[parameter] != quantised[parameter])


def _is_quantisation(value: Any) -> bool:
    """True if an activation is quantised or dequantised here. Constants do not count."""
    return callee(value) == "quantize" or (callee(value) == "dequantize" and isinstance(value.args[0], relax.Var))


def _computes_integers(value: Any) -> bool:
    """True for a call of loops or C code with quantised integers."""
    return _is_code(value) and any(dtype_of(each) in _NARROW for each in (value, *value.args[1].fields))


def _is_code(value: Any) -> bool:
    """True for a call of loops (TIR) or C code instead of a Relax operator."""
    return callee(value) == "call_tir" or is_given(value)


def _sums_integers(value: Any) -> bool:
    """True for an integer product whose scales appear only in other ops of the model."""
    return callee(value) in (*LINEAR, *CONVOLUTIONS) and dtype_of(value) == "int32"


def _input(walk: Walk, parameter: Any) -> str:
    shape, name = shape_of(parameter), plain_name(parameter.name, "input", walk.assembly.tensors)
    walk.assembly.tensor(name, shape, dtype_of(parameter), None)
    walk.views[parameter] = AxesView(name, straight(len(shape)))
    return name


def _output(walk: Walk, expression: Any) -> str:
    """An output of the net, in the model's axis order. A final dequantise is left to the reader."""
    walk.assembly.title = walk.title(resolve(expression, walk.definitions))
    view = walk.view(expression) or walk.operand(expression) or _float_output(walk, expression)
    if dtype_of(expression) == "uint8" and walk.assembly.tensors[view.name].dtype == "int8":
        given = walk.assembly.scaled(view.name)
        shifted = Quantization(given.scales, (given.zero_point + 128,))
        view = walk.converted(view, shifted, "uint8")
    return walk.assembly.straightened(view)


def _float_output(walk: Walk, expression: Any) -> AxesView:
    try:
        return walk.islands.tensor(expression, AT_RUN_TIME if is_dynamic(walk.module) else IN_FLOAT)
    except NpukitError as error:
        source = callee(resolve(expression, walk.definitions)) or "none"
        raise NpukitError(f"{walk.assembly.name}: op {source}: {error.message}", tries=error.tries) from error


def _bind(walk: Walk, binding: Any) -> None:
    walk.definitions[binding.var] = binding.value
    walk.named[binding.value] = walk.assembly.title = title_of(binding.var, walk.titles)
    try:
        walk.assembly.title = walk.title(binding.value)
        walk.assembly.pattern = walk.match(binding.value)
        if callee(binding.value) == "quantize":
            walk.views[binding.var] = _quantize(walk, binding.value, as_asked=binding.var in walk.kept)
        elif callee(binding.value) == "argmax":
            if binding.var not in walk.only_cast:
                _search(walk, binding, binding.value)
        elif _casts(binding.value) and callee(resolve(binding.value.args[0], walk.definitions)) == "argmax":
            _search(walk, binding, resolve(binding.value.args[0], walk.definitions))
        elif _is_code(binding.value) and dtype_of(binding.value) in _NARROW:
            walk.views[binding.var] = walk.islands.tensor(binding.var, IN_INTEGERS)
        elif callee(binding.value) in SUMMED and dtype_of(binding.value) == "int32":
            _sum(walk, binding)
        elif callee(binding.value) in MOVEMENTS and not dtype_of(binding.value).startswith("float"):
            _move(walk, binding)
    except NpukitError as error:
        raise NpukitError(f"{_describe(walk, binding)}: {error.message}", tries=error.tries) from error
    except Exception as fault:
        raise NpukitError(f"{_describe(walk, binding)} is in a form that npukit does not read ({fault!r})") from fault


def _describe(walk: Walk, binding: Any) -> str:
    """The model, op and layer name of a binding, for errors. Describes the op behind a quantize."""
    expression = binding.value
    if callee(expression) == "quantize":
        expression = resolve(expression.args[0], walk.definitions)
    return f"{walk.assembly.name}: op {callee(expression) or 'quantize'} ({walk.assembly.title or binding.var.name})"


def _casts(value: Any) -> bool:
    return callee(value) == "astype" and dtype_of(value) in ("int32", "int64")


def _search(walk: Walk, binding: Any, call: Any) -> None:
    """Import an argmax of int8. Others are left to islands."""
    with suppress(NpukitError):
        walk.views[binding.var] = argmax(walk, call, dtype_of(binding.value))


def _move(walk: Walk, binding: Any) -> None:
    """Import a move of integers, if it has an integer op. Otherwise, or inside an island, the move is left to
    islands."""
    source = walk.view(moved_from(binding.value, walk.definitions))
    if source is not None:
        with suppress(NpukitError):
            walk.views[binding.var] = MOVEMENTS[callee(binding.value)](walk, source, binding.value)


def _sum(walk: Walk, binding: Any) -> None:
    """Import a layer on integers, if it has an integer op. Otherwise the layer is left to islands."""
    sums = of_integers(walk, binding.value)
    if sums is not None:
        walk.views[binding.var] = sums


def _quantize(walk: Walk, call: Any, *, as_asked: bool) -> AxesView:
    """Import a quantize and the expression before it. `as_asked`: compute in float."""
    dtype = str(call.attrs.out_dtype)
    if dtype not in _NARROW:
        raise NpukitError(f"it quantises to {dtype}; npukit computes in int8", tries=["quantise activations to int8"])
    quantization = as_int8(quantization_of(call, walk.definitions), dtype)
    if quantization.axis is not None:
        raise NpukitError("its result has a scale for each channel; activations have one")
    if as_asked:
        return walk.islands.quantized(call, quantization, _AS_ASKED)
    if dtype not in _BYTES:
        return walk.islands.quantized(call, quantization, f"its numbers are {dtype}", dtype)
    try:
        site = site_of(Site(call.args[0], quantization, "int8"), walk.definitions)
        moves = []
        while (
            callee(site.core) in MOVEMENTS and callee(site.core) not in _operators() and walk.operand(site.core) is None
        ):
            moves.append(site.core)
            site = site_of(replace(site, core=moved_from(site.core, walk.definitions)), walk.definitions)
        view = walk.computed(site)
        for move in reversed(moves):
            view = MOVEMENTS[callee(move)](walk, view, move)
        return view
    except NpukitError as error:
        return walk.islands.quantized(call, quantization, error.message)


@cache
def _operators() -> Mapping[str, Callable[[Walk, Site], AxesView]]:
    """The import function of each Relax operator with an integer op: the `OPERATORS` of every module of this room, and
    lookup tables of other functions of one number."""
    found = (getattr(module, "OPERATORS", {}) for module in modules_of(importer))
    tables = dict.fromkeys((*unary.FUNCTIONS, *unary.WITH_ATTRIBUTES), unary.lookup)
    return tables | {name: operator for operators in found for name, operator in operators.items()}


def _computed_at_once(walk: Walk, site: Site) -> AxesView:
    if isinstance(site.core, relax.Var):
        view = walk.views[site.core]
        if site.core in walk.floats:
            raise NpukitError("the input is read in float too")
        if walk.assembly.quantization(view.name) is None:
            walk.assembly.tensor(view.name, site.shape, "int8", site.quantization)
        return walk.settled(view, site)
    if callee(site.core) in _operators():
        return _operators()[callee(site.core)](walk, site)
    if callee(site.core) in PICKS:
        return walk.settled(walk.islands.moved(site.core), site)
    return walk.settled(padded(walk, site) or walk.activation(site.core), site)
