"""Every int8 op of TFLite that npukit reads, with random shapes and parameters, against LiteRT's reference kernels.

They are an implementation that nobody here wrote, and equal to the last bit in all ops but those that npukit computes
in float (`random_tflite_further.ROUNDED`, at most 1 off) and one: FULLY_CONNECTED, whose
rescaling they round once and TFLite Micro twice. So that here, too, nothing but the rounding may differ, npukit's
reference rounds once for this comparison; that it rounds as TFLite Micro else, the anomaly detection model shows
(`test_mlperf_tiny.py`).

`python -m fuzz.tflite_ops` does this for long.
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
    *("DENSIFY", "SVDF", "UNIDIRECTIONAL_SEQUENCE_LSTM"),
    *(kind for kind in CONVERTERS if kind.startswith(CUSTOM)),
}
"""What LiteRT or TFLite Micro have not in int8, or not precisely, mere shapes, and custom ops.

They are tested in `test_tflite_*.py`.
"""

AT_ONCE = 6
"""Ops in one model, which is read faster than models with one each."""


@pytest.mark.parametrize("maker", MAKERS)
@settings(max_examples=2, derandomize=True)
@given(seed=st.integers(0, 1 << 30))
def test_equal_to_litert(maker: str, seed: int, tmp_path: Path) -> None:
    assert not differing(bundle_of(seed, [maker] * AT_ONCE), tmp_path)


def test_no_op_is_forgotten() -> None:
    made = {code for maker in MAKERS for seed in range(9) for code, *_ in bundle_of(seed, [maker]).model.ops}
    assert made | ELSEWHERE == set(CONVERTERS)
    assert not made & ELSEWHERE
