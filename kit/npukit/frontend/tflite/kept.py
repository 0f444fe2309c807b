"""Initial states of the custom ops with state."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

import numpy as np

from npukit.frontend.tflite.model import TfliteOp, TfliteTensor, custom_kind, options_of
from npukit.net.limits import check_shape

Begins = Callable[[TfliteTensor, Mapping[str, int]], Sequence[np.ndarray]]
"""Computes an op's initial states from first input and options."""


def _noise(signal: TfliteTensor, _: Mapping[str, int]) -> Sequence[np.ndarray]:
    return (np.zeros(signal.shape, signal.dtype),)


def _delayed(signal: TfliteTensor, options: Mapping[str, int]) -> Sequence[np.ndarray]:
    return (_history(signal, options["delay_length"]),)


def _framed(signal: TfliteTensor, options: Mapping[str, int]) -> Sequence[np.ndarray]:
    """The preceding samples, and unless prefilled the number of samples so far."""
    size, step = options["frame_size"], options["frame_step"]
    if options["prefill"] or size <= step:
        return (_history(signal, max(size - step, 0)),)
    return _history(signal, -(-size // step) * step - step), np.zeros(1, np.int32)


def _overlapping(frames: TfliteTensor, _: Mapping[str, int]) -> Sequence[np.ndarray]:
    return (np.zeros((*frames.shape[:-2], frames.shape[-1]), frames.dtype),)


def _stacked(signal: TfliteTensor, options: Mapping[str, int]) -> Sequence[np.ndarray]:
    """The last frames, and the number of waiting frames, -1 before the first frame."""
    frames = options["stacker_left_context"] + options["stacker_right_context"] + 1
    return _history(replace(signal, shape=()), options["num_channels"] * frames), np.full(1, -1, np.int32)


def _history(signal: TfliteTensor, length: int) -> np.ndarray:
    shape = (*signal.shape[:-1], length)
    check_shape(shape, "what it keeps")
    return np.zeros(shape, signal.dtype)


BEGINS: Mapping[str, Begins] = {
    custom_kind("SignalDelay"): _delayed,
    custom_kind("SignalFilterBankSpectralSubtraction"): _noise,
    custom_kind("SignalFramer"): _framed,
    custom_kind("SignalOverlapAdd"): _overlapping,
    custom_kind("SignalStacker"): _stacked,
}


def states_of(op: TfliteOp, signal: TfliteTensor) -> list[TfliteTensor]:
    """The states of an op in `BEGINS` with their initial values. States without elements are omitted."""
    begins = BEGINS[op.kind](signal, options_of(op))
    return [
        TfliteTensor(f"{op.index}_state_{place}", value.shape, str(value.dtype), value)
        for place, value in enumerate(begins)
        if value.size
    ]
