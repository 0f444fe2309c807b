"""An update: write a new image and start it on trial. Without confirmation the board returns to the old image."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from npukit.boot.provision import COPIES, RECORD_BYTES, Policy, Takes, read_takes, takes_of
from npukit.boot.signed_image import SignedImage, Version
from npukit.errors import DoesNotFit, NpukitError
from npukit.link.flash import LoaderSession, LoaderState, RestartableTransport, SlotState, Verdict
from npukit.link.session import Session
from npukit.progress import Progress, Silent

_ANSWER_SECONDS = 1.5
"""Seconds to wait for firmware that may be absent. Firmware answers within milliseconds."""


@dataclass(frozen=True)
class Update:
    """An image to flash. `build_id`: reported by the image's firmware in the handshake.

    `provisions`: provision a new board for images of this image's key, or for any image if this image is unsigned.
    `provision_address`: of the provision in the board's memory. `load_seconds`: predicted time from power-on to the
    firmware.
    """

    board: str
    image: SignedImage
    build_id: bytes
    may_be_older: bool = False
    provisions: bool = False
    load_seconds: float | None = None
    provision_address: int | None = None


@dataclass(frozen=True)
class Flashed:
    """Result of an update, or with `dry_run` the expected result."""

    board: str
    slot: int
    version: Version
    security_counter: int
    sha256: bytes
    image_bytes: int
    pages_in_image: int
    pages_written: int
    replaced: Version | None
    takes: Takes
    provisioned: bool
    """True if this update provisioned the board."""
    load_seconds: float | None
    dry_run: bool

    def to_json(self) -> dict[str, Any]:
        key = self.takes.key.hex() if self.takes.key else None
        return {
            **vars(self),
            "version": str(self.version),
            "sha256": self.sha256.hex(),
            "replaced": str(self.replaced) if self.replaced else None,
            "takes": {"policy": self.takes.policy.name.lower(), "key": key},
        }


def flash(transport: RestartableTransport, update: Update, progress: Progress | None = None) -> Flashed:
    """Flash the image and run it. After a failure the board starts the image it started before."""
    shown = progress or Silent()
    shown.stage("ask the board whose images it takes")
    _ask_firmware(transport, update)
    shown.stage("restart the board into its loader")
    with _loader_of(transport) as loader:
        check_match(loader.state, update)
        provisioned = _provision(loader, update, shown)
        running = _running(loader)
        if running and running.digest == update.image.digest:
            loader.boot()
            slot, pages = loader.state.active or 0, 0
        else:
            slot = loader.free_slot()
            pages = loader.write(slot, update.image.data, shown.track)
            loader.put_on_trial(slot, update.image, update.may_be_older)
            shown.stage("start the new image on trial")
            _run_on_trial(transport, loader, update, slot)
    return _flashed(loader, update, running, slot=slot, pages=pages, provisioned=provisioned)


def dry_run(transport: RestartableTransport, update: Update) -> Flashed:
    """The pages that `flash` would write. The board restarts, with the same image as before."""
    _ask_firmware(transport, update)
    with _loader_of(transport) as loader:
        check_match(loader.state, update)
        running, slot = _running(loader), loader.free_slot()
        same = running is not None and running.digest == update.image.digest
        pages = [] if same else loader.pages_that_differ(slot, update.image.data)
        loader.boot()
    return _flashed(loader, update, running, slot=slot, pages=len(pages), is_dry=True)


def check_match(state: LoaderState, update: Update) -> None:
    """Raise an error if the board would refuse the image, as far as can be known before writing."""
    image = update.image
    if state.board != update.board:
        raise DoesNotFit(
            f"the device is a {state.board}, the build is for {update.board}",
            tries=[f"npukit build MODEL --board {state.board}", "another port"],
        )
    if len(image.data) > state.slot_bytes:
        raise DoesNotFit(
            f"the image has {len(image.data):,} bytes, a slot of the board {state.slot_bytes:,}",
            tries=["npukit build with fewer --pes"],
        )
    _check_key(state.takes, update)
    if image.security_counter < state.security_counter:
        raise NpukitError(
            f"the image's security counter is {image.security_counter}, the board's {state.security_counter}: "
            "it starts no image below that, older or not",
            tries=[f"--security-counter {state.security_counter}"],
        )


def _check_key(takes: Takes, update: Update) -> None:
    """Raise an error if a board that accepts `takes` refuses this image, and is not to be provisioned."""
    signer = update.image.signer
    if takes.policy is Policy.NONE and not update.provisions:
        raise NpukitError(
            "the board has not been told whose images it takes, and starts none",
            tries=[
                "--provision --key KEY.pem: those of this key alone, for good",
                "--provision without a key: any, signed or not, for good (development)",
            ],
        )
    if takes.policy is Policy.DAMAGED:
        raise NpukitError(
            "the board cannot read whose images it takes, and starts none",
            tries=["another board: what it was told cannot be changed, only written again at the factory"],
        )
    if takes.key and signer is None:
        raise NpukitError("the board takes signed images only", tries=["--key KEY.pem, the key the board knows"])
    if takes.key and signer != takes.key:
        raise NpukitError(f"the board takes {takes}, and this is another key", tries=["--key with the board's key"])
    if update.provisions and takes.policy is not Policy.NONE and takes != takes_of(signer):
        raise NpukitError(f"the board has been told for good that it takes {takes}", tries=["without --provision"])


def _ask_firmware(transport: RestartableTransport, update: Update) -> None:
    """Raise an error before the restart if the firmware reports a key that does not match."""
    if update.provision_address is None:
        return
    try:
        session = Session(transport, answer_seconds=_ANSWER_SECONDS)
        session.open()
        takes = read_takes(session.read_memory(update.provision_address, COPIES * RECORD_BYTES))
    except NpukitError:
        return  # the loader will report the key
    if takes.key:
        _check_key(takes, update)


@contextmanager
def _loader_of(transport: RestartableTransport) -> Iterator[LoaderSession]:
    """The board's loader. After a failure the board starts the same image as before."""
    before = None
    try:
        loader = LoaderSession(transport)
        before = loader.state.active
        yield loader
    except NpukitError as error:
        error.message += f"; {_start_as_before(transport, before)}"
        error.args = (error.message,)
        raise
    except BaseException:
        _start_as_before(transport, before)
        raise


def _start_as_before(transport: RestartableTransport, before: int | None) -> str:
    """End the trial and leave the loader. Returns in words how the board starts next."""
    try:
        loader = LoaderSession(transport)
        loader.abandon()
        loader.boot()
    except NpukitError:
        return "the board may wait in its loader: switch it off and on, and it starts what it started before"
    active = loader.state.active
    if active is None:
        return "the board has nothing to start"
    return (
        f"the board starts {'what it started before' if active == before else 'the new image, which confirmed itself'}"
    )


def _provision(loader: LoaderSession, update: Update, progress: Progress) -> bool:
    """Provision the board unless it is provisioned already. True if done here."""
    if loader.state.takes.policy is not Policy.NONE:
        return False
    takes = takes_of(update.image.signer)
    progress.stage(f"tell the board, for good, that it takes {takes}")
    loader.provision(takes)
    return True


def _running(loader: LoaderSession) -> SlotState | None:
    """The valid image of the active slot, or None."""
    if loader.state.active is None:
        return None
    slot = loader.describe(loader.state.active)
    return slot if slot.verdict is Verdict.GOOD else None


def _run_on_trial(transport: RestartableTransport, loader: LoaderSession, update: Update, slot: int) -> None:
    """Start the image, shake hands with the firmware, and check in the loader that the image has confirmed itself."""
    loader.boot()
    try:
        Session(transport, build_id=update.build_id).open()
        state = LoaderSession(transport)
        if state.state.active != slot:
            raise NpukitError("its firmware runs, and has not confirmed itself")
        state.boot()
        Session(transport, build_id=update.build_id).open()
    except NpukitError as error:
        raise NpukitError(
            f"the new image did not come up: {error.message}",
            facts=error.facts,
            tries=["npukit validate BUILD, which runs it on the emulator"],
        ) from error


def _flashed(
    loader: LoaderSession,
    update: Update,
    running: SlotState | None,
    *,
    slot: int,
    pages: int,
    provisioned: bool = False,
    is_dry: bool = False,
) -> Flashed:
    image, state = update.image, loader.state
    return Flashed(
        board=state.board,
        slot=slot,
        version=image.version,
        security_counter=image.security_counter,
        sha256=image.digest,
        image_bytes=len(image.data),
        pages_in_image=-(-len(image.data) // state.page_bytes),
        pages_written=pages,
        replaced=running.version if running else None,
        takes=takes_of(image.signer) if state.takes.policy is Policy.NONE else state.takes,
        provisioned=provisioned,
        load_seconds=update.load_seconds,
        dry_run=is_dry,
    )
