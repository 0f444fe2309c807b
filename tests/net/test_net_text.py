"""A Net prints, and parses back to itself."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from small_nets import image_net, sine_net

from npukit.errors import NpukitError
from npukit.net.check import check_net
from npukit.net.net import Net
from npukit.net.ops.table import total_macs
from npukit.net.parse import parse_net
from npukit.net.reference.interpreter import run_reference
from npukit.net.store import load_net, save_net
from npukit.net.tensor import Quantization, Tensor
from npukit.net.text import print_net, stored_values

SINE = """\
net sine
input x: int8[1,1] scale 0.025 zero -128
op hidden: int8[1,4] scale 0.1 zero -128 = dense(x, hidden_weights, hidden_bias) clamp=[-128, 100]
op sine: int8[1,1] scale 0.0078125 zero 5 = dense(hidden, sine_weights, sine_bias) named last on cpu because "too small"
output sine
constant hidden_weights: int8[4,1] scale 0.5 zero 0 = [-9, 54, 71, -127]
constant hidden_bias: int32[4] = [0, -5438, 3396, 1981]
constant sine_weights: int8[1,4] scale 0.25 zero 0 = [39, -59, 21, 127]
constant sine_bias: int32[1] = [429]
"""
FUSED = """\
net fused
input x: int8[1,4] scale 0.5 zero 0
part hidden: int8[1,4] scale 0.5 zero 1 = dense(x, w) clamp=[0, 127]
part sum: int8[1,4] scale 0.25 zero 0 = add(x, hidden)
op sum: int8[1,4] scale 0.25 zero 0 = fused(x, w, x) whole=true on npu
op y: int8[1,4] scale 0.25 zero 0 = reshape(sum)
output y
constant w: int8[4,4] scale 1.0 zero 0 = [1, 0, 0, 0, 0, 1, 0, 0, 0, 0, 1, 0, 0, 0, 0, 1]
"""


def same(first: Net, second: Net) -> bool:
    constants = first.constants.keys() == second.constants.keys() and all(
        np.array_equal(value, second.constants[name]) for name, value in first.constants.items()
    )
    return constants and replace(first, constants={}) == replace(second, constants={})


def test_the_sine_net_prints_as_it_always_did() -> None:
    assert print_net(sine_net()) == SINE
    assert str(sine_net()) == SINE


def test_long_values_stand_as_digests() -> None:
    text = print_net(image_net())
    assert "constant weights: int8[6,3,3,6] scales sha256:" in text
    assert sorted(stored_values(image_net())) == ["weights", "weights scales"]


@pytest.mark.parametrize("net", [sine_net(), image_net()], ids=lambda net: net.name)
def test_parses_back(net: Net) -> None:
    assert same(parse_net(print_net(net), stored_values(net)), net)


def test_constants_that_are_no_finite_number_parse_back() -> None:
    """An attention mask has infinite values."""
    constants = {"mask": np.array([-np.inf, np.inf, np.nan, 1.5], np.float32), "low": np.array(-np.inf, np.float32)}
    tensors = {name: Tensor(name, value.shape, "float32") for name, value in constants.items()}
    net = replace(sine_net(), constants=constants, tensors=tensors, inputs=(), outputs=(), ops=())
    found = parse_net(print_net(net), {})
    assert all(np.array_equal(value, found.constants[name], equal_nan=True) for name, value in constants.items())


def test_other_values_than_printed_are_refused() -> None:
    net = image_net()
    values = stored_values(net)
    with pytest.raises(NpukitError, match="not those it was printed with"):
        parse_net(print_net(net), {**values, "weights": values["weights"] + 1})
    with pytest.raises(NpukitError, match="missing"):
        parse_net(print_net(net), {})


@given(
    name=st.text(min_size=1, max_size=40),
    scale=st.floats(min_value=1e-30, max_value=1e30),
    zero=st.integers(-128, 127),
    reason=st.text(max_size=40),
)
def test_any_name_number_and_reason_survives(name: str, scale: float, zero: int, reason: str) -> None:
    net = renamed(sine_net(), name, Quantization((scale,), (zero,)), reason)
    assert same(parse_net(print_net(net), stored_values(net)), net)


def renamed(net: Net, name: str, quantization: Quantization, reason: str) -> Net:
    """The net with its input renamed, and with another quantisation and reason."""
    tensors = {key: tensor for key, tensor in net.tensors.items() if key != "x"}
    tensors[name] = replace(net.tensor("x"), name=name, quantization=quantization)
    first, *rest = net.ops
    ops = (replace(first, inputs=(name, *first.inputs[1:]), reason=reason), *rest)
    return replace(net, inputs=(name,), tensors=tensors, ops=ops)


def test_one_op_is_one_line_whatever_its_name() -> None:
    net = renamed(sine_net(), '*/ int x;\nop evil: "', Quantization((1.0,), (0,)), "a\nb")
    assert len(print_net(net).splitlines()) == len(SINE.splitlines())


@pytest.mark.parametrize(
    "line",
    [
        "op",
        "op a: int8[1] = dense(",
        "op a: int8[1] = conv3d(x)",
        "op a: int8[1] = dense(x) sparkles=1",
        "op a: int8[1] = dense(x) on cpu because",
        "input x: int8[1",
        "input x: complex64[1]",
        "input x: int8[1] scale zero 0",
        "output",
        "constant c: int8[3] = [1, 2]",
        "constant c: int8[1] = [1000]",
        "print(1)",
        "output a b",
        "input x: int8[__import__('os')]",
    ],
)
def test_lines_that_are_not_understood(line: str) -> None:
    with pytest.raises(NpukitError, match="line 2 of the net is not understood"):
        parse_net(f"net n\n{line}\n", {})


@given(st.text(max_size=200))
def test_no_text_breaks_the_parser(text: str) -> None:
    with suppress(NpukitError):
        parse_net(text, {})


def test_a_stored_net_is_the_same_bytes_each_time_and_loads_back(tmp_path: Path) -> None:
    folders = [tmp_path / "a", tmp_path / "b"]
    for folder in folders:
        folder.mkdir()
        save_net(image_net(), folder)
    for name in ("net.txt", "net.npz"):
        assert (folders[0] / name).read_bytes() == (folders[1] / name).read_bytes()
    assert same(load_net(folders[0]), image_net())


def test_a_damaged_store_is_one_clear_error(tmp_path: Path) -> None:
    save_net(image_net(), tmp_path)
    (tmp_path / "net.npz").write_bytes(b"PK no archive")
    with pytest.raises(NpukitError, match="holds no readable net"):
        load_net(tmp_path)


def test_fused_ops_print_their_parts() -> None:
    net = check_net(parse_net(FUSED, {}))
    assert print_net(net) == FUSED
    assert [part.kind for part in net.ops[0].parts] == ["dense", "add"]
    assert net.ops[0].title == "dense + add"


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        ("fused(x, w, x)", "fused(x, w)", r"op 'sum' \(fused\): its parts have the inputs"),
        ("reshape(sum)", "reshape(hidden)", "it reads 'hidden' before anything writes it"),
        ("add(x, hidden)", "add(x, w)", "op 'sum'"),
        ("op sum: int8[1,4] scale 0.25 zero 0 = fused(x, w, x) whole=true on npu\n", "", "no fused op for its part"),
    ],
)
def test_broken_fused_ops_are_named(old: str, new: str, says: str) -> None:
    assert old in FUSED
    with pytest.raises(NpukitError, match=says):
        check_net(parse_net(FUSED.replace(old, new), {}))


def test_a_fused_op_is_its_parts_one_after_the_other() -> None:
    net = check_net(parse_net(FUSED, {}))
    apart = net.with_ops((*net.ops[0].parts, net.ops[1]))
    x = np.array([[-128, -3, 7, 127]], np.int8)
    assert np.array_equal(run_reference(net, [x])[0], run_reference(apart, [x])[0])
    assert total_macs(net) == total_macs(apart) == 16


def test_the_layer_of_the_users_model_stands_in_it() -> None:
    net = sine_net()
    hidden = replace(net.tensors["hidden"], title='model/dense "1"; y')
    named = replace(net, tensors={**net.tensors, "hidden": hidden})
    assert 'op hidden: int8[1,4] scale 0.1 zero -128 for "model/dense \\"1\\"; y" = dense(' in print_net(named)
    assert parse_net(print_net(named), stored_values(named)).tensor("hidden").title == hidden.title
