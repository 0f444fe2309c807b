"""Loads a program with PyTorch and translates it through TVM, with Relax's own quantize and dequantize."""

# pyright: reportMissingImports=false
from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from io import BytesIO
from typing import Any, cast

import numpy as np
import torch
import torch.ao.quantization.fx._decomposed
from torch.export.graph_signature import InputKind, InputSpec, OutputKind, OutputSpec
from tvm import relax
from tvm.ir import IRModule
from tvm.relax.frontend.torch import from_exported_program

from npukit.frontend.expressions import elu, extremes, place
from npukit.frontend.fold import with_folds
from npukit.frontend.pytorch import grouped
from npukit.frontend.pytorch.recurrent import KINDS, recurrent_converters
from npukit.frontend.shapes import StatePair, with_output_names, with_states

operators: Any = relax.op
Known = Mapping[str, np.ndarray]
"""Arrays by name in the program's graph."""
TYPES = {torch.int8: "int8", torch.uint8: "uint8", torch.int16: "int16", torch.int32: "int32"}


def translated(archive: BytesIO) -> IRModule:
    """The program in a checked archive, from `checked_archive`, as a Relax module."""
    table = torch.export.default_decompositions()
    for kind in (*KINDS, torch.ops.aten.pad.default):
        table.pop(kind, None)
    with grouped.defined():
        program = torch.export.load(archive).run_decompositions(table)
        known = _constants(program)
        kept = _changed_buffers(program)
        made = from_exported_program(program, custom_convert_map=_converters(known), run_ep_decomposition=False)
    module = with_folds(made)
    names = [parameter.name for parameter in cast(Any, module["main"]).params]
    results = [spec.arg.name for spec in program.graph_signature.output_specs]
    pairs = [StatePair(names.index(name), results.index(becomes), known[name]) for name, becomes in kept.items()]
    return with_states(with_output_names(module, results), pairs)


def _converters(known: Known) -> dict[str, Any]:
    """The translations of operators that TVM lacks or translates otherwise."""
    return {
        **{
            f"{kind}_per_{extent}.default": partial(_quantize, known, kind == "dequantize")
            for kind in ("quantize", "dequantize")
            for extent in ("tensor", "channel")
        },
        "elu.default": _elu,
        "pad.default": _pad,
        "select.int": _select,
        "amax.default": partial(_extreme, operators.max),
        "amin.default": partial(_extreme, operators.min),
        **dict.fromkeys(("max.dim", "topk.default"), partial(_largest, True)),
        "min.dim": partial(_largest, False),
        **recurrent_converters(known),
        **grouped.converters(known),
    }


def _changed_buffers(program: torch.export.ExportedProgram) -> dict[str, str]:
    """Turns buffers changed by the program into ordinary inputs and outputs. Returns the name of the output with the
    new value, by the buffer's name as an input."""
    inputs, results = program.graph_signature.input_specs, program.graph_signature.output_specs
    held = {spec.target: spec.arg.name for spec in inputs if spec.kind == InputKind.BUFFER}
    changes = [spec for spec in results if spec.kind == OutputKind.BUFFER_MUTATION]
    kept = {held[spec.target]: spec.arg.name for spec in changes if spec.target in held}
    for number, spec in enumerate(inputs):
        if spec.arg.name in kept:
            inputs[number] = InputSpec(InputKind.USER_INPUT, spec.arg, None)
    for number, spec in enumerate(results):
        if spec.kind == OutputKind.BUFFER_MUTATION:
            results[number] = OutputSpec(OutputKind.USER_OUTPUT, spec.arg, None)
    return kept


def _constants(program: torch.export.ExportedProgram) -> Known:
    """The graph's inputs that are arrays of the program, by name."""
    arrays: dict[Any, Any] = {**program.state_dict, **program.constants}
    specs = [spec for spec in program.graph_signature.input_specs if spec.target in arrays]
    return {spec.arg.name: arrays[spec.target].detach().cpu().numpy() for spec in specs}


def _elu(node: Any, importer: Any) -> relax.Var:
    """ELU, SELU and CELU. TVM's converter leaves out both scales."""
    data, *factors = node.args
    return importer.block_builder.emit(elu(importer.env[data], *map(float, factors)))


def _pad(node: Any, importer: Any) -> relax.Var:
    """Padding, the last axis first. Negative amounts crop."""
    data, amounts, *rest = node.args
    mode, value = (*rest, *("constant", None)[len(rest) :])
    shape = importer.env[data].ty.shape
    widths = [[0, 0]] * (len(shape) - len(amounts) // 2) + np.reshape(amounts, (-1, 2))[::-1].tolist()
    around = [max(width, 0) for pair in widths for width in pair]
    padded = importer.block_builder.emit(operators.nn.pad(importer.env[data], around, mode, float(value or 0)))
    if min(amounts) >= 0:
        return padded
    cropped = [axis for axis, pair in enumerate(widths) if min(pair) < 0]
    begins = [max(-widths[axis][0], 0) for axis in cropped]
    ends = [padded.ty.shape[axis] - max(-widths[axis][1], 0) for axis in cropped]
    return importer.block_builder.emit(operators.strided_slice(padded, cropped, begins, ends))


def _select(node: Any, importer: Any) -> relax.Var:
    """Selects an index of an axis. TVM's converter reads beyond the end for a negative index."""
    data, axis, index = node.args
    return place(importer.block_builder, importer.env[data], axis, index)


def _extreme(function: Any, node: Any, importer: Any) -> relax.Var:
    """The largest or least value along the given axes, or along all axes if none are given."""
    data, *rest = node.args
    axes, keep = (*rest, *([], False)[len(rest) :])
    return importer.block_builder.emit(function(importer.env[data], axes or None, keep))


def _largest(most: bool, node: Any, importer: Any) -> relax.Tuple:
    """The largest or least numbers along an axis and their indices, for `topk`, `max` and `min`."""
    data, *rest = node.args
    builder, value = importer.block_builder, importer.env[data]
    if node.target.__name__ == "topk.default":
        count, axis, largest, *_ = (*rest, *(-1, True, True)[len(rest) - 1 :])
        values, places = extremes(builder, value, count, axis, largest=bool(largest))
    else:
        axis, keep = (*rest, False)[:2]
        values, places = extremes(builder, value, 1, axis, largest=most)
        if not keep:
            values, places = (builder.emit(operators.squeeze(each, [axis])) for each in (values, places))
    return relax.Tuple([values, builder.emit(operators.astype(places, "int64"))])


def _quantize(known: Known, is_inverse: bool, node: Any, importer: Any) -> relax.Var:
    """Relax's own operator. The zero point has the type of the integers."""
    data = importer.env[node.args[0]]
    dtype = str(data.ty.dtype) if is_inverse else TYPES[node.args[-1]]
    scale, zero_point = (known[value.name] if isinstance(value, torch.fx.Node) else value for value in node.args[1:3])
    zero_points = np.asarray(0 if zero_point is None else zero_point)
    ends = relax.const(np.asarray(scale, np.float32)), relax.const(zero_points.astype(dtype))
    axis = int(node.args[3]) if "per_channel" in str(node.target) else -1
    if is_inverse:
        return importer.block_builder.emit(operators.dequantize(data, *ends, axis=axis))
    return importer.block_builder.emit(operators.quantize(data, *ends, axis=axis, out_dtype=dtype))
