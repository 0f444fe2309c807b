"""`npukit serve`: a board for TVM's clients."""

from __future__ import annotations

import signal
from contextlib import suppress
from typing import Annotated, Any

import typer

from npukit.cli.options import AsJson, BuildFolder, On, PluginsOf, Quiet, Verbose, open_terminal


def serve(
    build: BuildFolder,
    on: On = None,
    tracker: Annotated[
        str | None, typer.Option("--tracker", metavar="HOST:PORT", help="A TVM tracker that hands the board out.")
    ] = None,
    key: Annotated[
        str | None, typer.Option("--key", metavar="KEY", help="What clients ask for; the board's name if not said.")
    ] = None,
    host: Annotated[
        str, typer.Option("--host", metavar="ADDRESS", help="Listen here; 0.0.0.0 for other machines' clients.")
    ] = "127.0.0.1",
    port: Annotated[int, typer.Option("--port", min=1, max=65435, metavar="N", help="Listen there, or above.")] = 9090,
    board: PluginsOf = None,
    as_json: AsJson = False,
    verbose: Verbose = 0,
    quiet: Quiet = False,
) -> None:
    """Make a board a TVM RPC server: any TVM client runs and times the network, until Ctrl-C.

    TVM's servers trust their clients wholly: they may run any code on this machine.
    Listen only where you trust every client.
    """
    signal.signal(signal.SIGTERM, _interrupt)
    with open_terminal(as_json, verbose, quiet, board) as terminal, suppress(KeyboardInterrupt):
        from npukit import api

        with api.serve(build, on=on, host=host, port=port, key=key, tracker=tracker) as served:
            terminal.result({"host": host, "port": served.port, "key": served.key, "tracker": tracker})
            terminal.print(f"serving {build} at {host}:{served.port}, key {served.key}")
            served.wait()


def _interrupt(*_: Any) -> None:
    raise KeyboardInterrupt
