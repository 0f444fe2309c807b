"""MCUboot's own tool and npukit read each other's images."""

from __future__ import annotations

import hashlib
import shutil
import subprocess
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from boot.native import Device, compile_device, small_board, tiny_mesh
from npukit.boot.keys import load_key, new_key, public_bytes
from npukit.boot.provision import takes_of
from npukit.boot.signed_image import Version, sign_image

GOOD, FORGED = 0, 6
PAYLOAD = tiny_mesh(small_board(), bytes(range(200)))


def imgtool(*words: object) -> subprocess.CompletedProcess[str]:
    program = shutil.which("imgtool")
    if program is None:
        pytest.skip("imgtool is not installed (pip install imgtool)")
    return subprocess.run([program, *map(str, words)], capture_output=True, text=True, timeout=60, check=False)


def sha256_of(image: bytes) -> bytes:
    """Digest in an image's trailer: the SHA-256 of all bytes before the trailer."""
    end = 32 + int.from_bytes(image[12:16], "little") + int.from_bytes(image[10:12], "little")
    return hashlib.sha256(image[:end]).digest()


@pytest.mark.parametrize("security_counter", [0, 7])
def test_imgtool_verifies_npukits_images(security_counter: int, tmp_path: Path) -> None:
    image = sign_image(PAYLOAD, Version(1, 2, 3, 4), new_key(tmp_path / "key.pem"), security_counter)
    (tmp_path / "image").write_bytes(image.data)
    new_key(tmp_path / "other.pem")
    done = imgtool("verify", "-k", tmp_path / "key.pem", tmp_path / "image")
    assert done.returncode == 0, done.stderr
    assert "1.2.3+4" in done.stdout
    assert image.digest.hex() in done.stdout
    assert imgtool("verify", "-k", tmp_path / "other.pem", tmp_path / "image").returncode != 0


@pytest.mark.parametrize("counter", [(), ("--security-counter", 7)])
def test_the_loader_takes_what_imgtool_signs_with_a_key_of_its_own(counter: tuple[object, ...], tmp_path: Path) -> None:
    key, payload, signed = (tmp_path / name for name in ("key.pem", "payload", "signed"))
    payload.write_bytes(PAYLOAD)
    assert imgtool("keygen", "-k", key, "-t", "ed25519").returncode == 0
    layout = ("--header-size", 32, "--pad-header", "--slot-size", 65536, "--align", 4, "--version", "1.2.3+4")
    key.chmod(0o600)
    assert imgtool("sign", "-k", key, *layout, *counter, payload, signed).returncode == 0
    library = compile_device(small_board(), tmp_path)
    for public, verdict in (
        (public_bytes(load_key(key)), GOOD),
        (public_bytes(Ed25519PrivateKey.generate()), FORGED),
    ):
        device = Device(library, small_board(), takes_of(public).record())
        device.place(1, signed.read_bytes())
        assert device.verdict(1) == verdict
        if verdict == GOOD and counter:
            assert device.put_on_trial(1, sha256_of(signed.read_bytes())) == 0
            assert device.start().slot == 1
            assert device.confirm()
            device.start()
            assert device.security_counter == 7
