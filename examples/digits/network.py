"""The example network in float, in numpy: forward, backward, training. Activations NHWC, weights as in TFLite.

image 8x8x1 - stem: conv 3x3, 16 - depthwise 3x3 - pointwise 1x1, 16 - add stem - down: conv 3x3 / 2, 32
            - average pool 4x4 - dense 10 - softmax
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

Array = np.ndarray
Parameters = dict[str, Array]

SHAPES = {"stem": (16, 3, 3, 1), "depthwise": (1, 3, 3, 16), "pointwise": (16, 1, 1, 16), "down": (32, 3, 3, 16)}
CLASSES = 10


@dataclass(frozen=True)
class Window:
    """Kernel size, stride and padding before and after of a convolution, equal in both directions."""

    size: int
    stride: int
    before: int
    after: int

    def padded(self, x: Array) -> Array:
        pad = (self.before, self.after)
        return np.pad(x, ((0, 0), pad, pad, (0, 0)))

    def taps(self, side: int) -> Iterator[tuple[int, int, tuple[slice, ...]]]:
        """Each kernel position, with its slice of the padded input."""
        reach = (side + self.before + self.after - self.size) // self.stride * self.stride + 1
        for ky in range(self.size):
            for kx in range(self.size):
                rows, columns = slice(ky, ky + reach, self.stride), slice(kx, kx + reach, self.stride)
                yield ky, kx, (slice(None), rows, columns)

    def unpadded(self, x: Array) -> Array:
        stop = x.shape[1] - self.after
        return x[:, self.before : stop, self.before : stop]


SAME = Window(3, 1, 1, 1)
POINT = Window(1, 1, 0, 0)
# TFLite's SAME padding of an even side at stride 2 adds a single row of zeros, at the end.
HALVE = Window(3, 2, 0, 1)
WINDOWS = {"stem": SAME, "depthwise": SAME, "pointwise": POINT, "down": HALVE}


def initial(rng: np.random.Generator) -> Parameters:
    """He's initial weights, zero biases."""
    weights = {name: _he(rng, shape, fan_in=_fan_in(shape)) for name, shape in SHAPES.items()}
    weights["dense"] = _he(rng, (CLASSES, 32), fan_in=32)
    biases = {f"{name}_bias": np.zeros(_channels(w), np.float32) for name, w in weights.items()}
    return weights | biases


def logits(p: Parameters, x: Array) -> Array:
    return _forward(p, x)[-1]


def gradients(p: Parameters, x: Array, labels: Array) -> Parameters:
    """Gradients of the mean cross entropy over a batch."""
    stem, depthwise, joined, down, pooled, scores = _forward(p, x)
    g = _softmax(scores)
    g[np.arange(len(labels)), labels] -= 1
    g /= len(labels)
    grads = {"dense": g.T @ pooled, "dense_bias": g.sum(0)}
    g_down = np.broadcast_to((g @ p["dense"])[:, None, None] / 16, down.shape) * (down > 0)
    g_joined = _backward(p, grads, "down", joined, g_down) * (joined > 0)
    g_depthwise = _backward(p, grads, "pointwise", depthwise, g_joined) * (depthwise > 0)
    g_stem = (g_joined + _backward(p, grads, "depthwise", stem, g_depthwise)) * (stem > 0)
    _backward(p, grads, "stem", x, g_stem)
    return grads


def _forward(p: Parameters, x: Array) -> tuple[Array, ...]:
    stem = _relu(_convolve(p, "stem", x))
    depthwise = _relu(_convolve(p, "depthwise", stem))
    joined = _relu(_convolve(p, "pointwise", depthwise) + stem)
    down = _relu(_convolve(p, "down", joined))
    pooled = down.mean((1, 2))
    return stem, depthwise, joined, down, pooled, pooled @ p["dense"].T + p["dense_bias"]


def _convolve(p: Parameters, name: str, x: Array) -> Array:
    w, window = p[name], WINDOWS[name]
    padded = window.padded(x)
    depthwise = name == "depthwise"
    parts = (
        padded[here] * w[0, ky, kx] if depthwise else padded[here] @ w[:, ky, kx].T
        for ky, kx, here in window.taps(x.shape[1])
    )
    return sum(parts, start=p[f"{name}_bias"])


def _backward(p: Parameters, grads: Parameters, name: str, x: Array, g: Array) -> Array:
    """Adds the layer's gradients to `grads`. Returns the gradient of the layer's input."""
    w, window = p[name], WINDOWS[name]
    padded = window.padded(x)
    g_padded, g_w = np.zeros_like(padded), np.zeros_like(w)
    for ky, kx, here in window.taps(x.shape[1]):
        if name == "depthwise":
            g_w[0, ky, kx] = (padded[here] * g).sum((0, 1, 2))
            g_padded[here] += g * w[0, ky, kx]
        else:
            g_w[:, ky, kx] = np.tensordot(g, padded[here], axes=([0, 1, 2], [0, 1, 2]))
            g_padded[here] += g @ w[:, ky, kx]
    grads[name], grads[f"{name}_bias"] = g_w, g.sum((0, 1, 2))
    return window.unpadded(g_padded)


def train(x: Array, labels: Array, *, epochs: int = 40, batch: int = 64, rate: float = 1e-2) -> Parameters:
    """Adam with a falling rate."""
    rng = np.random.default_rng(0)
    p = initial(rng)
    first = {name: np.zeros_like(value) for name, value in p.items()}
    second = {name: np.zeros_like(value) for name, value in p.items()}
    steps = epochs * (len(x) // batch)
    for step in range(1, steps + 1):
        chosen = rng.choice(len(x), batch, replace=False)
        grads = gradients(p, x[chosen], labels[chosen])
        now = rate * 0.5 * (1 + np.cos(np.pi * step / steps))
        for name, g in grads.items():
            first[name] = 0.9 * first[name] + 0.1 * g
            second[name] = 0.999 * second[name] + 0.001 * g * g
            mean, square = first[name] / (1 - 0.9**step), second[name] / (1 - 0.999**step)
            p[name] = (p[name] - now * mean / (np.sqrt(square) + 1e-8)).astype(np.float32)
    return p


def _relu(x: Array) -> Array:
    return np.maximum(x, 0)


def _softmax(scores: Array) -> Array:
    powers = np.exp(scores - scores.max(1, keepdims=True))
    return powers / powers.sum(1, keepdims=True)


def _he(rng: np.random.Generator, shape: tuple[int, ...], *, fan_in: int) -> Array:
    return (rng.standard_normal(shape) * np.sqrt(2 / fan_in)).astype(np.float32)


def _fan_in(shape: tuple[int, ...]) -> int:
    """The number of inputs of an output element. A depthwise layer's output reads a single channel."""
    _, height, width, channels = shape
    return height * width * (1 if shape[0] == 1 else channels)


def _channels(weights: Array) -> int:
    return weights.shape[-1] if weights.shape[0] == 1 else weights.shape[0]
