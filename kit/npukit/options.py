"""The options of a build."""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any

OWN_PLAN = "own"
"""The word in a manifest for a mapping that the user gave."""


@dataclass(frozen=True)
class Options:
    """The options of a build besides model and board."""

    pes: int | None = None
    chips: int | None = None
    """Chips of the board that may be used; with `pes`, PEs of these."""
    engine: str | None = None
    """`cpu`: no accelerator. One of the board's: that alone, for all that it takes, also where the core is faster."""
    objective: str = "latency"
    frames_per_second: float | None = None
    """A rate that must be reached, by the plan's prediction; `DoesNotFit` names what of the board cannot hold it."""
    plan: str | None = None
    """The user's own mapping, whole or in part: a file (`docs/mapping.md`), or the name of an installed mapper."""
    strict: bool = False
    trace: bool = False
    """Have the firmware write down when each step of a frame began, for `npukit trace --on DEVICE`."""
    self_test: bool = False
    """Have each PE compare its memory with what was loaded: all before the first frame, some after every frame."""
    toolchain: str | None = None
    input_shapes: tuple[tuple[str, tuple[int, ...] | float], ...] = ()
    """The shapes of inputs that the model leaves open, or the number that an input is for good, by name."""
    states: tuple[tuple[str, str], ...] = ()
    """Pairs of an input and the output that it is in the next frame: the network keeps them itself, zero at first.

    Names are the model's; `in1` and `out1` count them.
    """
    custom: tuple[tuple[str, str], ...] = ()
    """The C of custom ops, by name; of an op's further outputs by `NAME:1` and so on (`docs/models.md`)."""
    calibration: Path | None = None
    """Data of a float model: an npz file of inputs `in0`, `in1`, ... (and perhaps `labels`), or a folder of such."""
    io: str = "file"
    """`file`: inputs and outputs have the types that the file says; float ones are quantised on the device.

    `int8`: those that the network quantises are taken and given as integers.
    """
    in_float: bool = False
    """Compute a float model in float, on the core, instead of quantising it."""
    keep_float: tuple[str, ...] = ()
    """Layers of the int8 network, by name, to compute in float all the same; with calibration."""
    keep_int16: tuple[str, ...] = ()
    """Such layers whose results dense layers read in 16 bits."""
    ranges: str = "minmax"
    """The range that calibration takes for an activation: `minmax`, or `percentile` to leave out the rarest values."""
    preprocess: tuple[str, ...] = ()
    """Declarations of the sensor's values, one an input: `uint8 scale=0.0039 mean=0.5 std=0.25 layout=NHWC input=NAME`.

    Without one, what the file MODEL.toml beside the model says, if it is there; `postprocess` likewise.
    """
    postprocess: tuple[str, ...] = ()
    """Declarations of the application's outputs, one an output: `softmax top=3 output=0`, or `argmax`."""

    def to_json(self) -> dict[str, Any]:
        """The options for the build's manifest. Calibration data and mappings are files elsewhere, and not kept."""
        return asdict(replace(self, calibration=None, plan=OWN_PLAN if self.plan else None))

    @classmethod
    def from_json(cls, told: dict[str, Any]) -> Options:
        """The options that a manifest keeps. A `ValueError` if it has none."""
        return _told_options().validate_python(told)


@dataclass(frozen=True)
class Network:
    """One of several networks side by side on a board: its name there, its model file, how many PEs it may have."""

    name: str
    model: Path
    pes: int | None = None


@cache
def _told_options() -> Any:
    from pydantic import ConfigDict, TypeAdapter, with_config

    return TypeAdapter(with_config(ConfigDict(extra="forbid"))(Options))
