"""The loader's Arm code on the emulated board: updates, cuts of power, images that do not come up."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from boot.boards import BUILD_ID, build_there_and_back, computes, update_of
from npukit.board.board import load_board
from npukit.boot.keys import public_bytes
from npukit.boot.loader import loader_area
from npukit.boot.signed_image import Version
from npukit.emulator.flashed import FlashedBoard
from npukit.errors import DoesNotFit, NpukitError
from npukit.link.flash import LoaderSession
from npukit.link.session import Session
from npukit.link.update import Update, dry_run, flash
from project.identity import Built, toolchain

BOARD = load_board("pe-mesh")
OLD, NEW = Version(1), Version(1, 1)


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Built:
    return build_there_and_back(BOARD, tmp_path_factory.mktemp("net"))


@pytest.fixture(scope="module")
def loader(key: Ed25519PrivateKey) -> bytes:
    return loader_area(BOARD, public_bytes(key), toolchain("zig"))


@pytest.fixture
def empty(loader: bytes, tmp_path: Path) -> Iterator[FlashedBoard]:
    """A board from the factory."""
    with FlashedBoard(BOARD, tmp_path / "flash", loader) as board:
        assert isinstance(board, FlashedBoard)
        yield board


@pytest.fixture
def old(built: Built, key: Ed25519PrivateKey) -> Update:
    return update_of(BOARD, built, OLD, key)


@pytest.fixture
def running(empty: FlashedBoard, old: Update) -> FlashedBoard:
    """A board that starts the old image."""
    flash(empty, old)
    return empty


def starts(board: FlashedBoard) -> Version:
    """The version the board starts, seen by the loader."""
    loader = LoaderSession(board)
    assert loader.state.active is not None
    version = loader.describe(loader.state.active).version
    loader.boot()
    return version


def test_a_flashed_board_computes_on_all_its_pes_after_every_start(empty: FlashedBoard, old: Update) -> None:
    done = flash(empty, old)
    assert (done.slot, done.pages_written, done.replaced) == (0, done.pages_in_image, None)
    assert computes(Session(empty, old.build_id))
    empty.power_on()
    assert computes(Session(empty, old.build_id))


def test_what_is_there_already_is_not_written_again(running: FlashedBoard, old: Update) -> None:
    again = flash(running, old)
    assert (again.pages_written, again.slot, again.replaced) == (0, 0, OLD)
    assert computes(Session(running, old.build_id))


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
    assert loader.write(1, content).pages == loader.write(1, content).pages_in_image == 4
    changed = content[:9000] + b"!" + content[9001:]
    assert loader.pages_that_differ(1, changed) == [2]
    assert loader.write(1, changed).pages == 1
    assert loader.pages_that_differ(1, changed) == []


def test_an_image_that_does_not_come_up_gives_way_to_the_old_one(
    running: FlashedBoard, built: Built, old: Update, key: Ed25519PrivateKey
) -> None:
    with pytest.raises(NpukitError, match="back at the one before"):
        flash(running, update_of(BOARD, built, NEW, key, build_id="ff" * 16))
    assert computes(Session(running, old.build_id))
    assert starts(running) == OLD


@pytest.mark.parametrize(
    ("version", "signed", "reason"),
    [(Version(0, 9), True, "older"), (NEW, False, "signed images only")],
)
def test_what_the_board_does_not_take_leaves_the_old_one_running(
    running: FlashedBoard,
    built: Built,
    old: Update,
    key: Ed25519PrivateKey,
    version: Version,
    signed: bool,
    reason: str,
) -> None:
    with pytest.raises(NpukitError, match=reason):
        flash(running, update_of(BOARD, built, version, key if signed else None))
    running.power_on()
    assert computes(Session(running, old.build_id))


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


@pytest.mark.parametrize("where", [0.0, 0.5, 1.0])
def test_power_cut_during_an_update_leaves_a_board_that_starts(
    running: FlashedBoard, built: Built, old: Update, key: Ed25519PrivateKey, where: float
) -> None:
    """Every step is tried in test_power_cuts.py; here some of them on the board itself."""
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
