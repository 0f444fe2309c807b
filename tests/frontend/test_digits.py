"""The project's own model, in all formats shipped and as quantised by ONNX Runtime."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from onnx_models import onnx_steps
from onnxruntime.quantization import CalibrationDataReader, QuantFormat, QuantType, quantize_static

from helpers import CHECKOUT
from npukit.frontend.models import load_net_from_model
from npukit.net.net import Net, Op
from npukit.net.reference import run_reference
from npukit.net.reference.interpreter import run_op

DIGITS = CHECKOUT / "examples" / "digits"
MOVES = ("reshape", "transpose")


def test_both_formats_recognise_the_test_digits() -> None:
    data = np.load(DIGITS / "digits.npz")
    for name, shape in (("digits_int8.tflite", (1, 8, 8, 1)), ("digits_qdq.onnx", (1, 1, 8, 8))):
        net = load_net_from_model(DIGITS / name)
        (scores,) = run_reference(net, [data["in0"].reshape(-1, *shape)])
        assert np.mean(scores.reshape(-1, 10).argmax(axis=1) == data["labels"]) > 0.95, name


def test_each_op_is_within_one_of_onnx_runtime() -> None:
    assert_each_op_is_within_one(DIGITS / "digits_qdq.onnx")


@pytest.mark.parametrize("activations", [QuantType.QInt8, QuantType.QUInt8])
def test_what_onnx_runtime_quantises_is_within_one_too(activations: QuantType, tmp_path: Path) -> None:
    path = tmp_path / "quantised.onnx"
    quantize_static(
        DIGITS / "digits_float.onnx",
        path,
        Images(),
        quant_format=QuantFormat.QDQ,
        activation_type=activations,
        weight_type=QuantType.QInt8,
        per_channel=True,
    )
    assert_each_op_is_within_one(path)


class Images(CalibrationDataReader):
    """A hundred digits for calibration."""

    def __init__(self) -> None:
        self.images: Iterator[np.ndarray] = iter(np.load(DIGITS / "digits.npz")["float0"][:100])

    def get_next(self) -> dict[str, np.ndarray]:
        image = next(self.images, None)
        return {} if image is None else {"image": image}


def assert_each_op_is_within_one(path: Path) -> None:
    """Feeds ONNX Runtime's integers to each op, to keep errors from accumulating."""
    net = load_net_from_model(path)
    for image in np.load(DIGITS / "digits.npz")["float0"][:30]:
        steps = [as_int8(step) for step in onnx_steps(path, {"image": image})]
        halfway = {op.inputs[0] for op in net.ops if op.kind == "lookup"}
        values = {net.inputs[0]: steps.pop(0)[None]}
        for op in net.ops:
            got = computed(net, op, values)
            values[op.output] = got
            if op.kind not in MOVES and op.output not in halfway:
                values[op.output] = expected_of(steps, got)
                assert np.abs(values[op.output].astype(int) - got).max() <= 1, op.name
        assert len(steps) <= 1, "all but a flatten's own quantise has been compared"


def computed(net: Net, op: Op, values: dict[str, np.ndarray]) -> np.ndarray:
    operands = [net.constants[name] if name in net.constants else values[name] for name in op.inputs]
    return run_op(net, op, operands)


def expected_of(steps: list[np.ndarray], got: np.ndarray) -> np.ndarray:
    """The next step of the same size, in the net's layout."""
    while steps[0].size != got.size:
        steps.pop(0)
    step = steps.pop(0)
    return (step.transpose(0, 2, 3, 1) if step.ndim == 4 else step)[None]


def as_int8(step: np.ndarray) -> np.ndarray:
    return step if step.dtype == np.int8 else (step.astype(np.int16) - 128).astype(np.int8)
