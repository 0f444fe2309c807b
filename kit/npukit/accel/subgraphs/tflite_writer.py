"""The bytes of a TFLite model: its tensors and operators, and the tables of TFLite's schema."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import flatbuffers
import numpy as np
import tflite

from npukit.net.net import Net, Op
from npukit.net.tensor import Quantization, Tensor

_TYPES = {name: getattr(tflite.TensorType, name.upper()) for name in ("int8", "uint8", "int16", "int32", "float32")}


@dataclass(frozen=True)
class Operator:
    """An operator by TFLite's names; `table` is that of its options, without `Options`."""

    code: str
    inputs: Sequence[str]
    output: str
    table: str
    options: Mapping[str, int | float | bool]


@dataclass
class Model:
    """The tensors of a net and those that only TFLite needs, and the operators in order."""

    net: Net
    tensors: dict[str, Tensor] = field(default_factory=dict)
    constants: dict[str, np.ndarray] = field(default_factory=dict)
    operators: list[Operator] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.tensors |= self.net.tensors
        self.constants |= self.net.constants

    def add(
        self, code: str, inputs: Sequence[str], output: str, table: str = "", **options: int | float | bool
    ) -> None:
        self.operators.append(Operator(code, inputs, output, table or _table(code), options))

    def numbers(self, op: Op, what: str, values: Any) -> str:
        """A constant of int32, of which the net knows nothing."""
        array = np.array(values, np.int32)
        return self.constant(Tensor(f"{op.name} {what}", array.shape, "int32"), array)

    def constant(self, tensor: Tensor, value: np.ndarray) -> str:
        self.constants[tensor.name] = value
        return self.between(tensor)

    def between(self, tensor: Tensor) -> str:
        self.tensors[tensor.name] = tensor
        return tensor.name


def _table(code: str) -> str:
    return "".join(word.capitalize() for word in code.split("_")).replace("2d", "2D")


class Writer:
    """Bytes of a model: the tables of TFLite's schema, from the inside out."""

    def __init__(self, model: Model) -> None:
        self._model, self._builder = model, flatbuffers.Builder(1024)
        self._index = {name: number for number, name in enumerate(model.tensors)}
        self._codes = sorted({each.code for each in model.operators})

    def finish(self) -> bytes:
        builder, net = self._builder, self._model.net
        codes = self._tables([self._code(code) for code in self._codes])
        values = [None, *(self._model.constants.get(name) for name in self._index)]
        buffers = self._tables([self._buffer(value) for value in values])
        tensors = self._tables([self._tensor(each) for each in self._model.tensors.values()])
        operators = self._tables([self._operator(each) for each in self._model.operators])
        inputs, outputs = (self._places(names) for names in (net.inputs, net.outputs))
        tflite.SubGraphStart(builder)
        tflite.SubGraphAddTensors(builder, tensors)
        tflite.SubGraphAddInputs(builder, inputs)
        tflite.SubGraphAddOutputs(builder, outputs)
        tflite.SubGraphAddOperators(builder, operators)
        graphs = self._tables([tflite.SubGraphEnd(builder)])
        tflite.ModelStart(builder)
        tflite.ModelAddVersion(builder, 3)
        tflite.ModelAddOperatorCodes(builder, codes)
        tflite.ModelAddSubgraphs(builder, graphs)
        tflite.ModelAddBuffers(builder, buffers)
        builder.Finish(tflite.ModelEnd(builder), file_identifier=b"TFL3")
        return bytes(builder.Output())

    def _tables(self, tables: Sequence[int]) -> int:
        self._builder.StartVector(4, len(tables), 4)
        for table in reversed(tables):
            self._builder.PrependUOffsetTRelative(table)
        return self._builder.EndVector()

    def _numbers(self, values: Sequence[int] | Sequence[float], dtype: str) -> int:
        return self._builder.CreateNumpyVector(np.array(values, dtype))

    def _places(self, names: Sequence[str]) -> int:
        return self._numbers([self._index[name] for name in names], "int32")

    def _code(self, code: str) -> int:
        number = getattr(tflite.BuiltinOperator, code)
        tflite.OperatorCodeStart(self._builder)
        tflite.OperatorCodeAddDeprecatedBuiltinCode(self._builder, min(number, 127))
        tflite.OperatorCodeAddBuiltinCode(self._builder, number)
        tflite.OperatorCodeAddVersion(self._builder, 1)
        return tflite.OperatorCodeEnd(self._builder)

    def _buffer(self, value: np.ndarray | None) -> int:
        data = None if value is None else self._builder.CreateByteVector(np.ascontiguousarray(value).tobytes())
        tflite.BufferStart(self._builder)
        if data is not None:
            tflite.BufferAddData(self._builder, data)
        return tflite.BufferEnd(self._builder)

    def _tensor(self, tensor: Tensor) -> int:
        name, shape = self._builder.CreateString(tensor.name), self._numbers(tensor.shape, "int32")
        known = self._quantization(tensor.quantization) if tensor.quantization else None
        tflite.TensorStart(self._builder)
        tflite.TensorAddShape(self._builder, shape)
        tflite.TensorAddType(self._builder, _TYPES[tensor.dtype])
        tflite.TensorAddBuffer(self._builder, self._index[tensor.name] + 1)
        tflite.TensorAddName(self._builder, name)
        if known is not None:
            tflite.TensorAddQuantization(self._builder, known)
        return tflite.TensorEnd(self._builder)

    def _quantization(self, known: Quantization) -> int:
        scales, zeros = self._numbers(known.scales, "float32"), self._numbers(known.zero_points, "int64")
        tflite.QuantizationParametersStart(self._builder)
        tflite.QuantizationParametersAddScale(self._builder, scales)
        tflite.QuantizationParametersAddZeroPoint(self._builder, zeros)
        tflite.QuantizationParametersAddQuantizedDimension(self._builder, known.axis or 0)
        return tflite.QuantizationParametersEnd(self._builder)

    def _operator(self, operator: Operator) -> int:
        inputs, outputs = self._places(operator.inputs), self._places([operator.output])
        options = self._options(operator)
        tflite.OperatorStart(self._builder)
        tflite.OperatorAddOpcodeIndex(self._builder, self._codes.index(operator.code))
        tflite.OperatorAddInputs(self._builder, inputs)
        tflite.OperatorAddOutputs(self._builder, outputs)
        kind = getattr(tflite.BuiltinOptions, f"{operator.table}Options")
        tflite.OperatorAddBuiltinOptionsType(self._builder, kind)
        tflite.OperatorAddBuiltinOptions(self._builder, options)
        return tflite.OperatorEnd(self._builder)

    def _options(self, operator: Operator) -> int:
        getattr(tflite, f"{operator.table}OptionsStart")(self._builder)
        for key, value in operator.options.items():
            getattr(tflite, f"{operator.table}OptionsAdd{key}")(self._builder, value)
        return getattr(tflite, f"{operator.table}OptionsEnd")(self._builder)
