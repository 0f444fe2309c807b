"""`npukit new key`: a key to sign images with."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from npukit.cli.options import output as output_option
from npukit.cli.options import verb
from npukit.cli.terminal import Terminal


@verb()
def key(
    terminal: Terminal,
    output: Annotated[
        Path, output_option("-o", "--output", metavar="KEY.pem", help="File to write; never overwritten.")
    ],
    encrypt: Annotated[
        bool, output_option("--encrypt", help="Encrypt it by a passphrase: NPUKIT_KEY_PASSPHRASE, or one entered here.")
    ] = False,
) -> None:
    """Write an Ed25519 key for npukit flash --key, in a file that only you can read. Keep it secret."""
    from npukit.boot.keys import new_key, public_bytes
    from npukit.cli.passphrase import new_passphrase

    secret = new_passphrase(output) if encrypt else None
    public = public_bytes(new_key(output, secret)).hex()
    terminal.result({"file": str(output), "public_key": public})
    terminal.made(output, f"wrote {output}; its public key is {public}")
