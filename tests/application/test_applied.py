"""The declared formula becomes integer ops."""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from npukit.application.apply import applied
from npukit.application.declared import Declared, SensorInput, WantedOutput, parsed_input, parsed_output
from npukit.application.inputs import real_numbers
from npukit.errors import NpukitError
from npukit.net.net import Net
from npukit.net.parse import parse_net
from npukit.net.reference import run_reference
from npukit.net.text import print_net

SHAPE = (1, 3, 2, 4)
NCHW = "int8[1,3,2,4] scale 0.05 zero 7"
NHWC = "int8[1,2,4,3] scale 0.05 zero 7"
ROW = "int8[1,6] scale 0.5 zero 3"


def identity(kind: str, dtype: str = "int8") -> Net:
    """An identity net: an image is transposed as by ONNX's importer, and back."""
    lines = [
        "net identity",
        f"input image: {NCHW}",
        f"op moved: {NHWC} = transpose(image) axes=[0, 2, 3, 1]",
        f"op back: {NCHW} = transpose(moved) axes=[0, 3, 1, 2]",
        "output back",
    ]
    if kind == "row":
        lines = ["net row", f"input row: {ROW}", f"op same: {ROW} = requantize(row)", "output same"]
    return parse_net("\n".join(lines).replace("int8", dtype) + "\n", {})


def declared(inputs: str = "", outputs: str = "") -> Declared:
    return Declared(
        input=(parsed_input(inputs),) if inputs else (), output=(parsed_output(outputs),) if outputs else ()
    )


def run(net: Net, *inputs: np.ndarray) -> list[np.ndarray]:
    return run_reference(parse_net(print_net(net), dict(net.constants)), list(inputs))


def expected(real: np.ndarray, scale: float, zero: int) -> np.ndarray:
    return np.clip(np.rint(real / scale) + zero, -128, 127).astype(np.int8)


sensors = st.builds(
    lambda kind, scale, mean, std, layout: SensorInput(type=kind, scale=scale, mean=mean, std=std, layout=layout),
    st.sampled_from(["uint8", "int8", "int16", "float32"]),
    st.sampled_from([1 / 256, 0.03, 1.0]),
    st.sampled_from([(0.0,), (0.5,), (0.4, 0.5, 0.6)]),
    st.sampled_from([(1.0,), (0.25,), (0.2, 0.25, 0.3)]),
    st.sampled_from([None, "NCHW", "NHWC"]),
)


@settings(max_examples=60, derandomize=True)
@given(sensor=sensors, seed=st.integers(0, 999))
def test_the_model_sees_what_is_declared(sensor: SensorInput, seed: int) -> None:
    net = applied(identity("image"), Declared(input=(sensor,)), "NCHW")
    given_ = values(net.tensor("image").dtype, net.tensor("image").shape, seed)
    (got,) = run(net, given_)
    real = real_numbers(sensor, given_[None], SHAPE, "NCHW")[0]
    assert np.abs(got.astype(int) - expected(real, 0.05, 7)).max() <= 1, (
        "a float32 may fall on the other side of a half"
    )
    assert np.mean(got == expected(real, 0.05, 7)) > 0.9


def values(dtype: str, shape: tuple[int, ...], seed: int) -> np.ndarray:
    random = np.random.default_rng(seed)
    if dtype == "float32":
        return random.uniform(-4, 4, shape).astype(np.float32)
    limits = np.iinfo(dtype)
    return random.integers(limits.min, limits.max + 1, shape).astype(dtype)


@pytest.mark.parametrize("words", ["uint8 scale=0.02 mean=1", "uint8 scale=0.02 mean=1,1,1 std=2"])
def test_integers_and_the_same_floats_become_the_same(words: str) -> None:
    whole = values("uint8", SHAPE, 3)
    as_integers = run(applied(identity("image"), declared(words), "NCHW"), whole)
    words = words.replace("uint8", "float32")
    as_floats = run(applied(identity("image"), declared(words), "NCHW"), whole.astype(np.float32))
    np.testing.assert_array_equal(as_integers[0], as_floats[0])


def test_one_scale_is_a_table_and_a_layout_costs_nothing() -> None:
    net = applied(identity("image"), declared("uint8 scale=0.02 layout=NHWC"), "NCHW")
    assert [op.kind for op in net.ops] == ["lookup", "transpose"], "only the way back to NCHW is left"
    assert net.tensor("image").shape == (1, 2, 4, 3)


def test_only_a_layout() -> None:
    net = applied(identity("image"), declared("layout=NHWC"), "NCHW")
    image = values("int8", (1, 2, 4, 3), 1)
    np.testing.assert_array_equal(run(net, image)[0], image.transpose(0, 3, 1, 2))
    assert [op.kind for op in net.ops] == ["transpose"]


def test_what_is_no_number_becomes_the_least() -> None:
    net = applied(identity("row"), declared("float32"), "NHWC")
    odd = np.array([[np.nan, np.inf, -np.inf, 0.25, 0.75, -0.25]], np.float32)
    assert run(net, odd)[0].tolist() == [[-128, 127, -128, 3, 5, 3]], "halves to even, then the zero point"


def test_a_uint8_model_is_quantised_once() -> None:
    """If the model quantises its uint8 input to int8, the sensor's values become int8 at once."""
    text = f"net n\ninput row: u{ROW.replace('zero 3', 'zero 131')}\nop same: {ROW} = requantize(row)\noutput same\n"
    net = applied(parse_net(text, {}), declared("float32"), "NHWC")
    assert [op.kind for op in net.ops] == ["quantize"]
    np.testing.assert_array_equal(run(net, np.ones((1, 6), np.float32))[0], np.full((1, 6), 5))


@pytest.mark.parametrize("layout", ["NHWC", "NCHW"])
def test_softmax_and_the_largest_are_of_channels(layout: Any) -> None:
    image, axis = values("int8", SHAPE, 9), layout.index("C")
    net = identity("image")
    (best,) = run(applied(net, declared(outputs="argmax"), layout), image)
    np.testing.assert_array_equal(best, image.argmax(axis))
    indices, top = run(applied(net, declared(outputs="top=2"), layout), image)
    np.testing.assert_array_equal(indices, np.argsort(-image.astype(int), axis, kind="stable").take([0, 1], axis))
    np.testing.assert_array_equal(top, np.take_along_axis(image, indices, axis))
    (shares,) = run(applied(net, declared(outputs="softmax"), layout), image)
    powers = np.exp(image * 0.05)
    assert np.abs((shares + 128.0) / 256 - powers / powers.sum(axis, keepdims=True)).max() < 0.01


def test_softmax_then_the_largest() -> None:
    net = applied(identity("row"), declared(outputs="softmax top=3"), "NHWC")
    indices, top = run(net, np.array([[4, 9, 9, -3, 7, 0]], np.int8))
    assert indices.tolist() == [[1, 2, 4]]
    assert top.shape == (1, 3)
    assert net.tensor(net.outputs[1]).quantization is not None


def test_a_long_image_of_one_axis_is_a_row() -> None:
    column = "int8[1,6,1,1] scale 0.5 zero 0"
    text = f"net n\ninput x: {column}\nop y: {column} = requantize(x)\noutput y\n"
    net = applied(parse_net(text, {}), declared(outputs="argmax"), "NCHW")
    assert run(net, np.array([1, 5, 2, 5, 0, 0], np.int8).reshape(1, 6, 1, 1))[0].tolist() == [1]


@pytest.mark.parametrize(
    ("inputs", "outputs", "message"),
    [
        ("uint8 input=sound", "", "has no input 'sound' to declare"),
        ("uint8 mean=1,2", "", "input 'row': 2 means or standard deviations are given for 6 channels"),
        ("uint8 layout=NCHW", "", "no image whose layout"),
        ("uint8 scale=1e300", "", "too large or too small together"),
        ("", "argmax output=1", "has 1 outputs"),
        ("", "top=7", "there is no top 7"),
    ],
)
def test_what_the_model_has_not(inputs: str, outputs: str, message: str) -> None:
    with pytest.raises(NpukitError, match=message):
        applied(identity("row"), declared(inputs, outputs), "NHWC")


def test_a_softmax_is_not_repeated() -> None:
    net = applied(identity("row"), declared(outputs="softmax"), "NHWC")
    with pytest.raises(NpukitError, match="a softmax already"):
        applied(net, declared(outputs="softmax"), "NHWC")


def test_two_declarations_of_one_input_and_output() -> None:
    twice = Declared(input=(SensorInput(type="int8"), SensorInput(type="uint8")))
    with pytest.raises(NpukitError, match="declares the input 'row' twice"):
        applied(identity("row"), twice, "NHWC")
    with pytest.raises(NpukitError, match="declared twice"):
        applied(identity("row"), Declared(output=(WantedOutput(argmax=True), WantedOutput(top=1))), "NHWC")


def test_nothing_declared_is_nothing_changed() -> None:
    net = identity("image")
    assert applied(net, Declared(), "NCHW") is net
    assert prod(net.tensor("image").shape) == 24
