"""`npukit serve`: a board for TVM's clients."""

from __future__ import annotations

import signal
from ipaddress import ip_address
from socket import getaddrinfo
from typing import Annotated, Any

import typer

from npukit.cli.options import BuildFolder, On, verb
from npukit.cli.terminal import Terminal


@verb(plugins=True)
def serve(
    terminal: Terminal,
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
    trials: Annotated[
        bool, typer.Option("--trials", help="Clients may put builds of theirs onto the board: npukit tune.")
    ] = False,
) -> None:
    """Make a board a TVM RPC server: any TVM client runs and times the network, until Ctrl-C.

    Clients can do nothing else, unless --trials lets them. TVM's RPC has no passwords and no encryption.
    """
    signal.signal(signal.SIGTERM, _interrupt)
    try:
        from npukit import api

        serving = api.serve(
            build, on=on, host=host, port=port, key=key, tracker=tracker, trials=trials, progress=terminal
        )
        with serving as served:
            allowed = [RUN, *([TRIALS] if trials else [])]
            said = {"host": host, "port": served.port, "key": served.key, "tracker": tracker, "allows": allowed}
            terminal.result(said)
            terminal.print(f"serving {build} at {host}:{served.port}, key {served.key}")
            terminal.note(f"{_who(host)} may {' and '.join(allowed)}", style="bold")
            served.wait()
    except KeyboardInterrupt:
        terminal.finish()
        terminal.note("stopped; the board is free, and clients that have it get an error")


RUN, TRIALS = "run, time and describe this network", "put builds of theirs onto the board"


def _who(host: str) -> str:
    """Clients that can connect, in words."""
    is_here = all(ip_address(found[4][0]).is_loopback for found in getaddrinfo(host, None))
    return "every program on this machine" if is_here else f"EVERY program that reaches {host}, without a password,"


def _interrupt(*_: Any) -> None:
    raise KeyboardInterrupt
