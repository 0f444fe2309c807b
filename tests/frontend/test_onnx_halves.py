"""ONNX Runtime's networks of 16-bit activations: layers on the MAC array, within a step of ONNX Runtime."""

from __future__ import annotations

from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import helper, numpy_helper

from helpers import first_of
from npukit.accel.engines import assign_engines, engines_of
from npukit.board.board import load_board
from npukit.errors import NpukitError
from npukit.net.reference import run_reference
from npukit.quantize.models import load_model
from oracles.onnx_runtime import Session

quantization: Any = pytest.importorskip("onnxruntime.quantization")
CASES = 6


def noise(random: np.random.Generator, *shape: int, size: float = 1) -> np.ndarray:
    return (size * random.standard_normal(shape)).astype(np.float32)


def float_model(random: np.random.Generator) -> tuple[onnx.ModelProto, tuple[int, ...]]:
    """A convolution, a depthwise one, an average and a dense layer, of random sizes."""
    channels, filters, results, side = (int(random.integers(*ends)) for ends in ((1, 5), (2, 9), (2, 9), (4, 9)))
    constants = {
        "w1": noise(random, filters, channels, 3, 3, size=0.3),
        "b1": noise(random, filters),
        "w2": noise(random, filters, 1, 3, 3, size=0.3),
        "w3": noise(random, results, filters),
        "b3": noise(random, results),
    }
    image: dict[str, Any] = {"kernel_shape": [3, 3], "pads": [1, 1, 1, 1]}
    nodes = [
        helper.make_node("Conv", ["x", "w1", "b1"], ["c1"], **image),
        helper.make_node("Relu", ["c1"], ["r1"]),
        helper.make_node("Conv", ["r1", "w2"], ["c2"], group=filters, strides=[2, 2], **image),
        helper.make_node("GlobalAveragePool", ["c2"], ["g"]),
        helper.make_node("Flatten", ["g"], ["f"]),
        helper.make_node("Gemm", ["f", "w3", "b3"], ["y"], transB=1),
    ]
    shape = (1, channels, side, side)
    given, made = (helper.make_tensor_value_info(name, 1, of) for name, of in (("x", shape), ("y", (1, results))))
    values = [numpy_helper.from_array(value, name) for name, value in constants.items()]
    graph = helper.make_graph(nodes, "graph", [given], [made], values)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10), shape


def quantised(folder: Path, seed: int, activations: str, weights: str) -> tuple[Path, np.ndarray]:
    """The file as ONNX Runtime quantises it, and inputs."""
    random, given, made = np.random.default_rng(seed), folder / "float.onnx", folder / "model.onnx"
    model, shape = float_model(random)
    onnx.save(model, given)
    cases = noise(random, CASES, *shape)

    class Reader(quantization.CalibrationDataReader):
        def __init__(self) -> None:
            self.left = [{"x": case} for case in cases]

        def get_next(self) -> Any:
            return self.left.pop() if self.left else None

    kinds = {name: getattr(quantization.QuantType, name) for name in (activations, weights)}
    told = {"activation_type": kinds[activations], "weight_type": kinds[weights], "per_channel": weights == "QInt8"}
    quantization.quantize_static(str(given), str(made), Reader(), **told)
    return made, cases


TYPES = list(product(("QInt16", "QUInt16"), ("QInt8", "QUInt8")))


@pytest.mark.parametrize(
    ("seed", "activations", "weights"), first_of([(seed, *each) for seed in range(5) for each in TYPES], len(TYPES))
)
def test_within_a_step_of_onnx_runtime(seed: int, activations: str, weights: str, tmp_path: Path) -> None:
    path, cases = quantised(tmp_path, seed, activations, weights)
    net = load_model(path).net
    (got,) = run_reference(net, [cases])
    session = Session(path)
    expected = np.stack([session.run({"x": case})[0] for case in cases])
    step = next(
        float(numpy_helper.to_array(each)) for each in onnx.load(path).graph.initializer if each.name == "y_scale"
    )
    assert np.abs(got - expected).max() < 1.01 * step
    placed = assign_engines(net, engines_of(load_board("pe-mesh")))
    layers = 3 if weights == "QInt8" else 2  # nine bits of weights stay in float in a depthwise convolution
    engines = [op.engine for op in placed.ops if op.kind == "sums"]
    assert len(engines) == 2 * layers
    assert "mac_array" in engines  # tiny layers are faster on the core


def test_layers_of_the_same_data_share_its_bytes(tmp_path: Path) -> None:
    constants = {"s": np.float32(0.01), "z": np.int16(-300), "ws": np.float32(0.02), "wz": np.int8(0)}
    weights = {name: np.full((4, 5), at + 1, np.int8) for at, name in enumerate(("v", "w"))}
    nodes = [
        helper.make_node("QuantizeLinear", ["x", "s", "z"], ["q"]),
        helper.make_node("DequantizeLinear", ["q", "s", "z"], ["r"]),
        *(helper.make_node("DequantizeLinear", [name, "ws", "wz"], [f"{name}r"]) for name in weights),
        *(helper.make_node("MatMul", ["r", f"{name}r"], [f"{name}y"]) for name in weights),
    ]
    values = [numpy_helper.from_array(np.asarray(each), name) for name, each in {**constants, **weights}.items()]
    ends = [helper.make_tensor_value_info(name, 1, of) for name, of in (("x", (3, 4)), ("vy", (3, 5)), ("wy", (3, 5)))]
    graph = helper.make_graph(nodes, "graph", ends[:1], ends[1:], values)
    path = tmp_path / "model.onnx"
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10), path)
    net = load_model(path).net
    whats = [str(getattr(op.attributes, "what", op.kind)) for op in net.ops]
    assert len([what for what in whats if "bytes" in what]) == 2
    data = noise(np.random.default_rng(0), 3, 4)
    for got, expected in zip(run_reference(net, [data]), Session(path).run({"x": data}), strict=True):
        np.testing.assert_allclose(got, expected, rtol=1e-5)


def test_uint16_at_the_ends_is_refused_by_name(tmp_path: Path) -> None:
    constants = {"s": np.float32(0.01), "z": np.uint16(300)}
    nodes = [
        helper.make_node("DequantizeLinear", ["x", "s", "z"], ["r"]),
        helper.make_node("Relu", ["r"], ["c"]),
        helper.make_node("QuantizeLinear", ["c", "s", "z"], ["y"]),
    ]
    values = [numpy_helper.from_array(np.asarray(each), name) for name, each in constants.items()]
    given, made = (helper.make_tensor_value_info(name, onnx.TensorProto.UINT16, (4,)) for name in "xy")
    path = tmp_path / "model.onnx"
    graph = helper.make_graph(nodes, "graph", [given], [made], values)
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10), path)
    with pytest.raises(NpukitError, match="uint16"):
        load_model(path)
