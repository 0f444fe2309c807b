"""The options of a build."""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any

OWN_PLAN = "own"
"""The manifest's entry for a mapping from the user."""


@dataclass(frozen=True)
class Options:
    """The options of a build besides model and board."""

    pes: int | None = None
    chips: int | None = None
    """Limit on the chips of the board; `pes` then counts PEs of these chips."""
    engine: str | None = None
    """`cpu`: no accelerator. An accelerator's name: it alone, for every op it supports, even if the core is faster."""
    objective: str = "latency"
    frames_per_second: float | None = None
    """Required frame rate, checked against the plan's prediction. `DoesNotFit` names the limiting resource."""
    plan: str | None = None
    """The user's own mapping, whole or in part: a file (`docs/mesh.md`), or the name of an installed mapper."""
    strict: bool = False
    trace: bool = False
    """Have the firmware record when each step of a frame began, for `npukit trace --on DEVICE`."""
    self_test: bool = False
    """Have each PE compare memory with the loaded image: all bytes before the first frame, a part after every frame."""
    toolchain: str | None = None
    input_shapes: tuple[tuple[str, tuple[int, ...] | float], ...] = ()
    """Shapes of inputs that the model leaves open, or the constant that replaces an input, by name."""
    states: tuple[tuple[str, str], ...] = ()
    """States: pairs of an input and the output that becomes this input in the next frame. The network keeps them, zero
    at first. Names are the model's. `in1` and `out1` count inputs and outputs."""
    custom: tuple[tuple[str, str], ...] = ()
    """C code of custom ops, by name. `NAME:1` and so on are an op's further outputs (`docs/models.md`)."""
    calibration: Path | None = None
    """Calibration data of a float model: an npz of `in0`, `in1`, ... (perhaps `labels`), or a folder of samples."""
    io: str = "file"
    """`file`: inputs and outputs have the types of the model file; the device quantises float inputs. `int8`: inputs
    and outputs that the network quantises are integers for the host."""
    in_float: bool = False
    """Compute a float model in float on the core, without quantisation."""
    keep_float: tuple[str, ...] = ()
    """Layers of the int8 network, by name, to compute in float. Needs calibration."""
    keep_int16: tuple[str, ...] = ()
    """Layers that are also computed in float, whose results dense layers read in 16 bits."""
    ranges: str = "minmax"
    """Calibration's range of an activation: `minmax`, or `percentile` to ignore the rarest values."""
    weights: str = "int8"
    """Weights of a network quantised here: `int8`, or `int4` for 4 bits in each layer that bears them."""
    target_db: float = 30.0
    """Necessary signal-to-error ratio of a quantised network's outputs against the float model, in decibels, on
    calibration data held back. 0: no necessary ratio, and plain int8."""
    preprocess: tuple[str, ...] = ()
    """Declarations of the sensor's values, one an input: `uint8 scale=0.0039 mean=0.5 std=0.25 layout=NHWC input=NAME`.

    Default: the declarations of the file MODEL.toml beside the model, if it exists. The same holds for `postprocess`.
    """
    postprocess: tuple[str, ...] = ()
    """Declarations of the application's outputs, one an output: `softmax top=3 output=0`, or `argmax`."""

    def to_json(self) -> dict[str, Any]:
        """The options for the build's manifest, without the files of calibration data and mappings."""
        return asdict(replace(self, calibration=None, plan=OWN_PLAN if self.plan else None))

    @classmethod
    def from_json(cls, told: dict[str, Any]) -> Options:
        """The options in a manifest. Raises a `ValueError` for invalid options."""
        return _told_options().validate_python(told)


@dataclass(frozen=True)
class Network:
    """One of several networks on a board: name, model file and limit of PEs."""

    name: str
    model: Path
    pes: int | None = None


@cache
def _told_options() -> Any:
    from pydantic import ConfigDict, TypeAdapter, with_config

    return TypeAdapter(with_config(ConfigDict(extra="forbid"))(Options))
