"""The command reference, made of the help of the commands: `python -m npukit.cli.reference > docs/commands.md`."""

from __future__ import annotations

from collections.abc import Iterator
from textwrap import indent
from typing import Any

import typer.main
from typer.core import TyperGroup

from npukit.cli.help import groups, help_text
from npukit.cli.main import app

_HEAD = """# Commands

Made by `python -m npukit.cli.reference > docs/commands.md` from the help of the commands.

Exit status: 0 done, 1 wrong input or a failure, 2 wrong usage, 3 the network does not fit or a
result differs, 130 interrupted by Ctrl-C.

With `--json`, a verb prints one JSON value on stdout and everything else on stderr. The value of a
failure is `{"error": {"message", "facts", "tries", "status"}}`. With `-q`, a verb prints errors and
the path of its result, nothing else. `-v` prints more, `-vv` tracebacks too. Progress goes to
stderr. Tables fit 80 columns; `--wide` shows all their columns. `NO_COLOR` is respected.
`npukit --install-completion` installs completion of verbs, options and boards for bash, zsh or
fish.
"""


_LONG = 4
"""Lines of a group of options from which on the page refers to an earlier verb."""


def reference() -> str:
    """The page of all commands."""
    root = typer.main.get_command(app)
    found, shown = dict(commands(root, "npukit")), dict[tuple[str, str], str]()
    common = groups(found["npukit doctor"])["Output"]
    sections = [_section(command, path, common, shown) for path, command in found.items()]
    return "\n".join([_HEAD, *sections])


def commands(command: Any, path: str) -> Iterator[tuple[str, Any]]:
    """A command and all verbs in it, each with its whole name."""
    if not isinstance(command, TyperGroup):
        yield path, command
        return
    if path == "npukit":
        yield path, command
    for name, each in command.commands.items():
        yield from commands(each, f"{path} {name}")


def _section(command: Any, path: str, common: str, shown: dict[tuple[str, str], str]) -> str:
    """The help of a verb without the options `common` to all. A long group `shown` before is replaced by its verb."""
    text = help_text(command, path).replace(f"\n\nOutput\n{common}", "").replace(f"\n{common}", "")
    for group in groups(command).items():
        first = shown.setdefault(group, path)
        if first != path and group[1].count("\n") > _LONG:
            text = text.replace("\n".join(group), f"{group[0]}: the options of {first}")
    return f"## {path}\n\n{indent(text, '    ')}"


if __name__ == "__main__":
    print(reference(), end="")
