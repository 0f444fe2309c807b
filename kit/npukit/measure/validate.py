"""Validate: run a build and compare every output, and every tile of every layer, with the reference, bit for bit."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import cache
from itertools import islice
from typing import Any

import numpy as np

from npukit.display import table
from npukit.emulator.builtin import Compared
from npukit.errors import NpukitError
from npukit.link.session import Session
from npukit.measure.cases import Cases, filled, sequences, tile_digest
from npukit.measure.target import Target
from npukit.measure.tiles import recorded_tiles
from npukit.net.net import Net
from npukit.net.reference import evaluate
from npukit.plan.ir.plan import Plan, View
from npukit.progress import Progress

LISTED_MISMATCHES = 20
DEPLOYED, OBSERVED = "deployed", "observed"
"""The two paths of the firmware: deployed frames, and observed frames, whose layers run one by one."""
REFERENCE, CASES = "the reference says", "the cases say"
ALONE = "alone"
"""The path of a layer with separate inputs (`measure/alone.py`)."""


_SOMETIMES = ("accuracy", "rtl_parts", "rtl_works", "rtl_messages", "waves")
"""Fields of a validation that the JSON has only with a value."""


@dataclass(frozen=True)
class Mismatch:
    """The first element in which an output differs, or a tile: the `box` of a layer on one PE.

    For outputs, and for tiles with fetched bytes (`measure/stopped.py`): `differing` elements differ, by `largest` at
    most. For other tiles only the digest is known: `index` is empty, and `got` and `want` are CRC-32s. `path`:
    `DEPLOYED` or `OBSERVED`, or `ALONE` for a layer with its own cases. `schedule`: the seed of the schedule of the
    run. `by`: the source of `want`.
    """

    case: int
    tensor: str
    pe: int
    index: tuple[int, ...]
    got: int | float
    want: int | float
    box: str = ""
    path: str = OBSERVED
    schedule: int | None = None
    differing: int | None = None
    largest: int | float | None = None
    by: str = field(default=REFERENCE, compare=False)

    def __str__(self) -> str:
        where = f"{self.tensor}{list(self.index)}" if self.index else f"the CRC-32 of {self.tensor}{self.box}"
        under = "" if self.schedule is None else f" under schedule {self.schedule}"
        run = "the layer alone" if self.path == ALONE else f"{self.path} frame"
        frame = f"case {self.case}, PE {self.pe}, {run}{under}"
        others = f"; {self.differing} differ in {self.box or 'it'}, by {self.largest} at most" if self.differing else ""
        return f"{frame}: {where} is {self.got}, {self.by} {self.want}{others}"


@dataclass(frozen=True)
class Validation:
    """The result of a comparison: counts and differences. A layer has as many tiles as PEs that compute it.

    Every case runs on both paths. `outputs_equal`: the outputs of both equal the reference. `paths_equal`: both paths
    give the same outputs, right or wrong.
    """

    engine: str
    cases: int
    outputs_equal: bool
    mismatches: tuple[Mismatch, ...]
    layers_checked: int
    tiles_checked: int = 0
    paths_equal: bool = True
    accuracy: float | None = None
    """The share of cases whose first output agrees with the label, if there are labels."""
    schedules: tuple[int, ...] = ()
    """The seeds of the schedules for the repeated deployed frames: `measure/schedules.py`."""
    rtl_parts: tuple[str, ...] | None = None
    """The parts of the board in RTL. None without RTL."""
    rtl_works: int | None = None
    """Works of accelerators in RTL, each equal to the C model's in bytes and cycles. None without RTL."""
    rtl_messages: int | None = None
    """Messages of the network in RTL, equal likewise. None without the network in RTL."""
    waves: tuple[str, ...] | None = None
    """Files of waveforms. None unless asked for."""

    @property
    def passed(self) -> bool:
        return self.outputs_equal and self.paths_equal and not self.mismatches

    def _repr_html_(self) -> str:
        title = f"{self.cases} cases on {self.engine}: {'equal bit for bit' if self.passed else 'NOT equal'}"
        title += "" if self.accuracy is None else f"; {self.accuracy:.1%} of the labels are right"
        rows = [(m.case, m.path, m.tensor, m.pe, str(m.index), m.got, m.want) for m in self.mismatches]
        return table(title, ("case", "frame", "tensor", "PE", "index", "got", "want"), rows)

    def with_rtl(self, done: Compared | None) -> Validation:
        if done is None:
            return self
        return replace(self, rtl_parts=done.parts, rtl_works=done.works, rtl_messages=done.messages)

    def to_json(self) -> dict[str, Any]:
        told = asdict(self)
        return {key: value for key, value in told.items() if key not in _SOMETIMES or value is not None}


def validate(target: Target, net: Net, plan: Plan, cases: Cases, progress: Progress) -> Validation:
    """Feed every case, or with states every sequence, to deployed frames and then to observed frames.

    Outputs of both paths are compared with the reference and with the cases' expectations, and digests of all tiles
    with the reference. No frame follows a frame of the same case: the results left in memory would hide a layer that
    does not run, or does not wait. Noise fills up the last batch, so that no two frames of a batch are the same.
    """
    found: list[Mismatch] = []
    paths_equal, answers = True, dict[int, int]()
    steps = [step for pe in plan.pes for step in pe.tiles]
    given, cases = cases.count, filled(net, cases, plan.frames_of_all)
    every = sequences(cases, plan.frames_of_all)
    if target.session.pes()[0].frames:  # the board's memory may hold results of the first case
        run_zeros(target.session, net, cases, len(every[0][0]))
    for ran in _run_twice(target, net, cases, every, progress):
        found += _differing_tiles(target, net, plan, ran.chosen, ran.reference)
        for path, outputs in ((OBSERVED, ran.observed), (DEPLOYED, ran.deployed)):
            found += differing_outputs(net, cases, ran.chosen, outputs, path, ran.reference)
        paths_equal = paths_equal and all(map(same_outputs, ran.deployed, ran.observed))
        answers |= {case: answer(got[0]) for case, got in zip(ran.chosen, ran.deployed, strict=True)}
    return Validation(
        engine=target.name,
        cases=given,
        outputs_equal=all(mismatch.box for mismatch in found),
        mismatches=tuple(found[:LISTED_MISMATCHES]),
        layers_checked=len({step.op for step in steps}) * given,
        tiles_checked=len(steps) * len(plan.chips) * sum(map(len, every)),
        paths_equal=paths_equal,
        accuracy=None if cases.labels is None else _accuracy(cases.labels, answers),
    )


Outputs = list[list[np.ndarray]]
"""The outputs of each frame of a round."""


@dataclass(frozen=True)
class _Ran:
    """A round on both paths, observed last, with the reference's values by case."""

    chosen: tuple[int, ...]
    reference: Mapping[int, dict[str, np.ndarray]]
    deployed: Outputs
    observed: Outputs


def _run_twice(
    target: Target, net: Net, cases: Cases, every: Sequence[Sequence[tuple[int, ...]]], progress: Progress
) -> Iterator[_Ran]:
    """Run each block of rounds deployed, then observed. A layer that an observed frame skips thus finds results of
    another case in memory."""
    session, rounds_of_both = target.session, [chosen for rounds in _blocks(every) for chosen in (*rounds, *rounds)]
    counted = progress.track(rounds_of_both, f"validate on {target.name}")
    values: dict[str, np.ndarray] | None = None
    for rounds in _blocks(every):
        deployed = [run_round(session, net, cases, chosen, observe=False) for chosen in islice(counted, len(rounds))]
        if len(rounds) == 1:
            run_zeros(session, net, cases, len(rounds[0]))
        for outputs, chosen in zip(deployed, counted, strict=False):
            inputs = {case: [array[case] for array in cases.inputs] for case in dict.fromkeys(chosen)}
            before = None if cases.begins(chosen[0]) else values
            reference = {case: evaluate(net, given, before) for case, given in inputs.items()}
            values = reference[chosen[0]]
            yield _Ran(chosen, reference, outputs, run_round(session, net, cases, chosen, observe=True))
    next(counted, None)


def _blocks(every: Sequence[Sequence[tuple[int, ...]]]) -> list[list[tuple[int, ...]]]:
    """The rounds in blocks of two or more, with whole sequences together. A last single round joins the last block."""
    blocks = list[list[tuple[int, ...]]]()
    for rounds in every:
        if blocks and len(blocks[-1]) == 1:
            blocks[-1].extend(rounds)
        else:
            blocks.append([*rounds])
    if len(blocks) > 1 and len(blocks[-1]) == 1:
        blocks[-2:] = [blocks[-2] + blocks[-1]]
    return blocks


def run_zeros(session: Session, net: Net, cases: Cases, frames: int) -> None:
    """Run one deployed round with zeros in every input."""
    zeros = Cases(tuple(np.zeros_like(array[:1]) for array in cases.inputs), {})
    run_round(session, net, zeros, (0,) * frames, observe=False)


def _accuracy(labels: np.ndarray, answers: Mapping[int, int]) -> float:
    return sum(int(answers[case] == label) for case, label in enumerate(labels)) / len(labels)


def answer(output: np.ndarray) -> int:
    """The answer of a classifier's first output: the index of the largest score, or the output of an argmax."""
    return int(output.flat[0]) if output.dtype in (np.int32, np.int64) else int(output.argmax())


def run_round(
    session: Session, net: Net, cases: Cases, chosen: Sequence[int], *, observe: bool
) -> list[list[np.ndarray]]:
    """Run one case in each frame of a round. Returns the outputs of each."""
    write_inputs(session, cases, chosen)
    session.run(observe=observe)
    return read_outputs(session, net, len(chosen))


def run_frame(session: Session, net: Net, inputs: Sequence[np.ndarray]) -> tuple[np.ndarray, ...]:
    """The outputs of a frame with these inputs. States continue from the frame before."""
    for index, (name, array) in enumerate(zip(net.inputs, inputs, strict=True)):
        tensor = net.tensor(name)
        if (array.shape, array.dtype) != (tensor.shape, np.dtype(tensor.dtype)):
            raise NpukitError(f"input {name} is {tensor.dtype} of {tensor.shape}, not {array.dtype} of {array.shape}")
        session.write_input(index, array.tobytes())
    session.run()
    return tuple(read_outputs(session, net, 1)[0])


def read_outputs(session: Session, net: Net, frames: int) -> list[list[np.ndarray]]:
    """The outputs of each frame of the last run."""
    return [[_output(session, net, frame, index) for index in range(len(net.outputs))] for frame in range(frames)]


def run_case(session: Session, net: Net, cases: Cases, case: int, *, observe: bool) -> list[np.ndarray]:
    """The outputs of one case, which runs in every frame of a round."""
    frames = max(len(session.device.inputs) // max(len(net.inputs), 1), 1)
    return run_round(session, net, cases, (case,) * frames, observe=observe)[0]


def write_inputs(session: Session, cases: Cases, chosen: Sequence[int]) -> None:
    """Write the inputs of a case for each frame. The first case of a sequence resets the states."""
    if cases.begins(chosen[0]):
        session.reset_states()
    for frame, case in enumerate(chosen):
        for index, array in enumerate(cases.inputs):
            session.write_input(frame * len(cases.inputs) + index, array[case].tobytes())


def _output(session: Session, net: Net, frame: int, index: int) -> np.ndarray:
    tensor, data = net.tensor(net.outputs[index]), session.read_output(frame * len(net.outputs) + index)
    if len(data) != tensor.bytes:
        raise NpukitError(f"the device's output {tensor.name} has {len(data)} bytes, the network's {tensor.bytes}")
    return np.frombuffer(data, tensor.dtype).reshape(tensor.shape)


def _differing_tiles(
    target: Target, net: Net, plan: Plan, chosen: Sequence[int], reference: Mapping[int, dict[str, np.ndarray]]
) -> list[Mismatch]:
    outputs = {op.name: op.output for op in net.ops}
    arrangements = {(pe.pe, buffer.name): buffer.arrangement for pe in plan.pes for buffer in pe.buffers}
    found = []

    @cache
    def wanted(case: int, name: str, like: int, view: View) -> int:
        return tile_digest(reference[case][name], view.box, arrangements[like, view.buffer])

    for tile in recorded_tiles(target.session, net, target.board, plan):
        name, view, case = outputs[tile.step.op], tile.step.output, chosen[tile.frame]
        box = view.box
        got, want = tile.record.digest, wanted(case, name, tile.like, view)
        if got != want:
            found.append(Mismatch(case, name, tile.pe, (), got, want, str(box)))
    return found


def differing_outputs(
    net: Net,
    cases: Cases,
    chosen: Sequence[int],
    outputs: Sequence[Sequence[np.ndarray]],
    path: str,
    reference: Mapping[int, Mapping[str, np.ndarray]] = {},
) -> list[Mismatch]:
    """The first differences of each frame's outputs from the reference, or from the case's expectations."""
    found = list[Mismatch]()
    for case, of_case in zip(chosen, outputs, strict=True):
        values = reference.get(case, {})
        for index, (name, got) in enumerate(zip(net.outputs, of_case, strict=True)):
            wanted = [(REFERENCE, values[name])] if name in values else []
            if case < len(cases.expected.get(index, ())):
                wanted.append((CASES if wanted else REFERENCE, cases.expected[index][case].reshape(got.shape)))
            differ = ((by, difference(got, want)) for by, want in wanted)
            found += dict.fromkeys(Mismatch(case, name, 0, path=path, by=by, **each) for by, each in differ if each)
    return found


def same_outputs(one: Sequence[np.ndarray], other: Sequence[np.ndarray]) -> bool:
    """True if all outputs of two frames are equal bit for bit."""
    return all(np.array_equal(_bits(a), _bits(b)) for a, b in zip(one, other, strict=True))


def _bits(values: np.ndarray) -> np.ndarray:
    """Floats as bits: equal floats may differ in bits, and NaN equals nothing."""
    return values.view(np.uint32) if values.dtype == np.float32 else values


def difference(got: np.ndarray, want: np.ndarray, start: Sequence[int] = ()) -> dict[str, Any]:
    """The first differing element, the number of differing elements, and the largest difference. Empty if all are
    equal. `start`: the index of the first element in its tensor."""
    places = np.argwhere(_bits(got) != _bits(want))
    if not len(places):
        return {}
    first = tuple(int(i) for i in places[0])
    index = tuple(i + begin for i, begin in zip(first, start, strict=True)) if start else first
    numbers = np.int64 if got.dtype.kind in "iub" else np.float64
    largest = np.abs(got.astype(numbers) - want.astype(numbers)).max().item()
    told = {"index": index, "got": got[first].item(), "want": want[first].item()}
    return {**told, "differing": len(places), "largest": largest}
