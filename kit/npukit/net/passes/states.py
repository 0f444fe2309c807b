"""States in the planner's form: each is overwritten in place by an op after all of its readers."""

from __future__ import annotations

from collections.abc import Sequence, Set
from dataclasses import replace

import numpy as np

from npukit.errors import NpukitError
from npukit.net.net import Net, Op, State
from npukit.net.ops import Attributes, Requantize, Reshape, Select, Slice
from npukit.net.tensor import Quantization, Tensor

Pair = tuple[int, int, np.ndarray]
"""Index of an input, index of the output whose value it has in the next frame, and the initial value."""


def with_states(net: Net, pairs: Sequence[Pair]) -> Net:
    """The net with pairs of input and output turned into states. The last output stays an output."""
    inputs, outputs = {pair[0] for pair in pairs}, {pair[1] for pair in pairs}
    made = net
    for pair in pairs:
        made = _with_state(made, net.inputs[pair[0]], net.outputs[pair[1]], pair[2])
    left = tuple(name for place, name in enumerate(net.outputs) if place not in outputs)
    kept = tuple(name for place, name in enumerate(net.inputs) if place not in inputs)
    return replace(made, inputs=kept, outputs=left or net.outputs[:1])


def _with_state(net: Net, name: str, becomes: str, initial: np.ndarray) -> Net:
    before, after = net.tensor(name), net.tensor(becomes)
    if before.shape != after.shape:
        raise NpukitError(
            f"{net.name}: state {name!r} has the shape {list(before.shape)}, what becomes of it {list(after.shape)}"
        )
    if before.dtype == after.dtype:
        first = _told(before.quantization, after.quantization)
        before, after = (
            replace(before, quantization=first),
            replace(after, quantization=_told(after.quantization, first)),
        )
        net = replace(net, tensors={**net.tensors, name: before, becomes: after})
    if replace(after, name=name) != before:
        if before.quantization is None or after.quantization is None:
            raise NpukitError(f"{net.name}: state {name!r} is {before.dtype}, what becomes of it {after.dtype}")
        net, becomes = _added(net, f"{name}_next", Requantize(), becomes, before)
    state = State(name, becomes, np.ascontiguousarray(initial, before.dtype).reshape(before.shape))
    return replace(net, states=(*net.states, state))


def _told(own: Quantization | None, other: Quantization | None) -> Quantization | None:
    """The quantisation `other` if `own` is None or has no scale, else `own`."""
    return other if own is None or (other and own.is_begin_of(other)) else own


def with_states_in_place(net: Net) -> Net:
    """The net in which each state can be updated in place. Adds copies where the model has no suitable op."""
    for state in net.states:
        net = _read_once_it_is_taken(net, state)
    for state in net.states:
        net = _given_before_it_changes(net, state)
    for number in range(len(net.states)):
        net = _in_place(net, number)
    return net


def _read_once_it_is_taken(net: Net, state: State) -> Net:
    """Copy the old value at the frame's start if a state takes over the old value of another state."""
    home = _home(net, state.output)
    if home not in {each.input for each in net.states}:
        return net
    net, name = _added(net, f"{state.input}_taken", _whole(net, home), home, first=True)
    if home != state.output:
        net, name = _added(net, f"{name}_shaped", Reshape(), name, net.tensor(state.output))
    return replace(net, states=tuple(replace(each, output=name) if each is state else each for each in net.states))


def _given_before_it_changes(net: Net, state: State) -> Net:
    """Copy each output that is the state's old value."""
    for name in net.outputs:
        if _home(net, name) == state.input:
            added, copy = _added(net, f"{name}_given", _whole(net, name), name)
            net = replace(added, outputs=tuple(copy if each == name else each for each in net.outputs))
    return net


def _in_place(net: Net, number: int) -> Net:
    state = net.states[number]
    home = _home(net, state.output)
    taken = {_home(net, each.output) for each in net.states[:number]}
    if home in taken or not _follows_all_reads(net, home, state.input):
        net, output = _added(net, f"{state.input}_next", _whole(net, state.output), state.output)
        return _with(net, number, replace(state, output=output))
    if home == state.output:
        return net
    shape, held = net.tensor(home).shape, f"{state.input}_held"
    tensors = {**net.tensors, held: replace(net.tensor(home), name=held)}
    shown = Op(state.input, Reshape(), (held,), (state.input,))
    net = replace(net, tensors=tensors, ops=(shown, *net.ops))
    return _with(net, number, State(held, home, state.initial.reshape(shape)))


def _with(net: Net, number: int, state: State) -> Net:
    return replace(net, states=(*net.states[:number], state, *net.states[number + 1 :]))


def _follows_all_reads(net: Net, home: str, state: str) -> bool:
    """True if tensor `home` is made by an op after all readers of the state. The op may also be a select between
    another value and the state in place."""
    maker = next((place for place, op in enumerate(net.ops) if home in op.outputs), -1)
    seen = {state}
    for op in net.ops:
        if isinstance(op.attributes, Reshape) and op.inputs[0] in seen:
            seen.add(op.output)
    read = [place for place, op in enumerate(net.ops) if not seen.isdisjoint(op.inputs)]
    kept = maker in read and _leaves(net.ops[maker], state, seen)
    return maker > max(read[:-1] if kept else read, default=-1)


def _leaves(op: Op, state: str, shown: Set[str]) -> bool:
    """True if the op selects between a different tensor and the state."""
    return isinstance(op.attributes, Select) and op.inputs[2] == state and shown.isdisjoint(op.inputs[:2])


def _home(net: Net, name: str) -> str:
    """The tensor that holds the bytes: the source of a chain of reshapes, or the tensor itself."""
    makers = {op.output: op for op in net.ops if isinstance(op.attributes, Reshape)}
    while name in makers:
        name = makers[name].inputs[0]
    return name


def _whole(net: Net, name: str) -> Slice:
    """Attributes of a copy of the whole tensor, as a slice."""
    shape = net.tensor(name).shape
    return Slice(tuple(0 for _ in shape), shape, tuple(1 for _ in shape))


def _added(
    net: Net, name: str, attributes: Attributes, source: str, like: Tensor | None = None, *, first: bool = False
) -> tuple[Net, str]:
    """The net with one more op, and its output's name. The output has the type of `like`, or of the source."""
    while name in net.tensors:
        name += "_"
    made = replace(like or net.tensor(source), name=name)
    op = Op(made.name, attributes, (source,), (made.name,))
    ops = (op, *net.ops) if first else (*net.ops, op)
    return replace(net, ops=ops, tensors={**net.tensors, made.name: made}), made.name
