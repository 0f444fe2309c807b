"""Small TFLite models, written field by field."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tflite

from npukit.accel.subgraphs.tflite_writer import Tables

TYPES = {
    "float32": tflite.TensorType.FLOAT32,
    "int4": tflite.TensorType.INT4,
    "int8": tflite.TensorType.INT8,
    "uint8": tflite.TensorType.UINT8,
    "int16": tflite.TensorType.INT16,
    "int32": tflite.TensorType.INT32,
    "uint32": tflite.TensorType.UINT32,
    "int64": tflite.TensorType.INT64,
    "uint64": tflite.TensorType.UINT64,
    "bool": tflite.TensorType.BOOL,
    "float16": tflite.TensorType.FLOAT16,
    "complex64": tflite.TensorType.COMPLEX64,
    "resource": tflite.TensorType.RESOURCE,
}


Scales = float | Sequence[float] | np.ndarray


@dataclass(frozen=True)
class Entry:
    name: str
    shape: tuple[int, ...]
    dtype: str
    scales: tuple[float, ...]
    zeros: tuple[int, ...]
    axis: int
    value: np.ndarray | None
    variable: bool = False
    blocks: tuple[str, int] | None = None
    """The tensor with scales by block, and weights of a block."""


@dataclass
class Model:
    """Tensors by name, ops in order."""

    entries: list[Entry] = field(default_factory=list)
    ops: list[tuple[str, list[str], list[str], str, Mapping[str, Any]]] = field(default_factory=list)
    inputs: list[str] = field(default_factory=list)
    signatures: dict[str, tuple[int, ...]] = field(default_factory=dict)
    """Shapes with -1 for open sizes."""
    graphs: list[tuple[Model, list[str]]] = field(default_factory=list)
    """Further subgraphs with their outputs."""

    def subgraph(self, model: Model, outputs: Sequence[str] = ()) -> int:
        """Adds a subgraph and returns its number."""
        self.graphs.append((model, list(outputs)))
        return len(self.graphs)

    def handle(self, name: str, variable: str) -> str:
        """Adds the handle of a variable."""
        self.tensor(name, (), dtype="resource")
        self.op("VAR_HANDLE", [], [name], "VarHandle", SharedName=variable)
        return name

    def tensor(
        self,
        name: str,
        shape: Sequence[int],
        scale: Scales = (),
        zero: int = 0,
        *,
        dtype: str = "int8",
        axis: int = 0,
    ) -> str:
        scales = tuple(np.atleast_1d(np.asarray(scale, np.float32)).tolist())
        self.entries.append(Entry(name, tuple(shape), dtype, scales, (zero,) * len(scales), axis, None))
        return name

    def input(self, name: str, shape: Sequence[int], scale: float, zero: int = 0) -> str:
        self.inputs.append(name)
        return self.tensor(name, shape, scale, zero)

    def constant(
        self,
        name: str,
        value: np.ndarray,
        scale: Scales = (),
        zero: int = 0,
        axis: int = 0,
    ) -> str:
        scales = tuple(np.atleast_1d(np.asarray(scale, np.float32)).tolist())
        entry = Entry(name, value.shape, str(value.dtype), scales, (zero,) * len(scales), axis, value)
        self.entries.append(entry)
        return name

    def halves(self, name: str, value: np.ndarray, scale: Scales, axis: int = 0) -> str:
        """A 4-bit constant. The first of two numbers lies in the lower half of a byte."""
        self.constant(name, value, scale, axis=axis)
        flat = np.append(value.ravel(), [0] * (value.size % 2)).astype(np.uint8) & 15
        packed = flat[::2] | flat[1::2] << 4
        self.entries[-1] = replace(self.entries[-1], dtype="int4", value=packed)
        return name

    def in_blocks(self, name: str, value: np.ndarray, scales: np.ndarray, size: int) -> str:
        """A 4-bit constant with a scale for each block of the last axis."""
        self.constant(f"{name}_scales", scales)
        self.halves(name, value, ())
        self.entries[-1] = replace(self.entries[-1], blocks=(f"{name}_scales", size))
        return name

    def variable(
        self, name: str, shape: Sequence[int], dtype: str = "float32", scale: float | None = None, zero: int = 0
    ) -> str:
        """A variable for an op's state."""
        scales, zeros = ((), ()) if scale is None else ((scale,), (zero,))
        self.entries.append(Entry(name, tuple(shape), dtype, scales, zeros, 0, None, variable=True))
        return name

    def op(self, code: str, inputs: Sequence[str], outputs: Sequence[str], table: str = "", **options: Any) -> None:
        """Adds an op. `table`: the schema's name of the options, without `Options`."""
        self.ops.append((code, list(inputs), list(outputs), table, options))

    def custom(self, name: str, inputs: Sequence[str], outputs: Sequence[str], options: bytes) -> None:
        """Adds a custom op. `options`: the bytes of the op's options."""
        self.op(f"CUSTOM {name}", inputs, outputs, custom=options)

    def bytes(self, outputs: Sequence[str]) -> bytes:
        return _Writer(self).finish(outputs)


def lstm_model(*, time_major: bool = False, clip: float = 0.0, steps: int = 5) -> tuple[Model, tuple[int, int, int]]:
    """A float LSTM from x to y, and the shape of x."""
    model, random, given, size = Model(), np.random.default_rng(13), 4, 3
    shape, result = ((steps, 2, given), (steps, 2, size)) if time_major else ((2, steps, given), (2, steps, size))
    model.inputs.append(model.tensor("x", shape, dtype="float32"))
    sizes = [*[(size, given)] * 4, *[(size, size)] * 4, *[None] * 3, *[(size,)] * 4, None, None]
    weights = [
        model.constant(f"w{number}", random.normal(0, 1, each).astype(np.float32)) if each else ""
        for number, each in enumerate(sizes)
    ]
    states = [model.variable(name, (2, size)) for name in ("hidden", "cell")]
    names, activation = ["x", *weights, *states, *[""] * 4], tflite.ActivationFunctionType.TANH
    options = {"FusedActivationFunction": activation, "CellClip": clip, "TimeMajor": time_major}
    result_name = model.tensor("y", result, dtype="float32")
    model.op("UNIDIRECTIONAL_SEQUENCE_LSTM", names, [result_name], "UnidirectionalSequenceLSTM", **options)
    return model, shape


def both_directions(kind: str, *, merged: bool, time_major: bool = False, auxiliary: bool = False) -> Model:
    """A float layer of kind LSTM or RNN in both directions, from x to y, or to y and z. Only time-major data has two
    sequences: LiteRT's LSTM begins the second of others with memory that nothing has written."""
    model, random, steps, given, size = Model(), np.random.default_rng(17), 4, 5, 3
    batch = 2 if time_major else 1
    first = (steps, batch) if time_major else (batch, steps)
    model.inputs.append(model.tensor("x", (*first, given), dtype="float32"))
    gates = 4 if kind == "LSTM" else 1
    shapes = [*[(size, given)] * gates, *[(size, size)] * gates, *[None] * (3 * (gates > 1)), *[(size,)] * gates]
    shapes += [None] * (2 * (gates > 1))
    names, states = list[str](), list[str]()
    for side in "fb":
        sides = [
            model.constant(f"{side}{number}", random.normal(0, 1, each).astype(np.float32)) if each else ""
            for number, each in enumerate(shapes)
        ]
        held = [model.variable(f"{side}_state{number}", (batch, size)) for number in range(2 if gates > 1 else 1)]
        names += sides if gates > 1 else [*sides, *held]
        states += held if gates > 1 else []
    more = ["x" if auxiliary else "", *[""] * (2 * gates)]
    widths = [2 * size] if merged else [size, size]
    results = [model.tensor(name, (*first, width), dtype="float32") for name, width in zip("yz", widths, strict=False)]
    options = {"FusedActivationFunction": tflite.ActivationFunctionType.TANH, "TimeMajor": time_major}
    table = f"BidirectionalSequence{kind}"
    model.op(
        f"BIDIRECTIONAL_SEQUENCE_{kind}", ["x", *names, *states, *more], results, table, MergeOutputs=merged, **options
    )
    return model


def rnn_model(activation: int) -> Model:
    """A float RNN from x to y."""
    model, random = Model(), np.random.default_rng(19)
    model.inputs.append(model.tensor("x", (2, 4, 5), dtype="float32"))
    shapes = ((3, 5), (3, 3), (3,))
    weights = [model.constant(f"w{at}", random.normal(0, 1, each).astype(np.float32)) for at, each in enumerate(shapes)]
    inputs, result = ["x", *weights, model.variable("h", (2, 3))], model.tensor("y", (2, 4, 3), dtype="float32")
    model.op("UNIDIRECTIONAL_SEQUENCE_RNN", inputs, [result], "SequenceRNN", FusedActivationFunction=activation)
    return model


LSTM_WIDTH, LSTM_UNITS, LSTM_SCALES = 6, 5, (0.02, 1 / 128, 2.0**-12)
"""Scales of data, hidden state and cell."""


def int8_lstm(
    steps: int,
    *,
    batch: int = 1,
    time_major: bool = False,
    clip: float = 0.0,
    zero: int = 0,
    cell: float = LSTM_SCALES[2],
) -> tuple[Model, list[np.ndarray]]:
    """An int8 LSTM with a 16-bit cell state, and the real weights and biases, gate by gate."""
    model, random, real = Model(), np.random.default_rng(3), list[np.ndarray]()
    given, out, _ = LSTM_SCALES
    first = (steps, batch) if time_major else (batch, steps)
    model.input("x", (*first, LSTM_WIDTH), given, -4)
    names: list[str] = []
    for number in range(12):
        shape = (LSTM_UNITS, LSTM_WIDTH if number < 4 else LSTM_UNITS) if number < 8 else (LSTM_UNITS,)
        whole = random.integers(-127, 128, shape, np.int8) if number < 8 else random.integers(-4000, 4000, shape)
        scale = 0.01 * given if number >= 8 else 0.01
        names.append(model.constant(f"w{number}", whole.astype(np.int8 if number < 8 else np.int32), scale))
        real.append(whole * np.float32(scale))
    states = [
        model.variable("h", (batch, LSTM_UNITS), "int8", out, zero),
        model.variable("c", (batch, LSTM_UNITS), "int16", cell),
    ]
    model.tensor("y", (*first, LSTM_UNITS), out, zero)
    inputs = ["x", *names[:8], "", "", "", *names[8:], "", "", *states, *[""] * 4]
    options = {"FusedActivationFunction": tflite.ActivationFunctionType.TANH, "TimeMajor": time_major}
    options |= {"CellClip": clip}
    model.op("UNIDIRECTIONAL_SEQUENCE_LSTM", inputs, ["y"], "UnidirectionalSequenceLSTM", **options)
    return model, real


class _Writer(Tables):
    def __init__(self, model: Model) -> None:
        super().__init__()
        self.graphs = [model, *(graph for graph, _ in model.graphs)]
        self.told = model
        self.index: dict[str, int] = {}
        self.first_code = self.first_buffer = 0

    def options(self, table: str, options: Mapping[str, Any]) -> int:
        vectors = {key: self.builder.CreateByteVector(each) for key, each in options.items() if isinstance(each, bytes)}
        return super().options(table, {**options, **vectors})

    def finish(self, outputs: Sequence[str]) -> bytes:
        ends = [outputs, *(results for _, results in self.told.graphs)]
        kinds = [op[0].partition(" ") for graph in self.graphs for op in graph.ops]
        codes = [self.code(kind, custom) for kind, _, custom in kinds]
        buffers = [self.buffer(value) for value in (None, *(each.value for one in self.graphs for each in one.entries))]
        graphs = [self._next_graph(*each) for each in zip(self.graphs, ends, strict=True)]
        return self.model(codes, graphs, buffers)

    def _next_graph(self, graph: Model, outputs: Sequence[str]) -> int:
        self.told = graph
        self.index = {entry.name: number for number, entry in enumerate(graph.entries)}
        tensors = [self._tensor(number, entry) for number, entry in enumerate(graph.entries)]
        operators = [self._op(number, *op) for number, op in enumerate(graph.ops)]
        written = self.graph(tensors, self._places(graph.inputs), self._places(outputs), operators)
        self.first_code, self.first_buffer = self.first_code + len(graph.ops), self.first_buffer + len(graph.entries)
        return written

    def _places(self, names: Sequence[str]) -> list[int]:
        return [self.index[name] if name else -1 for name in names]

    def _tensor(self, number: int, entry: Entry) -> int:
        name, shape = self.builder.CreateString(entry.name), self.numbers(entry.shape)
        quantization = self.quantization(entry.scales, entry.zeros, entry.axis) if entry.scales else None
        quantization = self._blocks(*entry.blocks) if entry.blocks else quantization
        signature = self.told.signatures.get(entry.name)
        open_shape = None if signature is None else self.numbers(signature)
        tflite.TensorStart(self.builder)
        tflite.TensorAddShape(self.builder, shape)
        tflite.TensorAddType(self.builder, TYPES[entry.dtype])
        tflite.TensorAddBuffer(self.builder, self.first_buffer + number + 1)
        tflite.TensorAddName(self.builder, name)
        tflite.TensorAddIsVariable(self.builder, entry.variable)
        if open_shape is not None:
            tflite.TensorAddShapeSignature(self.builder, open_shape)
        if quantization is not None:
            tflite.TensorAddQuantization(self.builder, quantization)
        return tflite.TensorEnd(self.builder)

    def _blocks(self, scales: str, size: int) -> int:
        self.builder.StartObject(3)
        for slot, (value, usual) in enumerate(((self.index[scales], 0), (-1, 0), (size, 0))):
            self.builder.PrependInt32Slot(slot, value, usual)
        return self.table("QuantizationParameters", DetailsType=2, Details=self.builder.EndObject())

    def _op(
        self, number: int, code: str, inputs: list[str], outputs: list[str], table: str, options: Mapping[str, Any]
    ) -> int:
        ends = [self.numbers(self._places(names)) for names in (inputs, outputs)]
        fields = self.options(table, options) if table else None
        custom = self.builder.CreateByteVector(options["custom"]) if "custom" in options else None
        tflite.OperatorStart(self.builder)
        tflite.OperatorAddOpcodeIndex(self.builder, self.first_code + number)
        tflite.OperatorAddInputs(self.builder, ends[0])
        tflite.OperatorAddOutputs(self.builder, ends[1])
        if fields is not None and table == "StableHLOComposite":
            tflite.OperatorAddBuiltinOptions2Type(self.builder, tflite.BuiltinOptions2.StableHLOCompositeOptions)
            tflite.OperatorAddBuiltinOptions2(self.builder, fields)
        elif fields is not None:
            tflite.OperatorAddBuiltinOptionsType(self.builder, getattr(tflite.BuiltinOptions, f"{table}Options"))
            tflite.OperatorAddBuiltinOptions(self.builder, fields)
        if custom is not None:
            tflite.OperatorAddCustomOptions(self.builder, custom)
        return tflite.OperatorEnd(self.builder)


def run_litert(path: Path, inputs: Sequence[np.ndarray], kernels: str = "BUILTIN_REF") -> list[np.ndarray]:
    """The results of LiteRT's reference kernels, an independent implementation. Skips the test without LiteRT."""
    litert = pytest.importorskip("ai_edge_litert.interpreter", reason="ai-edge-litert, an oracle, is not installed")
    resolver = litert.OpResolverType[kernels]
    interpreter = litert.Interpreter(str(path), experimental_op_resolver_type=resolver, num_threads=1)
    interpreter.allocate_tensors()
    for detail, value in zip(interpreter.get_input_details(), inputs, strict=True):
        interpreter.set_tensor(detail["index"], value)
    interpreter.invoke()
    return [interpreter.get_tensor(detail["index"]) for detail in interpreter.get_output_details()]


def ring(*, begins: int, changes: bool = True) -> Model:
    """A streaming layer: joins earlier and new data, and keeps a part in a variable."""
    model, once = Model(), Model()
    once.constant("zero", np.full((1, 2, 3), begins, np.int8), 0.05, -3)
    once.op("ASSIGN_VARIABLE", [once.handle("handle", "kept"), "zero"], [])
    model.op("CALL_ONCE", [], [], "CallOnce", InitSubgraphIndex=model.subgraph(once))
    model.handle("handle", "kept")
    model.input("x", (1, 1, 3), 0.05, -3)
    model.tensor("kept", (1, 2, 3), 0.05, -3)
    model.tensor("all", (1, 3, 3), 0.05, -3)
    model.op("READ_VARIABLE", ["handle"], ["kept"])
    model.op("CONCATENATION", ["kept", "x"], ["all"], "Concatenation", Axis=1)
    model.constant("begin", np.array([0, 1, 0], np.int32))
    model.constant("size", np.array([1, 2, 3], np.int32))
    model.tensor("next", (1, 2, 3), 0.05, -3)
    model.op("SLICE", ["all", "begin", "size"], ["next"])
    if changes:
        model.op("ASSIGN_VARIABLE", ["handle", "next"], [])
    return model


def run_micro(model: bytes, frames: Sequence[Sequence[np.ndarray]]) -> list[list[np.ndarray]]:
    """The outputs of TFLite Micro, an independent implementation, frame by frame. Skips tests without TFLite Micro."""
    micro = pytest.importorskip("tflite_micro.python.tflite_micro.runtime", reason="TFLite Micro is not installed")
    interpreter, outputs = micro.Interpreter.from_bytes(model, arena_size=1 << 22), []
    count = tflite.Model.GetRootAs(model).Subgraphs(0).OutputsLength()  # pyright: ignore[reportOptionalMemberAccess]
    for frame in frames:
        for place, value in enumerate(frame):
            interpreter.set_input(value, place)
        interpreter.invoke()
        outputs.append([np.array(interpreter.get_output(place)) for place in range(count)])
    return outputs
