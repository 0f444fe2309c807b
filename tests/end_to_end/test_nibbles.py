"""Weights of 4 bits in a TFLite file: two a byte in the PEs' memories, and the array is no slower."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import tflite

from end_to_end.builds import build
from frontend.tflite_models import Model
from helpers import first_of, needs
from npukit import api
from npukit.project.build_folder import Build

SIDE, CHANNELS = 8, 32


def network(bits: int) -> bytes:
    """A convolution, a depthwise convolution and two dense layers."""
    model, random = Model(), np.random.default_rng(4)
    model.input("x", (1, SIDE, SIDE, 8), 0.05, -3)
    _layer(model, "CONV_2D", ("x", "a"), (CHANNELS, 3, 3, 8), (1, SIDE, SIDE, CHANNELS), bits, random)
    shape = (1, 3, 3, CHANNELS)
    _layer(model, "DEPTHWISE_CONV_2D", ("a", "b"), shape, (1, SIDE, SIDE, CHANNELS), bits, random)
    depth = SIDE * SIDE * CHANNELS
    model.constant("shape", np.array([1, depth], np.int32))
    model.tensor("flat", (1, depth), 0.1, 2)
    model.op("RESHAPE", ["b", "shape"], ["flat"], "Reshape")
    _layer(model, "FULLY_CONNECTED", ("flat", "c"), (40, depth), (1, 40), bits, random)
    _layer(model, "FULLY_CONNECTED", ("c", "y"), (7, 40), (1, 7), bits, random)
    return model.bytes(["y"])


def _layer(
    model: Model,
    kind: str,
    ends: tuple[str, str],
    weights: tuple[int, ...],
    made: tuple[int, ...],
    bits: int,
    random: np.random.Generator,
) -> None:
    most = 2 ** (bits - 1) - 1
    values = random.integers(-most, most + 1, weights).astype(np.int8)
    scale = 0.7 / most / np.prod(weights[1:]) ** 0.5
    (model.halves if bits == 4 and kind != "DEPTHWISE_CONV_2D" else model.constant)(f"{ends[1]}_w", values, scale)
    channels = weights[-1] if kind == "DEPTHWISE_CONV_2D" else weights[0]
    given = 0.05 if ends[0] == "x" else 0.1
    model.constant(f"{ends[1]}_b", random.integers(-300, 300, channels, np.int32), scale * given)
    model.tensor(ends[1], made, 0.1, 2)
    steps = {} if kind == "FULLY_CONNECTED" else {"Padding": tflite.Padding.SAME, "StrideH": 1, "StrideW": 1}
    steps |= {"DepthMultiplier": 1} if kind == "DEPTHWISE_CONV_2D" else {}
    tables = {"CONV_2D": "Conv2D", "DEPTHWISE_CONV_2D": "DepthwiseConv2D", "FULLY_CONNECTED": "FullyConnected"}
    model.op(kind, [ends[0], f"{ends[1]}_w", f"{ends[1]}_b"], [ends[1]], tables[kind], **steps)


def built(bits: int, folder: Path, pes: int) -> Build:
    path = folder / f"bits{bits}.tflite"
    path.write_bytes(network(bits))
    return build(path, folder / f"out{bits}", pes=pes)


def constants(build: Build) -> int:
    return sum(each["constants"] for each in build.manifest.summary["memory"])


@pytest.mark.parametrize("pes", first_of([2, 1]))
def test_half_the_constants_and_no_more_cycles(pes: int, tmp_path: Path) -> None:
    narrow, usual = (built(bits, tmp_path, pes) for bits in (4, 8))
    assert constants(narrow) < 0.55 * constants(usual)
    assert api.validate(narrow).passed
    cycles = [api.bench(each, frames=1).latency_cycles or 0 for each in (narrow, usual)]
    assert 0 < cycles[0] <= cycles[1]


@needs("verilator")
@pytest.mark.exhaustive
def test_in_rtl(tmp_path: Path) -> None:
    found = api.validate(built(4, tmp_path, 1), on="rtl", cases=1)
    assert found.passed
    assert (found.rtl_works or 0) > found.layers_checked
