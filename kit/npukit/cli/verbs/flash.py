"""`npukit flash`: a build into a board's flash."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from npukit.cli.options import BuildFolder, Modified, verb
from npukit.cli.summary import show_modified, told_of
from npukit.cli.terminal import Terminal

if TYPE_CHECKING:
    from npukit.link.programmer import Programmed
    from npukit.link.update import Flashed
    from npukit.project.build_folder import Build


Port = Annotated[
    str,
    typer.Option(
        "--port",
        metavar="PORT",
        help="serial: what is plugged in; a device; emulator, or emulator:FILE with its flash.",
    ),
]
Key = Annotated[Path | None, typer.Option("--key", metavar="KEY.pem", help="Sign with this key (npukit new key).")]
Version = Annotated[
    str, typer.Option("--version", metavar="X.Y.Z+B", help="The image's version; boards refuse older ones.")
]
SecurityCounter = Annotated[
    int, typer.Option("--security-counter", min=0, metavar="N", help="Boards that ran N take nothing below it again.")
]
AllowOlder = Annotated[
    bool, typer.Option("--allow-older", help="Go back to an older version; never below the security counter.")
]
Provision = Annotated[
    bool, typer.Option("--provision", help="Tell a new board, for good: images of this key alone; without --key, any.")
]
Trust = Annotated[
    bool, typer.Option("--trust", help="Trust the maker who signed the build, from now on; compare the key first.")
]
To = Annotated[
    Path | None, typer.Option("--to", metavar="FILE", help="Write FILE.hex or FILE.uf2 for another tool, and no board.")
]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Say what would be written; write nothing.")]


@verb(plugins=True, left="where the board has two slots, it starts what it started before; else flash it again")
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
    """Write a build into a board's flash, start it on trial, and see it confirm itself.

    Only pages that differ are written. Whatever fails, the board starts the image it started before. A new board starts
    nothing until it has been told whose images it takes (--provision). A stock board is written with OpenOCD or pyOCD,
    as its board file says; then the firmware at PORT is asked which build it is.
    """
    from npukit import api
    from npukit.cli.passphrase import asked_passphrase

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
    for line in _told(done):
        terminal.print(line)


def _write_file(terminal: Terminal, built: Build, to: Path) -> None:
    from npukit.link.image_files import write_image

    written = write_image(built.images()[0].elf, built.board, to)
    terminal.result({"board": built.board.name, "file": str(written), **told_of(built)})
    terminal.print(f"{built.board.name}: {written}")


def _told(done: Flashed | Programmed) -> list[str]:
    from npukit.link.programmer import Programmed

    if not isinstance(done, Programmed):
        return [_summary(done)]
    if done.dry_run:
        return [f"{done.board}: would run", done.pasted]
    return [f"{done.board} runs {done.image.name} ({shlex.join(done.command)})"]


def _summary(done: Flashed) -> str:
    takes = f"the board {'has been told, for good, that it ' if done.provisioned else ''}takes {done.takes}"
    image = f"image {done.version} ({done.image_bytes:,} bytes, sha256 {done.digest.hex()[:16]})"
    pages = f"{done.pages_written} of {done.pages_in_image} pages"
    if done.dry_run:
        return f"{done.board}: would write {pages} of slot {done.slot} for {image}; {takes}"
    if not done.pages_written and done.replaced == done.version:
        return f"{done.board} starts {image} already; nothing was written; {takes}"
    before = f", instead of {done.replaced}" if done.replaced else ""
    loads = f"; loads in {1e3 * done.load_seconds:.0f} ms" if done.load_seconds else ""
    what = f"{pages} written, verified, confirmed{loads}"
    return f"{done.board} starts {image} from slot {done.slot}{before}; {what}; {takes}"
