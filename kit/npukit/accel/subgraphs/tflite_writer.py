"""The bytes of a TFLite model: tensors, operators, and the tables of TFLite's schema."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import flatbuffers
import numpy as np
import tflite

from npukit.net.net import Net, Op
from npukit.net.tensor import Tensor

_TYPES = {name: getattr(tflite.TensorType, name.upper()) for name in ("int8", "uint8", "int16", "int32", "float32")}


@dataclass(frozen=True)
class Operator:
    """An operator by TFLite's names. `table`: the name of the options table, without `Options`."""

    code: str
    inputs: Sequence[str]
    output: str
    table: str
    options: Mapping[str, int | float | bool]


@dataclass
class Model:
    """The tensors of a net, additional tensors for TFLite, and the operators in order."""

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
        """An int32 constant that is not in the net."""
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


class Tables:
    """Builders of tables in TFLite's schema, independent of `Model`. Flatbuffers are built from the inside out."""

    def __init__(self) -> None:
        self.builder = flatbuffers.Builder(1024)

    def vector(self, tables: Sequence[int]) -> int:
        self.builder.StartVector(4, len(tables), 4)
        for table in reversed(tables):
            self.builder.PrependUOffsetTRelative(table)
        return self.builder.EndVector()

    def numbers(self, values: Sequence[int] | Sequence[float], dtype: str = "int32") -> int:
        return self.builder.CreateNumpyVector(np.array(values, dtype))

    def model(self, codes: Sequence[int], graphs: Sequence[int], buffers: Sequence[int]) -> bytes:
        vectors = [self.vector(tables) for tables in (codes, graphs, buffers)]
        tflite.ModelStart(self.builder)
        tflite.ModelAddVersion(self.builder, 3)
        tflite.ModelAddOperatorCodes(self.builder, vectors[0])
        tflite.ModelAddSubgraphs(self.builder, vectors[1])
        tflite.ModelAddBuffers(self.builder, vectors[2])
        self.builder.Finish(tflite.ModelEnd(self.builder), file_identifier=b"TFL3")
        return bytes(self.builder.Output())

    def graph(
        self, tensors: Sequence[int], inputs: Sequence[int], outputs: Sequence[int], operators: Sequence[int]
    ) -> int:
        """A subgraph. `inputs`, `outputs`: numbers of tensors."""
        vectors = [self.vector(tensors), self.numbers(inputs), self.numbers(outputs), self.vector(operators)]
        tflite.SubGraphStart(self.builder)
        tflite.SubGraphAddTensors(self.builder, vectors[0])
        tflite.SubGraphAddInputs(self.builder, vectors[1])
        tflite.SubGraphAddOutputs(self.builder, vectors[2])
        tflite.SubGraphAddOperators(self.builder, vectors[3])
        return tflite.SubGraphEnd(self.builder)

    def code(self, code: str, custom: str = "") -> int:
        """An operator by the schema's name. `custom`: the name of a custom operator."""
        number, name = getattr(tflite.BuiltinOperator, code), self.builder.CreateString(custom) if custom else 0
        tflite.OperatorCodeStart(self.builder)
        if custom:
            tflite.OperatorCodeAddCustomCode(self.builder, name)
        tflite.OperatorCodeAddDeprecatedBuiltinCode(self.builder, min(number, 127))
        tflite.OperatorCodeAddBuiltinCode(self.builder, number)
        tflite.OperatorCodeAddVersion(self.builder, 1)
        return tflite.OperatorCodeEnd(self.builder)

    def buffer(self, value: np.ndarray | None) -> int:
        data = None if value is None else self.builder.CreateByteVector(np.ascontiguousarray(value).tobytes())
        tflite.BufferStart(self.builder)
        if data is not None:
            tflite.BufferAddData(self.builder, data)
        return tflite.BufferEnd(self.builder)

    def quantization(self, scales: Sequence[float], zero_points: Sequence[int], axis: int) -> int:
        vectors = self.numbers(scales, "float32"), self.numbers(zero_points, "int64")
        tflite.QuantizationParametersStart(self.builder)
        tflite.QuantizationParametersAddScale(self.builder, vectors[0])
        tflite.QuantizationParametersAddZeroPoint(self.builder, vectors[1])
        tflite.QuantizationParametersAddQuantizedDimension(self.builder, axis)
        return tflite.QuantizationParametersEnd(self.builder)

    def options(self, table: str, options: Mapping[str, Any]) -> int:
        """The options of an operator. `table`: the name of the options table, without `Options`."""
        texts = {key: self.builder.CreateString(value) for key, value in options.items() if isinstance(value, str)}
        getattr(tflite, f"{table}OptionsStart")(self.builder)
        for key, value in options.items():
            getattr(tflite, f"{table}OptionsAdd{key}")(self.builder, texts.get(key, value))
        return getattr(tflite, f"{table}OptionsEnd")(self.builder)


class ModelWriter(Tables):
    """The bytes of a model."""

    def __init__(self, model: Model) -> None:
        super().__init__()
        self._model = model
        self._index = {name: number for number, name in enumerate(model.tensors)}
        self._codes = sorted({each.code for each in model.operators})

    def finish(self) -> bytes:
        net, values = self._model.net, [None, *(self._model.constants.get(name) for name in self._index)]
        codes, buffers = [self.code(code) for code in self._codes], [self.buffer(value) for value in values]
        tensors = [self._tensor(each) for each in self._model.tensors.values()]
        operators = [self._operator(each) for each in self._model.operators]
        graph = self.graph(tensors, self._places(net.inputs), self._places(net.outputs), operators)
        return self.model(codes, [graph], buffers)

    def _places(self, names: Sequence[str]) -> list[int]:
        return [self._index[name] for name in names]

    def _tensor(self, tensor: Tensor) -> int:
        name, shape, known = self.builder.CreateString(tensor.name), self.numbers(tensor.shape), tensor.quantization
        quantization = self.quantization(known.scales, known.zero_points, known.axis or 0) if known else None
        tflite.TensorStart(self.builder)
        tflite.TensorAddShape(self.builder, shape)
        tflite.TensorAddType(self.builder, _TYPES[tensor.dtype])
        tflite.TensorAddBuffer(self.builder, self._index[tensor.name] + 1)
        tflite.TensorAddName(self.builder, name)
        if quantization is not None:
            tflite.TensorAddQuantization(self.builder, quantization)
        return tflite.TensorEnd(self.builder)

    def _operator(self, operator: Operator) -> int:
        inputs, outputs = (self.numbers(self._places(names)) for names in (operator.inputs, [operator.output]))
        options = self.options(operator.table, operator.options)
        tflite.OperatorStart(self.builder)
        tflite.OperatorAddOpcodeIndex(self.builder, self._codes.index(operator.code))
        tflite.OperatorAddInputs(self.builder, inputs)
        tflite.OperatorAddOutputs(self.builder, outputs)
        kind = getattr(tflite.BuiltinOptions, f"{operator.table}Options")
        tflite.OperatorAddBuiltinOptionsType(self.builder, kind)
        tflite.OperatorAddBuiltinOptions(self.builder, options)
        return tflite.OperatorEnd(self.builder)
