"""A small quantised network to try hardware with: a 1 x 1 convolution, a pool, a dense layer, a softmax."""

from __future__ import annotations

import numpy as np

from npukit.accel.subgraphs.tflite_file import subgraph_tflite
from npukit.net.net import Net, Op, fuse
from npukit.net.ops import Conv2d, Dense, MaxPool, Reshape, Softmax
from npukit.net.tensor import Quantization, Tensor

_REAL, _SHARE = Quantization((0.05,), (3,)), Quantization((1 / 256,), (-128,))


def small_tflite() -> bytes:
    """The network as a TFLite file, the same every time."""
    net = _small_net()
    return subgraph_tflite(net, fuse(net.ops, whole=True))


def _small_net() -> Net:
    shapes = {
        "image": (1, 8, 8, 16),
        "wide": (1, 8, 8, 32),
        "small": (1, 4, 4, 32),
        "flat": (1, 512),
        "scores": (1, 10),
    }
    filters = {"wide": (32, 1, 1, 16), "scores": (10, 512)}
    tensors = {name: Tensor(name, shape, "int8", _REAL) for name, shape in shapes.items()}
    tensors["shares"] = Tensor("shares", (1, 10), "int8", _SHARE)
    constants: dict[str, np.ndarray] = {}
    random = np.random.default_rng(1)
    for name, shape in filters.items():
        constants[f"{name} weights"] = random.integers(-127, 128, shape, np.int8)
        constants[f"{name} bias"] = random.integers(-500, 500, shape[0], np.int32)
        scales = Quantization(tuple(random.uniform(0.001, 0.004, shape[0]).tolist()), (0,) * shape[0], 0)
        tensors[f"{name} weights"] = Tensor(f"{name} weights", shape, "int8", scales)
        tensors[f"{name} bias"] = Tensor(f"{name} bias", shape[:1], "int32")
    ops = (
        Op("wide", Conv2d(), ("image", "wide weights", "wide bias"), ("wide",)),
        Op("small", MaxPool((2, 2), (2, 2)), ("wide",), ("small",)),
        Op("flat", Reshape(), ("small",), ("flat",)),
        Op("scores", Dense(), ("flat", "scores weights", "scores bias"), ("scores",)),
        Op("shares", Softmax(), ("scores",), ("shares",)),
    )
    return Net("small", ("image",), ("shares",), ops, tensors, constants)
