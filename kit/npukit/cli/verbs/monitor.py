"""`npukit monitor`: the state of a board's PEs, line by line."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from itertools import count
from time import sleep
from typing import TYPE_CHECKING, Annotated, Any

from npukit.cli.options import BuildFolder, On, advanced, output, target, verb
from npukit.cli.terminal import Terminal
from npukit.display import counted

if TYPE_CHECKING:
    from npukit.link.messages import Counters, PeState
    from npukit.link.runs import RunState
    from npukit.link.session import Session
    from npukit.measure.target import Target


@verb()
def monitor(
    terminal: Terminal,
    build: BuildFolder,
    on: On = None,
    every: Annotated[float, output("--every", metavar="SECONDS", min=0.0, help="Time between two readings.")] = 1.0,
    start: Annotated[
        int | None, target("--start", metavar="N", min=1, help="Start a run of N frames; stop it at the end.")
    ] = None,
    reset: Annotated[bool, target("--reset", help="Restart the board first.")] = False,
    self_test: Annotated[
        bool, advanced("--self-test", help="With each reading compare all memories with the loaded image.")
    ] = False,
    times: Annotated[int | None, output("--times", metavar="N", min=1, help="Readings. Default: until Ctrl-C.")] = None,
) -> None:
    """Print the counters of a board's PEs, and the lines from its firmware, until Ctrl-C or N times.

    The verb takes over the link. With --start the board computes meanwhile, and stops between two frames.
    """
    from npukit import api
    from npukit.measure.memory import check_memory
    from npukit.measure.target import open_target

    built, looks = api.load(build), []
    with open_target(built, on) as target:
        if reset:
            target.session.reset()
        run = target.session.start(start) if start else None
        with suppress(KeyboardInterrupt):
            for _ in _ticks(every, times):
                looks.append(_show(terminal, target))
                if self_test:
                    looks[-1]["bytes_checked"] = check_memory(target.session, built)
        stopped = run.stop() if run else None
    terminal.result({"looks": looks} | ({"run": _run_facts(stopped)} if stopped else {}))
    if stopped:
        each = f", {stopped.cycles // stopped.ran:,} {target.unit} each" if stopped.ran and stopped.cycles else ""
        terminal.print(f"{stopped.ran:,} of {stopped.frames:,} frames ran{each}")


def _show(terminal: Terminal, target: Target) -> dict[str, Any]:
    counters, pes = look(target.session)
    said = target.session.lines()
    share = 1 - counters.asleep / counters.cycles if counters.asleep else 1
    busy = f"{100 * share:.1f} % busy" if counters.asleep else "sleep not counted"
    head = f"{counters.cycles:,} {target.unit}: {counted(counters.instructions or None)}, {busy}"
    for line in (*(f"  > {line}" for line in said), head, *(f"  PE {pe.pe}: {_state(pe)}" for pe in pes)):
        terminal.print(line)
    return {
        "cycles": counters.cycles,
        "instructions": counters.instructions or None,
        "asleep": counters.asleep or None,
        "pes": [{"pe": pe.pe, "running": pe.running, "frames": pe.frames, "status": pe.status} for pe in pes],
        "lines": list(said),
    }


def _run_facts(run: RunState) -> dict[str, Any]:
    return {"frames": run.ran, "asked": run.frames, "cycles": run.cycles, "instructions": run.instructions}


def _ticks(every: float, times: int | None) -> Iterator[int]:
    for tick in count() if times is None else range(times):
        if tick:
            sleep(every)
        yield tick


def look(session: Session) -> tuple[Counters, tuple[PeState, ...]]:
    """Counters of the core that has the link, and the state of every PE of the network."""
    return session.counters(), session.pes()


def _state(pe: PeState) -> str:
    from npukit.link.fault import explain_status

    if not pe.running:
        return f"stopped at {pe.fault_pc:#010x}" if pe.fault_pc else "not running"
    return f"{pe.frames} frames" + (f", the last one failed with {explain_status(pe.status)}" if pe.status else "")
