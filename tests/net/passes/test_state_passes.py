"""States: read back as they were printed, carried by the reference, and written where nothing reads them any more."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from net.small_nets import op_net, quantized, remembering_net
from npukit.errors import NpukitError
from npukit.net.check import check_net
from npukit.net.net import Net, Op, State
from npukit.net.ops import Add, Reshape, Select, Slice
from npukit.net.parse import parse_net
from npukit.net.passes.states import with_states, with_states_in_place
from npukit.net.reference import evaluate
from npukit.net.tensor import Tensor
from npukit.net.text import print_net, stored_values

FRAMES = np.random.default_rng(8).integers(-128, 128, (5, 1, 16)).astype(np.int8)


def outputs(net: Net, frames: np.ndarray) -> np.ndarray:
    """The first output of frames one after the other."""
    found, values = [], None
    for frame in frames:
        values = evaluate(net, [frame], values)
        found.append(values[net.outputs[0]])
    return np.stack(found)


def sums() -> Net:
    """x + h, with h for an input."""
    tensors = [quantized(name, (1, 16), 0.05, 3) for name in ("x", "h")]
    return op_net(Add(), tensors, quantized("y", (1, 16), 0.05, 3), {})


def test_a_state_prints_and_parses_back() -> None:
    net = remembering_net()
    read = check_net(parse_net(print_net(net), stored_values(net)))
    assert "state fast: int8[1,64] scale 0.05 zero 3 becomes sum begins 3\n" in print_net(net)
    assert print_net(read) == print_net(net)
    assert np.array_equal(outputs(read, FRAMES), outputs(net, FRAMES))


def test_frames_follow_from_each_other_until_they_begin_anew() -> None:
    net, both = remembering_net(), np.concatenate([FRAMES, FRAMES])
    assert not np.array_equal(outputs(net, both)[5:], outputs(net, FRAMES))
    with pytest.raises(AssertionError):
        np.testing.assert_array_equal(outputs(net, FRAMES[:1]), outputs(net, both)[5:6])


def test_an_input_that_an_output_becomes_is_a_state() -> None:
    net = with_states(sums(), [(1, 0, np.full((1, 16), 3, np.int8))])
    assert (net.inputs, net.outputs) == (("x",), ("y",)), "the only output stays one"
    held = np.full((1, 16), 3, np.int8)
    for frame, got in zip(FRAMES, outputs(check_net(net), FRAMES), strict=True):
        (held,) = (evaluate(sums(), [frame, held])["y"],)
        assert np.array_equal(got, held)


def test_states_of_other_scales_are_rescaled() -> None:
    net = sums()
    net = replace(net, tensors={**net.tensors, "y": quantized("y", (1, 16), 0.1, -7)})
    kept = check_net(with_states(net, [(1, 0, np.zeros((1, 16), np.int8))]))
    assert [op.kind for op in kept.ops] == ["add", "requantize"]


def test_what_becomes_of_a_state_must_be_like_it() -> None:
    net = remembering_net()
    wrong = replace(net, tensors={**net.tensors, "sum": quantized("sum", (1, 64), 0.06, 3)})
    with pytest.raises(NpukitError, match=r"state 'fast': it becomes sum: int8\[1,64\] scale 0\.06 zero 3, and is"):
        check_net(wrong)


def test_only_a_state_that_is_read_as_it_is_written_takes_a_copy() -> None:
    net, settled = remembering_net(), check_net(with_states_in_place(remembering_net()))
    assert [op.name for op in settled.ops if op not in net.ops] == ["slow_next"]
    assert np.array_equal(outputs(settled, FRAMES), outputs(net, FRAMES))


@pytest.mark.parametrize("pairs", [(("fast", "slow"), ("slow", "sum")), (("fast", "slow"), ("slow", "fast"))])
def test_states_may_take_each_other_s_place(pairs: tuple[tuple[str, str], ...]) -> None:
    """What a state becomes may be what another one was."""
    net = remembering_net()
    net = replace(
        net,
        states=tuple(
            State(name, output, state.initial) for (name, output), state in zip(pairs, net.states, strict=True)
        ),
    )
    settled = check_net(with_states_in_place(check_net(net)))
    assert np.array_equal(outputs(settled, FRAMES), outputs(net, FRAMES))
    makers = {op.output: place for place, op in enumerate(settled.ops)}
    for state in settled.states:
        readers = [place for place, op in enumerate(settled.ops) if state.input in op.inputs]
        assert makers[state.output] > max(readers)


def test_an_output_that_is_the_state_as_it_was_is_a_copy() -> None:
    net = replace(remembering_net(), outputs=("fast",))
    settled = check_net(with_states_in_place(net))
    assert settled.outputs != ("fast",)
    assert isinstance(next(op for op in settled.ops if op.output == settled.outputs[0]).attributes, Slice)
    assert np.array_equal(outputs(settled, FRAMES), outputs(net, FRAMES))


@pytest.mark.parametrize("other", ["x", "h"])
def test_a_choice_is_made_in_place_of_a_state_unless_it_is_between_the_state_and_itself(other: str) -> None:
    """In place the kernel has no pointer to the state beside the one to its output."""
    net = sums()
    slot = Tensor("slot", (1, 1), "bool", None)
    chosen = Op("y", Select(), ("slot", other, "h"), ("y",))
    state = State("h", "y", np.zeros((1, 16), np.int8))
    net = replace(
        net, inputs=("x", "slot"), ops=(chosen,), tensors={**net.tensors, "slot": slot}, states=(state,), outputs=("y",)
    )
    settled = check_net(with_states_in_place(check_net(net)))
    assert (settled.states[0].output == "y") == (other == "x")


def test_a_state_takes_a_reshape_of_another_before_that_changes() -> None:
    """The copy is the first op, and so reads the state itself: its reshape is made later."""
    net = sums()
    tensors = {name: quantized(name, shape, 0.05, 3) for name, shape in {"k": (4, 4), "as_k": (4, 4)}.items()}
    reshape = Op("as_k", Reshape(), ("h",), ("as_k",))
    net = replace(
        net,
        ops=(*net.ops, reshape),
        tensors={**net.tensors, **tensors},
        states=(
            State("h", "y", np.zeros((1, 16), np.int8)),
            State("k", "as_k", np.full((4, 4), 9, np.int8)),
        ),
        inputs=("x",),
        outputs=("y", "k"),
    )
    settled = check_net(with_states_in_place(net))
    values, want = None, [np.full(16, 9, np.int8), np.zeros(16, np.int8)]
    for frame in FRAMES:
        values = evaluate(settled, [frame], values)
        want.append(values["y"].ravel())
        assert np.array_equal(values[settled.outputs[1]].ravel(), want.pop(0))
