"""Loads a model file, int8 or float, as a Net. TVM's own pass finds the patterns of plug-ins."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from tvm.ir import IRModule
from tvm.relax.transform import FuseOpsByPattern, FusionPattern

from npukit.application.apply import AS_NET, Ends, applied
from npukit.application.declared import NOTHING, Declared, Layout
from npukit.application.inputs import by_name, real_numbers, sensor_shape
from npukit.dump import dumped
from npukit.errors import NpukitError, nearest
from npukit.frontend.models import import_model, layout_of, name_of
from npukit.frontend.shapes import InputShapes, StatePair, output_names, remarks_of, states_of
from npukit.net.check import check_net
from npukit.net.importer import is_dynamic, is_float, net_and_views, net_from_relax
from npukit.net.importer.expressions import dtype_of, shape_of
from npukit.net.importer.given import has_given
from npukit.net.net import Net
from npukit.net.passes.output_names import with_output_names
from npukit.net.passes.states import Pair, with_states
from npukit.quantize.calibration import Calibration, WantedInput, load_calibration
from npukit.quantize.canonical import canonical
from npukit.quantize.choose import of_range
from npukit.quantize.floors import Floors, deep_softmaxes, floors, least_peaks
from npukit.quantize.four_bits import four_bits
from npukit.quantize.function import outputs, parameters
from npukit.quantize.observe import ObservedRange, extremes, percentiles, runner
from npukit.quantize.points import Points
from npukit.quantize.report import Layer, Report, compare
from npukit.quantize.rewrite import QdqModule, rewrite
from npukit.quantize.scales import Quantizer, in_turn, quantised
from npukit.quantize.spread import NO_FACTORS, Factors, channel_peaks, read_by_dense, read_in_float, spread
from npukit.quantize.states import Frames, Names, choose_tied, frames, with_named_states
from npukit.quantize.wide import Wide

INT4 = "int4"
OMITTED = {"minmax": 0.0, "percentile": 1e-4}
"""Fraction of all values that a range omits at either end."""


@dataclass(frozen=True)
class OwnImport:
    """The contribution of plug-ins to the import (`accel/interface.py`): Relax passes, quantizers, patterns."""

    relax: Sequence[Callable[[IRModule], IRModule]] = ()
    quantizers: Sequence[Quantizer] = ()
    patterns: Patterns = ()


@dataclass(frozen=True)
class KeptLayers:
    """The layers that stay in float in a network quantised here, by their names in the int8 network. Dense layers read
    the layers `in_int16` in 16 bits."""

    in_float: Sequence[str] = ()
    in_int16: Sequence[str] = ()


@dataclass(frozen=True)
class Loaded:
    """A model as a Net. `report`: present if npukit quantised the model. `remarks`: on the import, for the user."""

    net: Net
    report: Report | None = None
    remarks: tuple[str, ...] = ()


def load_model(
    path: Path,
    *,
    input_shapes: InputShapes | None = None,
    states: Names = (),
    custom: Mapping[str, str] | None = None,
    calibration: Path | None = None,
    ranges: str = "minmax",
    declared: Declared = NOTHING,
    in_file_types: bool = False,
    in_float: bool = False,
    keep_float: Sequence[str] = (),
    keep_int16: Sequence[str] = (),
    weights: str = "int8",
    own: OwnImport = OwnImport(),
) -> Loaded:
    """The network of a model file, with the declarations of inputs and outputs compiled in.

    A float model is quantised with the calibration data, or computed in float. The calibration data have the form of
    the network's inputs. `in_file_types`: inputs and outputs that are float in the file are float in the network too.
    `weights`: `int4` for 4 bits in each layer that bears them. `own`: contribution of plug-ins.
    """
    as_stored = calibration is None and not in_float
    read = import_model(path, input_shapes=input_shapes, custom=custom, dynamic=as_stored)
    module = with_named_states(read, states, path.name)
    for each in own.relax:
        module = each(module)
    dumped("relax.py", module.script)
    layout, keep = layout_of(path), KeptLayers(keep_float, keep_int16)
    if calibration is None and keep != KeptLayers():
        option = "--keep-float" if keep_float else "--keep-int16"
        raise NpukitError(f"{option} is for a model that is quantised here", tries=["give --calibration"])
    if calibration is None and weights == INT4:
        raise NpukitError("--weights int4 is for a model that is quantised here", tries=["give --calibration"])
    aims = ranges, weights
    loaded = _loaded(module, path, calibration, aims, (declared, layout), in_float, keep, own)
    net = with_output_names(loaded.net, output_names(module))
    net = with_states(net, [_pair(net, each) for each in states_of(module)])
    net = applied(check_net(net), declared, layout, _file_types(module, layout) if in_file_types else AS_NET)
    return replace(loaded, net=net, remarks=remarks_of(module))


def _pair(net: Net, state: StatePair) -> Pair:
    """The indices of a state's input and output, and the initial value, quantised if the network's input is."""
    quantization, initial = net.tensor(net.inputs[state.input]).quantization, state.initial
    if quantization is not None and initial.dtype == np.float32:
        initial = quantised(initial, quantization)
    return state.input, state.output, initial


def _file_types(module: IRModule, layout: Layout) -> Ends:
    """The types of inputs and outputs in the file, without states. Channels-last files round like TensorFlow Lite."""
    left = {state.output for state in states_of(module)}
    results = [dtype_of(each) for place, each in enumerate(outputs(module)) if place not in left]
    return Ends(tuple(map(dtype_of, _inputs(module))), tuple(results), away=layout == "NHWC")


def _inputs(module: IRModule) -> list[Any]:
    """The parameters of the module without states."""
    kept = {state.input for state in states_of(module)}
    return [each for place, each in enumerate(parameters(module)) if place not in kept]


def _loaded(
    module: IRModule,
    path: Path,
    calibration: Path | None,
    aims: tuple[str, str],
    sensed: tuple[Declared, Layout],
    in_float: bool,
    keep: KeptLayers,
    own: OwnImport,
) -> Loaded:
    """The network as stored in the file, or quantised."""
    name = name_of(path)
    if not in_float and calibration is None:
        read = canonical(module) if is_dynamic(module) else module  # dynamic values are computed between floats
        return Loaded(net_from_relax(read, name, matched=matched(read, own.patterns)))
    if not is_float(module):
        raise NpukitError(f"{path.name} is quantised already", tries=["leave --calibration and --float out"])
    if calibration is None:
        return Loaded(net_from_relax(canonical(module), name, in_float=True))
    if has_given(module):
        raise NpukitError(f"{path.name} has ops that are given as C, which calibration does not run", tries=["--float"])
    if in_float:
        raise NpukitError("--calibration is for int8, --float for none", tries=["give one of them"])
    wanted = [WantedInput(each.name, shape_of(each), dtype_of(each)) for each in _inputs(module)]
    data, quantizer = _model_inputs(calibration, wanted, *sensed, name), in_turn(own.quantizers)
    ranges, weights = aims
    narrow = weights == INT4
    return quantize_module(module, name, data, OMITTED[ranges], keep, quantizer, own.patterns, narrow=narrow)


def _model_inputs(
    path: Path, wanted: Sequence[WantedInput], declared: Declared, layout: Layout, name: str
) -> Calibration:
    """The calibration data in the model's form. The file holds the sensor's form."""
    known = by_name(declared.input, name, [each.name for each in wanted])
    sensed = [
        WantedInput(each.name, sensor_shape(known[each.name], each.shape, layout), known[each.name].type or each.dtype)
        if each.name in known
        else each
        for each in wanted
    ]
    data = load_calibration(path, sensed)
    seen = (
        real_numbers(known[each.name], array, each.shape, layout) if each.name in known else array
        for each, array in zip(wanted, data.inputs, strict=True)
    )
    return replace(data, inputs=tuple(seen))


def quantize_module(
    module: IRModule,
    name: str,
    data: Calibration,
    cut: float,
    keep: KeptLayers,
    quantizer: Quantizer,
    patterns: Patterns,
    *,
    narrow: bool = False,
) -> Loaded:
    """Quantises a float module to an int8 network. `cut`: fraction of all values that a range omits at either end.
    `narrow`: weights of 4 bits in the layers that bear them."""
    states, points = states_of(module), Points(canonical(module), quantizer).find()
    points.weights = four_bits(points, data, states) if narrow else {}
    order = points.in_order()
    seen = frames(points.module, [*order, outputs(points.module)[0]], data, states)
    found, lowest = _ranges(seen, points, cut)
    chosen = choose_tied(points, found, states)
    net, layers = _network(rewrite(points, chosen, lowest), name, order, patterns)
    if keep != KeptLayers():
        in_int16 = dict(zip(keep.in_int16, _named(points, layers, keep.in_int16, name), strict=True))
        kept = [*_named(points, layers, keep.in_float, name), *in_int16.values()]
        wide, shared = Wide.of(points, kept, in_int16), read_by_dense(points, kept)
        read = [each for each in read_in_float(points, kept) if each not in wide.sums]
        factors, ranges = spread(channel_peaks(seen.values, order, [*read, *shared]), shared)
        divided = {each: of_range(points, each, around) for each, around in ranges.items()}
        written = rewrite(points, {**chosen, **divided}, lowest, kept, factors, wide)
        net, layers = _network(written, name, order, patterns, kept, factors)
    cases = ((_as_integers(net, inputs), _layer_values(order, layers, values, lowest)) for inputs, values in seen)
    return Loaded(net, compare(net, list(layers.values()), cases, data.labels))


def _ranges(seen: Frames, points: Points, cut: float) -> tuple[dict[Any, ObservedRange], Floors]:
    """The ranges of the quantised variables, and the floors of all."""
    order, whole = points.in_order(), extremes(seen.values)
    found = dict(zip(order, whole, strict=False))
    deep = deep_softmaxes(points, found)
    calls = [points.values[each] for each in deep]
    least = least_peaks(replace(seen, run=runner(points.module, [call.args[0] for call in calls])).values, calls)
    lowest = floors(points, found, dict(zip(deep, least, strict=True)))
    found = lowest.ranges(found)
    if cut:
        trimmed = percentiles(seen.values, [*found.values(), whole[-1]], cut)
        found = dict(zip(order, trimmed, strict=False))
    return found, lowest


def _as_integers(net: Net, inputs: Sequence[np.ndarray]) -> list[np.ndarray]:
    """Float inputs in the types of the net's inputs."""
    kinds = (net.tensor(name).quantization for name in net.inputs)
    return [array if kind is None else quantised(array, kind) for array, kind in zip(inputs, kinds, strict=True)]


def _layer_values(order: Sequence[Any], layers: Any, values: list[np.ndarray], lowest: Floors) -> list[np.ndarray]:
    """The float values of the layers, then of the first output."""
    seen = zip(order, lowest.values(order, values[:-1]), strict=True)
    return [value for each, value in seen if each in layers] + values[-1:]


def _network(
    written: QdqModule,
    name: str,
    order: Sequence[Any],
    patterns: Patterns,
    kept: Collection[Any] = (),
    factors: Factors = NO_FACTORS,
) -> tuple[Net, dict[Any, Layer]]:
    """The network, and its layers by float variable."""
    in_float = frozenset(written.integers[each] for each in kept if each in written.integers)
    net, views = net_and_views(written.module, name, kept=in_float, matched=matched(written.module, patterns))
    made, layers = {op.output for op in net.ops}, dict[Any, Layer]()
    for variable in order:
        view: Any = views[written.integers[variable]] if variable in written.integers else None
        if view is not None and view.name in made:
            layers[variable] = Layer(view.name, tuple(map(int, np.argsort(view.order))), factors.get(variable))
    return net, layers


def _named(points: Points, layers: dict[Any, Layer], names: Sequence[str], model: str) -> list[Any]:
    """The variables of the named layers and inputs."""
    known = {layer.name: variable for variable, layer in layers.items()}
    known |= {each.name: each for each in parameters(points.module) if each in points.quantised}
    unknown = [name for name in names if name not in known]
    if unknown:
        tries = [*nearest(unknown[0], known), "its layers are: " + ", ".join(known)]
        raise NpukitError(f"{model} has no layer {unknown[0]!r}", tries=tries)
    return [known[name] for name in names]


Patterns = Sequence[tuple[Any, ...]]
"""Patterns for `FuseOpsByPattern`, each a tuple: a name, a pattern, and optionally annotations and a check."""


def matched(module: IRModule, patterns: Patterns) -> dict[Any, str]:
    """The match of each matched expression of `main`: the pattern's name and a number. The module is unchanged, because
    npukit forms the matched ops only later. If matches overlap, the earlier pattern's match counts, as in the pass."""
    found: dict[Any, str] = {}
    for number, (name, matches) in enumerate(_matches(module, patterns)):
        expressions = list(matches.values())
        if not any(expression in found for expression in expressions):
            found |= dict.fromkeys(expressions, f"{name} {number}")
    return found


def _matches(module: IRModule, patterns: Patterns) -> Iterator[tuple[str, Mapping[Any, Any]]]:
    """The name of each matching pattern, and the matched bindings."""
    for name, pattern, *rest in patterns:
        annotations, check = (*rest, None, None)[:2]
        seen: list[Mapping[Any, Any]] = []
        FuseOpsByPattern([FusionPattern(name, pattern, annotations, _seen_by(check, seen))])(module)
        yield from ((name, each) for each in seen)


def _seen_by(check: Callable[[Any], bool] | None, seen: list[Mapping[Any, Any]]) -> Callable[[Any], bool]:
    """A check that records the bindings accepted by `check` and rejects every match. The pass then changes nothing."""

    def checked(context: Any) -> bool:
        if check is None or check(context):
            seen.append(dict(context.matched_bindings.items()))
        return False

    return checked
