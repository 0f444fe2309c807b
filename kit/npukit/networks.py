"""Several networks side by side on one board: each on separate PEs, all behind one link.

Each network is planned on the PEs left free by earlier networks, and built into a separate folder. The PE with the host
link runs a part of the first network. It forwards the host's requests for another network to the network's first PE.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from npukit.board.board import Board
from npukit.errors import DoesNotFit, NpukitError
from npukit.options import Network, Options
from npukit.pipeline import Compiled, Prepared, fill_folder, note_check, plan_on, prepare
from npukit.plan.multi_chip import twins
from npukit.plan.predict.memory import aligned
from npukit.plan.tensors.routes import pes_in_order
from npukit.progress import Progress
from npukit.project.build_folder import Build, load_build, load_networks, new_build_folder, write_networks_manifest
from npukit.project.files import Coresident, Relay
from npukit.project.images.elf import Elf
from npukit.project.toolchain import find_toolchain

MAILBOX = "network_mailbox"
"""The symbol of the mailbox in the image of a network's first PE."""


def build_networks(
    wanted: Sequence[Network],
    board: Board,
    output: Path,
    options: Options,
    progress: Progress,
    check: bool | None = None,
) -> dict[str, Build]:
    """The work of `npukit build` with several models."""
    toolchain = find_toolchain(options.toolchain, board.core.type)
    compiled = compile_networks(wanted, board, options, progress)
    with new_build_folder(output) as folder:
        relays: list[Relay] = []
        for each in [*wanted[1:], wanted[0]]:  # last: this network needs the mailboxes of the others
            network_pe = compiled[each.name].plan.pes[0].pe
            passes_on = tuple(relays) if network_pe == board.root_pe else ()
            standing = replace(compiled[each.name], coresident=Coresident(network_pe, passes_on))
            (folder / each.name).mkdir()
            others = [other.name for other in wanted if other != each]
            fill_folder(folder / each.name, standing, toolchain, progress, others)
            if not passes_on:
                relays.append(_relay(load_build(folder / each.name), network_pe))
        write_networks_manifest(folder, [each.name for each in wanted])
        note_check(load_networks(folder), check, progress)
    return load_networks(output)


def compile_networks(
    wanted: Sequence[Network], board: Board, options: Options, progress: Progress
) -> dict[str, Compiled]:
    """Plan each network on separate PEs, and place DRAM buffers behind those of earlier networks."""
    _check(wanted, board, options)
    free, found, dram = pes_in_order(board), dict[str, Compiled](), 0
    for index, each in enumerate(wanted):
        prepared = prepare(each.model, board, options, progress)
        compiled = _on_free_pes(each, prepared, free, len(wanted) - index - 1, board, options, progress)
        moved = tuple(replace(buffer, offset=buffer.offset + dram) for buffer in compiled.plan.dram)
        planned = replace(compiled.planned, plan=replace(compiled.plan, dram=moved))
        found[each.name] = replace(compiled, board=board, planned=planned)
        dram = aligned(max((buffer.offset + buffer.bytes for buffer in moved), default=dram))
        taken = {pe for pe, _ in twins(board, compiled.plan)}
        free = [pe for pe in free if pe not in taken]
    return found


def _check(wanted: Sequence[Network], board: Board, options: Options) -> None:
    names = Counter(each.name for each in wanted)
    twice = [name for name, count in names.items() if count > 1]
    if twice:
        raise NpukitError(
            f"{names[twice[0]]} networks would be called {twice[0]}",
            tries=[f"a name for each: first={wanted[0].model} second={wanted[1].model}"],
        )
    odd = [name for name in names if not re.fullmatch(r"\w[\w.-]*", name)]
    if odd:
        raise NpukitError(f"a network cannot be called {odd[0]!r}", tries=["NAME=MODEL, of letters, digits, - and _"])
    for option, value in (("--chips", options.chips), ("--plan", options.plan)):
        if value:
            raise NpukitError(f"{option} is about one network", tries=["--pes once for each network, in their order"])
    if len(wanted) > len(pes_in_order(board)):
        raise DoesNotFit(
            f"{len(wanted)} networks want a PE each, and {board.name} has {len(pes_in_order(board))}",
            tries=["a larger board", "fewer networks"],
        )


def _on_free_pes(
    wanted: Network,
    prepared: Prepared,
    free: Sequence[int],
    waiting: int,
    board: Board,
    options: Options,
    progress: Progress,
) -> Compiled:
    """The network's plan on the first sufficient number of PEs in `_counts`."""
    refused = None
    for count in _counts(wanted, options, len(free) - waiting, waiting):
        try:
            compiled = plan_on(_carved(board, free[:count]), prepared, replace(options, pes=count), progress)
        except DoesNotFit as error:
            refused = error
            continue
        if count > 1 or not compiled.plan.streams or len(free) - waiting == 1 or wanted.pes:
            return compiled
    assert refused
    message = f"network {wanted.name} does not fit beside the others: {refused.message}"
    raise DoesNotFit(
        message, facts=refused.facts, tries=["--pes once for each network, in their order", *refused.tries]
    )


def _counts(wanted: Network, options: Options, most: int, waiting: int) -> Iterator[int]:
    """Numbers of PEs to try: the requested number; else an equal share of the free PEs, then all but one PE for each
    later network. The objective `memory` tries one PE first."""
    part = max(most // (waiting + 1), 1)
    first = [1] if options.objective == "memory" else []
    yield from dict.fromkeys([min(wanted.pes, most)] if wanted.pes else [*first, part, most])


def _carved(board: Board, pes: Sequence[int]) -> Board:
    """The board with all other PEs marked as dead."""
    dead = tuple(sorted({*range(board.pe_count)} - {*pes}))
    return board.model_copy(update={"mesh": board.mesh.model_copy(update={"dead_pes": dead})})


def _relay(build: Build, network_pe: int) -> Relay:
    image = next(record for record in build.manifest.images if network_pe in record.pes)
    return Relay(network_pe, Elf(build.folder / image.elf).symbols[MAILBOX])
