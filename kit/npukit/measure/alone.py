"""Layers alone: every layer runs on every PE many times with separate inputs, independent of earlier layers.

The inputs of a network reach only a few of the values that inner layers may get. In one observed frame the built-in
emulator sends the core from the end of a layer back to its begin, each time with other bytes in the layer's inputs. The
outputs must equal the reference. Unused memory near the outputs must stay unchanged. The inputs are values that earlier
layers could compute, as far as known: a layer may rely on their range.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np

from npukit.errors import Differs
from npukit.measure.cases import Cases, sequences
from npukit.measure.messages import check_messages
from npukit.measure.target import Target
from npukit.measure.validate import ALONE, LISTED_MISMATCHES, Mismatch, Validation, difference, run_round
from npukit.net.box import Box
from npukit.net.net import Net, Op
from npukit.net.ops import TvmCode
from npukit.net.reference import evaluate
from npukit.net.reference.sharp import inputs_alone
from npukit.net.requantize import quantization
from npukit.net.value_ranges import value_ranges
from npukit.plan.ir.plan import Buffer, Compute, PePlan, Plan, View
from npukit.plan.multi_chip import twins
from npukit.plan.predict.memory import control_bytes

CYCLES = 2_000_000
"""Limit on the cycles of all cases of all layers together, once each layer has the `LEAST_ALONE` cases."""

LEAST_ALONE, MOST_ALONE = 3, 512
"""Limits on the cases of a layer."""

INPUT_WORK = 140_000_000
"""The effort of choosing the inputs, in steps as in `net/reference/sharp.py`."""

GUARD_BYTES = 256
"""Bytes before an output, and after it, that a layer must not write."""

_BEGIN, _END, _ARENA = "net_begin_layer", "net_end_layer", "net_activations"

Values = Mapping[str, np.ndarray]
"""Tensors by name, [case, ...]."""


@dataclass(frozen=True, eq=False)
class _Place:
    """A part of a tensor in a PE's memory. `elements`: indices of the tensor's elements, in the order of memory.

    `starts` and `sizes`: the contiguous runs of bytes, counted from the start of the activations. `zero`: the value of
    the border of an arranged input, which is written whole: the output may overwrite the border.
    """

    buffer: Buffer
    tensor: str
    elements: np.ndarray
    starts: np.ndarray
    sizes: np.ndarray
    dtype: np.dtype
    zero: int | None = None

    @property
    def _less(self) -> int:
        return self.buffer.arrangement.subtracted if self.buffer.arrangement else 0

    @property
    def bytes(self) -> int:
        return int(self.sizes.sum())

    def store(self, values: np.ndarray) -> np.ndarray:
        """The bytes of the part, [case, byte]."""
        made = self.buffer.arrangement
        if made and self.zero is not None:
            return np.stack([made.store(each, self.zero) for each in values])
        part = values.reshape(len(values), -1)[:, self.elements]
        stored = part if self._less == 0 else part.astype(np.int64) - self._less
        return np.ascontiguousarray(stored.astype(self.dtype)).view(np.uint8)


@dataclass(frozen=True, eq=False)
class _Layer:
    """A PE's tile of a layer, with the places of the inputs and the output.

    `noisy` and `quiet`: runs near the output that the layer must not write, [run, 2], first byte and bytes. Only runs
    in `noisy` get noise: a message may still be leaving from those in `quiet`. `again`: the tile repeats one of an
    earlier frame of the batch, at other addresses, and runs with one case.
    """

    step: Compute
    inputs: tuple[_Place, ...]
    output: _Place
    noisy: np.ndarray
    quiet: np.ndarray
    again: bool

    @property
    def near(self) -> np.ndarray:
        """The place of each byte that the layer must not write."""
        runs = [start + np.arange(size) for start, size in (*self.noisy, *self.quiet)]
        return np.concatenate([np.zeros(0, np.int64), *runs])

    def noise(self, cases: int) -> np.ndarray:
        """The noise of each case, [case, byte]."""
        return np.random.default_rng(cases).integers(0, 256, (cases, int(self.noisy[:, 1].sum())), np.uint8)

    def cases(self, given: Mapping[str, Values]) -> int:
        every = len(given[self.step.op][self.output.tensor]) if self.step.op in given else 0
        return min(every, 1) if self.again else every


def check_alone(target: Target, net: Net, plan: Plan, cases: Cases, found: Validation) -> Validation:
    """`found` with differences of layers alone from the reference; unchanged outside the built-in emulator."""
    emulator = target.emulator
    if emulator is None:
        return found
    layers = {pe.pe: list(_layers(net, plan, pe)) for pe in plan.pes}
    given = _given(net, plan, layers)
    every = list(twins(target.board, plan))
    for pe, like in every:
        own = layers[like]
        arena = emulator.symbol(pe, _ARENA) + control_bytes(len(plan.by_pe[like].tiles))
        table = [(layer.cases(given), *_counts(layer)) for layer in own]
        places = np.concatenate([np.zeros((0, 2), np.int64), *(_rows(layer, arena) for layer in own)])
        data = b"".join(_data(layer, given).tobytes() for layer in own if layer.cases(given))
        span = emulator.symbol(pe, _BEGIN), emulator.symbol(pe, _END)
        emulator.alone(pe, span, np.array(table).reshape(-1, 3), places, data)
    emulator.trace(True)
    run_round(target.session, net, cases, sequences(cases, plan.frames_of_all)[0][0], observe=True)
    emulator.trace(False)
    if target.board.noc and not target.board.shares_memory:
        check_messages(target.board, net, plan, emulator.traced())
    wrong = list[Mismatch]()
    for pe, like in every:
        target.session.layers(pe, len(plan.by_pe[like].tiles))  # waits until the PE is done, as a next frame would
        size = sum(layer.cases(given) * (layer.output.bytes + len(layer.near)) for layer in layers[like])
        wrong += _wrong(net, pe, layers[like], given, emulator.alone_made(pe, size))
    order = {op.output: place for place, op in enumerate(net.ops)}
    wrong.sort(key=lambda each: order[each.tensor])
    return replace(found, mismatches=(*found.mismatches, *wrong)[:LISTED_MISMATCHES])


def _given(net: Net, plan: Plan, layers: Mapping[int, Sequence[_Layer]]) -> dict[str, Values]:
    """The inputs and outputs of each layer that can run alone, by its op."""
    every = [layer for own in layers.values() for layer in own]
    refused = {layer.step.op for layer in every if _overlap(layer.inputs)}
    refused |= {step.op for pe in plan.pes if pe.memory.banks for step in pe.computes()}
    ops = [op for op in net.ops if op.name not in refused and _is_free(net, op)]
    ranges, given = value_ranges(net), dict[str, Values]()
    for op in ops:
        steps = [layer.step for layer in every if layer.step.op == op.name and not layer.again]
        cycles, boxes = sum(step.cycles for step in steps), [step.output.box for step in steps]
        count = min(max(CYCLES // len(ops) // max(cycles, 1), LEAST_ALONE), MOST_ALONE)
        # every activation that the op reads is an input, states included
        alone = replace(net.alone(op), inputs=tuple(dict.fromkeys(net.activations(op))), states=())
        given[op.name] = evaluate(alone, inputs_alone(alone, ranges, count, INPUT_WORK // len(ops), boxes))
    return given


def _is_free(net: Net, op: Op) -> bool:
    """True if the op accepts any int8 values. Unknown, so False, for TVM's code and for inputs that are indices."""
    inputs = [net.tensor(name) for name in net.activations(op)]
    code = any(isinstance(part.attributes, TvmCode) for part in op.parts)
    return not code and bool(inputs) and all(each.dtype == "int8" and each.quantization for each in inputs)


def _overlap(inputs: Sequence[_Place]) -> bool:
    """True if two input tensors of an op share memory."""
    spans = sorted((int(each.starts.min()), int((each.starts + each.sizes).max()), each.tensor) for each in inputs)
    return any(one[1] > other[0] and one[2] != other[2] for one, other in pairwise(spans))


# ---- where things lie ----


def _layers(net: Net, plan: Plan, pe: PePlan) -> Iterator[_Layer]:
    ops, known = {op.name: op for op in net.ops}, set[tuple[str, Box]]()
    sources = {each.source.buffer for each in plan.messages if each.source_pe == pe.pe}
    landings = {landing.view.buffer for each in plan.messages for landing in each.landings if landing.pe == pe.pe}
    for number, step in ((number, step) for number, step in enumerate(pe.steps) if isinstance(step, Compute)):
        names, part = net.activations(ops[step.op]), (step.op, step.output.box)
        inputs = tuple(_source(net, pe, name, view) for name, view in zip(names, step.inputs, strict=True))
        output = _place(net, pe, ops[step.op].output, step.output)
        taken = [each for each in pe.buffers if each.last >= number and (each.first <= number or each.name in landings)]
        sent = [each for each in pe.buffers if each.first <= number and each.name in sources]
        yield _Layer(step, inputs, output, *_near(output.buffer, pe.buffers, taken, sent), part in known)
        known.add(part)


def _near(
    output: Buffer, every: Sequence[Buffer], taken: Sequence[Buffer], sent: Sequence[Buffer]
) -> tuple[np.ndarray, np.ndarray]:
    """The runs near an output in none of the buffers `taken` and `sent`, then the runs in buffers `sent` only."""
    first, end = max(output.offset - GUARD_BYTES, 0), max(buffer.offset + buffer.bytes for buffer in every)
    use = np.zeros(min(output.offset + output.bytes + GUARD_BYTES, end) - first, np.int8)
    for buffers, mark in ((sent, 1), (taken, 2)):
        for buffer in buffers:
            use[max(buffer.offset - first, 0) : max(buffer.offset + buffer.bytes - first, 0)] = mark
    edges = (np.flatnonzero(np.diff(use == mark, prepend=False, append=False)).reshape(-1, 2) for mark in (0, 1))
    return tuple(np.column_stack([first + each[:, 0], each[:, 1] - each[:, 0]]) for each in edges)  # pyright: ignore[reportReturnType]


def _source(net: Net, pe: PePlan, tensor: str, view: View) -> _Place:
    """The place of an input; of an arranged one the whole buffer, with the border."""
    place = _place(net, pe, tensor, view)
    if (made := place.buffer.arrangement) is None:
        return place
    start, size = np.array([place.buffer.offset]), np.array([made.bytes])
    return replace(place, starts=start, sizes=size, zero=quantization(net, tensor).zero_point)


def _place(net: Net, pe: PePlan, tensor: str, view: View) -> _Place:
    buffer, shape = pe.buffer(view.buffer), net.tensor(tensor).shape
    made = buffer.arrangement
    dtype = np.dtype(made.dtype if made else net.tensor(tensor).dtype)
    axes = [np.arange(start, stop) for start, stop in zip(view.box.start, view.box.stop, strict=True)]
    grid = np.meshgrid(*axes, indexing="ij")
    elements = np.ravel_multi_index(grid, shape).ravel() if shape else np.zeros(1, np.int64)
    if made:
        index = np.unravel_index(elements, made.shape)
        offsets = made.origin + np.stack(index, axis=1) @ np.array(made.strides)
    else:
        inside = [axis - start for axis, start in zip(grid, buffer.box.start, strict=True)]
        offsets = np.ravel_multi_index(inside, buffer.box.shape).ravel() if shape else elements
        offsets = dtype.itemsize * offsets
    order = np.argsort(offsets, kind="stable")
    ordered = offsets[order]
    first = np.flatnonzero(np.diff(ordered, prepend=ordered[0] - dtype.itemsize - 1) != dtype.itemsize)
    sizes = np.diff(first, append=len(ordered)) * dtype.itemsize
    return _Place(buffer, tensor, elements[order], buffer.offset + ordered[first], sizes, dtype)


def _counts(layer: _Layer) -> tuple[int, int]:
    given = sum(len(place.starts) for place in layer.inputs)
    return given + len(layer.noisy), len(layer.output.starts) + len(layer.noisy) + len(layer.quiet)


def _rows(layer: _Layer, arena: int) -> np.ndarray:
    """Address and size of each run of bytes to write before the layer, then of each run to read afterwards."""
    *inputs, output = (np.column_stack([place.starts, place.sizes]) for place in (*layer.inputs, layer.output))
    return np.concatenate([*inputs, layer.noisy, output, layer.noisy, layer.quiet]) + np.array([arena, 0])


def _data(layer: _Layer, given: Mapping[str, Values]) -> np.ndarray:
    """The bytes of the inputs and the noise, case by case."""
    cases = layer.cases(given)
    inputs = (place.store(given[layer.step.op][place.tensor][:cases]) for place in layer.inputs)
    return np.concatenate([*inputs, layer.noise(cases)], axis=1)


# ---- what was made ----


def _wrong(net: Net, pe: int, layers: Sequence[_Layer], given: Mapping[str, Values], made: bytes) -> Iterator[Mismatch]:
    """The first wrong case of each layer of a PE. Writes outside the output raise an error."""
    at = 0
    for layer in (each for each in layers if each.cases(given)):
        count, place = layer.cases(given), layer.output
        end = at + count * (place.bytes + len(layer.near))
        every = np.frombuffer(made[at:end].ljust(end - at, b"\0"), np.uint8).reshape(count, -1)
        got, near = every[:, : place.bytes], every[:, place.bytes :]
        at, want = end, place.store(given[layer.step.op][place.tensor][:count])
        _check_near(pe, layer, near)
        cases = np.flatnonzero((got != want).any(axis=1))
        if len(cases):
            yield _mismatch(net, pe, layer, int(cases[0]), got, given[layer.step.op][place.tensor])


def _check_near(pe: int, layer: _Layer, found: np.ndarray) -> None:
    noise = layer.noise(len(found))
    was = np.concatenate([noise, np.tile(found[0, noise.shape[1] :], (len(found), 1))], axis=1)
    written = layer.near[(found != was).any(axis=0)]
    if len(written):
        where = f"byte {written[0]} of its activations, outside of {layer.output.buffer.name}"
        raise Differs(
            f"{layer.step.op} alone on PE {pe} writes {len(written)} bytes that are not its own: the first is {where}",
            tries=["npukit build, which makes this build anew"],
        )


def _mismatch(net: Net, pe: int, layer: _Layer, case: int, got: np.ndarray, want: np.ndarray) -> Mismatch:
    place, box = layer.output, layer.step.output.box
    values = want[case].copy()
    less = place.buffer.arrangement.subtracted if place.buffer.arrangement else 0
    values.reshape(-1)[place.elements] = got[case].view(place.dtype).astype(np.int64) + less
    found = difference(values[box.slices], want[case][box.slices], box.start)
    return Mismatch(case, place.tensor, pe, box=str(box), path=ALONE, **found)
