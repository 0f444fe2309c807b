"""`npukit doctor`: installed and missing tools."""

from __future__ import annotations

from dataclasses import asdict

from npukit.cli.options import verb
from npukit.cli.terminal import Terminal


@verb()
def doctor(terminal: Terminal) -> None:
    """List the tools and packages that npukit uses, and how to install each missing one."""
    from npukit.errors import NpukitError
    from npukit.tools import find_tools

    tools = find_tools()
    terminal.result([asdict(tool) for tool in tools])
    absent = [tool for tool in tools if not tool.found]
    missing = [tool for tool in absent if tool.required]
    optional = f"; {len(absent)} optional tools are missing" if absent else ""
    terminal.print("npukit cannot work here" if missing else f"npukit works here{optional}")
    found = [(tool.name, tool.version, tool.needed_for) for tool in tools if tool.found]
    terminal.table(("tool", "version", "needed for"), found)
    if absent:
        terminal.print()
        rows = [(tool.name, tool.how_to_get, tool.needed_for) for tool in absent]
        terminal.table(("missing", "install it with", "needed for"), rows)
    if missing:
        names = ", ".join(tool.name for tool in missing)
        raise NpukitError(f"npukit cannot work without {names}", tries=[tool.how_to_get for tool in missing])
