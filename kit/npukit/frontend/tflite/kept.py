"""Initial states of the custom ops with state."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from npukit.frontend.tflite.model import TfliteOp, TfliteTensor, custom_kind, name_of, options_of
from npukit.net.limits import check_shape

STATEFUL = frozenset(
    custom_kind(f"Signal{name}")
    for name in ("Delay", "FilterBankSpectralSubtraction", "Framer", "OverlapAdd", "Stacker")
)


def _history(signal: TfliteTensor, length: int) -> np.ndarray:
    shape = (*signal.shape[:-1], length)
    check_shape(shape, "what it keeps")
    return np.zeros(shape, signal.dtype)


def _initial(op: TfliteOp, signal: TfliteTensor) -> Sequence[np.ndarray]:
    """The initial states of an op in `STATEFUL`, from first input and options."""
    options: Mapping[str, int] = options_of(op)
    match name_of(op.kind).removeprefix("Signal"):
        case "Delay":
            return [_history(signal, options["delay_length"])]
        case "Framer":  # the preceding samples, and unless prefilled the number of samples so far
            size, step = options["frame_size"], options["frame_step"]
            if options["prefill"] or size <= step:
                return [_history(signal, max(size - step, 0))]
            return [_history(signal, -(-size // step) * step - step), np.zeros(1, np.int32)]
        case "OverlapAdd":
            return [np.zeros((*signal.shape[:-2], signal.shape[-1]), signal.dtype)]
        case "Stacker":  # the last frames, and the number of waiting frames, -1 before the first frame
            frames = options["stacker_left_context"] + options["stacker_right_context"] + 1
            return [_history(replace(signal, shape=()), options["num_channels"] * frames), np.full(1, -1, np.int32)]
        case _:  # the noise
            return [np.zeros(signal.shape, signal.dtype)]


def states_of(op: TfliteOp, signal: TfliteTensor) -> list[TfliteTensor]:
    """The states of an op in `STATEFUL` with their initial values. States without elements are omitted."""
    return [
        TfliteTensor(f"{op.index}_state_{place}", value.shape, str(value.dtype), value)
        for place, value in enumerate(_initial(op, signal))
        if value.size
    ]
