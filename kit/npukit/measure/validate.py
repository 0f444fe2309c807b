"""Validate: run a build and compare every output, and every tile of every layer, with the reference, bit for bit."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from npukit.errors import NpukitError
from npukit.link.session import Session
from npukit.measure.cases import Cases, tile_digest
from npukit.measure.target import Target
from npukit.measure.tiles import recorded_tiles
from npukit.net.net import Net
from npukit.net.reference import evaluate
from npukit.plan.plan import Plan
from npukit.progress import Progress

LISTED_MISMATCHES = 20


@dataclass(frozen=True)
class Mismatch:
    """The first element in which an output differs; or a tile, the `box` of a layer that one PE computes.

    Of a tile only the digest is known: got and want are CRC-32s.
    """

    case: int
    tensor: str
    pe: int
    index: tuple[int, ...]
    got: int | float
    want: int | float
    box: str = ""


@dataclass(frozen=True)
class Validation:
    """What was compared, and what differed. A layer is checked in as many tiles as PEs compute it in."""

    engine: str
    cases: int
    outputs_equal: bool
    mismatches: tuple[Mismatch, ...]
    layers_checked: int
    tiles_checked: int = 0
    accuracy: float | None = None
    """The share of the cases' labels that the first output names, if there are labels."""

    @property
    def passed(self) -> bool:
        return self.outputs_equal and not self.mismatches

    def to_json(self) -> dict[str, Any]:
        told = asdict(self)
        return {key: value for key, value in told.items() if key != "accuracy" or value is not None}


def validate(target: Target, net: Net, plan: Plan, cases: Cases, progress: Progress) -> Validation:
    """Feed every case; compare outputs with the reference and with what the cases expect, and all tiles' digests."""
    found: list[Mismatch] = []
    equal, right = True, 0
    steps = [step for pe in plan.pes for step in pe.computes()]
    for case in progress.track(range(cases.count), f"validate on {target.name}"):
        values = evaluate(net, [array[case] for array in cases.inputs])
        outputs = run_case(target.session, net, cases, case, observe=True)
        differing = _differing_tiles(target.session, net, plan, values, case)
        wrong = _differing_outputs(net, cases, case, outputs, values)
        equal = equal and not wrong
        found += differing + wrong
        right += cases.labels is not None and answer(outputs[0]) == cases.labels[case]
    layers = len({step.op for step in steps})
    mismatches = tuple(found[:LISTED_MISMATCHES])
    return Validation(
        target.name,
        cases.count,
        equal,
        mismatches,
        layers * cases.count,
        len(steps) * cases.count,
        None if cases.labels is None else right / cases.count,
    )


def answer(output: np.ndarray) -> int:
    """What the first output of a classifier says: the place of its largest score, or the (first) index that it is."""
    return int(output.flat[0]) if output.dtype in (np.int32, np.int64) else int(output.argmax())


def run_case(session: Session, net: Net, cases: Cases, case: int, *, observe: bool) -> list[np.ndarray]:
    """One frame on the device, and its outputs."""
    write_inputs(session, cases, case)
    session.run(observe=observe)
    return [_output(session, net, index) for index in range(len(net.outputs))]


def write_inputs(session: Session, cases: Cases, case: int) -> None:
    for index, array in enumerate(cases.inputs):
        session.write_input(index, array[case].tobytes())


def _output(session: Session, net: Net, index: int) -> np.ndarray:
    tensor, data = net.tensor(net.outputs[index]), session.read_output(index)
    if len(data) != tensor.bytes:
        raise NpukitError(f"the device's output {tensor.name} has {len(data)} bytes, the network's {tensor.bytes}")
    return np.frombuffer(data, tensor.dtype).reshape(tensor.shape)


def _differing_tiles(
    session: Session, net: Net, plan: Plan, values: dict[str, np.ndarray], case: int
) -> list[Mismatch]:
    outputs = {op.name: op.output for op in net.ops}
    arrangements = {(pe.pe, buffer.name): buffer.arrangement for pe in plan.pes for buffer in pe.buffers}
    found = []
    for tile in recorded_tiles(session, net, plan):
        name, view = outputs[tile.step.op], tile.step.output
        box = view.box
        got, want = tile.record.digest, tile_digest(values[name], box, arrangements[tile.pe, view.buffer])
        if got != want:
            found.append(Mismatch(case, name, tile.pe, (), got, want, str(box)))
    return found


def _differing_outputs(
    net: Net, cases: Cases, case: int, outputs: list[np.ndarray], values: dict[str, np.ndarray]
) -> list[Mismatch]:
    found = []
    for index, (name, got) in enumerate(zip(net.outputs, outputs, strict=True)):
        wanted = [values[name]]
        if index in cases.expected:
            wanted.append(cases.expected[index][case].reshape(got.shape))
        found += [m for want in wanted for m in _first_difference(case, name, got, want)]
    return found


def _first_difference(case: int, name: str, got: np.ndarray, want: np.ndarray) -> list[Mismatch]:
    places = np.argwhere(got != want)
    if not len(places):
        return []
    index = tuple(int(i) for i in places[0])
    return [Mismatch(case, name, 0, index, got[index].item(), want[index].item())]
