"""The third-party int8 models, from the file to the last bit."""

from __future__ import annotations

from collections.abc import Sequence
from unittest.mock import patch

import numpy as np
import pytest

from helpers import models
from npukit.frontend.models import load_net_from_model
from npukit.net.net import Net
from npukit.net.ops import convolution
from npukit.net.ops.table import total_macs
from npukit.net.reference import evaluate, run_reference

MACS = {
    "hello_world_int8": 288,
    "kws_ref_model": 2_656_768,
    "ad01_int8": 264_192,
    "pretrainedResnet_quant": 12_501_632,
    "vww_96_int8": 7_489_664,
}
"""MACs stated on the models' own page."""


@pytest.mark.parametrize("name", MACS)
def test_equals_tflite_micro_on_every_vector(name: str) -> None:
    net = load_net_from_model(models() / f"{name}.tflite")
    vectors = np.load(models() / f"{name}.npz")
    (got,) = run_reference(net, [vectors["in0"]])
    assert np.array_equal(got.reshape(vectors["out0_tflm"].shape), vectors["out0_tflm"])


@pytest.mark.parametrize("name", MACS)
def test_has_the_stated_work(name: str) -> None:
    assert total_macs(load_net_from_model(models() / f"{name}.tflite")) == MACS[name]


def layers(net: Net, name: str) -> tuple[Sequence[np.ndarray], Sequence[np.ndarray]]:
    """The output of each op in npukit, and in the layer file."""
    file = np.load(models() / f"{name}_layers.npz")
    values = evaluate(net, [file["in0"]])
    expected = [file[key] for key in sorted(file.files) if key.startswith("op")]
    return [values[op.output] for op in net.ops], expected


@pytest.mark.parametrize("name", ["kws_ref_model", "pretrainedResnet_quant", "vww_96_int8"])
def test_equals_the_layer_file_in_every_layer(name: str) -> None:
    got, expected = layers(load_net_from_model(models() / f"{name}.tflite"), name)
    assert len(got) == len(expected)
    for index, (ours, theirs) in enumerate(zip(got, expected, strict=True)):
        assert np.array_equal(ours.ravel(), theirs.ravel()), f"op {index}"


def rounded_once(value: np.ndarray, multiplier: np.ndarray, shift: np.ndarray) -> np.ndarray:
    """LiteRT's rescaling of fully connected layers."""
    return (value * multiplier.astype(np.int64) + (1 << (30 - shift.astype(np.int64)))) >> (31 - shift.astype(np.int64))


def test_hello_world_differs_from_its_layer_file_only_as_litert_rounds_once() -> None:
    """The layer files come from LiteRT, and all three layers of this model are fully connected."""
    net = load_net_from_model(models() / "hello_world_int8.tflite")
    got, expected = layers(net, "hello_world_int8")
    assert sum(np.count_nonzero(a.ravel() != b.ravel()) for a, b in zip(got, expected, strict=True)) == 1
    with patch.object(convolution, "multiply_by_quantized_multiplier", rounded_once):
        got, expected = layers(net, "hello_world_int8")
    assert all(np.array_equal(a.ravel(), b.ravel()) for a, b in zip(got, expected, strict=True))


@pytest.mark.exhaustive
def test_keyword_spotting_is_right_as_often_as_published() -> None:
    net = load_net_from_model(models() / "kws_ref_model.tflite")
    samples = np.load(models() / "kws_accuracy.npz")
    (scores,) = run_reference(net, [samples["in0"]])
    right = np.count_nonzero(scores.reshape(len(scores), -1).argmax(axis=1) == samples["labels"])
    assert right == 901
