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
        self.operators.append(
            Operator(
                code,
                inputs,
                output,
                table or "".join(word.capitalize() for word in code.split("_")).replace("2d", "2D"),
                options,
            )
        )

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

    def table(self, name: str, **fields: Any) -> int:
        """A table with the fields that are not None."""
        getattr(tflite, f"{name}Start")(self.builder)
        for key, value in fields.items():
            if value is not None:
                getattr(tflite, f"{name}Add{key}")(self.builder, value)
        return getattr(tflite, f"{name}End")(self.builder)

    def model(self, codes: Sequence[int], graphs: Sequence[int], buffers: Sequence[int]) -> bytes:
        vectors = [self.vector(tables) for tables in (codes, graphs, buffers)]
        model = self.table("Model", Version=3, OperatorCodes=vectors[0], Subgraphs=vectors[1], Buffers=vectors[2])
        self.builder.Finish(model, file_identifier=b"TFL3")
        return bytes(self.builder.Output())

    def graph(
        self, tensors: Sequence[int], inputs: Sequence[int], outputs: Sequence[int], operators: Sequence[int]
    ) -> int:
        """A subgraph. `inputs`, `outputs`: numbers of tensors."""
        fields = {"Tensors": self.vector(tensors), "Inputs": self.numbers(inputs), "Outputs": self.numbers(outputs)}
        return self.table("SubGraph", **fields, Operators=self.vector(operators))

    def code(self, code: str, custom: str = "") -> int:
        """An operator by the schema's name. `custom`: the name of a custom operator."""
        number, name = getattr(tflite.BuiltinOperator, code), self.builder.CreateString(custom) if custom else None
        codes = {"DeprecatedBuiltinCode": min(number, 127), "BuiltinCode": number}
        return self.table("OperatorCode", CustomCode=name, **codes, Version=1)

    def buffer(self, value: np.ndarray | None) -> int:
        data = None if value is None else self.builder.CreateByteVector(np.ascontiguousarray(value).tobytes())
        return self.table("Buffer", Data=data)

    def quantization(self, scales: Sequence[float], zero_points: Sequence[int], axis: int) -> int:
        fields = {"Scale": self.numbers(scales, "float32"), "ZeroPoint": self.numbers(zero_points, "int64")}
        return self.table("QuantizationParameters", **fields, QuantizedDimension=axis)

    def options(self, table: str, options: Mapping[str, Any]) -> int:
        """The options of an operator. `table`: the name of the options table, without `Options`."""
        texts = {key: self.builder.CreateString(value) for key, value in options.items() if isinstance(value, str)}
        return self.table(f"{table}Options", **{**options, **texts})


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
        fields = {"Type": _TYPES[tensor.dtype], "Buffer": self._index[tensor.name] + 1, "Name": name}
        return self.table("Tensor", Shape=shape, **fields, Quantization=quantization)

    def _operator(self, operator: Operator) -> int:
        inputs, outputs = (self.numbers(self._places(names)) for names in (operator.inputs, [operator.output]))
        options = self.options(operator.table, operator.options)
        code, kind = self._codes.index(operator.code), getattr(tflite.BuiltinOptions, f"{operator.table}Options")
        fields = {"BuiltinOptionsType": kind, "BuiltinOptions": options}
        return self.table("Operator", OpcodeIndex=code, Inputs=inputs, Outputs=outputs, **fields)
