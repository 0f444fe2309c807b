"""Results of other implementations for an accepted file: LiteRT's reference kernels, and ONNX's reference evaluator.

The oracles run in a copy of the process, because a file accepted by npukit may crash them.
"""

from __future__ import annotations

import multiprocessing
import os
import resource
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx.helper import tensor_dtype_to_np_dtype
from onnx.reference import ReferenceEvaluator

from frontend.random_tflite import dense_rounded_once
from frontend.tflite_models import run_litert
from fuzz.models.driver import NOT_JUDGED
from npukit.net.net import Net
from npukit.net.ops.table import total_macs
from npukit.net.reference import run_reference
from npukit.net.requantize import SATURATES, effective_scales
from npukit.net.tables import quantised
from oracles.onnx_runtime import DITHERED_OPS, EVALUATOR_OPS, NotDefined, Session

SECONDS, MEMORY = 10, 2 << 30
MOST_MACS, MOST_ELEMENTS = 10_000_000, 1_000_000
"""Limits on a network's size: larger networks find no more faults."""

WITHIN = {"dense": 1, "softmax": 1, "tvm_code": 2, "lookup": 1, "mean": 1, "average_pool": 1, "matmul": 1}
"""Largest allowed difference per kind of op. Most of these ops are computed in float."""
WRAPS = 1 << 12
"""Ratio of scales from which LiteRT's sums may wrap; npukit's saturate."""
ONNX_WITHIN = 1
"""Largest allowed difference of any op from ONNX's real numbers."""
DITHERINGS = 8
CEIL_MODE = "a pool in ceil mode: ONNX's evaluator pads it in front, and ONNX Runtime refuses it"


class NotJudged(Exception):
    """No oracle can judge the net of this file. The message is the reason."""


class Refused(NotJudged):
    """One oracle has no answer; another may have one."""


def compared(net: Net, path: Path, dice: np.random.Generator) -> str:
    """`equal`, `not judged` with the reason, or how the net differs."""
    try:
        return (_compared_with_litert if path.suffix == ".tflite" else _compared_with_onnx)(net, path, dice)
    except NotJudged as reason:
        return f"{NOT_JUDGED}: {reason}"


def _compared_with_litert(net: Net, path: Path, dice: np.random.Generator) -> str:
    if _wraps(net):
        raise NotJudged("LiteRT's sums may wrap")
    inputs, given = _cases(net, dice)
    theirs = _elsewhere(_litert, path, given)
    with dense_rounded_once():
        ours = run_reference(net, inputs)
    return _told_apart(net, ours, theirs, max((WITHIN.get(op.kind, 0) for op in net.ops), default=0))


def _compared_with_onnx(net: Net, path: Path, dice: np.random.Generator) -> str:
    """Compare with ONNX's evaluator. The evaluator has faults, therefore a difference counts only if ONNX Runtime
    confirms it."""
    inputs, given = _cases(net, dice)
    ours = run_reference(net, inputs)

    def told(oracle: Callable[..., Any]) -> str:
        return _told_apart(net, ours, _elsewhere(oracle, path, given), ONNX_WITHIN)

    try:
        first = told(_onnx)
    except Refused:
        return told(_onnx_runtime)
    try:
        said = first if first == "equal" else told(_onnx_runtime)
    except Refused:
        if _pools_in_ceil_mode(onnx.load(path)):
            raise NotJudged(CEIL_MODE) from None
        said = first
    if said != "equal" and _depends_on_rounding(net, path, given):
        raise NotJudged("ONNX's evaluator differs from itself by more, where it rounds a little otherwise")
    return said


def _depends_on_rounding(net: Net, path: Path, given: Sequence[np.ndarray]) -> bool:
    exact, *others = _elsewhere(_onnx_dithered, path, given)
    return any(_told_apart(net, exact, other, ONNX_WITHIN) != "equal" for other in others)


def _cases(net: Net, dice: np.random.Generator) -> tuple[list[np.ndarray], list[np.ndarray]]:
    """Inputs of the net, and inputs in the types that the model may require."""
    if total_macs(net) > MOST_MACS or sum(tensor.elements for tensor in net.tensors.values()) > MOST_ELEMENTS:
        raise NotJudged("a large network")
    inputs = [_numbers(net, name, dice) for name in net.inputs]
    return inputs, [_as_given(net, name, value) for name, value in zip(net.inputs, inputs, strict=True)]


def _pools_in_ceil_mode(model: onnx.ModelProto) -> bool:
    attributes = (attribute for node in model.graph.node for attribute in node.attribute)
    return any(attribute.name == "ceil_mode" and attribute.i for attribute in attributes)


def _told_apart(net: Net, ours: Sequence[np.ndarray], theirs: Sequence[np.ndarray], most: int) -> str:
    """`equal`, or the first difference."""
    told = (_difference(net, *pair, most) for pair in zip(net.outputs, ours, theirs, strict=True))
    return next(filter(None, told), "equal")


def _wraps(net: Net) -> bool:
    """True if LiteRT's sums may wrap."""
    weighted = ("conv2d", "dense", "depthwise_conv2d", "transpose_conv2d")
    factors = (max(effective_scales(net, op)) for op in net.ops if op.kind in weighted)
    return _spread(net) > WRAPS or max(factors, default=0.0) > SATURATES


def _spread(net: Net) -> float:
    """Ratio of the largest and the smallest scale of the activations."""
    every = (tensor.quantization for name, tensor in net.tensors.items() if name not in net.constants)
    scales = [given.scale for given in every if given is not None]
    return max(scales, default=1.0) / min(scales, default=1.0)


def _numbers(net: Net, name: str, dice: np.random.Generator) -> np.ndarray:
    tensor = net.tensor(name)
    if tensor.dtype == "float32":
        return dice.uniform(-2, 2, tensor.shape).astype(np.float32)
    if tensor.dtype == "bool":
        return dice.integers(0, 2, tensor.shape).astype(bool)
    limits = np.iinfo(tensor.dtype)
    return dice.integers(max(limits.min, -128), min(limits.max, 255) + 1, tensor.shape).astype(tensor.dtype)


def _as_given(net: Net, name: str, value: np.ndarray) -> np.ndarray:
    """The integers, stacked with their real values, for a model that quantises its input."""
    given = net.tensor(name).quantization
    return value if given is None or given.axis is not None else np.stack([value, _real(value, given)])


def _real(value: np.ndarray, given: Any) -> np.ndarray:
    return (value.astype(np.float64) - given.zero_point) * given.scale


def _litert(path: Path, inputs: Sequence[np.ndarray]) -> list[np.ndarray]:
    from ai_edge_litert.interpreter import Interpreter

    details = Interpreter(str(path)).get_input_details()
    return run_litert(path, [_picked(*pair) for pair in zip(inputs, [each["dtype"] for each in details], strict=True)])


def _onnx(path: Path, inputs: Sequence[np.ndarray], ops: Sequence[Any] = EVALUATOR_OPS) -> list[np.ndarray]:
    model = onnx.load(path)
    with np.errstate(all="ignore"):
        found: Any = ReferenceEvaluator(model, new_ops=list(ops)).run(None, _by_name(model, inputs))
    return list(found)


def _onnx_dithered(path: Path, inputs: Sequence[np.ndarray]) -> list[list[np.ndarray]]:
    """Outputs with correct rounding, then several times with dithered rounding."""
    return [_onnx(path, inputs), *(_onnx(path, inputs, DITHERED_OPS) for _ in range(DITHERINGS))]


def _onnx_runtime(path: Path, inputs: Sequence[np.ndarray]) -> list[np.ndarray]:
    return Session(path).run(_by_name(onnx.load(path), inputs))


def _by_name(model: onnx.ModelProto, inputs: Sequence[np.ndarray]) -> dict[str, np.ndarray]:
    constants = {tensor.name for tensor in model.graph.initializer}
    ends = [value for value in model.graph.input if value.name not in constants]
    dtypes = [tensor_dtype_to_np_dtype(value.type.tensor_type.elem_type) for value in ends]
    given = (_picked(*pair) for pair in zip(inputs, dtypes, strict=True))
    return dict(zip((value.name for value in ends), given, strict=True))


def _picked(value: np.ndarray, dtype: Any) -> np.ndarray:
    """The integers or the real numbers, by the model's input type."""
    if value.dtype == np.float64:
        value = value[1] if np.dtype(dtype) == np.float32 else value[0]
    return value.astype(dtype)


def _elsewhere(run: Callable[..., Any], path: Path, inputs: Sequence[np.ndarray]) -> list[Any]:
    """Results of `run` in a separate process."""
    ours, theirs = multiprocessing.Pipe(duplex=False)
    process = multiprocessing.get_context("fork").Process(target=_told, args=(run, path, inputs, theirs), daemon=True)
    process.start()
    theirs.close()
    name = ORACLES[run]
    try:
        if not ours.poll(SECONDS):
            raise Refused(f"{name} takes more than {SECONDS} seconds")
        found = ours.recv()
    except EOFError:
        raise Refused(f"{name} dies of it") from None
    finally:
        process.kill()
        process.join()
        ours.close()
    if found is None:
        raise Refused(f"{name} refuses it")
    if isinstance(found, NotJudged):
        raise found
    return found


def _told(run: Callable[..., Any], path: Path, inputs: Sequence[np.ndarray], outcome: Any) -> None:
    os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
    os.dup2(2, 1)
    resource.setrlimit(resource.RLIMIT_DATA, (MEMORY, resource.getrlimit(resource.RLIMIT_DATA)[1]))
    try:
        outcome.send(run(path, inputs))
    except NotDefined as reason:
        outcome.send(NotJudged(str(reason)))
    except BaseException:
        outcome.send(None)


ORACLES: dict[Callable[..., Any], str] = {
    _litert: "LiteRT",
    _onnx: "ONNX's evaluator",
    _onnx_dithered: "ONNX's evaluator",
    _onnx_runtime: "ONNX Runtime",
}


def _difference(net: Net, name: str, ours: np.ndarray, theirs: np.ndarray, most: int) -> str:
    ours, theirs = _as_integers(net, name, ours), _as_integers(net, name, theirs)
    if ours.shape != theirs.shape:
        return f"{name} has the shape {list(ours.shape)}, not {list(theirs.shape)}"
    if theirs.dtype.kind == "f":
        near = np.isclose(ours, theirs, rtol=1e-3, atol=1e-3, equal_nan=True)
        return "" if near.all() else f"{name}: {np.count_nonzero(~near)} of {near.size} real numbers differ"
    distance = np.abs(ours.astype(np.int64) - theirs.astype(np.int64))
    worst = int(distance.max(initial=0))
    return f"{name}: {np.count_nonzero(distance)} of {distance.size} are up to {worst} off" if worst > most else ""


def _as_integers(net: Net, name: str, value: np.ndarray) -> np.ndarray:
    """Real numbers quantised like the net's output. The net's output stays quantised where the model dequantises at the
    end."""
    given, value = net.tensor(name).quantization, np.asarray(value)
    if value.dtype.kind == "f" and given is not None and given.axis is None:
        return quantised(value, np.zeros(1), np.array(given.scale), given.zero_point)
    return value
