"""A TFLite model as a Relax module in QDQ form: dequantize, float op, clip, quantize."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from itertools import product
from typing import Any, cast

import numpy as np
from tvm import relax
from tvm.ir import IRModule

from npukit.errors import NpukitError
from npukit.frontend.expressions import dequantize, quantize
from npukit.frontend.fold import FoldingBuilder, constant_of, value_of
from npukit.frontend.shapes import (
    InputShapes,
    StatePair,
    check_input_names,
    closed_shape,
    fixed_values,
    spelled,
    with_batch,
    with_output_names,
    with_remarks,
    with_states,
)
from npukit.frontend.tflite.fields import Operands
from npukit.frontend.tflite.file import DTYPES
from npukit.frontend.tflite.model import COMPLEX, TfliteModel, TfliteOp, TfliteTensor, name_of
from npukit.net.importer.expressions import as_tflite
from npukit.net.limits import check_shape
from npukit.net.tensor import Quantization

operators: Any = relax.op
tensor_type: Any = relax.TensorType
shape_expression: Any = relax.ShapeExpr
"""TVM's functions without their type annotations, which exclude valid arguments."""


@dataclass
class Emitter:
    """Emits the operators of a model for the converters of single ops. Tensors are numbered as in the model."""

    model: TfliteModel
    builder: FoldingBuilder
    values: dict[int, relax.Expr] = field(default_factory=dict)

    def tensor(self, index: int) -> TfliteTensor:
        if index < 0:
            raise NpukitError("it lacks one of its inputs or outputs")
        return self.model.tensors[index]

    def scale(self, index: int) -> Quantization:
        """The scale and zero point of an activation. Raises an error unless there is exactly one scale."""
        quantization = self.tensor(index).quantization
        if quantization is None or quantization.axis is not None:
            raise NpukitError(f"{self.tensor(index).name!r} lacks a scale, or has one for each channel")
        return quantization

    def known(self, index: int) -> np.ndarray | None:
        """The value of a tensor if known at build time, as a constant or from shapes; else None."""
        value = self.tensor(index).value
        return value_of(self.values.get(index)) if value is None else value

    def constant(self, index: int) -> np.ndarray:
        """The value of a tensor. Raises an error unless it is known at build time."""
        if (value := self.known(index)) is None:
            raise NpukitError(f"its input {self.tensor(index).name!r} must be a constant")
        return value

    def integers(self, index: int) -> list[int]:
        """The elements of an integer tensor. Raises an error unless they are known at build time."""
        return [int(value) for value in self.constant(index).ravel()]

    def value(self, index: int) -> relax.Expr:
        """The stored values of a tensor."""
        if index not in self.values:
            self.values[index] = constant_of(self.constant(index))
        return self.values[index]

    def real(self, index: int) -> relax.Expr:
        """The real numbers of a tensor."""
        tensor = self.tensor(index)
        if tensor.quantization is None or tensor.dtype == "float32":
            return self.value(index)
        return self.emit(dequantize(self.value(index), tensor.quantization, tensor.dtype))

    def emit(self, expression: relax.Expr) -> relax.Var:
        """The variable of an expression; a constant if the expression is known at build time."""
        variable = self.builder.emit(expression)
        if isinstance(cast(Any, variable).ty, tensor_type):
            check_shape(self.shape(variable), "what it computes")
        return variable

    def defined(self, expression: Any) -> Any:
        """The call that a variable is bound to; None for other expressions."""
        return self.builder.lookup_binding(expression) if isinstance(expression, relax.Var) else None

    def loops(self, function: Any, data: relax.Expr, name: str, *others: relax.Expr) -> relax.Var:
        """The result of TVM's tensor expressions, for functions without a Relax operator."""
        return self.builder.emit_te(function, data, *others, primfunc_name_hint=name)

    def shape(self, expression: relax.Expr) -> tuple[int, ...]:
        return tuple(int(size) for size in cast(Any, self.builder.normalize(expression).ty).shape)

    def define_real(self, index: int, expression: relax.Expr) -> None:
        """Defines a tensor by an op's result in real numbers, quantised to the tensor's type."""
        tensor = self.tensor(index)
        if tensor.quantization is None or tensor.dtype == "float32":
            self.define(index, expression)
        else:
            self.define(index, quantize(self.emit(expression), tensor.quantization, tensor.dtype))

    def define(self, index: int, expression: relax.Expr) -> None:
        """Defines a tensor by an op's result in stored values."""
        self.values[index] = self.emit(expression)
        value: Any = self.values[index]
        _check_declared(self.tensor(index), self.shape(value), str(value.ty.dtype))

    def fold(self, index: int, value: np.ndarray) -> None:
        """Defines a tensor by a result known at build time."""
        self.define(index, constant_of(value))


class AsStored(Emitter):
    """The emitter for ops that only move values: stored integers are moved instead of real numbers."""

    def real(self, index: int) -> relax.Expr:
        return self.value(index)

    def define_real(self, index: int, expression: relax.Expr) -> None:
        self.define(index, expression)


Converter = Callable[[Emitter, TfliteOp], None]
Converters = Mapping[str, Converter]
"""Functions to emit an op and define the results, by the op's kind."""


def _check_declared(tensor: TfliteTensor, shape: tuple[int, ...], dtype: str) -> None:
    """Raises an error if a tensor's shape or type differs from its declaration. A declared size of 0 is open."""
    shape, dtype = (shape[:-1], COMPLEX) if tensor.dtype == COMPLEX else (shape, dtype)
    declared = tensor.open or tensor.shape
    closed = tuple(stated or size for stated, size in zip(declared, shape, strict=False))
    if tensor.has_shape and not (len(declared) == len(shape) and closed == shape):
        raise NpukitError(f"its result {tensor.name!r} is declared as {list(tensor.shape)}, but is {list(shape)}")
    if tensor.dtype != dtype:
        raise NpukitError(f"its result {tensor.name!r} is declared as {tensor.dtype}, but is {dtype}")


def emit_module(model: TfliteModel, converters: Converters, name: str, input_shapes: InputShapes) -> IRModule:
    """The whole model as function `main`. `converters`: the converter of each kind of op."""
    builder, model = FoldingBuilder(), _opened(model, input_shapes)
    emitter = Emitter(model, builder)
    check_input_names(name, [model.tensors[index].name for index in model.inputs], input_shapes)
    _take_inputs(emitter, name, input_shapes)
    taken: list[Any] = [each for each in emitter.values.values() if isinstance(each, relax.Var)]
    fault: NpukitError | None = None
    with builder.function("main", taken):
        with builder.dataflow():
            try:
                for op in model.ops:
                    _convert(emitter, op, converters, name)
                _refuse_complex(emitter, model.outputs)
                outputs = relax.Tuple([emitter.value(index) for index in model.outputs])
            except NpukitError as error:
                # TVM warns on stderr about an unfinished function.
                fault, outputs = error, relax.Tuple([])
            result = builder.emit_output(outputs)
        builder.emit_func_output(result)
    if fault:
        raise _with_open_inputs(fault, model, input_shapes)
    read: Any = relax.transform.DeadCodeElimination(["main"])(builder.finalize())
    named = with_output_names(as_tflite(builder.titled(read)), [model.tensors[index].name for index in model.outputs])
    first, last = len(taken) - len(model.states), len(model.outputs) - len(model.states)
    named = with_remarks(named, model.remarks)
    return with_states(named, [StatePair(first + at, last + at, s.initial) for at, s in enumerate(model.states)])


def _take_inputs(emitter: Emitter, name: str, input_shapes: InputShapes) -> None:
    """Makes each input a parameter of the function; an input fixed by the user becomes a known value."""
    fixed = fixed_values(input_shapes)
    for index in emitter.model.inputs:
        tensor = emitter.tensor(index)
        if tensor.name not in fixed and (tensor.dtype not in DTYPES.values() or tensor.dtype == "float16"):
            raise NpukitError(f"{name}: input {tensor.name!r} is of {tensor.dtype}, which npukit does not read")
        shape = closed_shape(name, tensor.name, tensor.shape, input_shapes)
        if tensor.name in fixed:
            emitter.fold(index, np.full(shape, fixed[tensor.name], tensor.dtype))
        else:
            emitter.values[index] = relax.Var(tensor.name, tensor_type(shape, tensor.dtype))


def _opened(model: TfliteModel, input_shapes: InputShapes) -> TfliteModel:
    """The model with its open sizes as 0, if the user gives an input another shape than the default. If any input is
    open, declarations without open sizes do not bind, because quantisers add tensors of default sizes."""
    fixed = fixed_values(input_shapes)
    inputs = [model.tensors[index] for index in model.inputs]
    if any(0 in each.open for each in inputs):
        loose = [replace(each, has_shape=each.has_shape and 0 in each.open) for each in model.tensors]
        model = replace(model, tensors=tuple(loose))
    if all(input_shapes.get(each.name, each.shape) == each.shape for each in inputs if each.name not in fixed):
        return model
    return replace(model, tensors=tuple(replace(each, shape=each.open or each.shape) for each in model.tensors))


def _with_open_inputs(fault: NpukitError, model: TfliteModel, input_shapes: InputShapes) -> NpukitError:
    """The error, with a suggestion to state the input sizes left open by file and user."""
    inputs = [model.tensors[index] for index in model.inputs]
    tries = [
        f"say the sizes that {each.name!r} leaves open: --input {each.name}:{spelled(with_batch(each.open))}"
        for each in inputs
        if 0 in each.open[1:] and each.name not in input_shapes
    ]
    return NpukitError(fault.message, tries=[*tries, *fault.tries]) if tries else fault


def _convert(emitter: Emitter, op: TfliteOp, converters: Converters, name: str) -> None:
    """Converts an op. Raises an error unless the converter reads all operands and options and makes all results."""
    emitter.builder.begin_layer(emitter.tensor(op.outputs[0]).name if op.outputs else "")
    _refuse_recurrent(emitter, op, converters, name)
    if op.kind not in converters:
        by_hand = [f"give its C: --custom {name_of(op.kind)}=FILE.c (docs/models.md)"] if name_of(op.kind) else []
        raise NpukitError(
            f"{name}: op {op.index} is {op.kind}, which npukit does not read from TFLite yet",
            tries=[*by_hand, "read are: " + ", ".join(sorted(converters))],
        )
    try:
        if op.kind not in ON_COMPLEX:
            _refuse_complex(emitter, (*op.inputs, *op.outputs))
        inputs, options = Operands(op.inputs), op.options.of(op.kind)
        converters[op.kind](emitter, replace(op, inputs=inputs, options=options))
        if op.kind in COPIES:
            _refuse_rescaling(emitter.model, op)
        options.check_read()
        inputs.check_read()
        if any(index not in emitter.values for index in op.outputs):
            raise NpukitError(f"it has {len(op.outputs)} outputs, more than npukit reads")
    except NpukitError as error:
        raise NpukitError(f"{name}: op {op.index} ({op.kind}): {error.message}", tries=error.tries) from error
    except Exception as error:
        reason = str(error).strip().splitlines()[-1:] or [type(error).__name__]
        raise NpukitError(f"{name}: op {op.index} ({op.kind}) is malformed: {reason[0]}") from error


ON_COMPLEX = ("COMPLEX_ABS", "IMAG", "REAL", "RESHAPE", "RFFT2D")
"""Ops that read or make complex numbers."""


def _refuse_complex(emitter: Emitter, tensors: Iterable[int]) -> None:
    named = [emitter.tensor(index).name for index in tensors if index >= 0 and emitter.tensor(index).dtype == COMPLEX]
    if named:
        raise NpukitError(
            f"{named[0]!r} has complex numbers, which npukit reads between a Fourier transform and its parts"
        )


CHOICES = ("MAXIMUM", "MINIMUM")
"""Ops whose kernels compare the integers of two tensors, constants included, and take one of each pair."""

COPIES = (
    *("AVERAGE_POOL_2D", "BATCH_TO_SPACE_ND", "DEPTH_TO_SPACE", "EXPAND_DIMS", "GATHER", "GATHER_ND", "MAX_POOL_2D"),
    *("MIRROR_PAD", "PACK", "PAD", "PADV2", "RESHAPE", "RESIZE_BILINEAR", "RESIZE_NEAREST_NEIGHBOR", "REVERSE_V2"),
    *("SELECT", "SELECT_V2", "SLICE", "SPACE_TO_BATCH_ND", "SPACE_TO_DEPTH", "SPLIT", "SPLIT_V", "SQUEEZE"),
    *("STRIDED_SLICE", "TILE", "TOPK_V2", "TRANSPOSE", "UNPACK", *CHOICES),
)
"""Ops whose kernels process stored integers regardless of scales."""

SAME_SCALE = 1e-3
"""Largest relative difference between scales taken as equal. It moves no int8 number to another integer."""


def _refuse_rescaling(model: TfliteModel, op: TfliteOp) -> None:
    """Raises an error if integers copied to a result would stand for other numbers there."""
    outputs = [model.tensors[index] for index in op.outputs]
    made = [each for each in outputs if each.dtype == outputs[0].dtype]
    read = [model.tensors[index] for index in op.inputs if index >= 0]
    data = [each for each in read if each.dtype == made[0].dtype and each.quantization is not None]
    moved = [*data[:1], *(each for each in data[1:] if each.value is None or op.kind in CHOICES)]
    for source, result in product(moved, made):
        if not _equal(source.quantization, result.quantization):
            raise NpukitError(
                f"the file says of the same integers that they are {_meaning(source)} and {_meaning(result)}: "
                f"{op.kind} copies them as they are, so that what runtimes make of the file is not the network that it "
                "was converted from",
                tries=[
                    "give the float model, and have it quantised here: --calibration FILE.npz",
                    "or convert it again, with int8 activations instead of int16 ones, or by another converter",
                ],
            )


def _meaning(tensor: TfliteTensor) -> str:
    """The meaning of a tensor's integers, for the text of an error."""
    given = tensor.quantization
    steps = f"steps of {given.scales[0]:.6g} from {given.zero_points[0]}" if given else "plain numbers"
    return f"{steps} ({tensor.name!r})"


def _equal(first: Quantization | None, second: Quantization | None) -> bool:
    if first is None or second is None or first.axis is not None or second.axis is not None:
        return first == second
    return first.zero_points == second.zero_points and abs(first.scale / second.scale - 1) < SAME_SCALE


def _refuse_recurrent(emitter: Emitter, op: TfliteOp, converters: Converters, name: str) -> None:
    in_float = op.kind in converters and emitter.tensor(op.inputs[0]).dtype == "float32"
    if in_float or (op.kind == "UNIDIRECTIONAL_SEQUENCE_LSTM" and emitter.tensor(op.inputs[0]).dtype == "int8"):
        return
    if "LSTM" in op.kind or "RNN" in op.kind:
        raise NpukitError(
            f"{name}: op {op.index} is {op.kind}, whose state has 16 bits or is float; npukit does not read it",
            tries=[
                "convert the layer unrolled: keras.layers.LSTM(..., unroll=True)",
                "or give the float model as ONNX or PyTorch, with --calibration",
            ],
        )
