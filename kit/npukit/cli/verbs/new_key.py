"""`npukit new key`: a key to sign images with."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from npukit.cli.options import verb
from npukit.cli.terminal import Terminal


@verb()
def key(
    terminal: Terminal,
    output: Annotated[Path, typer.Option("-o", "--output", metavar="KEY.pem", help="Where; never overwritten.")],
    encrypt: Annotated[
        bool, typer.Option("--encrypt", help="With a passphrase: NPUKIT_KEY_PASSPHRASE, or asked for.")
    ] = False,
) -> None:
    """An Ed25519 key for `npukit flash --key`, in a file that only you can read. Whoever has it can sign images."""
    from npukit.boot.keys import new_key, public_bytes
    from npukit.cli.passphrase import new_passphrase

    secret = new_passphrase(output) if encrypt else None
    public = public_bytes(new_key(output, secret)).hex()
    terminal.result({"file": str(output), "public_key": public})
    terminal.print(f"wrote {output}; its public key is {public}")
