"""Ed25519 keys in PEM files, as imgtool and OpenSSL write them too."""

from __future__ import annotations

import os
from pathlib import Path

from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    PublicFormat,
    load_pem_private_key,
)

from npukit.errors import NpukitError

_ONLY_FOR_ITS_OWNER = 0o600


def new_key(path: Path) -> Ed25519PrivateKey:
    """A new key in a new file that only its owner can read. A file that is there is never overwritten."""
    key = Ed25519PrivateKey.generate()
    pem = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    try:
        file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, _ONLY_FOR_ITS_OWNER)
    except FileExistsError as error:
        raise NpukitError(f"{path} exists; a key is never overwritten", tries=["another file with -o"]) from error
    except OSError as error:
        raise NpukitError(f"{path} cannot be written: {error.strerror}") from error
    with os.fdopen(file, "wb") as stream:
        stream.write(pem)
    return key


def load_key(path: Path) -> Ed25519PrivateKey:
    """The private key in a PEM file."""
    try:
        key = load_pem_private_key(path.read_bytes(), None)
    except OSError as error:
        raise NpukitError(
            f"key {path} cannot be read: {error.strerror}", tries=["npukit new key -o key.pem"]
        ) from error
    except (ValueError, TypeError, UnsupportedAlgorithm) as error:
        raise NpukitError(
            f"{path} is not a private key without a password, in PEM", tries=["npukit new key -o key.pem"]
        ) from error
    if not isinstance(key, Ed25519PrivateKey):
        raise NpukitError(f"the key in {path} is not an Ed25519 key", tries=["npukit new key -o key.pem"])
    return key


def public_bytes(key: Ed25519PrivateKey) -> bytes:
    """The 32 bytes that a board knows a key by."""
    return key.public_key().public_bytes(Encoding.Raw, PublicFormat.Raw)


def public_der(key: Ed25519PrivateKey) -> bytes:
    return key.public_key().public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo)
