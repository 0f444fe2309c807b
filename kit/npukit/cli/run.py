"""`npukit run`: inputs through a build, outputs back."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from npukit.cli.options import AsJson, BuildFolder, On, Quiet, Verbose, open_terminal


def run(
    build: BuildFolder,
    inputs: Annotated[
        Path, typer.Option("--inputs", metavar="FILE.npz", help="Arrays in0, in1, ... with a leading axis of cases.")
    ],
    output: Annotated[Path, typer.Option("-o", "--output", metavar="FILE.npz", help="Where out0, out1, ... go.")],
    on: On = None,
    as_json: AsJson = False,
    verbose: Verbose = 0,
    quiet: Quiet = False,
) -> None:
    """Run inputs through a build and write the outputs of all cases."""
    with open_terminal(as_json, verbose, quiet) as terminal:
        import numpy as np

        from npukit import api

        outputs = api.run(build, on=on, inputs=inputs, progress=terminal)
        arrays: dict[str, Any] = {f"out{i}": array for i, array in enumerate(outputs)}
        np.savez(output, **arrays)
        terminal.result({"output": str(output), "cases": len(outputs[0]), "shapes": [list(o.shape) for o in outputs]})
        terminal.print(f"{len(outputs[0])} cases: {output}")
