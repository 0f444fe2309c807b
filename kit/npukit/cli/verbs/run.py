"""`npukit run`: inputs through a build, outputs back."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from npukit.cli.networks import chosen_network
from npukit.cli.options import BuildFolder, Faults, Modified, Network, On, Stream, advanced, model, verb
from npukit.cli.options import output as output_option
from npukit.cli.summary import show_modified, told_of
from npukit.cli.terminal import Terminal

if TYPE_CHECKING:
    from npukit.emulator.debugged import Debugger
    from npukit.project.build_folder import Build


@verb(plugins=True, left="no outputs are written")
def run(
    terminal: Terminal,
    build: BuildFolder,
    inputs: Annotated[
        Path, model("--inputs", metavar="FILE.npz", help="Arrays in0, in1, ..., each with a leading axis of cases.")
    ],
    output: Annotated[
        Path, output_option("-o", "--output", metavar="FILE.npz", help="File to write, with arrays out0, out1, ...")
    ],
    network: Network = None,
    on: On = None,
    stream: Stream = False,
    faults: Faults = None,
    gdb: Annotated[int | None, advanced("--gdb", metavar="PORT", help="Wait for gdb on this port.")] = None,
    gdb_pe: Annotated[int | None, advanced("--gdb-pe", metavar="N", help="The PE for gdb. Default: the root.")] = None,
    dump_tensor: Annotated[
        str | None,
        output_option("--dump-tensor", metavar="NAME,...", help="Write these tensors of every frame as well."),
    ] = None,
    modified: Modified = False,
) -> None:
    """Run inputs through a build and write the outputs of all cases."""
    import numpy as np

    from npukit import api
    from npukit.writing import new_file

    built = api.load(chosen_network(build, network), modified=modified)
    show_modified(terminal, built)
    debugger = _debugger(built, gdb, gdb_pe, terminal) if gdb is not None else None
    outputs = api.run(built, on=on, inputs=inputs, stream=stream, faults=faults, debugger=debugger, progress=terminal)
    arrays: dict[str, Any] = {f"out{i}": array for i, array in enumerate(outputs)}
    if dump_tensor:
        names = dump_tensor.split(",")
        arrays |= api.dump_tensors(built, names, on=on, inputs=inputs, stream=stream, progress=terminal)
    with new_file(output) as path:
        np.savez(path, **arrays)
    told = {"output": str(output), "cases": len(outputs[0]), "shapes": [list(o.shape) for o in outputs]}
    terminal.result({**told, **told_of(built)})
    terminal.made(output, f"{len(outputs[0])} cases: {output}")


def _debugger(build: Build, port: int, pe: int | None, terminal: Terminal) -> Debugger:
    """Print how to attach gdb. The run begins once gdb is attached."""
    from npukit.emulator.debugged import Debugger
    from npukit.errors import NpukitError

    images = build.images()
    wanted = images[0].pes[0] if pe is None else pe
    elf = next((image.elf for image in images if wanted in image.pes), None)
    if elf is None:
        raise NpukitError(f"PE {wanted} has no image in this build", tries=["--gdb-pe with another number"])
    terminal.note(f"PE {wanted} waits for: gdb-multiarch {elf} -ex 'target remote localhost:{port}'")
    return Debugger(wanted, port)
