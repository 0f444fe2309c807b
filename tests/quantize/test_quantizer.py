"""A plug-in's quantizer: scales supported by the hardware, in networks quantised here."""

from __future__ import annotations

from dataclasses import replace
from math import ceil, log2
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from helpers import CHECKOUT
from npukit.errors import NpukitError
from npukit.net.tensor import Quantization, Tensor
from npukit.quantize.choose import FIXED_SCALE
from npukit.quantize.models import Loaded, OwnImport, load_model
from npukit.quantize.scales import Quantizer, in_turn

DIGITS = CHECKOUT / "examples/digits"


def power_of_two(tensor: Tensor, values: np.ndarray | None) -> Tensor:
    """A symmetric tensor with a single scale, a power of two."""
    del values
    given = tensor.quantization
    assert given is not None
    pairs = zip(given.scales, given.zero_points, strict=True)
    largest = max(scale * max(128 + zero, 127 - zero) for scale, zero in pairs)
    return replace(tensor, quantization=Quantization((2.0 ** ceil(log2(largest / 127)),), (0,)))


def loaded(tmp_path: Path, *quantizers: Quantizer, keep_float: tuple[str, ...] = ()) -> Loaded:
    digits = np.load(DIGITS / "digits.npz")
    np.savez(tmp_path / "samples.npz", in0=digits["float0"][:100], labels=digits["labels"][:100])

    samples = tmp_path / "samples.npz"
    own = OwnImport(quantizers=quantizers)
    return load_model(DIGITS / "digits_float.onnx", calibration=samples, keep_float=keep_float, own=own)


@pytest.mark.exhaustive
def test_all_scales_are_its(tmp_path: Path) -> None:
    found = loaded(tmp_path, power_of_two)
    of_kernels = set(FIXED_SCALE.values())
    held = [each.quantization for each in found.net.tensors.values() if each.quantization not in (None, *of_kernels)]
    int8 = [each for each in found.net.tensors.values() if each.dtype == "int8"]
    assert len(held) >= len(int8) - 1
    assert all(len(each.scales) == 1 and not each.zero_point and log2(each.scale).is_integer() for each in held if each)
    assert found.report is not None
    plain = loaded(tmp_path).report
    assert plain is not None
    mean, before = (np.mean([each.sqnr_db for each in report.layers]) for report in (found.report, plain))
    assert 20 < mean < before


def four_bits(tensor: Tensor, values: np.ndarray | None) -> Tensor:
    """Weights from -7 to 7 with a single scale."""
    if values is None:
        return tensor
    return replace(tensor, dtype="int4", quantization=Quantization((float(np.abs(values).max()) / 7,), (0,)))


@pytest.mark.exhaustive
def test_weights_of_four_bits_with_one_scale(tmp_path: Path) -> None:
    net = loaded(tmp_path, four_bits).net
    weights = [net.constants[op.inputs[1]] for op in net.ops if op.kind in ("conv2d", "depthwise_conv2d", "dense")]
    assert len(weights) > 3
    assert all(each.dtype == np.int8 and np.abs(each).max() == 7 for each in weights)
    assert all(len(set(net.tensors[op.inputs[1]].quantization.scales)) == 1 for op in net.ops if op.kind == "conv2d")  # type: ignore[union-attr]


@pytest.mark.exhaustive
def test_scales_of_what_is_read_in_float_are_its_too(tmp_path: Path) -> None:
    found = loaded(tmp_path, power_of_two, keep_float=("softmax_0",))
    given = {each.quantization for each in found.net.tensors.values()} - {None, *FIXED_SCALE.values()}
    assert all(log2(scale).is_integer() for each in given if each for scale in each.scales)


@pytest.mark.parametrize(
    ("changed", "refused"),
    [
        ({"dtype": "int16"}, "makes int16, not int8, of"),
        ({"dtype": "int4"}, "makes int4, not int8, of"),
        ({"name": "mine"}, "changes more than the type, the scales and the zero points of"),
        ({"quantization": None}, "gives None for a Quantization of"),
        ({"quantization": Quantization((1.0, 2.0), (0, 0), 0)}, "gives 2 scales and 2 zero points, not"),
        ({"quantization": Quantization((0.0,), (0,))}, "gives the scale 0.0 of"),
        ({"quantization": Quantization((float("nan"),), (0,))}, "gives the scale nan of"),
        ({"quantization": Quantization((1.0,), (128,))}, "gives a zero point that no int8 has of"),
    ],
)
def test_what_no_activation_can_have_is_refused(changed: dict[str, Any], refused: str) -> None:
    quantizer = in_turn([lambda tensor, values: replace(tensor, **changed)])
    with pytest.raises(NpukitError, match=f"the quantizer {refused}.* x"):
        quantizer(Tensor("x", (2, 4), "int8", Quantization((0.5,), (3,))), None)
