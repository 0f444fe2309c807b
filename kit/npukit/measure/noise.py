"""Noise: inputs drawn from a digest of the net's name, the same on every machine."""

from __future__ import annotations

import hashlib
from dataclasses import replace

import numpy as np

from npukit.measure.cases import Cases
from npukit.net.net import Net
from npukit.net.ops import Quantize
from npukit.net.tensor import Tensor


def filled(net: Net, cases: Cases, frames: int, least: int = 1) -> Cases:
    """The cases with noise behind them, until they are `least` and fill the last batch of `frames`.

    Cases of a sequence stay as they are: each frame follows from the frame before.
    """
    count = max(-(-cases.count // frames) * frames, least)
    if cases.sequence or count == cases.count:
        return cases
    more = (_like(net, name, given, count - cases.count) for name, given in zip(net.inputs, cases.inputs, strict=True))
    return replace(cases, inputs=tuple(map(np.concatenate, zip(cases.inputs, more, strict=True))))


def _like(net: Net, name: str, given: np.ndarray, count: int) -> np.ndarray:
    """Noise for an input. Integers that may be places are drawn from the given ones."""
    if not counts(net.tensor(name)):
        return noise(net, name, count, "filling")
    known = np.unique(given)
    return known[drawn(net, name, count, "filling", "uint16") % len(known)]


def noise(net: Net, name: str, count: int, salt: str = "") -> np.ndarray:
    """Integers over the whole range of the input's type; floats from -8 to 8, or over the range of their quantisation.

    0 or 1 where integers stand for nothing else, because they may be places.
    """
    tensor = net.tensor(name)
    if tensor.dtype == "float32":
        return _within(net, name, drawn(net, name, count, salt, "int16") / 4096).astype(np.float32)
    values = drawn(net, name, count, salt, "uint8" if counts(tensor) else tensor.dtype)
    return (values & 1).astype(tensor.dtype) if counts(tensor) else values


def counts(tensor: Tensor) -> bool:
    """True of integers that stand for no real numbers: they may be places, or tokens."""
    return tensor.quantization is None and tensor.dtype in ("bool", "int32", "int64")


def drawn(net: Net, name: str, count: int, salt: str, dtype: str) -> np.ndarray:
    """Any values of a type, `count` times as many as the input has."""
    tensor, kind = net.tensor(name), np.dtype(dtype)
    raw = hashlib.shake_128(f"{net.name} {name}{salt}".encode()).digest(count * tensor.elements * kind.itemsize)
    return np.frombuffer(raw, kind).reshape(count, *tensor.shape)


def _within(net: Net, name: str, values: np.ndarray) -> np.ndarray:
    """Numbers from -8 to 8 spread over what the op that quantises the input tells apart, if one does."""
    op = next((each for each in net.ops if each.kind == Quantize.kind and each.inputs[0] == name), None)
    given = net.tensor(op.output).quantization if op else None
    if op is None or given is None:
        return values
    offset, step = (net.constants[each] for each in op.inputs[1:])
    return (values * 16 - given.zero_point) * step + offset
