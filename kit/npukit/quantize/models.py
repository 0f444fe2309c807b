"""Loads a model file, int8 or float, as a Net. TVM's own pass finds the patterns of plug-ins."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from tvm.ir import IRModule

from npukit.application.apply import AS_NET, Ends, applied
from npukit.application.declared import NOTHING, Declared, Layout
from npukit.application.inputs import by_name, real_numbers, sensor_shape
from npukit.dump import dumped
from npukit.errors import NpukitError
from npukit.frontend.models import import_model, layout_of, name_of
from npukit.frontend.patterns import Patterns, matched
from npukit.frontend.shapes import InputShapes, StatePair, output_names, remarks_of, states_of
from npukit.net.check import check_net
from npukit.net.importer import is_dynamic, is_float, net_from_relax
from npukit.net.importer.expressions import dtype_of, shape_of
from npukit.net.importer.given import has_given
from npukit.net.net import Net
from npukit.net.passes.output_names import with_output_names
from npukit.net.passes.states import Pair, with_states
from npukit.quantize.attempt import FloatModel
from npukit.quantize.calibration import Calibration, WantedInput, load_calibration
from npukit.quantize.canonical import canonical
from npukit.quantize.function import outputs, parameters
from npukit.quantize.report import Report
from npukit.quantize.scales import Quantizer, in_turn, quantised
from npukit.quantize.states import Names, with_named_states
from npukit.quantize.target.search import quantise
from npukit.quantize.target.treatment import KeptLayers

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
class Loaded:
    """A model as a Net. `report`: present if npukit quantised the model. `remarks`: on the import, for the user."""

    net: Net
    report: Report | None = None
    remarks: tuple[str, ...] = ()


@dataclass(frozen=True)
class Aims:
    """Wishes for the quantisation of a float model. `cut`: fraction of all values that a range omits at either end.
    `narrow`: weights of 4 bits. `target_db`: necessary signal-to-error ratio of the outputs; 0 for none."""

    calibration: Path | None
    cut: float
    keep: KeptLayers
    narrow: bool
    target_db: float

    @property
    def options(self) -> list[str]:
        """The given options that need calibration."""
        given = {
            "--keep-float": self.keep.in_float,
            "--keep-int16": self.keep.in_int16,
            "--weights int4": self.narrow,
        }
        return [option for option, value in given.items() if value]


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
    target_db: float = 0,
    own: OwnImport = OwnImport(),
) -> Loaded:
    """The network of a model file, with the declarations of inputs and outputs compiled in.

    A float model is quantised with the calibration data, or computed in float. The calibration data have the form of
    the network's inputs. `in_file_types`: inputs and outputs that are float in the file are float in the network too.
    `weights`: `int4` for 4 bits in each layer that bears them. `target_db`: necessary signal-to-error ratio of the
    outputs on calibration data held back; 0 for none. `own`: contribution of plug-ins.
    """
    as_stored = calibration is None and not in_float
    read = import_model(path, input_shapes=input_shapes, custom=custom, dynamic=as_stored)
    module = with_named_states(read, states, path.name)
    for each in own.relax:
        module = each(module)
    dumped("relax.py", module.script)
    layout, keep = layout_of(path), KeptLayers(keep_float, keep_int16)
    aims = Aims(calibration, OMITTED[ranges], keep, weights == INT4, target_db)
    if calibration is None and aims.options:
        option = aims.options[0]
        raise NpukitError(f"{option} is for a model that is quantised here", tries=["give --calibration"])
    loaded = _loaded(module, path, aims, (declared, layout), in_float, own)
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
    module: IRModule, path: Path, aims: Aims, sensed: tuple[Declared, Layout], in_float: bool, own: OwnImport
) -> Loaded:
    """The network as stored in the file, or quantised."""
    name, calibration = name_of(path), aims.calibration
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
    model = FloatModel(module, name, data, aims.cut, quantizer, own.patterns, aims.narrow)
    found = quantise(model, aims.keep, aims.target_db)
    return Loaded(found.net, found.report)


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
