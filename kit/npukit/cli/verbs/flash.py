"""`npukit flash`: a build into a board's flash."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from npukit.cli.options import BuildFolder, Modified, advanced, model, output, target, verb
from npukit.cli.summary import show_modified, told_of
from npukit.cli.terminal import Terminal

if TYPE_CHECKING:
    from npukit.link.programmer import Programmed
    from npukit.link.update import Flashed
    from npukit.project.build_folder import Build

Port = Annotated[
    str,
    target(
        "--port",
        metavar="PORT",
        help="serial: the plugged-in board; a device; emulator, or emulator:FILE with its flash.",
    ),
]
Key = Annotated[Path | None, model("--key", metavar="KEY.pem", help="Sign with this key (npukit new key).")]
Version = Annotated[str, model("--version", metavar="X.Y.Z+B", help="Version of the image. Boards refuse older ones.")]
SecurityCounter = Annotated[
    int,
    advanced("--security-counter", min=0, metavar="N", help="Security counter. Boards that ran N refuse lower ones."),
]
AllowOlder = Annotated[bool, advanced("--allow-older", help="Allow an older version, but no lower security counter.")]
Provision = Annotated[
    bool,
    target("--provision", help="Bind a new board to --key, for good. Without --key it accepts every image, for good."),
]
Trust = Annotated[
    bool, model("--trust", help="Trust the maker who signed the build from now on. Compare the key first.")
]
To = Annotated[
    Path | None, output("--to", metavar="FILE", help="Write FILE.hex or FILE.uf2 for another tool, and no board.")
]
DryRun = Annotated[bool, output("--dry-run", help="Show the pages to write; write nothing.")]


@verb(plugins=True, left="a board with two slots starts its previous image; flash any other board again")
def flash(
    terminal: Terminal,
    build: BuildFolder,
    port: Port = "serial",
    key: Key = None,
    version: Version = "0.0.0",
    security_counter: SecurityCounter = 0,
    allow_older: AllowOlder = False,
    provision: Provision = False,
    trust: Trust = False,
    dry_run: DryRun = False,
    to: To = None,
    modified: Modified = False,
) -> None:
    """Write a build into a board's flash, start it on trial, and wait until it confirms itself.

    Only pages that differ are written. After a failure the board starts its previous image. A new board starts no image
    before --provision. A stock board is written by OpenOCD, pyOCD or another tool named in its board file; then the
    build of the firmware at PORT is compared.
    """
    from npukit import api
    from npukit.cli.passphrase import asked_passphrase
    from npukit.link.programmer import Programmed

    built = api.load_linked(build, modified=modified)
    show_modified(terminal, built)
    if to:
        _write_file(terminal, built, to)
        return
    done = api.flash(
        built,
        port=port,
        key=key,
        version=version,
        security_counter=security_counter,
        allow_older=allow_older,
        provision=provision,
        dry_run=dry_run,
        trust=trust,
        passphrase=asked_passphrase,
        progress=terminal,
    )
    terminal.result({**done.to_json(), **told_of(built)})
    terminal.print(_told(done))
    if isinstance(done, Programmed) and done.dry_run:
        terminal.print(done.pasted, whole=True)


def _write_file(terminal: Terminal, built: Build, to: Path) -> None:
    from npukit.link.image_files import write_image

    written = write_image(built.images()[0].elf, built.board, to)
    terminal.result({"board": built.board.name, "file": str(written), **told_of(built)})
    terminal.made(written, f"{built.board.name}: {written}")


def _told(done: Flashed | Programmed) -> str:
    from npukit.link.programmer import Programmed

    if not isinstance(done, Programmed):
        return _summary(done)
    if done.dry_run:
        return f"{done.board}: would run"
    return f"{done.board} runs {done.image.name} ({shlex.join(done.command)})"


def _summary(done: Flashed) -> str:
    takes = (
        f"the board{' now' if done.provisioned else ''} accepts {done.takes}{', for good' if done.provisioned else ''}"
    )
    image = f"image {done.version} ({done.image_bytes:,} bytes, sha256 {done.sha256.hex()[:16]})"
    pages = f"{done.pages_written} of {done.pages_in_image} pages"
    if done.dry_run:
        return f"{done.board}: would write {pages} of slot {done.slot} for {image}; {takes}"
    if not done.pages_written and done.replaced == done.version:
        return f"{done.board} starts {image} already; nothing was written; {takes}"
    before = f", instead of {done.replaced}" if done.replaced else ""
    loads = f"; loads in {1e3 * done.load_seconds:.0f} ms" if done.load_seconds else ""
    what = f"{pages} written, verified, confirmed{loads}"
    return f"{done.board} starts {image} from slot {done.slot}{before}; {what}; {takes}"
