"""Evaluation of a whole sequence op by op. Only ops in a cycle through a state run frame by frame.

The products of a language model's token with large weights do not depend on other tokens. For many tokens, each product
becomes one matrix product.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np

from npukit.net.net import Net, Op
from npukit.net.reference.interpreter import run_op

Edges = dict[int, list[int]]
"""Indices of the successors, or of the predecessors, of each op."""


def run_sequence(net: Net, inputs: Sequence[np.ndarray]) -> list[np.ndarray]:
    """The net's outputs for a sequence of frames after a reset. Frames are on the leading axis of the inputs."""
    ops = [part for op in net.ops for part in op.parts]
    groups = components(*edges(net, ops))
    sequence = _Sequence(net, len(inputs[0]), dict(zip(net.inputs, inputs, strict=True)))
    return sequence.outputs([[ops[number] for number in sorted(group)] for group in groups])


@dataclass
class _Sequence:
    """The evaluation of a sequence. `values`: all frames of each tensor that is computed and still needed."""

    net: Net
    frames: int
    values: dict[str, np.ndarray]
    states: dict[str, str] = field(init=False)
    """The tensor that becomes each state, by name of the state."""

    def __post_init__(self) -> None:
        self.states = {state.input: state.output for state in self.net.states}

    def outputs(self, groups: Sequence[Sequence[Op]]) -> list[np.ndarray]:
        last = {
            self.states.get(name, name): number for number, ops in enumerate(groups) for op in ops for name in op.inputs
        }
        last |= dict.fromkeys(self.net.outputs, len(groups))
        leaving = defaultdict[int, list[str]](list)
        for name, number in last.items():
            leaving[number].append(name)
        for number, ops in enumerate(groups):
            made = {op.output for op in ops}
            if any(name in self.states and self.states[name] in made for op in ops for name in op.inputs):
                self.values |= self._one_by_one(ops)
            else:
                operands = [self._operand(name) for name in ops[0].inputs]
                self.values[ops[0].output] = run_op(self.net, ops[0], operands)
            for name in leaving[number]:
                self.values.pop(name, None)
        return [self.values[name] for name in self.net.outputs]

    def _operand(self, name: str) -> np.ndarray:
        """A constant, or all frames of a tensor. A state is delayed by one frame and begins with its initial value."""
        if name in self.net.constants or name not in self.states:
            return self.net.constants[name] if name in self.net.constants else self.values[name]
        return np.concatenate([self._initial(name), self.values[self.states[name]][:-1]])

    def _initial(self, name: str) -> np.ndarray:
        return next(state.initial for state in self.net.states if state.input == name)[None]

    def _one_by_one(self, ops: Sequence[Op]) -> dict[str, np.ndarray]:
        made = {op.output for op in ops}
        kept = {name: self.states[name] for op in ops for name in op.inputs if self.states.get(name) in made}
        outside = {name for op in ops for name in op.inputs if name not in made and name not in kept}
        given = {name: self._operand(name) for name in outside}
        now, found = {name: self._initial(name) for name in kept}, list[dict[str, np.ndarray]]()
        for frame in range(self.frames):
            now |= {name: each if name in self.net.constants else each[frame, None] for name, each in given.items()}
            for op in ops:
                now[op.output] = run_op(self.net, op, [now[name] for name in op.inputs])
            found.append({name: now[name] for name in made})
            now |= {name: now[becomes] for name, becomes in kept.items()}
        return {name: np.concatenate([values[name] for values in found]) for name in made}


def edges(net: Net, ops: Sequence[Op]) -> tuple[Edges, Edges]:
    """The successors and the predecessors of each op, in the same frame or across a state."""
    makers = {op.output: number for number, op in enumerate(ops)}
    makers |= {state.input: makers[state.output] for state in net.states if state.output in makers}
    after, before = ({number: list[int]() for number in range(len(ops))} for _ in range(2))
    for number, op in enumerate(ops):
        for maker in {makers[name] for name in op.inputs if name in makers}:
            after[maker].append(number)
            before[number].append(maker)
    return after, before


def components(after: Edges, before: Edges) -> Iterator[list[int]]:
    """The strongly connected components in execution order, by Kosaraju's two depth-first walks."""
    order = [number for group in _walked(after, after, set()) for number in group]
    yield from _walked(list(reversed(order)), before, set())


def _walked(begins: Collection[int], along: Edges, seen: set[int]) -> Iterator[list[int]]:
    """The newly reached ops from each start, in postorder."""
    for begin in begins:
        done, path = list[int](), [(begin, iter(along[begin]))] if begin not in seen else []
        seen.add(begin)
        while path:
            following = next((each for each in path[-1][1] if each not in seen), None)
            if following is None:
                done.append(path.pop()[0])
            else:
                seen.add(following)
                path.append((following, iter(along[following])))
        if done:
            yield done
