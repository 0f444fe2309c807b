"""`npukit doctor`: installed and missing tools."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING

from npukit.cli.options import verb
from npukit.cli.terminal import Terminal

if TYPE_CHECKING:
    from npukit.tools import Tool


@verb()
def doctor(terminal: Terminal) -> None:
    """Look for the tools and packages npukit uses, and say how to get what is missing."""
    from npukit.errors import NpukitError
    from npukit.tools import find_tools

    tools = find_tools()
    terminal.result([asdict(tool) for tool in tools])
    terminal.table(("    tool", "version", "needed for"), [_row(tool) for tool in tools])
    missing = [tool for tool in tools if tool.required and not tool.found]
    if missing:
        names = ", ".join(tool.name for tool in missing)
        raise NpukitError(f"npukit cannot work without {names}", tries=[tool.how_to_get for tool in missing])


def _row(tool: Tool) -> tuple[str, ...]:
    if tool.found:
        return f"ok  {tool.name}", tool.version, tool.needed_for
    return f"--  {tool.name}", f"not here: {tool.how_to_get}", tool.needed_for
