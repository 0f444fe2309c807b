"""Every int8 op of TFLite that npukit reads, with random shapes and parameters, against LiteRT's reference kernels.

LiteRT is an independent implementation, equal to the last bit with two exceptions. Ops in float in npukit
(`random_tflite_further.ROUNDED`) are at most 1 off. LiteRT rounds the rescaling of FULLY_CONNECTED once, TFLite Micro
twice. For this comparison, npukit's reference therefore rounds once, so that nothing but the rounding may differ. The
anomaly detection model shows the rounding of TFLite Micro otherwise (`test_mlperf_tiny.py`).

`python -m fuzz.tflite_ops` runs this test for longer.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from frontend.random_tflite import MAKERS, bundle_of, differing
from npukit.frontend.tflite.model import CUSTOM
from npukit.frontend.tflite.ops import CONVERTERS

ELSEWHERE = {
    *("FILL", "FLOOR_DIV", "FLOOR_MOD", "RANGE", "RANK", "REDUCE_PROD", "ZEROS_LIKE"),
    *("DIV", "ELU", "NEG", "SQRT", "SQUARE", "EXPAND_DIMS", "SHAPE", "SQUEEZE"),
    *("ADD_N", "BROADCAST_TO", "CEIL", "COS", "CUMSUM", "EMBEDDING_LOOKUP", "FLOOR", "POW", "ROUND", "SIGN", "SIN"),
    *("GREATER_EQUAL", "LESS", "LOGICAL_AND", "LOGICAL_NOT", "LOGICAL_OR", "LOG_SOFTMAX", "NOT_EQUAL", "SELECT", "SUM"),
    *("CONV_3D", "DENSIFY", "NON_MAX_SUPPRESSION_V4", "NON_MAX_SUPPRESSION_V5", "ONE_HOT", "REDUCE_ALL", "REDUCE_ANY"),
    *("ATAN2", "CONV_3D_TRANSPOSE", "LOCAL_RESPONSE_NORMALIZATION", "SCATTER_ND", "SEGMENT_SUM"),
    *("SVDF", "BIDIRECTIONAL_SEQUENCE_LSTM", "BIDIRECTIONAL_SEQUENCE_RNN", "UNIDIRECTIONAL_SEQUENCE_LSTM"),
    *("COMPLEX_ABS", "IMAG", "REAL", "RFFT2D", "UNIDIRECTIONAL_SEQUENCE_RNN"),
    *(kind for kind in CONVERTERS if kind.startswith(CUSTOM)),
}
"""Ops missing or imprecise in LiteRT's or TFLite Micro's int8, mere changes of shape, and custom ops.

`test_tflite_*.py` test these ops.
"""

AT_ONCE = 6
"""Ops in each model. Reading several ops from a model is faster."""


@pytest.mark.parametrize("maker", MAKERS)
@settings(max_examples=2, derandomize=True)
@given(seed=st.integers(0, 1 << 30))
def test_equal_to_litert(maker: str, seed: int, tmp_path: Path) -> None:
    assert not differing(bundle_of(seed, [maker] * AT_ONCE), tmp_path)


def test_no_op_is_forgotten() -> None:
    made = {code for maker in MAKERS for seed in range(9) for code, *_ in bundle_of(seed, [maker]).model.ops}
    assert made | ELSEWHERE == set(CONVERTERS)
    assert not made & ELSEWHERE
