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

from npukit.frontend.largest import extremes
from npukit.frontend.places import place
from npukit.frontend.pytorch.recurrent import KINDS, recurrent_converters
from npukit.frontend.states import StatePair, with_output_names, with_states

operators: Any = relax.op
Known = Mapping[str, np.ndarray]
"""Arrays by name in the program's graph."""
TYPES = {torch.int8: "int8", torch.uint8: "uint8", torch.int16: "int16", torch.int32: "int32"}


def translated(archive: BytesIO) -> IRModule:
    """The program in a checked archive, from `checked_archive`, as a Relax module."""
    table = torch.export.default_decompositions()
    for kind in KINDS:
        table.pop(kind, None)
    program = torch.export.load(archive).run_decompositions(table)
    known = _constants(program)
    converters = {
        **dict.fromkeys(("quantize_per_tensor.default", "quantize_per_channel.default"), partial(_quantize, known)),
        "select.int": _select,
        "amax.default": partial(_extreme, operators.max),
        "amin.default": partial(_extreme, operators.min),
        **dict.fromkeys(("max.dim", "topk.default"), partial(_largest, True)),
        "min.dim": partial(_largest, False),
        **recurrent_converters(known),
        **dict.fromkeys(
            ("dequantize_per_tensor.default", "dequantize_per_channel.default"), partial(_dequantize, known)
        ),
    }
    kept = _mutated(program)
    _as_ends(program, kept)
    module = from_exported_program(program, custom_convert_map=converters, run_ep_decomposition=False)
    names = [parameter.name for parameter in cast(Any, module["main"]).params]
    results = [spec.arg.name for spec in program.graph_signature.output_specs]
    pairs = [StatePair(names.index(name), results.index(becomes), known[name]) for name, becomes in kept.items()]
    return with_states(with_output_names(module, results), pairs)


def _mutated(program: torch.export.ExportedProgram) -> dict[str, str]:
    """The buffers that the program changes: by name as an input, the name of the output with the new value."""
    signature = program.graph_signature
    held = {spec.target: spec.arg.name for spec in signature.input_specs if spec.kind == InputKind.BUFFER}
    changes = [spec for spec in signature.output_specs if spec.kind == OutputKind.BUFFER_MUTATION]
    return {held[spec.target]: spec.arg.name for spec in changes if spec.target in held}


def _as_ends(program: torch.export.ExportedProgram, kept: Mapping[str, str]) -> None:
    """Turns changed buffers into ordinary inputs and outputs."""
    signature = program.graph_signature
    for number, spec in enumerate(signature.input_specs):
        if spec.arg.name in kept:
            signature.input_specs[number] = InputSpec(InputKind.USER_INPUT, spec.arg, None)
    for number, spec in enumerate(signature.output_specs):
        if spec.kind == OutputKind.BUFFER_MUTATION:
            signature.output_specs[number] = OutputSpec(OutputKind.USER_OUTPUT, spec.arg, None)


def _constants(program: torch.export.ExportedProgram) -> Known:
    """The graph's inputs that are arrays of the program, by name."""
    arrays: dict[Any, Any] = {**program.state_dict, **program.constants}
    specs = [spec for spec in program.graph_signature.input_specs if spec.target in arrays]
    return {spec.arg.name: arrays[spec.target].detach().cpu().numpy() for spec in specs}


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


def _quantize(known: Known, node: Any, importer: Any) -> relax.Var:
    dtype = TYPES[node.args[-1]]
    data, constants = importer.env[node.args[0]], _ends(known, node, dtype)
    return importer.block_builder.emit(operators.quantize(data, *constants, axis=_axis(node), out_dtype=dtype))


def _dequantize(known: Known, node: Any, importer: Any) -> relax.Var:
    data = importer.env[node.args[0]]
    constants = _ends(known, node, str(data.ty.dtype))
    return importer.block_builder.emit(operators.dequantize(data, *constants, axis=_axis(node)))


def _ends(known: Known, node: Any, dtype: str) -> tuple[relax.Expr, relax.Expr]:
    """Scale and zero point as constants. Relax requires the zero point in the type of the integers."""
    scale, zero_point = (known[value.name] if isinstance(value, torch.fx.Node) else value for value in node.args[1:3])
    zero_points = np.asarray(0 if zero_point is None else zero_point)
    return relax.const(np.asarray(scale, np.float32)), relax.const(zero_points.astype(dtype))


def _axis(node: Any) -> int:
    return int(node.args[3]) if "per_channel" in str(node.target) else -1
