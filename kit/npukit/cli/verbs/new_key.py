"""`npukit new key`: a key to sign images with."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from npukit.cli.options import AsJson, Quiet, Verbose, open_terminal


def key(
    output: Annotated[Path, typer.Option("-o", "--output", metavar="KEY.pem", help="Where; never overwritten.")],
    encrypt: Annotated[
        bool, typer.Option("--encrypt", help="With a passphrase: NPUKIT_KEY_PASSPHRASE, or asked for.")
    ] = False,
    as_json: AsJson = False,
    verbose: Verbose = 0,
    quiet: Quiet = False,
) -> None:
    """An Ed25519 key for `npukit flash --key`, in a file that only you can read. Whoever has it can sign images."""
    with open_terminal(as_json, verbose, quiet) as terminal:
        from npukit.boot.keys import new_key, public_bytes
        from npukit.cli.passphrase import new_passphrase

        secret = new_passphrase(output) if encrypt else None
        public = public_bytes(new_key(output, secret)).hex()
        terminal.result({"file": str(output), "public_key": public})
        terminal.print(f"wrote {output}; its public key is {public}")
