"""`npukit new key`: a key to sign images with."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from npukit.cli.options import AsJson, Quiet, Verbose, open_terminal


def key(
    output: Annotated[Path, typer.Option("-o", "--output", metavar="KEY.pem", help="Where; never overwritten.")],
    as_json: AsJson = False,
    verbose: Verbose = 0,
    quiet: Quiet = False,
) -> None:
    """An Ed25519 key for `npukit flash --key`, in a file that only you can read. Whoever has it can sign images."""
    with open_terminal(as_json, verbose, quiet) as terminal:
        from npukit.boot.keys import new_key, public_bytes

        public = public_bytes(new_key(output)).hex()
        terminal.result({"file": str(output), "public_key": public})
        terminal.print(f"wrote {output}; its public key is {public}")
