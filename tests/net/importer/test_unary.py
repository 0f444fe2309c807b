"""Functions of one number between two quantisations are one lookup, equal to ONNX Runtime, whatever their ops."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tvm import relax

from frontend.onnx_models import Graph, onnx_steps, saved
from helpers import first_of
from npukit.net.importer.expressions import callee
from npukit.net.importer.unary import FUNCTIONS, WITH_ATTRIBUTES
from npukit.net.reference import run_reference
from npukit.quantize.models import load_model

SHAPE = (1, 3, 4, 5)
SCALE, ZERO = 0.007, 3
"""A scale of numbers between -1 and 1, where all inverse functions but Acosh are defined."""
EVERYWHERE = (
    *("Abs", "Acos", "Asin", "Asinh", "Atan", "Atanh", "Ceil", "Celu", "Cos", "Cosh", "Elu", "Erf", "Exp", "Floor"),
    *("Gelu", "HardSigmoid", "HardSwish", "Mish", "Neg", "Relu", "Round", "Selu", "Shrink", "Sigmoid", "Sign", "Sin"),
    *("Sinh", "Softplus", "Softsign", "Tan", "Tanh", "ThresholdedRelu"),
)
AS_TFLITE = ("Abs", "Relu")
"""Functions in TFLite's integer arithmetic, at most a step off."""
BY_ELEMENT = {"bitwise_not", "eye_like", "wrap_param"}
"""Operators of one operand that are no functions of one real number."""
OVER_AXES = {
    *("argsort", "nn.batch_flatten", "nn.log_softmax", "nn.softmax", "sort", "squeeze", "tril", "triu"),
}


def relax_operators() -> Iterator[str]:
    """Relax's operators of one operand whose result has the operand's shape."""
    operators: Any = relax.op
    for room in (operators, operators.nn):
        for function in filter(inspect.isfunction, vars(room).values()):
            needed = [each for each in inspect.signature(function).parameters.values() if each.default is each.empty]
            if len(needed) == 1 and (name := _name_of(function)):
                yield name


def _name_of(function: Any) -> str:
    kinds: Any = relax
    try:
        made = relax.BlockBuilder().normalize(function(kinds.Var("v", kinds.TensorType((3, 5), "float32"))))
    except Exception:
        return ""
    shape = getattr(made.ty, "shape", None)
    return callee(made) if shape is not None and [int(size) for size in shape] == [3, 5] else ""


def test_every_function_of_one_number_in_relax_has_a_table() -> None:
    known = {*FUNCTIONS, *WITH_ATTRIBUTES, *BY_ELEMENT, *OVER_AXES}
    assert {name for name in relax_operators() if name not in known} == set()


def looked_up(graph: Graph, last: str, folder: Path, bound: int = 0) -> None:
    """Compares the only op, a lookup, with ONNX Runtime, over all 256 numbers."""
    graph.opset = 20
    graph.quantized(last, 0.02, -5, "y")
    model = graph.model({"x": (256,)}, "y")
    model.ir_version = 9
    path, every = saved(model, folder), np.arange(-128, 128).astype(np.int8)
    net = load_model(path).net
    assert [op.kind for op in net.ops] == ["lookup"]
    (got,) = run_reference(net, [every])
    assert np.abs(got.astype(int) - onnx_steps(path, {"x": every})[-1]).max() <= bound


@pytest.mark.parametrize("kind", EVERYWHERE)
def test_a_function(kind: str, tmp_path: Path) -> None:
    graph = Graph()
    looked_up(graph, graph.node(kind, [graph.dequantized("x", SCALE, ZERO)], "f"), tmp_path, bound=kind in AS_TFLITE)


def test_acosh_of_numbers_from_1(tmp_path: Path) -> None:
    graph = Graph()
    given = graph.node(
        "Add", [graph.dequantized("x", 0.01, -128), graph.constant("one", np.array(1, np.float32))], "more"
    )
    looked_up(graph, graph.node("Acosh", [given], "f"), tmp_path)


def test_a_remainder(tmp_path: Path) -> None:
    graph = Graph()
    divisor = graph.constant("three", np.array(0.3, np.float32))
    looked_up(graph, graph.node("Mod", [graph.dequantized("x", SCALE, ZERO), divisor], "f", fmod=1), tmp_path)


@pytest.mark.parametrize("kind", ["IsNaN", "IsInf", "Not"])
def test_a_condition_as_a_number(kind: str, tmp_path: Path) -> None:
    graph = Graph()
    given = graph.dequantized("x", SCALE, ZERO)
    if kind == "Not":
        given = graph.node("Less", [given, graph.constant("limit", np.array(0.2, np.float32))], "less")
    looked_up(graph, graph.node("Cast", [graph.node(kind, [given], "is")], "f", to=1), tmp_path)


@pytest.mark.parametrize("seed", first_of(range(30), 6))
def test_a_random_chain(seed: int, tmp_path: Path) -> None:
    """A chain of functions, sums and products of the same number."""
    random, graph = np.random.default_rng(seed), Graph()
    values, bounded = [graph.dequantized("x", SCALE, ZERO)], ["Sin", "Tanh", "Erf", "Atan", "Cos", "Asinh", "Softsign"]
    for step in range(int(random.integers(3, 9))):
        kind = str(random.choice([*bounded, "Add", "Mul", "Max"]))
        operands = [values[-1], *([] if kind in bounded else [str(random.choice(values))])]
        values.append(graph.node(kind, operands, f"f{step}"))
    looked_up(graph, values[-1], tmp_path, bound=1)
