"""Subgraphs as ONNX files: ONNX's own checker accepts each file, and ONNX Runtime is within 1 of the reference."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest

from accel.subgraph_nets import IMAGE, NETS, PLAIN, one_op, whole
from end_to_end.builds import DIGITS
from npukit.accel.subgraphs.onnx_file import ONNX_KINDS, subgraph_onnx
from npukit.accel.subgraphs.tflite_file import TFLITE_KINDS
from npukit.errors import NpukitError
from npukit.net.net import Net
from npukit.net.ops import Attributes, Slice
from npukit.net.reference.interpreter import run_reference
from npukit.quantize.models import load_model
from oracles.onnx_runtime import run_onnx

ROUNDED_OTHERWISE = 0.05
"""Largest share of results on which single and double rounding may differ."""


def largest_difference(net: Net, path: Path) -> int:
    """The largest difference from the reference. Asserts that few results differ."""
    path.write_bytes(subgraph_onnx(net, whole(net)))
    onnx.checker.check_model(onnx.load(path), full_check=True)
    random = np.random.default_rng(0)
    given = {name: random.integers(-128, 128, net.tensor(name).shape, np.int8) for name in net.inputs}
    (got,), (wanted,) = run_onnx(path, given), run_reference(net, [*given.values()])
    apart = np.abs(got.astype(np.int32) - wanted)
    assert got.shape == wanted.shape
    assert np.mean(apart != 0) <= max(ROUNDED_OTHERWISE, 1 / apart.size)
    return int(apart.max())


@pytest.mark.parametrize("name", NETS)
def test_each_kind(name: str, tmp_path: Path) -> None:
    assert largest_difference(NETS[name], tmp_path / "one.onnx") <= 1


def test_the_formats_have_the_same_kinds() -> None:
    assert ONNX_KINDS == TFLITE_KINDS


def test_a_whole_network_recognises_the_same_digits(tmp_path: Path) -> None:
    """Differences of 1 grow through a network, but the network's answers stay the same."""
    net = load_model(DIGITS / "digits_int8.tflite").net
    (tmp_path / "whole.onnx").write_bytes(subgraph_onnx(net, whole(net)))
    for image in np.load(DIGITS / "digits.npz")["in0"][:20]:
        (got,), (wanted,) = run_onnx(tmp_path / "whole.onnx", {net.inputs[0]: image}), run_reference(net, [image])
        assert got.argmax() == wanted.argmax()


@pytest.mark.parametrize(
    ("net", "says"),
    [
        (one_op(Slice((0, 6, 0, 0), (1, 1, 9, 6), (1, -1, 1, 1)), (1, 5, 9, 6), PLAIN), "a slice that goes backwards"),
        (one_op(Attributes(), IMAGE), "y: ONNX has no form of"),
    ],
)
def test_what_has_no_form_is_named(net: Net, says: str) -> None:
    with pytest.raises(NpukitError, match=says):
        subgraph_onnx(net, whole(net))
