"""A sequence of frames computed at once equals the frames computed in turn."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from small_nets import remembering_net

from end_to_end.language_models import Sizes, save_model, save_samples
from npukit.net.net import Net, Op, State
from npukit.net.ops import Add
from npukit.net.reference import evaluate
from npukit.net.tensor import Quantization, Tensor
from npukit.quantize.models import load_model
from oracles.sequence import components, edges, run_sequence


def one_by_one(net: Net, inputs: list[np.ndarray]) -> list[np.ndarray]:
    found, values = [], None
    for frame in zip(*inputs, strict=True):
        values = evaluate(net, frame, values)
        found.append([values[name] for name in net.outputs])
    return [np.stack(each) for each in zip(*found, strict=True)]


def frames(net: Net, count: int) -> list[np.ndarray]:
    random, tensors = np.random.default_rng(3), [net.tensor(name) for name in net.inputs]
    return [random.integers(-128, 128, (count, *each.shape)).astype(each.dtype) for each in tensors]


def crossed() -> Net:
    """A net with two states in a cycle, a state with a late read, and a state whose next value is the input."""
    tensors = {name: Tensor(name, (1, 4), "int8", Quantization((0.5,), (1,))) for name in ("x", *"abcpqrsy")}
    reads = (("p", "a x"), ("q", "b p"), ("r", "q x"), ("s", "r c"), ("y", "s a"))
    ops = tuple(Op(f"add_{name}", Add(), tuple(names.split()), (name,)) for name, names in reads)
    states = tuple(
        State(name, becomes, np.full((1, 4), 7, np.int8)) for name, becomes in zip("abc", "qpx", strict=True)
    )
    return Net("crossed", ("x",), ("y",), ops, tensors, {}, states)


@pytest.mark.parametrize("net", [remembering_net(), crossed()], ids=lambda net: net.name)
def test_small_nets(net: Net) -> None:
    given = frames(net, 9)
    for got, want in zip(run_sequence(net, given), one_by_one(net, given), strict=True):
        np.testing.assert_array_equal(got, want)


@pytest.mark.exhaustive
def test_only_what_needs_itself_is_walked_frame_by_frame(tmp_path: Path) -> None:
    """In a language model only writes of keys and values go frame by frame; all other ops wait for no other token."""
    sizes = Sizes(width=16, heads=2, wide=32, blocks=2, tokens=8)
    states = save_model(tmp_path / "llama.onnx", sizes)
    save_samples(tmp_path / "samples.npz", sizes)
    net = load_model(tmp_path / "llama.onnx", calibration=tmp_path / "samples.npz", states=tuple(states.items())).net
    after, before = edges(net, net.ops)
    groups = list(components(after, before))
    assert max(map(len, groups)) == 1
    walked = [net.ops[number] for (number,) in groups if number in after[number]]
    assert sorted(op.output for op in walked) == sorted(state.output for state in net.states)
    given = frames(net, 12)
    np.testing.assert_array_equal(run_sequence(net, given)[0], one_by_one(net, given)[0])
