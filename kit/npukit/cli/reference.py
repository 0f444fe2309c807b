"""The command reference, made from the commands themselves: `python -m npukit.cli.reference > docs/commands.md`."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterator
from typing import Any

import typer.main
from typer.core import TyperCommand, TyperGroup

from npukit.cli.main import app

_HEAD = """# Commands

Made by `python -m npukit.cli.reference > docs/commands.md` from the commands' own help.

Every verb exits with 0 when done, 1 when something given is wrong or failed, 2 for wrong usage, 3
when a network does not fit or does not match, 130 when Ctrl-C broke it off, and says what is left
then. With `--json` it prints one JSON value on stdout and everything else on stderr; a failure,
wrong usage and Ctrl-C included, is the value `{"error": {"message", "facts", "tries", "status"}}`.
Progress goes to stderr, as single lines where that is no terminal; `NO_COLOR` is respected.
`npukit --install-completion` has bash, zsh or fish complete verbs, options and boards; in zsh the
first Tab only loads that.
"""


def reference() -> str:
    """The page of all commands."""
    root = typer.main.get_command(app)
    assert isinstance(root, TyperGroup)
    commands = list(_commands(root, "npukit"))
    overview = [f"| `{path}` | {_first_sentence(command.help)} |" for path, command in commands]
    sections = [line for path, command in commands for line in _section(command, path)]
    return "\n".join([_HEAD, "| | |", "|---|---|", *overview, "", *sections])


def _commands(group: TyperGroup, path: str) -> Iterator[tuple[str, TyperCommand]]:
    for name, command in group.commands.items():
        if isinstance(command, TyperGroup):
            yield from _commands(command, f"{path} {name}")
        elif isinstance(command, TyperCommand):
            yield f"{path} {name}", command


def _section(command: TyperCommand, path: str) -> Iterator[str]:
    context = command.make_context(path, [], resilient_parsing=True)
    pieces = " ".join(command.collect_usage_pieces(context))
    yield f"## {path}\n"
    yield f"    {path} {pieces}\n"
    yield f"{textwrap.fill(_one_line(command.help), 100, break_long_words=False)}\n"
    rows = [row for parameter in command.params if (row := _row(parameter, context))]
    yield "\n".join(["| | |", "|---|---|", *rows]) + "\n"
    if command.epilog:
        yield f"{command.epilog.replace('Example: ', 'Example: `', 1)}`\n"


def _row(parameter: Any, context: Any) -> str | None:
    record = parameter.get_help_record(context)
    if record is None:
        return None
    name, text = record
    return f"| `{name.replace('|', chr(92) + '|')}` | {_one_line(text).replace('|', chr(92) + '|')} |"


def _first_sentence(text: str | None) -> str:
    return re.split(r"(?<=\.) ", _one_line(text))[0]


def _one_line(text: str | None) -> str:
    return " ".join((text or "").split())


if __name__ == "__main__":
    print(reference(), end="")
