"""`npukit serve`: a board for TVM's clients."""

from __future__ import annotations

import signal
from ipaddress import ip_address
from socket import getaddrinfo
from typing import Annotated, Any

from npukit.cli.options import BuildFolder, On, advanced, target, verb
from npukit.cli.terminal import Terminal


@verb(plugins=True)
def serve(
    terminal: Terminal,
    build: BuildFolder,
    on: On = None,
    tracker: Annotated[
        str | None, target("--tracker", metavar="HOST:PORT", help="Register the board at this TVM tracker.")
    ] = None,
    key: Annotated[
        str | None, target("--key", metavar="KEY", help="Key of the board for clients. Default: the board's name.")
    ] = None,
    host: Annotated[
        str, target("--host", metavar="ADDRESS", help="Address to listen at; 0.0.0.0 for clients on other machines.")
    ] = "127.0.0.1",
    port: Annotated[int, target("--port", min=1, max=65435, metavar="N", help="Port, or the next free one.")] = 9090,
    trials: Annotated[
        bool, advanced("--trials", help="Let clients load their own builds onto the board (npukit tune).")
    ] = False,
) -> None:
    """Make a board a TVM RPC server: any TVM client runs and times the network, until Ctrl-C.

    TVM's RPC has neither passwords nor encryption. Clients can do nothing else without --trials.
    """
    signal.signal(signal.SIGTERM, _interrupt)
    try:
        from npukit import api

        serving = api.serve(
            build, on=on, host=host, port=port, key=key, tracker=tracker, trials=trials, progress=terminal
        )
        with serving as served:
            allowed = [MAY_RUN, *([MAY_TRY] if trials else [])]
            said = {"host": host, "port": served.port, "key": served.key, "tracker": tracker, "allows": allowed}
            terminal.result(said)
            terminal.made(f"{host}:{served.port}", f"serving {build} at {host}:{served.port}, key {served.key}")
            terminal.note(f"{_who(host)} may {' and '.join(allowed)}", style="bold")
            served.wait()
    except KeyboardInterrupt:
        terminal.finish()
        terminal.note("stopped; connected clients get an error")


MAY_RUN, MAY_TRY = "run, time and describe this network", "load their own builds onto the board"


def _who(host: str) -> str:
    """Clients that can connect, in words."""
    is_here = all(ip_address(found[4][0]).is_loopback for found in getaddrinfo(host, None))
    return "every program on this machine" if is_here else f"EVERY program that reaches {host}, without a password,"


def _interrupt(*_: Any) -> None:
    raise KeyboardInterrupt
