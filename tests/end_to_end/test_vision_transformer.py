"""A small vision transformer as PyTorch exports it to ONNX, with norms, GELU and attention in small ops."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from end_to_end.builds import build
from npukit import api
from oracles.onnx_runtime import run_onnx

SIDE, WIDTH, HEADS, TOKENS, CLASSES = 8, 32, 4, 16, 10


@dataclass
class Network:
    """Nodes as they come; each method gives the name of its result."""

    random: np.random.Generator
    nodes: list[onnx.NodeProto] = field(default_factory=list)
    constants: list[onnx.TensorProto] = field(default_factory=list)

    def constant(self, value: Any, dtype: str = "float32") -> str:
        name = f"constant{len(self.constants)}"
        self.constants.append(numpy_helper.from_array(np.asarray(value, dtype), name))
        return name

    def weights(self, *shape: int) -> str:
        return self.constant(self.random.normal(size=shape) / np.sqrt(np.prod(shape[1:]) or 1))

    def node(self, kind: str, *inputs: str, **attributes: Any) -> str:
        name = f"{kind}{len(self.nodes)}"
        self.nodes.append(helper.make_node(kind, list(inputs), [name], **attributes))
        return name

    def dense(self, x: str, inputs: int, outputs: int) -> str:
        product = self.node("MatMul", x, self.constant(self.random.normal(size=(inputs, outputs)) / np.sqrt(inputs)))
        return self.node("Add", self.constant(self.random.normal(size=outputs) / 4), product)

    def norm(self, x: str) -> str:
        centred = self.node("Sub", x, self.node("ReduceMean", x, axes=[-1]))
        variance = self.node("ReduceMean", self.node("Pow", centred, self.constant(2)), axes=[-1])
        deviation = self.node("Sqrt", self.node("Add", variance, self.constant(1e-5)))
        scales, shifts = 1 + self.random.normal(size=(2, WIDTH)) / 8
        scaled = self.node("Mul", self.node("Div", centred, deviation), self.constant(scales))
        return self.node("Add", scaled, self.constant(shifts - 1))

    def gelu(self, x: str) -> str:
        error = self.node("Erf", self.node("Div", x, self.constant(np.sqrt(2))))
        return self.node("Mul", self.node("Mul", x, self.node("Add", error, self.constant(1))), self.constant(0.5))

    def heads(self, x: str, order: list[int]) -> str:
        split = self.node("Reshape", x, self.constant([1, TOKENS, HEADS, WIDTH // HEADS], "int64"))
        return self.node("Transpose", split, perm=order)

    def attention(self, x: str) -> str:
        query, key, value = (
            self.heads(self.dense(x, WIDTH, WIDTH), order) for order in ([0, 2, 1, 3], [0, 2, 3, 1], [0, 2, 1, 3])
        )
        scores = self.node("Div", self.node("MatMul", query, key), self.constant(np.sqrt(WIDTH / HEADS)))
        mixed = self.node("MatMul", self.node("Softmax", scores, axis=-1), value)
        joined = self.node("Transpose", mixed, perm=[0, 2, 1, 3])
        return self.dense(self.node("Reshape", joined, self.constant([1, TOKENS, WIDTH], "int64")), WIDTH, WIDTH)

    def block(self, x: str) -> str:
        x = self.node("Add", x, self.attention(self.norm(x)))
        wide = self.gelu(self.dense(self.norm(x), WIDTH, 2 * WIDTH))
        return self.node("Add", x, self.dense(wide, 2 * WIDTH, WIDTH))

    def tokens(self, image: str) -> str:
        patches = self.node("Conv", image, self.weights(WIDTH, 1, 2, 2), kernel_shape=[2, 2], strides=[2, 2])
        flat = self.node("Reshape", patches, self.constant([1, WIDTH, TOKENS], "int64"))
        return self.node("Add", self.node("Transpose", flat, perm=[0, 2, 1]), self.weights(1, TOKENS, WIDTH))


def save_model(path: Path) -> None:
    net = Network(np.random.default_rng(11))
    tokens = net.norm(net.block(net.block(net.tokens("image"))))
    scores = net.dense(net.node("ReduceMean", tokens, axes=[1], keepdims=0), WIDTH, CLASSES)
    ends = [helper.make_tensor_value_info("image", TensorProto.FLOAT, (1, 1, SIDE, SIDE))]
    results = [helper.make_tensor_value_info(scores, TensorProto.FLOAT, (1, CLASSES))]
    graph = helper.make_graph(net.nodes, "vit", ends, results, net.constants)
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), path)


def test_two_blocks_quantised(tmp_path: Path) -> None:
    """Nothing is float; int8 is exact on the emulator, and near the float model."""
    save_model(tmp_path / "vit.onnx")
    images = np.random.default_rng(12).normal(size=(50, 1, 1, SIDE, SIDE)).astype(np.float32)
    np.savez(tmp_path / "samples.npz", in0=images[:40])
    built = build(tmp_path / "vit.onnx", tmp_path / "out", calibration=tmp_path / "samples.npz", pes=1, io="int8")
    kinds = " ".join(op["op"] for op in built.manifest.summary["ops"]).split()
    assert [kinds.count(kind) for kind in ("norm", "softmax", "matmul", "lookup")] == [5, 2, 4, 2]
    assert not {"subtract", "divide", "multiply"} & set(kinds)
    assert not any(kind.startswith("nn.") for kind in kinds)
    assert min(layer["sqnr_db"] for layer in built.manifest.summary["quantization"]) > 20
    assert api.validate(tmp_path / "out").passed
    assert _signal_over_error(tmp_path, images[40:]) > 20


def _signal_over_error(folder: Path, images: np.ndarray) -> float:
    """Of the emulator's scores against ONNX Runtime's of the float model, on images that calibrated nothing, in dB."""
    net = api.load_build(folder / "out").net()
    given, result = (net.tensor(name).quantization for name in (net.inputs[0], net.outputs[0]))
    assert given is not None
    assert result is not None
    integers = np.clip(np.rint(images / given.scale) + given.zero_point, -128, 127).astype(np.int8)
    shape = net.tensor(net.inputs[0]).shape
    np.savez(folder / "inputs.npz", in0=integers.reshape(len(integers), *shape))
    (got,) = api.run(folder / "out", inputs=folder / "inputs.npz")
    real = (got.astype(np.float64) - result.zero_point) * result.scale
    expected = np.stack([run_onnx(folder / "vit.onnx", {"image": image})[0] for image in images]).reshape(real.shape)
    return float(10 * np.log10(np.sum(expected**2) / np.sum((real - expected) ** 2)))
