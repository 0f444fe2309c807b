"""Options common to several verbs, and the terminal of a verb."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import fields, is_dataclass
from enum import StrEnum
from inspect import Parameter, Signature, signature
from pathlib import Path
from typing import Annotated, Any, get_type_hints

import typer

from npukit.cli.terminal import Terminal, errors_as_lines
from npukit.errors import NpukitError, first_line


class Objective(StrEnum):
    LATENCY = "latency"
    THROUGHPUT = "throughput"
    MEMORY = "memory"
    ENERGY = "energy"


class Io(StrEnum):
    FILE = "file"
    INT8 = "int8"


class Ranges(StrEnum):
    MINMAX = "minmax"
    PERCENTILE = "percentile"


AsJson = Annotated[bool, typer.Option("--json", help="One JSON value on stdout, for programs.")]
Verbose = Annotated[int, typer.Option("-v", "--verbose", count=True, help="Say more; -vv shows tracebacks.")]
Quiet = Annotated[bool, typer.Option("-q", "--quiet", help="Say nothing but results and errors.")]
BuildFolder = Annotated[Path, typer.Argument(metavar="BUILD", help="A folder that `npukit build` left.")]
On = Annotated[
    str | None,
    typer.Option("--on", metavar="WHERE", help="emulator, renode, qemu, serial, or a device."),
]
PluginsOf = Annotated[
    str | None,
    typer.Option("--board", "-b", metavar="FILE", help="A board file whose plug-ins to use; else those installed."),
]
Models = Annotated[
    list[Path],
    typer.Argument(
        metavar="MODEL...", help="A .tflite, .onnx or .pt2 file; several, or NAME=FILE, share the board side by side."
    ),
]


def _board_names() -> list[str]:
    from npukit.board.board import board_names

    return board_names()


BoardName = Annotated[
    str,
    typer.Option("--board", "-b", metavar="NAME", help="A board's name, or a board file.", autocompletion=_board_names),
]
Pes = Annotated[
    list[int] | None,
    typer.Option("--pes", min=1, metavar="N", help="Use at most N PEs; of several models each, or give it for each."),
]
Chips = Annotated[int | None, typer.Option("--chips", min=1, metavar="N", help="Use at most N chips of the board.")]
Network = Annotated[
    str | None, typer.Option("--network", metavar="NAME", help="Of several networks in one build, this one.")
]
OnlyEngine = Annotated[
    str | None,
    typer.Option("--engine", metavar="NAME", help="cpu: no accelerator; one of the board's: all that it takes."),
]
Aim = Annotated[
    Objective, typer.Option("--objective", help="What to optimise: latency, throughput, memory, or energy (at --fps).")
]
Rate = Annotated[
    float | None,
    typer.Option("--fps", min=0.001, metavar="N", help="Frames a second that must be reached; else it is refused."),
]
OwnPlan = Annotated[
    str | None,
    typer.Option("--plan", metavar="FILE", help="Your own mapping, or a part of it: a file, or a mapper's name."),
]
Strict = Annotated[bool, typer.Option("--strict", help="Any op off the accelerator is an error.")]
Traces = Annotated[
    bool, typer.Option("--trace", help="The firmware notes when each step begins, for `npukit trace --on DEVICE`.")
]
SelfTests = Annotated[
    bool, typer.Option("--self-test", help="Each PE checks its memory, at its start and some between two frames.")
]
InputShapes = Annotated[
    list[str] | None,
    typer.Option(
        "--input",
        metavar="NAME:1x96x96x3",
        help="The shape of an input that the model leaves open, or NAME=8 if it is 8 for good.",
    ),
]
States = Annotated[
    list[str] | None,
    typer.Option(
        "--state", metavar="IN=OUT", help="An input that the network keeps itself, as OUT of the frame before."
    ),
]
CustomOps = Annotated[
    list[str] | None,
    typer.Option("--custom", metavar="NAME=FILE.c", help="The C of a custom op of the model: docs/models.md."),
]
Calibration = Annotated[
    Path | None,
    typer.Option(
        "--calibration",
        metavar="FILE.npz|FOLDER",
        help="Quantises a float model: arrays in0, in1, ... of real inputs, perhaps labels.",
    ),
]
ActivationRanges = Annotated[
    Ranges, typer.Option("--ranges", help="With --calibration: whole ranges, or without the rarest values.")
]
Preprocess = Annotated[
    list[str] | None,
    typer.Option(
        "--preprocess",
        metavar="'uint8 scale=S mean=M std=D layout=L'",
        help="What the sensor gives; images of cameras and features of sound: docs/preprocessing.md.",
    ),
]
Postprocess = Annotated[
    list[str] | None,
    typer.Option("--postprocess", metavar="'softmax top=3'", help="What is wanted: softmax, argmax, top=N."),
]
Faults = Annotated[
    Path | None,
    typer.Option("--faults", metavar="FILE", help="What goes wrong on the emulated board: docs/emulators.md."),
]
EndTypes = Annotated[
    Io, typer.Option("--io", help="Inputs and outputs: of the types that the file says, or quantised ones as int8.")
]
InFloat = Annotated[
    bool, typer.Option("--float", help="Computes a float model in float, on the core alone, instead of quantising it.")
]
KeepFloat = Annotated[
    list[str] | None,
    typer.Option("--keep-float", metavar="LAYER", help="With --calibration: a layer or input kept float; repeatable."),
]
KeepInt16 = Annotated[
    list[str] | None,
    typer.Option("--keep-int16", metavar="LAYER", help="The same, and dense layers read it in 16 bits; repeatable."),
]
Tracker = Annotated[
    str | None, typer.Option("--tracker", metavar="HOST:PORT", help="On all free boards of this TVM tracker.")
]
BoardKey = Annotated[
    str | None, typer.Option("--key", metavar="KEY", help="With --tracker: boards served under this key.")
]
Modified = Annotated[bool, typer.Option("--modified", help="Run what make made of a project changed by hand.")]
Inputs = Annotated[
    Path | None,
    typer.Option("--inputs", metavar="FILE.npz", help="Arrays in0, in1, ... with a leading axis of cases."),
]


Stream = Annotated[
    bool, typer.Option("--stream", help="Of a network with states: the cases are the frames of one sequence.")
]


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


def parsed_custom(given: Sequence[str] | None) -> tuple[tuple[str, str], ...]:
    """Names with the text of their files, each given as NAME=FILE."""
    return tuple(_custom(text) for text in given or ())


def _custom(text: str) -> tuple[str, str]:
    name, _, file = text.partition("=")
    if not name or not file:
        raise NpukitError(f"--custom {text} is not a name and a file", tries=["--custom MyOp=my_op.c"])
    try:
        return name, Path(file).read_text(encoding="utf-8")
    except (OSError, ValueError) as fault:
        raise NpukitError(f"cannot read {file}: {first_line(fault)}") from fault


@contextmanager
def open_terminal(
    as_json: bool, verbose: int, quiet: bool, plugins_of: str | None = None, left: str = ""
) -> Iterator[Terminal]:
    """The verb's terminal. Errors end the program with a line and an exit status; Ctrl-C too.

    `plugins_of`: a board file whose plug-ins are used meanwhile. `left`: a text about the state after Ctrl-C.
    """
    terminal = Terminal(as_json, -1 if quiet else verbose)
    with errors_as_lines(terminal, left):
        try:
            if plugins_of:
                _name_plugins(plugins_of)
            yield terminal
        finally:
            terminal.finish()


def _name_plugins(board: str) -> None:
    from npukit.accel.plugins import name_plugins, plugins_in
    from npukit.board.board import load_board

    name_plugins(plugins_in(load_board(board)))


def verb(*, plugins: bool = False, left: str = "") -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Make a command of a verb's function. The function receives the terminal described by the options of all verbs.

    A dataclass parameter becomes an option for each field. `plugins`: an option for a board file whose plug-ins are
    used meanwhile. `left`: a text about the state after Ctrl-C.
    """

    def command_of(does: Callable[..., None]) -> Callable[..., None]:
        _, *parameters = signature(does, eval_str=True).parameters.values()
        gathered: dict[str, Any] = {each.name: each.annotation for each in parameters if is_dataclass(each.annotation)}

        def command(*, as_json: bool, verbose: int, quiet: bool, plugins_of: str | None = None, **own: Any) -> None:
            for name, kind in gathered.items():
                own[name] = kind(**{field.name: own.pop(field.name) for field in fields(kind)})
            with open_terminal(as_json, verbose, quiet, plugins_of, left) as terminal:
                does(terminal, **own)

        every = [option for each in parameters for option in _options_of(each)]
        every += [*([_PLUGINS_OF] if plugins else []), *_OF_ALL_VERBS]
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


_PLUGINS_OF = _option("plugins_of", None, PluginsOf)
_OF_ALL_VERBS = (_option("as_json", False, AsJson), _option("verbose", 0, Verbose), _option("quiet", False, Quiet))
