"""Random ONNX networks in each form that exporters write, for ONNX Runtime.

QDQ in each type, QOperator and dynamic quantisation by ONNX Runtime's quantiser, and float.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import onnx
from ml_dtypes import iinfo, int4
from onnx import helper
from onnxruntime.quantization import CalibrationDataReader, QuantFormat, QuantType, quantize_dynamic, quantize_static

from differential.networks import (
    AS_IT_IS,
    CALIBRATED,
    CASES,
    FOUR_BITS,
    IN_FLOAT,
    SOFTMAX_STEP,
    Arrays,
    Maker,
    Network,
    Within,
    of_int8,
)
from differential.onnx_graph import Floats, Step, model_of
from differential.onnx_ops import MAKERS
from oracles.onnx_runtime import Session

OF_INDICES = {"argmax", "argmin", "top_k"}
"""Makers with an order of values in the result. Such an op is alone: rounding before it may change the order."""
STATIC = {
    *(
        "conv",
        "conv1d",
        "depthwise",
        "gemm",
        "matmul",
        "matmul_of_two",
        "add",
        "mul",
        "sigmoid",
        "leakyrelu",
        "softmax",
    ),
    *("averagepool", "globalaveragepool", "maxpool", "concat", "split", "transpose", "reshape", "pad", "resize"),
    *("squeeze", "greater", "clip", "relu", "argmax", "instancenorm", "convtranspose", "gather"),
}
"""Ops that ONNX Runtime's quantiser knows."""
DYNAMIC = {"conv", "conv1d", "depthwise", "gemm", "matmul", "lstm"}
WEIGHTED = ("conv", "conv1d", "depthwise", "gemm", "matmul", "convtranspose")
"""Makers of layers with weights."""
NOISES = 4
"""Runs of a chain with a step of noise after each op."""


def graph_of(random: np.random.Generator, kind: str, others: Sequence[str] = tuple(MAKERS)) -> Floats:
    """An op of a kind in a chain of one to four ops."""
    graph, known = Floats(random), [each for each in others if each not in OF_INDICES]
    before, after = (
        (0, 0) if kind in OF_INDICES else (int(random.choice([0, 0, 1, 2])), int(random.choice([0, 0, 0, 1])))
    )
    for name in [*random.choice(known, before), kind, *random.choice(known, after)]:
        MAKERS[str(name)](graph)
        graph.kinds.append(str(name))
    return graph


def onnx_runtime(path: Path, inputs: Arrays, *, exact_products: bool = False) -> Arrays:
    model = onnx.load(path)
    names = [each.name for each in model.graph.input]
    return Session(path, exact_products=exact_products).run(dict(zip(names, inputs, strict=True)))


def varied(graph: Floats) -> list[Arrays]:
    """Inputs of several cases."""
    first = [graph.values[name] for name in graph.inputs]
    return [first] + [
        [graph.random.permutation(each.ravel()).reshape(each.shape) for each in first] for _ in range(CASES - 1)
    ]


def real(random: np.random.Generator, name: str, kind: str, reads: str, within: Within) -> Network:
    graph = graph_of(random, kind)
    within = of_int8(graph.kinds) if reads == CALIBRATED else within
    cases = varied(graph) if reads == CALIBRATED else [[graph.values[each] for each in graph.inputs]]
    return Network(name, graph.model().SerializeToString(), cases, {"ONNX Runtime": onnx_runtime}, reads, within)


@dataclass
class Qdq:
    """A float graph in QDQ form."""

    graph: Floats
    dtype: str
    by_channel: bool
    weights: Any = np.int8
    nodes: list[onnx.NodeProto] = field(default_factory=list)
    inputs: dict[str, np.ndarray] = field(default_factory=dict)
    constants: dict[str, np.ndarray] = field(default_factory=dict)
    scales: dict[str, tuple[np.ndarray, np.ndarray]] = field(default_factory=dict)
    noises: dict[str, np.ndarray] = field(default_factory=dict)
    outputs: dict[str, np.ndarray] = field(default_factory=dict)
    """Names with arrays of the same shape and type."""

    def build(self) -> Qdq:
        graph = self.graph
        for name in graph.inputs:
            self._dequantized(name, self._range(graph.values[name]), graph.values[name], self.inputs)
        for name in graph.constants:
            self._constant(name)
        for step in graph.steps:
            self._step(step)
        for name in graph.outputs:
            value = graph.values[name]
            real = name in self.scales
            self.outputs[f"{name}_q" if real else name] = value.astype(self.dtype) if real else value
        return self

    def model(self) -> onnx.ModelProto:
        return model_of(self.nodes, self.inputs, self.constants, self.outputs)

    def with_noise(self) -> onnx.ModelProto:
        """The model with an input of noise for each result that another op takes."""
        nodes = list[onnx.NodeProto]()
        for node in self.nodes:
            if node.op_type == "QuantizeLinear" and node.input[0] in self.noises:
                nodes.append(
                    helper.make_node("Add", [node.input[0], f"{node.input[0]}_noise"], [f"{node.input[0]}_off"])
                )
                node = helper.make_node(node.op_type, [f"{node.input[0]}_off", *node.input[1:]], list(node.output))
            nodes.append(node)
        more = {f"{name}_noise": value for name, value in self.noises.items()}
        return model_of(nodes, {**self.inputs, **more}, self.constants, self.outputs)

    def _range(self, value: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        low, high = min(0.0, float(value.min())), max(0.0, float(value.max()))
        limits = np.iinfo(self.dtype)
        if self.dtype == "int16":
            return np.asarray(max(high, -low, 1e-3) / limits.max, np.float32), np.array(0, self.dtype)
        scale = np.asarray(max(high - low, 1e-3) / (limits.max - limits.min), np.float32)
        return scale, np.array(np.clip(np.rint(limits.min - low / scale), limits.min, limits.max), self.dtype)

    def _ends(self, name: str) -> list[str]:
        scale, zero = self.scales[name]
        self.constants |= {f"{name}_scale": np.asarray(scale), f"{name}_zero": np.asarray(zero)}
        return [f"{name}_scale", f"{name}_zero"]

    def _dequantized(
        self, name: str, ends: Any, value: np.ndarray, target: dict[str, np.ndarray], axis: int = 0
    ) -> None:
        """Integers `name_q` among inputs or constants, dequantised to `name`."""
        scale, zero = self.scales[name] = (np.asarray(ends[0]), np.asarray(ends[1]))
        limits, along = iinfo(zero.dtype), (-1, *[1] * (value.ndim - axis - 1)) if scale.ndim else ()
        integers = np.rint(value / scale.reshape(along)) + zero.reshape(along)
        target[f"{name}_q"] = np.clip(integers, int(limits.min), int(limits.max)).astype(zero.dtype)
        self.nodes.append(helper.make_node("DequantizeLinear", [f"{name}_q", *self._ends(name)], [name], axis=axis))

    def _constant(self, name: str) -> None:
        value = self.graph.values[name]
        if name in self.graph.weights:
            axis = self.graph.weights[name] % value.ndim
            others = tuple(each for each in range(value.ndim) if each != axis) if self.by_channel else None
            most = int(iinfo(self.weights).max)
            scale = np.asarray(np.maximum(np.abs(value).max(axis=others), 1e-4) / most, np.float32)
            self._dequantized(name, (scale, np.zeros(scale.shape, self.weights)), value, self.constants, axis)
        elif name in self.graph.biases:
            data, weights = self.graph.biases[name]
            if data not in self.scales:
                return
            scale = np.asarray(self.scales[data][0] * self.scales[weights][0], np.float32)
            self._dequantized(name, (scale, np.zeros(scale.shape, np.int32)), value, self.constants)
        else:
            self.constants[name] = value

    def _step(self, step: Step) -> None:
        reals = [name for name in step.results if self.graph.values[name].dtype == np.float32]
        for node in step.nodes:
            for name in node.input:
                if name in self.graph.biases and name not in self.scales:
                    self._constant(name)
            raw = [f"{name}_raw" if name in reals else name for name in node.output]
            copy = onnx.NodeProto()
            copy.CopyFrom(node)
            del copy.output[:]
            copy.output.extend(raw)
            self.nodes.append(copy)
        for name in reals:
            self._quantized(name, step)

    def _quantized(self, name: str, step: Step) -> None:
        """The result `name_raw` quantised as `name_q` and dequantised as `name`."""
        source, value = step.nodes[0].input[0], self.graph.values[name]
        same = step.keeps and source in self.scales and self.graph.often(0.7)
        self.scales[name] = self.scales[source] if same else self._range(value)
        ends = self._ends(name)
        self.nodes.append(helper.make_node("QuantizeLinear", [f"{name}_raw", *ends], [f"{name}_q"]))
        if name not in self.graph.free:
            self.noises[f"{name}_raw"] = np.zeros(value.shape, np.float32)
        self.nodes.append(helper.make_node("DequantizeLinear", [f"{name}_q", *ends], [name]))

    def steps(self) -> int:
        """Largest change of an output by a step of noise after each earlier op, and by coarse steps inside ops."""
        if not self.noises:
            return self._coarse()
        session = Session(self.with_noise().SerializeToString())
        found = [session.run({**self.inputs, **self._noise(size)}) for size in (0, *[1] * NOISES)]
        pairs = (pair for other in found[1:] for pair in zip(found[0], other, strict=True))
        return self._coarse() + int(max(np.abs(a.astype(np.int64) - b).max(initial=0) for a, b in pairs))

    def _coarse(self) -> int:
        """Half of the coarsest step, inside npukit, of a softmax or an average pool, in steps of its result."""
        nodes = [node for step in self.graph.steps for node in step.nodes if node.op_type in ("Softmax", "AveragePool")]
        inside = (SOFTMAX_STEP if each.op_type == "Softmax" else self.scales[each.input[0]][0] for each in nodes)
        return max(
            (int(each / self.scales[node.output[0]][0]) for node, each in zip(nodes, inside, strict=True)), default=0
        )

    def _noise(self, size: int) -> Mapping[str, np.ndarray]:
        scales = {name: self.scales[name.removesuffix("_raw")][0] for name in self.noises}
        random = self.graph.random
        return {
            f"{name}_noise": (random.integers(-1, 2, value.shape) * scales[name] * size).astype(np.float32)
            for name, value in self.noises.items()
        }


def qdq(random: np.random.Generator, name: str, dtype: str, kind: str) -> Network:
    weights = int4 if FOUR_BITS in name else np.int8
    form = Qdq(graph_of(random, kind), dtype, bool(random.random() < 0.5), weights).build()
    cases = [list(form.inputs.values())]
    within = Within(steps=1 + form.steps(), relative=1e-4)
    return Network(name, form.model().SerializeToString(), cases, {"ONNX Runtime": onnx_runtime}, AS_IT_IS, within)


def is_quantised(node: onnx.NodeProto) -> bool:
    return node.op_type.startswith(("QLinear", "QGemm", "DynamicQuantize", "QuantizeLinear"))


class Reader(CalibrationDataReader):
    def __init__(self, graph: Floats, cases: Sequence[Arrays]) -> None:
        self._rest = iter([dict(zip(graph.inputs, case, strict=True)) for case in cases])

    def get_next(self) -> Any:
        return next(self._rest, None)


def by_quantizer(
    random: np.random.Generator, name: str, kind: str, write: Callable[[Floats, Path, Path], None], known: Sequence[str]
) -> Network:
    """A network that ONNX Runtime's quantiser writes. Weights have 7 bits, for exact products on any processor."""
    graph = graph_of(random, kind, known)
    logging.disable()
    with TemporaryDirectory() as folder:
        given, made = Path(folder) / "float.onnx", Path(folder) / "made.onnx"
        onnx.save(graph.model(), given)
        write(graph, given, made)
        data = made.read_bytes()
        reads = AS_IT_IS if any(is_quantised(node) for node in onnx.load(made).graph.node) else IN_FLOAT
    cases = [[graph.values[each] for each in graph.inputs]]
    oracle = partial(onnx_runtime, exact_products=True)
    return Network(name, data, cases, {"ONNX Runtime": oracle}, reads, Within(decibels=30))


def static(form: QuantFormat, activations: QuantType, graph: Floats, given: Path, made: Path) -> None:
    weights = QuantType.QInt8 if activations == QuantType.QInt8 or graph.often() else QuantType.QUInt8
    quantize_static(
        given,
        made,
        Reader(graph, varied(graph)),
        quant_format=form,
        per_channel=graph.often(),
        reduce_range=True,
        activation_type=activations,
        weight_type=weights,
    )


def dynamic(graph: Floats, given: Path, made: Path) -> None:
    weights = QuantType.QInt8 if graph.often() else QuantType.QUInt8
    quantize_dynamic(given, made, per_channel=graph.often(), reduce_range=True, weight_type=weights)


WRITERS: Mapping[str, tuple[Callable[[Floats, Path, Path], None], set[str]]] = {
    "qoperator-int8": (partial(static, QuantFormat.QOperator, QuantType.QInt8), STATIC),
    "qoperator-uint8": (partial(static, QuantFormat.QOperator, QuantType.QUInt8), STATIC),
    "dynamic": (dynamic, DYNAMIC),
}


def cells() -> Iterator[tuple[str, Maker]]:
    for label, dtype, kinds in (
        *((dtype, dtype, MAKERS) for dtype in ("int8", "uint8", "int16")),
        (FOUR_BITS, "int8", WEIGHTED),
    ):
        for kind in kinds:
            name = f"onnx/qdq-{label}/{kind}"
            yield name, partial(qdq, name=name, dtype=dtype, kind=kind)
    for label, (write, known) in WRITERS.items():
        for kind in (each for each in MAKERS if each in known):
            name = f"onnx/{label}/{kind}"
            yield name, partial(by_quantizer, name=name, kind=kind, write=write, known=sorted(known))
    for label, reads, within in (
        ("float", IN_FLOAT, Within(relative=1e-4)),
        ("calibrated", CALIBRATED, Within()),
    ):
        for kind in MAKERS:
            name = f"onnx/{label}/{kind}"
            yield name, partial(real, name=name, kind=kind, reads=reads, within=within)
