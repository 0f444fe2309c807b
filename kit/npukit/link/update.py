"""An update: a new image is written, started on trial and confirmed once it answers; or the old one is back."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from npukit.boot.signed_image import SignedImage, Version
from npukit.errors import DoesNotFit, NpukitError
from npukit.link.flash import LoaderSession, LoaderState, RestartableTransport, SlotState, Verdict
from npukit.link.session import Session
from npukit.progress import Progress, Silent


@dataclass(frozen=True)
class Update:
    """What to put onto a board. `build_id` is what the image's firmware answers with once it runs.

    `load_seconds`: from power to the firmware, as predicted.
    """

    board: str
    image: SignedImage
    build_id: bytes
    may_be_older: bool = False
    load_seconds: float | None = None


@dataclass(frozen=True)
class Flashed:
    """What an update has done, or with `dry_run` would do."""

    board: str
    slot: int
    version: Version
    digest: bytes
    image_bytes: int
    pages_in_image: int
    pages_written: int
    replaced: Version | None
    load_seconds: float | None
    dry_run: bool

    def to_json(self) -> dict[str, Any]:
        return {
            "board": self.board,
            "slot": self.slot,
            "version": str(self.version),
            "sha256": self.digest.hex(),
            "image_bytes": self.image_bytes,
            "pages_in_image": self.pages_in_image,
            "pages_written": self.pages_written,
            "replaced": str(self.replaced) if self.replaced else None,
            "load_seconds": self.load_seconds,
            "dry_run": self.dry_run,
        }


def flash(transport: RestartableTransport, update: Update, progress: Progress | None = None) -> Flashed:
    """Put the image onto the board and see it run. Whatever fails, the board starts the image it started before."""
    shown = progress or Silent()
    shown.stage("restart the board into its loader")
    loader = LoaderSession(transport)
    check_match(loader.state, update)
    running = _running(loader)
    if running and running.digest == update.image.digest:
        loader.boot()
        return _flashed(loader, update, running.version, slot=loader.state.active or 0, pages=0)
    slot = loader.free_slot()
    written = loader.write(slot, update.image.data, shown.track)
    try:
        loader.put_on_trial(slot, update.image, update.may_be_older)
    except NpukitError as error:
        loader.boot()
        raise _refused(error) from error
    shown.stage("start the new image on trial")
    _run_on_trial(transport, loader, update)
    return _flashed(loader, update, running.version if running else None, slot=slot, pages=written.pages)


def dry_run(transport: RestartableTransport, update: Update) -> Flashed:
    """What `flash` would write. The board is restarted, and starts what it started before."""
    loader = LoaderSession(transport)
    check_match(loader.state, update)
    running, slot = _running(loader), loader.free_slot()
    same = running is not None and running.digest == update.image.digest
    pages = [] if same else loader.pages_that_differ(slot, update.image.data)
    loader.boot()
    version = running.version if running else None
    return _flashed(loader, update, version, slot=slot, pages=len(pages), is_dry=True)


def check_match(state: LoaderState, update: Update) -> None:
    """Whether this board would take the image at all, as far as that can be known before anything is written."""
    if state.board != update.board:
        raise DoesNotFit(
            f"the device is a {state.board}, the build is for {update.board}",
            tries=[f"npukit build MODEL --board {state.board}", "another port"],
        )
    if len(update.image.data) > state.slot_bytes:
        raise DoesNotFit(
            f"the image has {len(update.image.data):,} bytes, a slot of the board {state.slot_bytes:,}",
            tries=["npukit build with fewer --pes"],
        )
    if state.key is not None and not update.image.signed:
        raise NpukitError("the board takes signed images only", tries=["--key KEY.pem, the key the board knows"])


def _running(loader: LoaderSession) -> SlotState | None:
    """The good image that the board starts, if there is one."""
    if loader.state.active is None:
        return None
    slot = loader.describe(loader.state.active)
    return slot if slot.verdict is Verdict.GOOD else None


def _run_on_trial(transport: RestartableTransport, loader: LoaderSession, update: Update) -> None:
    """Start the image; if its firmware answers it is confirmed, else given up."""
    loader.boot()
    try:
        Session(transport, build_id=update.build_id).open()
    except NpukitError as error:
        back = LoaderSession(transport)
        back.abandon()
        back.boot()
        raise NpukitError(
            f"the new image did not come up, so the board is back at the one before: {error.message}",
            tries=["npukit validate BUILD, which runs it on the emulator"],
        ) from error
    confirmed = LoaderSession(transport)
    confirmed.confirm(update.image)
    confirmed.boot()
    Session(transport, build_id=update.build_id).open()


def _refused(error: NpukitError) -> NpukitError:
    tries = ["--key KEY.pem, the key the board knows", "--version, or --allow-older to go back"]
    return NpukitError(f"{error.message}; the board starts what it started before", tries=tries)


def _flashed(
    loader: LoaderSession, update: Update, replaced: Version | None, *, slot: int, pages: int, is_dry: bool = False
) -> Flashed:
    image = update.image
    return Flashed(
        board=loader.state.board,
        slot=slot,
        version=image.version,
        digest=image.digest,
        image_bytes=len(image.data),
        pages_in_image=-(-len(image.data) // loader.state.page_bytes),
        pages_written=pages,
        replaced=replaced,
        load_seconds=update.load_seconds,
        dry_run=is_dry,
    )
