"""The command line: `npukit VERB`. One file per verb, each a thin caller of `npukit.api`."""

from __future__ import annotations

import gc
import json
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import Annotated, Any

import typer

from npukit import __version__
from npukit.cli.help import Verb, Verbs
from npukit.cli.terminal import failure
from npukit.cli.verbs import (
    bench,
    boards,
    build,
    doctor,
    emulate,
    export,
    fit,
    flash,
    monitor,
    new_key,
    ops,
    report,
    serve,
    trace,
    tune,
    validate,
)
from npukit.cli.verbs import run as run_verb
from npukit.cli.verbs.new import new


class _Npukit(Verbs):
    """The verbs. With --json, wrong usage is reported as a JSON value too."""

    def main(self, args: Sequence[str] | None = None, *settings: Any, **named: Any) -> Any:
        try:
            return super().main(args, *settings, **named)
        except SystemExit as stop:
            if stop.code == _WRONG_USAGE and "--json" in (sys.argv[1:] if args is None else args):
                wrong: Any = stop.__context__  # of a class that depends on the version of the parsing library
                context = getattr(wrong, "ctx", None)
                tries = [f"{context.command_path} --help"] if context else []
                print(json.dumps(failure(wrong.format_message(), _WRONG_USAGE, tries=tries), indent=2), flush=True)
            raise


_WRONG_USAGE = 2


app = typer.Typer(
    name="npukit",
    cls=_Npukit,
    help="From a trained network to verified firmware for a mesh of small cores.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _say_version(wanted: bool) -> None:
    if wanted:
        print(f"npukit {__version__}")
        raise typer.Exit


@app.callback()
def _npukit(
    version: Annotated[
        bool, typer.Option("--version", help="Print the version and stop.", is_eager=True, callback=_say_version)
    ] = False,
) -> None:
    del version


_EXAMPLES: Mapping[Callable[..., None], str] = {
    build.build: "digits_int8.tflite --board pe-mesh -o out/digits",
    fit.fit: "mobilenet_int8.tflite --board pe-mesh",
    validate.validate: "out/digits --inputs digits.npz",
    run_verb.run: "out/digits --inputs digits.npz -o got.npz",
    bench.bench: "out/digits --json",
    trace.trace: "out/digits -o trace.json",
    report.report: "out/digits --compare out/digits_before",
    export.export: "out/digits --portable -o digits_lib",
    tune.tune: "out/kws --budget 300",
    flash.flash: "out/digits --port /dev/ttyACM0 --key key.pem",
    monitor.monitor: "out/digits --on /dev/ttyACM0",
    emulate.emulate: "out/digits",
    serve.serve: "out/digits --on /dev/ttyACM0 --tracker 192.168.1.20:9190",
    boards.boards: "pico",
    ops.ops: "--board pe-mesh",
    doctor.doctor: "",
}
"""The verbs, each with the words of an example."""

for _verb, _words in _EXAMPLES.items():
    app.command(cls=Verb, epilog=f"Example: npukit {_verb.__name__} {_words}".rstrip())(_verb)
new.command(cls=Verb, epilog="Example: npukit new key -o key.pem")(new_key.key)
app.add_typer(new, name="new", epilog="Example: npukit new accelerator my_npu")


OBJECTS = 100_000
"""New objects between two searches for cyclic garbage. With Python's own 700, these searches take an eighth of the
processor time of `npukit fit --pes 1` with a small network, because importing creates objects that stay."""


def run() -> None:
    """The `npukit` command."""
    gc.set_threshold(OBJECTS)
    app()
