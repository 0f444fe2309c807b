"""Validate: run a build and compare every output and every layer with the reference, bit for bit."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from npukit.errors import NpukitError
from npukit.link.session import Session
from npukit.measure.cases import Cases, layer_digests
from npukit.measure.target import Target
from npukit.net.net import Net
from npukit.net.reference import evaluate
from npukit.progress import Progress

LISTED_MISMATCHES = 20


@dataclass(frozen=True)
class Mismatch:
    """The first element in which a tensor differs. Of a layer only the digest is known: got and want are CRC-32s."""

    case: int
    tensor: str
    pe: int
    index: tuple[int, ...]
    got: int | float
    want: int | float


@dataclass(frozen=True)
class Validation:
    """What was compared, and what differed."""

    engine: str
    cases: int
    outputs_equal: bool
    mismatches: tuple[Mismatch, ...]
    layers_checked: int

    @property
    def passed(self) -> bool:
        return self.outputs_equal and not self.mismatches

    def to_json(self) -> dict[str, Any]:
        return asdict(self)


def validate(target: Target, net: Net, cases: Cases, progress: Progress) -> Validation:
    """Feed every case; compare outputs with the reference and with what the cases expect, and layer digests."""
    found: list[Mismatch] = []
    equal, layers = True, 0
    for case in progress.track(range(cases.count), f"validate on {target.name}"):
        values = evaluate(net, [array[case] for array in cases.inputs])
        outputs = run_case(target.session, net, cases, case, observe=True)
        differing = _differing_layers(target.session, net, values, case)
        wrong = _differing_outputs(net, cases, case, outputs, values)
        layers += len(target.session.device.layers)
        equal = equal and not wrong
        found += differing + wrong
    return Validation(target.name, cases.count, equal, tuple(found[:LISTED_MISMATCHES]), layers)


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


def _differing_layers(session: Session, net: Net, values: dict[str, np.ndarray], case: int) -> list[Mismatch]:
    want = layer_digests(net, values)
    pairs = zip(session.device.layers, session.layer_digests(), strict=True)
    return [Mismatch(case, name, 0, (), got, want[name]) for name, got in pairs if want[name] != got]


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
