"""Ed25519 keys in PEM files, in the format of imgtool and OpenSSL."""

from __future__ import annotations

import os
import stat
from collections.abc import Callable
from pathlib import Path

from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import (
    BestAvailableEncryption,
    Encoding,
    NoEncryption,
    PrivateFormat,
    PublicFormat,
    load_pem_private_key,
)

from npukit.errors import NpukitError

PASSPHRASE_VARIABLE = "NPUKIT_KEY_PASSPHRASE"
_ONLY_FOR_ITS_OWNER = 0o600
_ANOTHER = "npukit new key -o key.pem"


def new_key(path: Path, passphrase: str | None = None) -> Ed25519PrivateKey:
    """Write a new key to a new file, readable by the owner alone and encrypted if there is a passphrase. An existing
    file is never overwritten."""
    key = Ed25519PrivateKey.generate()
    encryption = BestAvailableEncryption(passphrase.encode()) if passphrase else NoEncryption()
    pem = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, encryption)
    try:
        file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, _ONLY_FOR_ITS_OWNER)
    except FileExistsError as error:
        raise NpukitError(f"{path} exists; a key is never overwritten", tries=["another file with -o"]) from error
    except OSError as error:
        raise NpukitError(f"{path} cannot be written: {error.strerror}") from error
    with os.fdopen(file, "wb") as stream:
        stream.write(pem)
    return key


def load_key(path: Path, ask: Callable[[Path], str] | None = None) -> Ed25519PrivateKey:
    """The private key in a PEM file. An encrypted key is decrypted with the passphrase in NPUKIT_KEY_PASSPHRASE, else
    with the answer of `ask`. An unencrypted key in a file readable by others than its owner is refused, as by ssh."""
    try:
        pem = path.read_bytes()
        mode = path.stat()
    except OSError as error:
        raise NpukitError(f"key {path} cannot be read: {error.strerror}", tries=[_ANOTHER]) from error
    if b"ENCRYPTED" in pem:
        key = _parse(path, pem, _passphrase(path, ask))
    else:
        others = stat.S_IMODE(mode.st_mode) & 0o077  # a key that others may read may be no secret
        if os.name == "posix" and mode.st_uid == os.getuid() and others:
            raise NpukitError(
                f"{path} is a private key that others may read (mode {stat.S_IMODE(mode.st_mode):03o})",
                tries=[f"chmod 600 {path}, if nobody has read it", f"{_ANOTHER} --encrypt"],
            )
        key = _parse(path, pem, None)
    if not isinstance(key, Ed25519PrivateKey):
        raise NpukitError(f"the key in {path} is not an Ed25519 key", tries=[_ANOTHER])
    return key


def public_bytes(key: Ed25519PrivateKey) -> bytes:
    """The raw public key, 32 bytes, as boards store it."""
    return key.public_key().public_bytes(Encoding.Raw, PublicFormat.Raw)


def public_der(key: Ed25519PrivateKey) -> bytes:
    return key.public_key().public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo)


def fingerprint(public_key: bytes) -> str:
    """First 16 hexadecimal digits of a public key, for people to tell keys apart."""
    return public_key.hex()[:16]


def _parse(path: Path, pem: bytes, passphrase: str | None) -> object:
    try:
        return load_pem_private_key(pem, passphrase.encode() if passphrase else None)
    except (ValueError, TypeError, UnsupportedAlgorithm) as error:
        fact = "cannot be opened with this passphrase" if passphrase else "is not a private key in PEM"
        raise NpukitError(f"{path} {fact}", tries=[_ANOTHER]) from error


def _passphrase(path: Path, ask: Callable[[Path], str] | None) -> str:
    given = os.environ.get(PASSPHRASE_VARIABLE) or (ask(path) if ask else "")
    if not given:
        raise NpukitError(
            f"{path} is encrypted, and there is no passphrase",
            tries=["on a terminal, where it is asked for", f"{PASSPHRASE_VARIABLE}=... in the environment"],
        )
    return given
