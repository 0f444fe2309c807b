"""Help of the verbs: a text of at most 80 columns with the options in groups."""

from __future__ import annotations

import re
from textwrap import wrap
from typing import Any

from typer.core import TyperCommand, TyperGroup

from npukit.cli.terminal import PIPE_WIDTH

_NAMES = 26
"""Columns of options and their values. A longer name has a line of its own."""

GROUPS = ("Model", "Target", "Quantisation", "Output", "Advanced", "Options")


class _Helped:
    """The help of a verb or of several, instead of the library's."""

    def format_help(self, ctx: Any, formatter: Any) -> None:
        formatter.write(help_text(self, ctx.command_path))

    def collect_usage_pieces(self, ctx: Any) -> list[str]:
        return _usage(self)


class Verb(_Helped, TyperCommand):
    """A verb."""


class Verbs(_Helped, TyperGroup):
    """Several verbs."""


def help_text(command: Any, path: str) -> str:
    """The help of a verb as printed."""
    parts = [_wrapped(" ".join([f"Usage: {path}", *_usage(command)]), "", "    ")]
    parts += [_wrapped(_one_line(each), "", "") for each in (command.help or "").split("\n\n")]
    if isinstance(command, TyperGroup):
        verbs, width = command.commands.items(), max(map(len, command.commands))
        first = {name: re.split(r"(?<=\.) ", _one_line(each.help))[0] for name, each in verbs}
        parts.append("\n".join(["Verbs", *(_row(name, sentence, width) for name, sentence in first.items())]))
    parts += [f"{title}\n{rows}" for title, rows in groups(command).items()]
    parts += [command.epilog] if command.epilog else []
    return "\n\n".join(parts) + "\n"


def groups(command: Any) -> dict[str, str]:
    """The options of a verb, by the title of their group."""
    rows: dict[str, list[str]] = {title: [] for title in GROUPS}
    for each in command.params:
        if not each.hidden:
            rows[each.rich_help_panel or GROUPS[-1]].append(_row(_name(each), _described(each)))
    return {title: "\n".join(own) for title, own in rows.items() if own}


def _usage(command: Any) -> list[str]:
    """Arguments and necessary options, then the place of all others."""
    if isinstance(command, TyperGroup):
        return ["VERB", "[OPTIONS]"]
    needed = [_name(each, min(each.opts, key=len)) for each in command.params if each.required]
    return [*needed, "[OPTIONS]"]


def _name(parameter: Any, option: str = "") -> str:
    """An argument's name, or an option with its value: `-o, --output FOLDER`. `option`: one of its names, else all."""
    if parameter.param_type_name == "argument":
        return parameter.metavar
    names = option or ", ".join(sorted([*parameter.opts, *parameter.secondary_opts], key=len))
    return f"{names} {parameter.metavar}" if parameter.metavar else names


def _described(parameter: Any) -> str:
    """An option's text, with the default unless that is empty."""
    default = getattr(parameter.default, "value", parameter.default)
    shown = parameter.metavar and not callable(default) and default not in (None, "", 0)
    return _one_line(parameter.help) + (f" Default: {default}." if shown else "")


def _row(name: str, text: str, width: int = _NAMES) -> str:
    """A name and a text beside it, or below it if the name is long."""
    later = " " * (width + 4)
    if len(name) <= width:
        return _wrapped(text, f"  {name:<{width}}  ", later)
    return f"  {name}\n{_wrapped(text, later, later)}"


def _wrapped(text: str, first: str, later: str) -> str:
    return "\n".join(wrap(text, PIPE_WIDTH, initial_indent=first, subsequent_indent=later, break_on_hyphens=False))


def _one_line(text: str | None) -> str:
    return " ".join((text or "").split())
