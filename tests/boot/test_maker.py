"""Builds signed by their maker: the user must trust a maker once, and afterwards builds of other makers are refused."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from typer.testing import CliRunner

from end_to_end.builds import DIGITS, shared_build
from npukit import api
from npukit.boot.keys import load_key, new_key, public_bytes
from npukit.boot.maker import SIGNATURE, check_maker, maker_of, trusted_makers
from npukit.cli.main import app
from npukit.errors import NpukitError
from npukit.project.build_folder import Build


@pytest.fixture(scope="module")
def unsigned(tmp_path_factory: pytest.TempPathFactory) -> Build:
    return shared_build(DIGITS / "digits_int8.tflite", tmp_path_factory.mktemp("maker") / "out", pes=1)


@pytest.fixture
def key(tmp_path: Path) -> Path:
    new_key(tmp_path / "key.pem")
    return tmp_path / "key.pem"


@pytest.fixture
def signed(unsigned: Build, key: Path, tmp_path: Path) -> Build:
    copy = api.load(Path(shutil.copytree(unsigned.folder, tmp_path / "signed")))
    api.sign(copy, key)
    return copy


@pytest.fixture(autouse=True)
def config(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    return trusted_makers()


def test_trust_is_asked_for_once_and_then_nothing_else_is_taken(
    unsigned: Build, signed: Build, key: Path, config: Path, tmp_path: Path
) -> None:
    public = public_bytes(load_key(key)).hex()
    check_maker(unsigned)
    with pytest.raises(NpukitError, match=f"a maker whom you do not trust yet: {public}") as raised:
        check_maker(signed)
    assert "--trust" in raised.value.tries[0]
    assert not config.exists()
    check_maker(signed, trust=True)
    check_maker(signed)
    assert config.read_text() == f"{public}\n"
    for trust in (False, True):
        with pytest.raises(NpukitError, match="is not signed"):
            check_maker(unsigned, trust=trust)
    other = api.load(Path(shutil.copytree(unsigned.folder, tmp_path / "other")))
    new_key(tmp_path / "other.pem")
    api.sign(other, tmp_path / "other.pem")
    with pytest.raises(NpukitError, match="do not trust yet"):
        check_maker(other)
    check_maker(other, trust=True)
    check_maker(signed)


def in_signature(**fields: str) -> Callable[[Path], object]:
    def change(folder: Path) -> None:
        told = json.loads((folder / SIGNATURE).read_text())
        (folder / SIGNATURE).write_text(json.dumps({**told, **fields}))

    return change


def in_manifest(folder: Path) -> None:
    path = folder / "npukit.json"
    path.write_text(path.read_text().replace('"npukit": "', '"npukit": "1'))


def linked(folder: Path) -> None:
    shutil.move(folder / SIGNATURE, folder.parent / SIGNATURE)
    (folder / SIGNATURE).symlink_to(folder.parent / SIGNATURE)


@pytest.mark.parametrize(
    "change",
    [
        in_manifest,
        in_signature(signature="00" * 64),
        in_signature(signature=""),
        in_signature(key="11" * 32),
        in_signature(key="no hex"),
        in_signature(key="00"),
        lambda folder: (folder / SIGNATURE).write_text("[" * 1000),
        lambda folder: (folder / SIGNATURE).write_text("1" * 10_000),
        lambda folder: (folder / SIGNATURE).write_text("{}"),
        lambda folder: (folder / SIGNATURE).write_bytes(b"\xff"),
        linked,
    ],
)
def test_a_signature_that_is_none_is_refused_whoever_is_trusted(
    signed: Build, change: Callable[[Path], object]
) -> None:
    check_maker(signed, trust=True)
    change(signed.folder)
    with pytest.raises(NpukitError, match=f"{SIGNATURE} is"):
        check_maker(api.load(signed.folder), trust=True)


def test_what_was_changed_by_hand_is_nobodys(signed: Build) -> None:
    assert maker_of(signed)
    assert maker_of(replace(signed, modified=("project/net/net.c",))) is None


@pytest.mark.exhaustive
def test_build_signs_and_flash_asks(key: Path, config: Path, tmp_path: Path) -> None:
    words = ["build", str(DIGITS / "digits_int8.tflite"), "--pes", "1", "--sign", str(key), "-o", str(tmp_path / "out")]
    assert CliRunner().invoke(app, words).exit_code == 0
    flashed = ["flash", str(tmp_path / "out"), "--port", "emulator", "--dry-run"]
    assert CliRunner().invoke(app, flashed).exit_code == 1
    assert CliRunner().invoke(app, [*flashed, "--trust"]).exit_code == 0
    assert len(config.read_text().split()) == 1
