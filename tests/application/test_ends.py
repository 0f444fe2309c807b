"""Inputs and outputs with the file's types: float where the model has float."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from frontend.tflite_models import Model, run_litert
from npukit.application.declared import Declared, parsed_input, parsed_output
from npukit.net.net import Net
from npukit.net.ops import Quantize
from npukit.net.reference import run_reference
from npukit.quantize.models import load_model

SCALE, ZERO = 0.25, 3


def between_floats(folder: Path) -> Path:
    """A model with a quantised input, int8 computation, a float output and an int8 output."""
    model = Model()
    model.inputs.append(model.tensor("x", (1, 4, 6, 2), dtype="float32"))
    model.tensor("q", (1, 4, 6, 2), SCALE, ZERO)
    model.op("QUANTIZE", ["x"], ["q"])
    model.tensor("r", (1, 4, 6, 2), SCALE, ZERO)
    model.op("RELU", ["q"], ["r"])
    model.tensor("y", (1, 4, 6, 2), dtype="float32")
    model.op("DEQUANTIZE", ["r"], ["y"])
    (folder / "model.tflite").write_bytes(model.bytes(["y", "r"]))
    return folder / "model.tflite"


def types(net: Net) -> tuple[list[str], list[str]]:
    return [net.tensor(name).dtype for name in net.inputs], [net.tensor(name).dtype for name in net.outputs]


def test_what_the_file_takes_and_gives_in_float_the_network_does_too(tmp_path: Path) -> None:
    path = between_floats(tmp_path)
    net = load_model(path, in_file_types=True).net
    assert types(net) == (["float32"], ["float32", "int8"])
    halves = np.arange(-24, 24).reshape(1, 4, 6, 2).astype(np.float32) * np.float32(SCALE / 2)
    for data in (halves, np.random.default_rng(1).normal(0, 20, (1, 4, 6, 2)).astype(np.float32)):
        for ours, theirs in zip(run_reference(net, [data]), run_litert(path, [data]), strict=True):
            assert np.array_equal(ours, theirs)


def test_as_integers_where_these_are_wanted(tmp_path: Path) -> None:
    net = load_model(between_floats(tmp_path)).net
    assert types(net) == (["int8"], ["int8", "int8"])


@pytest.mark.parametrize(
    ("declared", "expected"),
    [
        (Declared(input=(parsed_input("uint8 scale=0.1"),)), (["uint8"], ["float32", "int8"])),
        (Declared(input=(parsed_input("layout=NCHW"),)), (["float32"], ["float32", "int8"])),
        (Declared(output=(parsed_output("argmax"),)), (["float32"], ["int32", "int8"])),
    ],
)
def test_what_is_declared_comes_first(
    declared: Declared, expected: tuple[list[str], list[str]], tmp_path: Path
) -> None:
    net = load_model(between_floats(tmp_path), declared=declared, in_file_types=True).net
    assert types(net) == expected


def test_halves_are_rounded_as_the_format_rounds_them(tmp_path: Path) -> None:
    """TensorFlow Lite rounds halves away from zero; a declared input rounds halves to even, as documented."""
    path = between_floats(tmp_path)
    plain = load_model(path, in_file_types=True).net
    scaled = load_model(path, declared=Declared(input=(parsed_input("float32 scale=2"),)), in_file_types=True).net
    found = [op.attributes for net in (plain, scaled) for op in net.ops if op.kind == "quantize"]
    assert found == [Quantize(away=True), Quantize()]
