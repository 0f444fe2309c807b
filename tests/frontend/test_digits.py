"""The project's own model, in the formats it is shipped in."""

from __future__ import annotations

import numpy as np
from onnx_models import onnx_steps

from helpers import CHECKOUT
from npukit.frontend.models import load_net_from_model
from npukit.net.reference import run_reference
from npukit.net.reference.interpreter import KERNELS

DIGITS = CHECKOUT / "examples" / "digits"


def test_both_formats_recognise_the_test_digits() -> None:
    data = np.load(DIGITS / "digits.npz")
    for name, shape in (("digits_int8.tflite", (1, 8, 8, 1)), ("digits_qdq.onnx", (1, 1, 8, 8))):
        net = load_net_from_model(DIGITS / name)
        (scores,) = run_reference(net, [data["in0"].reshape(-1, *shape)])
        assert np.mean(scores.reshape(-1, 10).argmax(axis=1) == data["labels"]) > 0.95, name


def test_each_op_is_within_one_of_onnx_runtime() -> None:
    """Every op gets ONNX Runtime's own integers as inputs, so that nothing adds up."""
    net = load_net_from_model(DIGITS / "digits_qdq.onnx")
    images = np.load(DIGITS / "digits.npz")["float0"]
    steps = [onnx_steps(DIGITS / "digits_qdq.onnx", {"image": image}) for image in images[:50]]
    compared = 0
    for case in steps:
        values = dict(zip(net.inputs, [case.pop(0)[None]], strict=True))
        for op in net.ops:
            operands = [net.constants[name] if name in net.constants else values[name] for name in op.inputs]
            got = KERNELS[op.kind](net, op, operands)
            values[op.output] = got
            if op.kind in ("reshape", "transpose"):
                continue
            expected = case.pop(0)
            while expected.size != got.size:
                expected = case.pop(0)
            values[op.output] = nhwc(expected)[None]
            assert np.abs(values[op.output].astype(int) - got).max() <= 1, op.name
            compared += 1
    assert compared == len(steps) * len([op for op in net.ops if op.kind not in ("reshape", "transpose")])


def nhwc(value: np.ndarray) -> np.ndarray:
    return value.transpose(0, 2, 3, 1) if value.ndim == 4 else value
