"""`npukit doctor`: installed and missing tools."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING

from npukit.cli.options import verb
from npukit.cli.terminal import Terminal

if TYPE_CHECKING:
    from npukit.tools import Tool


@verb()
def doctor(terminal: Terminal) -> None:
    """List the tools and packages that npukit uses, and how to install each missing one."""
    from npukit.errors import NpukitError
    from npukit.tools import find_tools

    tools = find_tools()
    terminal.result([asdict(tool) for tool in tools])
    absent = [tool for tool in tools if not tool.found]
    missing = [tool for tool in absent if tool.required]
    terminal.print(_verdict(absent, missing))
    found = [(tool.name, tool.version, tool.needed_for) for tool in tools if tool.found]
    terminal.table(("tool", "version", "needed for"), found)
    if absent:
        terminal.print()
        rows = [(tool.name, tool.how_to_get, tool.needed_for) for tool in absent]
        terminal.table(("missing", "install it with", "needed for"), rows)
    if missing:
        names = ", ".join(tool.name for tool in missing)
        raise NpukitError(f"npukit cannot work without {names}", tries=[tool.how_to_get for tool in missing])


def _verdict(absent: Sequence[Tool], missing: Sequence[Tool]) -> str:
    if missing:
        return "npukit cannot work here"
    return f"npukit works here; {len(absent)} optional tools are missing" if absent else "npukit works here"
