"""Options common to several verbs, and the terminal of a verb."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, fields, is_dataclass
from enum import StrEnum
from functools import partial
from inspect import Parameter, Signature, signature
from pathlib import Path
from typing import Annotated, Any, get_type_hints

import typer

from npukit.cli.terminal import Terminal, errors_as_lines
from npukit.errors import NpukitError, first_line
from npukit.options import Options


class Objective(StrEnum):
    LATENCY = "latency"
    THROUGHPUT = "throughput"
    MEMORY = "memory"
    ENERGY = "energy"


class Io(StrEnum):
    FILE = "file"
    INT8 = "int8"


class WeightBits(StrEnum):
    INT8 = "int8"
    INT4 = "int4"


class Ranges(StrEnum):
    MINMAX = "minmax"
    PERCENTILE = "percentile"


model = partial(typer.Option, rich_help_panel="Model")
target = partial(typer.Option, rich_help_panel="Target")
quantisation = partial(typer.Option, rich_help_panel="Quantisation")
output = partial(typer.Option, rich_help_panel="Output")
advanced = partial(typer.Option, rich_help_panel="Advanced")

Explain = Annotated[bool, output("--explain", help="Print the candidates of the planner's search by strategy.")]
BuildFolder = Annotated[
    Path, typer.Argument(metavar="BUILD", rich_help_panel="Model", help="A folder made by npukit build.")
]
On = Annotated[
    str | None, target("--on", metavar="WHERE", help="emulator, rtl, renode, qemu, serial, or the port of a device.")
]
Models = Annotated[
    list[Path],
    typer.Argument(
        metavar="MODEL...",
        rich_help_panel="Model",
        help="A .tflite, .onnx or .pt2 file. Several files, each also as NAME=FILE, share the board.",
    ),
]


def _board_names() -> list[str]:
    from npukit.board.board import board_names

    return board_names()


BoardName = Annotated[
    str,
    target(
        "-b",
        "--board",
        metavar="NAME",
        help="A board's name (npukit boards), or a board file.",
        autocompletion=_board_names,
    ),
]
Network = Annotated[str | None, model("--network", metavar="NAME", help="One network of a build that has several.")]
Faults = Annotated[
    Path | None,
    advanced("--faults", metavar="FILE", help="Faults of the emulated board (docs/emulators.md)."),
]
Tracker = Annotated[
    str | None, target("--tracker", metavar="HOST:PORT", help="Measure on all free boards of this TVM tracker.")
]
BoardKey = Annotated[str | None, target("--key", metavar="KEY", help="With --tracker: boards with this key.")]
Modified = Annotated[bool, advanced("--modified", help="Run the images that make built of a project changed by hand.")]
Inputs = Annotated[
    Path | None,
    model("--inputs", metavar="FILE.npz", help="Arrays in0, in1, ..., each with a leading axis of cases."),
]
Stream = Annotated[bool, model("--stream", help="The cases are the frames of one sequence, for a network with states.")]


@dataclass(frozen=True)
class PlanOptions:
    """The options of `build` and `fit`, in the order of --help."""

    board: BoardName = "pe-mesh"
    pes: Annotated[
        list[int] | None, target("--pes", min=1, metavar="N", help="Limit of PEs; repeat once per model.")
    ] = None
    chips: Annotated[int | None, target("--chips", min=1, metavar="N", help="Limit of chips.")] = None
    engine: Annotated[
        str | None, target("--engine", metavar="NAME", help="cpu: no accelerator. An accelerator's name: no other one.")
    ] = None
    objective: Annotated[
        Objective,
        target(
            "--objective", metavar="|".join(Objective), help="What to optimise; energy is that of a frame at --fps."
        ),
    ] = Objective.LATENCY
    fps: Annotated[
        float | None,
        target("--fps", min=0.001, metavar="N", help="Necessary rate in frames a second. A slower plan is refused."),
    ] = None
    plan: Annotated[
        str | None,
        target("--plan", metavar="FILE", help="Your own mapping, whole or in part: a file, or the name of a mapper."),
    ] = None
    strict: Annotated[bool, advanced("--strict", help="Refuse a model with an op that runs off the accelerator.")] = (
        False
    )
    trace: Annotated[
        bool, advanced("--trace", help="Have the device record its steps, for npukit trace --on DEVICE.")
    ] = False
    self_test: Annotated[
        bool,
        advanced("--self-test", help="Have each PE check its memory at start, and parts of it between frames."),
    ] = False
    shapes: Annotated[
        list[str] | None,
        model(
            "--input",
            metavar="NAME:SHAPE",
            help="Shape of an input that the model leaves open (image:1x96x96x3), or its constant value (NAME=8)."
            " Repeatable.",
        ),
    ] = None
    states: Annotated[
        list[str] | None,
        model("--state", metavar="IN=OUT", help="State: input IN is the output OUT of the frame before. Repeatable."),
    ] = None
    custom: Annotated[
        list[str] | None,
        model("--custom", metavar="NAME=FILE.c", help="C code of a custom op (docs/models.md). Repeatable."),
    ] = None
    calibration: Annotated[
        Path | None,
        quantisation(
            "--calibration",
            metavar="FILE.npz|FOLDER",
            help="Quantise a float model by real inputs: arrays in0, in1, ..., and labels if any.",
        ),
    ] = None
    ranges: Annotated[
        Ranges,
        quantisation(
            "--ranges", metavar="|".join(Ranges), help="Range of a tensor: all values, or all except the rarest."
        ),
    ] = Ranges.MINMAX
    weights: Annotated[
        WeightBits,
        quantisation(
            "--weights", metavar="|".join(WeightBits), help="Bits of weights: 8, or 4 in each layer that bears them."
        ),
    ] = WeightBits.INT8
    target_db: Annotated[
        float,
        quantisation(
            "--target-db",
            min=0,
            metavar="N",
            help="Least signal-to-error ratio of the outputs, in decibels; 0 for none.",
        ),
    ] = 30
    preprocess: Annotated[
        list[str] | None,
        model(
            "--preprocess",
            metavar="STEPS",
            help="Steps from the sensor's data to an input: 'uint8 scale=S mean=M std=D layout=L' for images, and"
            " others (docs/preprocessing.md).",
        ),
    ] = None
    postprocess: Annotated[
        list[str] | None,
        model("--postprocess", metavar="STEPS", help="Steps after an output: softmax, argmax, top=N."),
    ] = None
    io: Annotated[
        Io, model("--io", metavar="|".join(Io), help="Types of inputs and outputs: those of the file, or int8.")
    ] = Io.FILE
    in_float: Annotated[
        bool, quantisation("--float", help="Run a float model in float, on the core, without quantisation.")
    ] = False
    keep_float: Annotated[
        list[str] | None,
        quantisation("--keep-float", metavar="LAYER", help="Keep a layer or an input in float. Repeatable."),
    ] = None
    keep_int16: Annotated[
        list[str] | None,
        quantisation("--keep-int16", metavar="LAYER", help="The same; dense layers read it in int16. Repeatable."),
    ] = None

    def options(self, pes: int | None, toolchain: str | None = None) -> Options:
        """The options for `npukit.api`. `pes`: limit of a single network; None for several, each with its own."""
        given = {each.name: getattr(self, each.name) for each in fields(Options) if hasattr(self, each.name)}
        lists = ("preprocess", "postprocess", "keep_float", "keep_int16")
        changed = {
            **{name: tuple(given[name] or ()) for name in lists},
            "pes": pes,
            "frames_per_second": self.fps,
            "toolchain": toolchain,
            "input_shapes": parsed_shapes(self.shapes),
            "states": parsed_states(self.states),
            "custom": tuple(map(_custom, self.custom or ())),
        }
        return Options(**{**given, **changed})


def parsed_shapes(given: Sequence[str] | None) -> tuple[tuple[str, tuple[int, ...] | float], ...]:
    """NAME:1x3x96x96 as name and shape, NAME=8 as name and number. A name may contain colons."""
    return tuple(_shape(text) for text in given or ())


def _shape(text: str) -> tuple[str, tuple[int, ...] | float]:
    fixed = re.fullmatch(r"(.+)=(-?\d+(\.\d+)?)", text)
    if fixed:
        return fixed[1], float(fixed[2])
    name, _, sizes = text.rpartition(":")
    if not name or not re.fullmatch(r"[1-9]\d*(x[1-9]\d*)*", sizes):
        raise NpukitError(f"--input {text} is not a name and a shape", tries=["--input image:1x3x96x96"])
    return name, tuple(int(size) for size in sizes.split("x"))


def parsed_states(given: Sequence[str] | None) -> tuple[tuple[str, str], ...]:
    """Pairs of names, each given as IN=OUT."""
    wrong = next((text for text in given or () if not all(text.partition("="))), None)
    if wrong:
        raise NpukitError(f"--state {wrong} is not an input and an output", tries=["--state h0=hn", "--state in1=out1"])
    return tuple((text.partition("=")[0], text.partition("=")[2]) for text in given or ())


def _custom(text: str) -> tuple[str, str]:
    """The name and the text of the file in NAME=FILE."""
    name, _, file = text.partition("=")
    if not name or not file:
        raise NpukitError(f"--custom {text} is not a name and a file", tries=["--custom MyOp=my_op.c"])
    try:
        return name, Path(file).read_text(encoding="utf-8")
    except (OSError, ValueError) as fault:
        raise NpukitError(f"cannot read {file}: {first_line(fault)}") from fault


@contextmanager
def open_terminal(
    as_json: bool, verbose: int, quiet: bool, wide: bool = False, plugins_of: str | None = None, left: str = ""
) -> Iterator[Terminal]:
    """The verb's terminal. Errors end the program with a line and an exit status; Ctrl-C too. `plugins_of`: a board
    file whose plug-ins are used meanwhile. `left`: a text about the state after Ctrl-C."""
    terminal = Terminal(as_json, -1 if quiet else verbose, wide, plugins_of)
    with errors_as_lines(terminal, left):
        try:
            if plugins_of:
                from npukit.accel.plugins import name_plugins, plugins_in
                from npukit.board.board import load_board

                name_plugins(plugins_in(load_board(plugins_of)))
            yield terminal
        finally:
            terminal.finish()


def verb(
    *, plugins: bool = False, tables: bool = False, left: str = ""
) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Make a command of a verb's function. The function receives the terminal described by the options of all verbs.

    A dataclass parameter becomes an option for each field. `plugins`: an option for a board file whose plug-ins are
    used meanwhile. `tables`: an option for all columns. `left`: a text about the state after Ctrl-C.
    """

    def command_of(does: Callable[..., None]) -> Callable[..., None]:
        _, *parameters = signature(does, eval_str=True).parameters.values()
        gathered: dict[str, Any] = {each.name: each.annotation for each in parameters if is_dataclass(each.annotation)}

        def command(
            *,
            as_json: bool,
            verbose: int,
            quiet: bool,
            wide: bool = False,
            plugins_of: str | None = None,
            **own: Any,
        ) -> None:
            for name, kind in gathered.items():
                own[name] = kind(**{field.name: own.pop(field.name) for field in fields(kind)})
            with open_terminal(as_json, verbose, quiet, wide, plugins_of, left) as terminal:
                does(terminal, **own)

        every = [option for each in parameters for option in _options_of(each)]
        every += [*([_PLUGINS_OF] if plugins else []), *([_WIDE] if tables else []), *_OF_ALL_VERBS]
        command.__annotations__ = {each.name: each.annotation for each in every}
        command.__name__, command.__doc__ = does.__name__, does.__doc__
        vars(command).update(__signature__=Signature(every))
        return command

    return command_of


def _options_of(parameter: Parameter) -> list[Parameter]:
    """The parameter itself, or one for each field of a dataclass."""
    kind = parameter.annotation
    if not is_dataclass(kind):
        return [parameter.replace(kind=Parameter.KEYWORD_ONLY)]
    hints = get_type_hints(kind, include_extras=True)
    return [_option(field.name, field.default, hints[field.name]) for field in fields(kind)]


def _option(name: str, default: object, annotation: object) -> Parameter:
    return Parameter(name, Parameter.KEYWORD_ONLY, default=default, annotation=annotation)


_PLUGINS_OF = _option(
    "plugins_of",
    None,
    Annotated[
        str | None,
        target("-b", "--board", metavar="FILE", help="Use the plug-ins of this board file, not installed ones."),
    ],
)
_WIDE = _option("wide", False, Annotated[bool, output("--wide", help="Print all columns of tables.")])
_OF_ALL_VERBS = (
    _option("as_json", False, Annotated[bool, output("--json", help="Print one JSON value on stdout, for programs.")]),
    _option(
        "verbose",
        0,
        Annotated[int, output("-v", "--verbose", count=True, help="Print more; -vv prints tracebacks.")],
    ),
    _option(
        "quiet", False, Annotated[bool, output("-q", "--quiet", help="Print only errors and the path of the result.")]
    ),
)
