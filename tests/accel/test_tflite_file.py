"""Subgraphs as TFLite files: TFLite Micro computes the reference's outputs, bit for bit."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from accel.subgraph_nets import IMAGE, NETS, PLAIN, one_op, whole
from end_to_end.builds import DIGITS
from frontend.tflite_models import run_litert, run_micro
from helpers import first_of, models
from npukit.accel.subgraphs.tflite_file import TFLITE_KINDS, subgraph_tflite
from npukit.errors import NpukitError
from npukit.net.net import Net
from npukit.net.ops import Attributes, AveragePool, Slice
from npukit.net.reference.interpreter import run_reference
from npukit.quantize.models import load_model


def is_what_tflite_micro_computes(net: Net) -> None:
    random = np.random.default_rng(0)
    given = [random.integers(-128, 128, net.tensor(name).shape, np.int8) for name in net.inputs]
    (got,) = run_micro(subgraph_tflite(net, whole(net)), [given])
    for mine, theirs in zip(run_reference(net, given), got, strict=True):
        np.testing.assert_array_equal(mine, theirs.reshape(mine.shape))


@pytest.mark.parametrize("name", NETS)
def test_each_kind(name: str) -> None:
    is_what_tflite_micro_computes(NETS[name])


def test_every_kind_is_tried() -> None:
    tried = {op.kind for net in (*NETS.values(), load_model(DIGITS / "digits_int8.tflite").net) for op in net.ops}
    assert tried >= TFLITE_KINDS


MODELS = ["ad01_int8", "kws_ref_model", "pretrainedResnet_quant", "vww_96_int8"]


@pytest.mark.parametrize("name", ["digits", *first_of(MODELS, 2)])
def test_whole_networks(name: str) -> None:
    path = DIGITS / "digits_int8.tflite" if name == "digits" else models() / f"{name}.tflite"
    is_what_tflite_micro_computes(load_model(path).net)


def test_litert_takes_it_too(tmp_path: Path) -> None:
    net = NETS["convolution, padded on one side, dilated"]
    (tmp_path / "subgraph.tflite").write_bytes(subgraph_tflite(net, whole(net)))
    given = np.random.default_rng(1).integers(-128, 128, IMAGE, np.int8)
    (got,), (wanted,) = run_litert(tmp_path / "subgraph.tflite", [given]), run_reference(net, [given])
    np.testing.assert_array_equal(got, wanted)


@pytest.mark.parametrize(
    ("net", "says"),
    [
        (one_op(AveragePool((2, 2), (2, 2), (1, 0, 0, 1)), (1, 4, 5, 6), PLAIN), "no average pool with padding"),
        (one_op(Slice((0, 6, 0, 0), (1, 1, 9, 6), (1, -1, 1, 1)), (1, 5, 9, 6), PLAIN), "a slice that goes backwards"),
        (one_op(Attributes(), IMAGE), "y: TFLite has no form of"),
    ],
)
def test_what_has_no_form_is_named(net: Net, says: str) -> None:
    with pytest.raises(NpukitError, match=says):
        subgraph_tflite(net, whole(net))
