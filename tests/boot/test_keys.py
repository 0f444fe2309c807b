"""Private keys in files: permissions and passphrases."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from typer.testing import CliRunner

from helpers import need
from npukit.boot.keys import PASSPHRASE_VARIABLE, load_key, new_key, public_bytes
from npukit.cli.main import app
from npukit.errors import NpukitError


@pytest.fixture(autouse=True)
def no_passphrase(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(PASSPHRASE_VARIABLE, raising=False)


@pytest.mark.parametrize("mode", [0o640, 0o604, 0o620, 0o666])
def test_a_key_that_others_may_read_or_write_is_refused(mode: int, tmp_path: Path) -> None:
    path = tmp_path / "key.pem"
    key = new_key(path)
    assert public_bytes(load_key(path)) == public_bytes(key)
    path.chmod(mode)
    with pytest.raises(NpukitError, match="others may read") as error:
        load_key(path)
    assert error.value.tries[0].startswith(f"chmod 600 {path}")


def test_an_encrypted_key_is_opened_with_its_passphrase_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "key.pem"
    key = new_key(path, "open sesame")
    path.chmod(0o644)
    assert b"ENCRYPTED" in path.read_bytes()
    with pytest.raises(NpukitError, match="encrypted, and there is no passphrase"):
        load_key(path)
    with pytest.raises(NpukitError, match="cannot be opened with this passphrase"):
        load_key(path, lambda _: "open barley")
    assert public_bytes(load_key(path, lambda _: "open sesame")) == public_bytes(key)
    monkeypatch.setenv(PASSPHRASE_VARIABLE, "open sesame")
    assert public_bytes(load_key(path)) == public_bytes(key)


def test_openssl_opens_an_encrypted_key(tmp_path: Path) -> None:
    need("openssl")
    key = new_key(tmp_path / "key.pem", "open sesame")
    command = [
        "openssl",
        "pkey",
        "-in",
        tmp_path / "key.pem",
        "-passin",
        "pass:open sesame",
        "-pubout",
        "-outform",
        "DER",
    ]
    assert subprocess.run(command, capture_output=True, check=True).stdout[-32:] == public_bytes(key)


def test_new_key_encrypts_with_what_the_environment_says(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    words = ["new", "key", "-o", str(tmp_path / "key.pem"), "--encrypt"]
    done = CliRunner().invoke(app, words)
    assert done.exit_code == 1
    assert not (tmp_path / "key.pem").exists()
    monkeypatch.setenv(PASSPHRASE_VARIABLE, "open sesame")
    assert CliRunner().invoke(app, words).exit_code == 0
    load_key(tmp_path / "key.pem")
