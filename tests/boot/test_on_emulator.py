"""The loader's Arm code on the emulated board: updates, losses of power, images that do not start."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from boot.boards import BUILD_ID, build_there_and_back, computes, update_of
from helpers import toolchain
from npukit.board.board import Board, load_board
from npukit.boot.keys import public_bytes
from npukit.boot.loader import loader_area
from npukit.boot.provision import takes_of
from npukit.boot.signed_image import Version
from npukit.emulator.flashed import FlashedBoard
from npukit.errors import DoesNotFit, NpukitError
from npukit.link.flash import LoaderSession
from npukit.link.session import Session
from npukit.link.update import Update, dry_run, flash
from project.identity import Built

BOARD = load_board("pe-mesh")
OLD, NEW = Version(1), Version(1, 1)
HELLO, DESCRIBE = 1, 2
IDENTIFY, DESCRIBE_SLOT, DIGEST_PAGES, ERASE, WRITE, TRY, BOOT = 0x20, 0x21, 0x22, 0x23, 0x24, 0x25, 0x28


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Built:
    return build_there_and_back(BOARD, tmp_path_factory.mktemp("net"))


@pytest.fixture(scope="module")
def loader(key: Ed25519PrivateKey) -> bytes:
    return loader_area(BOARD, takes_of(public_bytes(key)).record(), toolchain("zig"))


@pytest.fixture
def empty(loader: bytes, tmp_path: Path) -> Iterator[FlashedBoard]:
    """A board fresh from the factory."""
    with FlashedBoard(BOARD, tmp_path / "flash", loader) as board:
        assert isinstance(board, FlashedBoard)
        yield board


@pytest.fixture(scope="module")
def old(built: Built, key: Ed25519PrivateKey) -> Update:
    return update_of(BOARD, built, OLD, key)


@pytest.fixture(scope="module")
def flashed(loader: bytes, old: Update, tmp_path_factory: pytest.TempPathFactory) -> bytes:
    """Flash content of a board with the old image."""
    with FlashedBoard(BOARD, tmp_path_factory.mktemp("flashed") / "flash", loader) as board:
        assert isinstance(board, FlashedBoard)
        flash(board, old)
        return board.flash()


@pytest.fixture
def running(flashed: bytes, tmp_path: Path) -> Iterator[FlashedBoard]:
    """A board with the old image active."""
    (tmp_path / "flash").write_bytes(flashed)
    with FlashedBoard(BOARD, tmp_path / "flash") as board:
        assert isinstance(board, FlashedBoard)
        yield board


def starts(board: FlashedBoard) -> Version:
    """The version that the board starts, as the loader reports."""
    loader = LoaderSession(board)
    assert loader.state.active is not None
    version = loader.describe(loader.state.active).version
    loader.boot()
    return version


@pytest.mark.exhaustive
def test_a_flashed_board_computes_on_all_its_pes_after_every_start(empty: FlashedBoard, old: Update) -> None:
    done = flash(empty, old)
    assert (done.slot, done.pages_written, done.replaced) == (0, done.pages_in_image, None)
    assert computes(Session(empty, old.build_id))
    empty.power_on()
    assert computes(Session(empty, old.build_id))


@pytest.mark.exhaustive
def test_what_is_there_already_is_not_written_again(running: FlashedBoard, old: Update) -> None:
    again = flash(running, old)
    assert (again.pages_written, again.slot, again.replaced) == (0, 0, OLD)
    assert computes(Session(running, old.build_id))


@pytest.mark.exhaustive
def test_a_dry_run_writes_nothing_and_knows_what_an_update_would_write(
    running: FlashedBoard, built: Built, key: Ed25519PrivateKey
) -> None:
    before, new = running.flash(), update_of(BOARD, built, NEW, key)
    planned = dry_run(running, new)
    assert running.flash() == before
    done = flash(running, new)
    assert planned.pages_written == done.pages_written == done.pages_in_image
    assert (done.slot, done.replaced, starts(running)) == (1, OLD, NEW)


def test_only_pages_that_differ_are_written(empty: FlashedBoard) -> None:
    loader = LoaderSession(empty)
    content = bytes(range(251)) * 64
    assert loader.write(1, content) == 4
    assert loader.write(1, content) == 0
    changed = content[:9000] + b"!" + content[9001:]
    assert loader.pages_that_differ(1, changed) == [2]
    assert loader.write(1, changed) == 1
    assert loader.pages_that_differ(1, changed) == []


@pytest.mark.exhaustive
def test_an_image_that_does_not_come_up_gives_way_to_the_old_one(
    running: FlashedBoard, built: Built, old: Update, key: Ed25519PrivateKey
) -> None:
    with pytest.raises(NpukitError, match="starts what it started before"):
        flash(running, update_of(BOARD, built, NEW, key, build_id="ff" * 16))
    assert computes(Session(running, old.build_id))
    assert starts(running) == OLD


def refused(board: FlashedBoard, update: Update, reason: str) -> None:
    """Check that the update is refused and that the board still runs the earlier image."""
    with pytest.raises(NpukitError, match=reason):
        flash(board, update)
    assert computes(Session(board, bytes.fromhex(BUILD_ID)))


@pytest.mark.exhaustive
def test_what_the_board_does_not_take_leaves_the_old_one_running(
    running: FlashedBoard, built: Built, key: Ed25519PrivateKey
) -> None:
    refused(running, update_of(BOARD, built, Version(0, 9), key), "older")
    flash(running, update_of(BOARD, built, NEW, key, security_counter=3))
    below = update_of(BOARD, built, Version(0, 9), key, security_counter=2)
    refused(running, replace(below, may_be_older=True), "security counter is 2, the board's 3")
    damaged = replace(below.image, security_counter=3, data=below.image.data[:-1] + b"!")
    refused(running, replace(below, image=damaged), "not signed with this board's key")
    assert starts(running) == NEW


class Watched(FlashedBoard):
    """A board that counts restarts and whose link fails once, at the first request of kind `fails_at`."""

    def __init__(self, board: Board, file: Path) -> None:
        self.restarts, self.fails_at = 0, 0
        self.failure: BaseException = NpukitError("the cable was pulled")
        super().__init__(board, file)

    def restart(self) -> None:
        self.restarts += 1
        super().restart()

    def write(self, data: bytes) -> None:
        if data[3] == self.fails_at:
            self.fails_at = 0
            raise self.failure
        super().write(data)


@pytest.fixture
def watched(running: FlashedBoard, tmp_path: Path) -> Iterator[Watched]:
    with Watched(BOARD, tmp_path / "flash") as board:
        assert isinstance(board, Watched)
        assert computes(Session(board))
        yield board


@pytest.mark.exhaustive
@pytest.mark.parametrize(
    ("own", "reason"), [(None, "signed images only"), (Ed25519PrivateKey.generate(), "another key")]
)
def test_an_image_without_the_boards_key_is_refused_before_the_board_is_restarted(
    watched: Watched, built: Built, own: Ed25519PrivateKey | None, reason: str
) -> None:
    refused(watched, update_of(BOARD, built, NEW, own), reason)
    assert watched.restarts == 0
    refused(watched, replace(update_of(BOARD, built, NEW, own), provision_address=None), reason)


EACH = (IDENTIFY, DESCRIBE_SLOT, DIGEST_PAGES, ERASE, WRITE, TRY, BOOT, HELLO, DESCRIBE)
"""Kinds of requests in an update."""


@pytest.mark.exhaustive
@pytest.mark.parametrize(
    ("failure", "requests"),
    [
        (NpukitError("the cable was pulled"), (TRY, HELLO)),
        pytest.param(NpukitError("the cable was pulled"), EACH, marks=pytest.mark.exhaustive),
        pytest.param(KeyboardInterrupt(), EACH, marks=pytest.mark.exhaustive),
    ],
)
def test_a_link_that_fails_anywhere_before_the_image_has_confirmed_itself_leaves_the_old_one_running(
    watched: Watched, built: Built, key: Ed25519PrivateKey, failure: BaseException, requests: Sequence[int]
) -> None:
    """The link fails at the first request of each kind."""
    new = replace(update_of(BOARD, built, NEW, key), provision_address=None)
    for request in requests:
        watched.fails_at, watched.failure = request, failure
        with pytest.raises(type(failure)):
            flash(watched, new)
        assert starts(watched) == OLD, request
    assert computes(Session(watched, new.build_id))


@pytest.mark.exhaustive
def test_an_image_on_trial_that_nobody_greets_gives_way_to_the_old_one(
    running: FlashedBoard, built: Built, old: Update, key: Ed25519PrivateKey
) -> None:
    new = update_of(BOARD, built, NEW, key)
    loader = LoaderSession(running)
    write_and_try(loader, new)
    loader.boot()
    second = BOARD.core.clock_hz
    running.run(second)
    assert running.time() == 0, "the loader has restarted the board"
    running.run(11 * second)
    assert running.time() == 11 * second
    running.run(2 * second)
    assert running.time() == 0, "the watchdog has restarted the board"
    running.run(14 * second)
    assert running.time() == 14 * second, "and does not do so again"
    assert computes(Session(running, old.build_id))
    assert starts(running) == OLD


@pytest.mark.exhaustive
def test_a_board_that_was_told_nothing_is_told_by_the_first_host(
    built: Built, key: Ed25519PrivateKey, tmp_path: Path
) -> None:
    update = update_of(BOARD, built, OLD, key)
    with FlashedBoard(BOARD, tmp_path / "new", loader_area(BOARD, b"", toolchain("zig"))) as board:
        assert isinstance(board, FlashedBoard)
        with pytest.raises(NpukitError, match="has not been told whose images it takes") as error:
            flash(board, update)
        assert any("--provision" in way for way in error.value.tries)
        done = flash(board, replace(update, provisions=True))
        assert (done.provisioned, done.takes) == (True, takes_of(public_bytes(key)))
        again = flash(board, replace(update_of(BOARD, built, NEW, key), provisions=True))
        assert (again.provisioned, again.takes) == (False, done.takes)
        refused(board, update_of(BOARD, built, NEW, None, provisions=True), "signed images only")


@pytest.mark.exhaustive
def test_a_build_for_another_board_is_refused_before_anything_is_written(
    running: FlashedBoard, built: Built, key: Ed25519PrivateKey
) -> None:
    before = running.flash()
    other = BOARD.model_copy(update={"name": "pe-mesh-152"})
    with pytest.raises(DoesNotFit, match="is a pe-mesh, the build is for pe-mesh-152"):
        flash(running, update_of(other, built, NEW, key))
    assert running.flash() == before


def write_and_try(loader: LoaderSession, new: Update) -> None:
    loader.write(1, new.image.data)
    loader.put_on_trial(1, new.image, False)


@pytest.mark.exhaustive
@pytest.mark.parametrize("where", [0.5, *(pytest.param(end, marks=pytest.mark.exhaustive) for end in (0.0, 1.0))])
def test_power_cut_during_an_update_leaves_a_board_that_starts(
    running: FlashedBoard, built: Built, old: Update, key: Ed25519PrivateKey, where: float
) -> None:
    """Some steps on the board itself; test_power_cuts.py tries every step."""
    new = update_of(BOARD, built, NEW, key)
    loader = LoaderSession(running, answer_seconds=5)
    written = sum(1 for at in range(0, len(new.image.data), 4) if new.image.data[at : at + 4] != b"\xff" * 4)
    running.cut_power(1 + int(where * written), chance=int(where * 100))
    with pytest.raises(NpukitError):
        write_and_try(loader, new)
    assert not running.has_power
    running.power_on()
    assert computes(Session(running, bytes.fromhex(BUILD_ID)))
    assert flash(running, new).replaced == OLD
    assert starts(running) == NEW


def test_a_second_host_that_greets_a_waiting_loader_is_told_so(running: FlashedBoard) -> None:
    running.restart()
    with pytest.raises(NpukitError, match="waits in its loader"):
        Session(running).open()
