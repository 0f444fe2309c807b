"""Dilated convolutions in the form of converters: a single convolution, equal to LiteRT's three ops."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import tflite

from frontend.tflite_models import Model, run_litert
from npukit.net.reference import run_reference
from npukit.quantize.models import load_model

HEIGHT, WIDTH, CHANNELS, SIDE = 11, 9, 8, 2
AROUND, CROPS = ((2, 3), (2, 3)), ((0, 1), (0, 1))
CUT = (4, 8, 7, CHANNELS)


def model(kind: str, folder: Path, *, read_between: bool = False) -> Path:
    m, random = Model(), np.random.default_rng(4)
    m.inputs.append(m.tensor("x", (1, HEIGHT, WIDTH, CHANNELS), 0.05, 7))
    side = m.constant("side", np.array([SIDE, SIDE], np.int32))
    around, crops = (m.constant(n, np.array(v, np.int32)) for n, v in (("around", AROUND), ("crops", CROPS)))
    m.op("SPACE_TO_BATCH_ND", ["x", side, around], [m.tensor("cut", CUT, 0.05, 7)], "SpaceToBatchND")
    shape = (CHANNELS, 3, 3, CHANNELS) if kind == "CONV_2D" else (1, 3, 3, CHANNELS)
    weights = random.integers(-127, 128, shape).astype(np.int8)
    w = m.constant("w", weights, [0.02] * CHANNELS, axis=0 if kind == "CONV_2D" else 3)
    b = m.constant("b", random.integers(-900, 900, CHANNELS).astype(np.int32), [0.001] * CHANNELS)
    plain = {"Padding": tflite.Padding.VALID, "StrideH": 1, "StrideW": 1, "DilationHFactor": 1, "DilationWFactor": 1}
    more = {} if kind == "CONV_2D" else {"DepthMultiplier": 1}
    table = "Conv2D" if kind == "CONV_2D" else "DepthwiseConv2D"
    made = m.tensor("made", (4, CUT[1] - 2, CUT[2] - 2, CHANNELS), 0.2, -3)
    m.op(kind, ["cut", w, b], [made], table, **plain, **more)
    m.op(
        "BATCH_TO_SPACE_ND",
        [made, side, crops],
        [m.tensor("y", (1, HEIGHT, WIDTH, CHANNELS), 0.2, -3)],
        "BatchToSpaceND",
    )
    (folder / "model.tflite").write_bytes(m.bytes(["y", "made"] if read_between else ["y"]))
    return folder / "model.tflite"


@pytest.mark.parametrize("kind", ["CONV_2D", "DEPTHWISE_CONV_2D"])
def test_three_ops_are_one_dilated_convolution(kind: str, tmp_path: Path) -> None:
    path = model(kind, tmp_path)
    net = load_model(path).net
    (op,) = net.ops
    assert op.kind == kind.lower().replace("_2d", "2d")
    assert getattr(op.attributes, "dilation", None) == (SIDE, SIDE)
    given = np.random.default_rng(5).integers(-128, 128, (1, HEIGHT, WIDTH, CHANNELS), np.int8)
    (ours,), (theirs,) = run_reference(net, [given]), run_litert(path, [given])
    assert np.array_equal(ours, theirs)


def test_what_is_read_between_stays(tmp_path: Path) -> None:
    assert len(load_model(model("CONV_2D", tmp_path, read_between=True)).net.ops) > 1


def lines(kind: str, folder: Path, side: int, around: tuple[int, int], crops: tuple[int, int]) -> Path:
    """A dilated convolution of lines as Keras writes Conv1D, with an addition of constants behind it."""
    m, random, length = Model(), np.random.default_rng(6), 29
    cut = (length + sum(around)) // side
    wide = (cut - 2) * side - sum(crops)
    m.inputs.append(m.tensor("x", (1, length, CHANNELS), 0.05, 7))
    for name, value in (("side", [side]), ("around", [around]), ("crops", [crops])):
        m.constant(name, np.array(value, np.int32))
    m.constant("axis", np.array(1, np.int32))
    m.constant("flat", np.array([side, cut - 2, CHANNELS], np.int32))
    tensors = {"cut": (side, cut, CHANNELS), "image": (side, 1, cut, CHANNELS)}
    for name, shape in tensors.items():
        m.tensor(name, shape, 0.05, 7)
    shapes = {"made": (side, 1, cut - 2, CHANNELS), "line": (side, cut - 2, CHANNELS), "joined": (1, wide, CHANNELS)}
    for name, shape in shapes.items():
        m.tensor(name, shape, 0.2, -3)
    m.op("SPACE_TO_BATCH_ND", ["x", "side", "around"], ["cut"], "SpaceToBatchND")
    m.op("EXPAND_DIMS", ["cut", "axis"], ["image"], "ExpandDims")
    shape = (CHANNELS, 1, 3, CHANNELS) if kind == "CONV_2D" else (1, 1, 3, CHANNELS)
    m.constant("w", random.integers(-127, 128, shape).astype(np.int8), [0.02] * CHANNELS, axis=shape.index(CHANNELS))
    m.constant("b", random.integers(-900, 900, CHANNELS).astype(np.int32), [0.001] * CHANNELS)
    plain = {"Padding": tflite.Padding.VALID, "StrideH": 1, "StrideW": 1, "DilationHFactor": 1, "DilationWFactor": 1}
    more, table = ({}, "Conv2D") if kind == "CONV_2D" else ({"DepthMultiplier": 1}, "DepthwiseConv2D")
    m.op(kind, ["image", "w", "b"], ["made"], table, **plain, **more)
    m.op("RESHAPE", ["made", "flat"], ["line"], "Reshape")
    m.op("BATCH_TO_SPACE_ND", ["line", "side", "crops"], ["joined"], "BatchToSpaceND")
    m.constant("c", random.integers(-127, 128, CHANNELS).astype(np.int8), 0.03, 2)
    m.op("ADD", ["joined", "c"], [m.tensor("y", (1, wide, CHANNELS), 0.25, 4)], "Add")
    (folder / "model.tflite").write_bytes(m.bytes(["y"]))
    return folder / "model.tflite"


@pytest.mark.parametrize("kind", ["CONV_2D", "DEPTHWISE_CONV_2D"])
@pytest.mark.parametrize(
    ("side", "around", "crops"), [(4, (4, 7), (0, 3)), (3, (0, 1), (0, 1)), (3, (6, 1), (0, 1)), (2, (2, 3), (0, 1))]
)
def test_lines_are_dilated_too(
    kind: str, side: int, around: tuple[int, int], crops: tuple[int, int], tmp_path: Path
) -> None:
    """With padding that the dilation does not divide, with padding on the left alone, and with none."""
    path = lines(kind, tmp_path, side, around, crops)
    net, given = load_model(path).net, np.random.default_rng(5).integers(-128, 128, (1, 29, CHANNELS), np.int8)
    assert [op.kind for op in net.ops if op.kind != "reshape"] == [kind.lower().replace("_2d", "2d"), "add"]
    (ours,), (theirs,) = run_reference(net, [given]), run_litert(path, [given])
    assert np.array_equal(ours, theirs)
