"""The steps from a sensor's values to the numbers before quantisation: one function for each kind of sensor."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence

import numpy as np

from npukit.application.declared import SensorInput
from npukit.application.draft import Draft
from npukit.application.images import with_image
from npukit.application.sounds import rows_of, with_sound
from npukit.net.net import Net
from npukit.net.reference import evaluate


def has_steps(declared: SensorInput) -> bool:
    return bool(declared.features) or declared.of_camera


def with_steps(draft: Draft, declared: SensorInput, name: str, shape: tuple[int, ...], unit: float = 1.0) -> str:
    """The result of the steps, of `shape` with channels last. `name`: the new input with the sensor's values, in
    `unit`."""
    return (with_sound if declared.features else with_image)(draft, declared, name, shape, unit)


def steps_alone(declared: SensorInput, shape: tuple[int, ...]) -> Net:
    """A net of the steps alone."""
    draft = Draft(Net("sensor", (), (), (), {}))
    return draft.finished(("given",), (with_steps(draft, declared, "given", shape),))


def seen_by_steps(declared: SensorInput, values: np.ndarray, shape: tuple[int, ...]) -> np.ndarray:
    """The result of the steps for each case, of the shape. With `new` windows, cases follow each other in time."""
    net = steps_alone(declared, shape)
    quantization = net.tensor(net.outputs[0]).quantization
    made = _evaluated(net, values) if quantization is None else (each + 128 for each in _evaluated(net, values))
    if declared.new:
        made = _windows(made, *rows_of(declared, shape))
    return np.stack([each.reshape(shape) for each in made])


def _evaluated(net: Net, cases: Sequence[np.ndarray] | np.ndarray) -> Iterator[np.ndarray]:
    given, found = net.tensor(net.inputs[0]), None
    for case in cases:
        found = evaluate(net, [case.reshape(given.shape).astype(given.dtype)], found)
        yield found[net.outputs[0]].astype(np.int32)


def _windows(made: Iterator[np.ndarray], rows: int, count: int) -> Iterator[np.ndarray]:
    """The latest windows after each case, silent at first."""
    held = deque([np.zeros(count, np.int32)] * rows, rows)
    for fresh in made:
        held.extend(fresh)
        yield np.stack(held)
