"""Declarations of a network's inputs and outputs: in a TOML file beside the model, or on the command line."""

from __future__ import annotations

import re
import shlex
import tomllib
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any, Literal, TypeVar

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError, model_validator

from npukit.errors import NpukitError

SensorType = Literal["float32", "int16", "int8", "uint8"]
Layout = Literal["NHWC", "NCHW"]


def _listed(value: Any) -> Any:
    """Wrap a single number in a tuple."""
    return value if isinstance(value, list | tuple) else (value,)


def _sides(value: Any) -> Any:
    """Split numbers such as `96x128` or `96x128+12+16`."""
    return [int(each) for each in re.split("[x+]", value)] if _SIDES.fullmatch(str(value)) else value


def _number(value: Any) -> Any:
    """Convert digits to a number."""
    return int(value) if isinstance(value, str) and value.isdecimal() else value


_SIDES = re.compile(r"[0-9]{1,6}x[0-9]{1,6}([+][0-9]{1,6}[+][0-9]{1,6})?")
_Packed = Literal["GREY", "RGB", "BGR", "RGBA", "BGRA", "RGB565", "RGB565X", "YUV", "YUYV", "UYVY"]
_Planes = Literal["NV12", "NV21", "I420"]
_Mosaics = Literal["RGGB", "BGGR", "GRBG", "GBRG"]
Colours = Literal[_Packed, _Planes, _Mosaics]
Whole = Annotated[int, Field(ge=0, le=1 << 16)]
Pair = tuple[Annotated[Whole, Field(ge=1)], Annotated[Whole, Field(ge=1)]]
Finite = Annotated[float, Field(allow_inf_nan=False)]
Positive = Annotated[float, Field(gt=0, allow_inf_nan=False)]
Numbers = Annotated[tuple[Finite, ...], BeforeValidator(_listed), Field(min_length=1)]
PositiveNumbers = Annotated[tuple[Positive, ...], BeforeValidator(_listed), Field(min_length=1)]


class _Part(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class Camera(_Part):
    """A camera's image: bytes of the `colour`, rows and columns of the `size`. The network cuts out `crop`, converts
    the colours to `sees`, the model's, scales the image to the model's size by `resize`, and turns it to the right by
    `rotate` degrees."""

    colour: Colours | None = None
    size: Annotated[Pair | None, BeforeValidator(_sides)] = None
    crop: Annotated[Pair | tuple[Whole, Whole, Whole, Whole] | None, BeforeValidator(_sides)] = None
    """Rows and columns, optionally with the first row and column. Default: centred."""
    resize: Literal["bilinear", "nearest", "area"] = "bilinear"
    rotate: Annotated[Literal[0, 90, 180, 270], BeforeValidator(_number)] = 0
    sees: Literal["RGB", "BGR", "YUV", "GREY"] | None = None
    """The model's colours. Default: RGB or grey, by the number of channels."""


class Microphone(_Part):
    """Sound as samples of 16 bits: `features` of windows at intervals of `hop` samples. `new`: windows for which each
    frame brings samples. The network keeps earlier samples and features itself."""

    features: Literal["log_mel", "mfcc"] | None = None
    rate: Positive = 16000
    window: Annotated[int, Field(ge=2, le=1 << 15)] = 480
    hop: Annotated[int, Field(ge=1, le=1 << 15)] = 320
    mels: Annotated[int, Field(ge=1, le=512)] = 40
    """Channels of the filter bank. For `log_mel` the model decides their number."""
    low: Finite = 125.0
    high: Finite = 7500.0
    new: Annotated[int | None, Field(ge=1)] = None


class SensorInput(Camera, Microphone):
    """The application's input: the model sees (value * scale - mean) / std.

    `mean` and `std`: one number, or one for each channel. `type`: None for the model's own values. The value is the
    sensor's, or the result of the camera's or microphone's steps.
    """

    input: str = ""
    """The input's name in the model. Optional for a single input."""
    type: SensorType | None = None
    scale: Positive = 1.0
    mean: Numbers = (0.0,)
    std: PositiveNumbers = (1.0,)
    layout: Layout | None = None
    """The order of an image's axes, if not the model's own."""

    @property
    def is_plain(self) -> bool:
        """True if scale, mean and std leave the numbers unchanged."""
        return (self.scale, self.mean, self.std) == (1.0, (0.0,), (1.0,))

    @property
    def has_steps(self) -> bool:
        """True if image or sound processing comes first."""
        return bool(self.features) or self.of_camera

    @property
    def of_camera(self) -> bool:
        """True if image processing comes first."""
        return not self.model_fields_set.isdisjoint(Camera.model_fields)

    @model_validator(mode="after")
    def _numbers_need_a_type(self) -> SensorInput:
        if self.type is None and not self.is_plain:
            raise ValueError("scale, mean and std need the type that the sensor gives")
        return self

    @model_validator(mode="after")
    def _steps_suit(self) -> SensorInput:
        sound = self.model_fields_set & {*Microphone.model_fields} - {"features"}
        if sound and self.features is None:
            raise ValueError(f"{min(sound)} is of features=log_mel or features=mfcc, which is not there")
        if self.of_camera and (self.type != "uint8" or self.features or self.layout):
            raise ValueError("a camera gives uint8, pixel by pixel: without features and without layout")
        if self.features and (self.type != "int16" or self.layout):
            raise ValueError("features are of int16, and have no layout")
        return self


class Detections(_Part):
    """A detector's output as at most `detections` objects, highest score first, without boxes that overlap a higher
    score's. `scores`: the output with a score for each box and class. Without it scores follow the four numbers of each
    box. `boxes`: the format of these four numbers. `anchors`: a file beside the model with an array (boxes, 4)."""

    detections: Annotated[int | None, Field(ge=1, le=1 << 12)] = None
    boxes: Literal["corners", "centre", "anchors"] = "corners"
    scores: Annotated[int | None, Field(ge=0)] = None
    background: Annotated[int, Field(ge=0)] = 0
    """Number of leading classes without an object."""
    score: Finite = 0.5
    """Lowest score of a detection."""
    iou: Annotated[float, Field(ge=0, le=1)] = 0.5
    """Highest intersection over union of two boxes of the same class."""
    each_class: bool = False
    """Suppress boxes within each class only. A box may then belong to two classes."""
    transposed: bool = False
    """The output has the shape (numbers, boxes): each number of all boxes in a row."""
    anchors: Annotated[str, Field(pattern=r"^([^/\\]+[.]npy)?$")] = ""
    scales: Annotated[PositiveNumbers, Field(min_length=4, max_length=4)] = (10.0, 10.0, 5.0, 5.0)
    """Divisors of a box's differences from its anchor: y, x, height, width."""


class WantedOutput(Detections):
    """The application's output: `softmax`, then perhaps `argmax` or the `top` largest; or detections."""

    output: int = Field(default=0, ge=0)
    """The number of the output in the model."""
    softmax: bool = False
    argmax: bool = False
    top: int | None = Field(default=None, ge=1)

    @model_validator(mode="after")
    def _one_end(self) -> WantedOutput:
        if self.argmax and self.top is not None:
            raise ValueError("argmax and top exclude each other")
        words = self.model_fields_set & {*Detections.model_fields} - {"detections"}
        if self.detections is None and words:
            raise ValueError(f"{min(words)} is of detections=N, which is not there")
        if self.detections is not None and (self.softmax or self.argmax or self.top):
            raise ValueError("detections are of scores as they are")
        if (self.boxes == "anchors") != bool(self.anchors):
            raise ValueError("boxes=anchors has anchors=FILE.npy, a file beside the model")
        return self


Part = TypeVar("Part", bound=_Part)


class Declared(_Part):
    """Declarations for inputs and outputs that differ from the model's own."""

    input: tuple[SensorInput, ...] = ()
    output: tuple[WantedOutput, ...] = ()


NOTHING = Declared()


def load_declared(path: Path) -> Declared:
    """Read a declaration file, in TOML: tables [[input]] and [[output]]."""
    try:
        return Declared.model_validate(tomllib.loads(path.read_text(encoding="utf-8")))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as fault:
        raise NpukitError(f"{path} cannot be read as TOML: {fault}") from fault
    except ValidationError as fault:
        raise _wrong(str(path), fault) from fault


def parsed_input(text: str) -> SensorInput:
    """`uint8 scale=0.0039 mean=0.485,0.456,0.406 std=0.229 layout=NHWC input=image`"""
    fields: dict[str, Any] = {}
    for word in _words(text):
        key, _, value = word.partition("=")
        if not value:
            key, value = "type", word
        fields[key] = value.split(",") if key in ("mean", "std") else value
    return _validated(SensorInput, fields, f"--preprocess {text!r}")


def parsed_output(text: str) -> WantedOutput:
    """`softmax top=3 output=1`"""
    pairs = (word.partition("=") for word in _words(text))
    fields: dict[str, Any] = {key: value or key in _WORDS_ALONE or "" for key, _, value in pairs}
    fields |= {"scales": fields["scales"].split(",")} if "scales" in fields else {}
    return _validated(WantedOutput, fields, f"--postprocess {text!r}")


_WORDS_ALONE = ("softmax", "argmax", "each_class", "transposed")


def declared_for(model: Path, inputs: Sequence[str] = (), outputs: Sequence[str] = ()) -> Declared:
    """The command line's declarations. Default: the declarations in MODEL.toml beside the model."""
    beside = file_beside(model)
    found = load_declared(beside) if beside else NOTHING
    given = tuple(map(parsed_input, inputs)), tuple(map(parsed_output, outputs))
    wanted = list[WantedOutput]()
    for each in given[1] or found.output:
        anchors = each.anchors and str(model.absolute().with_name(each.anchors))
        wanted.append(each.model_copy(update={"anchors": anchors}) if anchors else each)
    return Declared(input=given[0] or found.input, output=tuple(wanted))


def file_beside(model: Path) -> Path | None:
    """The declaration file beside a model, if there is one."""
    path = model.with_suffix(".toml")
    return path if path.is_file() else None


def _words(text: str) -> list[str]:
    try:
        return shlex.split(text)
    except ValueError as fault:
        raise NpukitError(f"{text!r} cannot be read: {fault}") from fault


def _validated(kind: type[Part], fields: dict[str, Any], what: str) -> Part:
    try:
        return kind.model_validate(fields)
    except ValidationError as fault:
        raise _wrong(what, fault) from fault


_EXAMPLES = ("--preprocess 'uint8 scale=0.0039 mean=0.5 std=0.25 layout=NHWC'", "--postprocess 'softmax top=3'")


def _wrong(what: str, error: ValidationError) -> NpukitError:
    fault = error.errors()[0]
    where = ".".join(str(part) for part in fault["loc"])
    said = re.sub(r"^Value error, ", "", fault["msg"])
    return NpukitError(f"{what} is wrong: {f'{where}: ' if where else ''}{said}", tries=_EXAMPLES)
