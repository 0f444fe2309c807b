"""A quantizer of a plug-in's: the scales that its hardware can have, in networks that are quantised here."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from math import ceil, log2
from pathlib import Path

import numpy as np
import pytest

from helpers import CHECKOUT
from npukit.errors import NpukitError
from npukit.net.tensor import Quantization, Tensor
from npukit.quantize.choose import FIXED
from npukit.quantize.models import Loaded, Own, load_model

DIGITS = CHECKOUT / "examples/digits"


def power_of_two(tensor: Tensor) -> Tensor:
    """The tensor around zero, with one scale that is a power of two."""
    given = tensor.quantization
    assert given is not None
    pairs = zip(given.scales, given.zero_points, strict=True)
    largest = max(scale * max(128 + zero, 127 - zero) for scale, zero in pairs)
    return replace(tensor, quantization=Quantization((2.0 ** ceil(log2(largest / 127)),), (0,)))


def loaded(tmp_path: Path, *quantizers: Callable[[Tensor], Tensor]) -> Loaded:
    digits = np.load(DIGITS / "digits.npz")
    np.savez(tmp_path / "samples.npz", in0=digits["float0"][:100], labels=digits["labels"][:100])

    samples = tmp_path / "samples.npz"
    return load_model(DIGITS / "digits_float.onnx", calibration=samples, own=Own(quantizers=quantizers))


def test_all_scales_are_its(tmp_path: Path) -> None:
    found = loaded(tmp_path, power_of_two)
    of_kernels = set(FIXED.values())
    held = [each.quantization for each in found.net.tensors.values() if each.quantization not in (None, *of_kernels)]
    int8 = [each for each in found.net.tensors.values() if each.dtype == "int8"]
    assert len(held) >= len(int8) - 1
    assert all(len(each.scales) == 1 and not each.zero_point and log2(each.scale).is_integer() for each in held if each)
    assert found.report is not None
    plain = loaded(tmp_path).report
    assert plain is not None
    mean, before = (np.mean([each.sqnr_db for each in report.layers]) for report in (found.report, plain))
    assert 20 < mean < before


def test_one_that_changes_the_type_is_refused(tmp_path: Path) -> None:
    with pytest.raises(NpukitError, match=r"the quantizer changes .* in more than its scales"):
        loaded(tmp_path, lambda tensor: replace(tensor, dtype="int16"))
