"""Makers of builds: the signature of a build, and the makers trusted by a user."""

from __future__ import annotations

import json
import os
from pathlib import Path

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey

from npukit.boot.keys import public_bytes
from npukit.errors import NpukitError
from npukit.project.build_folder import MANIFEST, Build
from npukit.project.folder_files import plain_size, read_text
from npukit.writing import told_if_unwritable, write_file

SIGNATURE = "npukit.sig"
"""File with the maker's key and the signature of `npukit.json`, which contains the digests of all other files."""
_LONGEST = 1024


def sign_build(build: Build, key: Ed25519PrivateKey) -> None:
    """Write the signature of a build into the build's folder."""
    signature = key.sign((build.folder / MANIFEST).read_bytes())
    fields = {"key": public_bytes(key).hex(), "signature": signature.hex()}
    (build.folder / SIGNATURE).write_text(json.dumps(fields) + "\n", encoding="utf-8", newline="\n")


def maker_of(build: Build) -> str | None:
    """Public key of a build's maker, in hex. None if the build is unsigned or was changed by hand."""
    path = build.folder / SIGNATURE
    if build.modified or plain_size(build.folder, SIGNATURE) is None:
        return None
    try:
        fields = json.loads(read_text(path, _LONGEST))
        key, signature = bytes.fromhex(fields["key"]), bytes.fromhex(fields["signature"])
        Ed25519PublicKey.from_public_bytes(key).verify(signature, (build.folder / MANIFEST).read_bytes())
    except (OSError, ValueError, LookupError, TypeError, RecursionError, InvalidSignature) as error:
        raise NpukitError(
            f"{path} is not a signature of this build", tries=["get the build again from its maker", f"remove {path}"]
        ) from error
    return key.hex()


def trusted_makers() -> Path:
    """File with the keys of trusted makers, a key a line."""
    config = Path(os.environ.get("XDG_CONFIG_HOME") or Path.home() / ".config")
    return config / "npukit/trusted"


def check_maker(build: Build, *, trust: bool = False) -> None:
    """Refuse a build of an untrusted maker. `trust`: add the maker to the trusted makers instead. An unsigned build is
    accepted while the user trusts no makers."""
    maker, path = maker_of(build), trusted_makers()
    known = path.read_text(encoding="utf-8").split() if path.is_file() else []
    if maker is not None and maker not in known and trust:
        with told_if_unwritable(path):
            path.parent.mkdir(parents=True, exist_ok=True)
        write_file(path, "".join(f"{key}\n" for key in (*known, maker)))
    elif maker is None and known:
        raise NpukitError(
            f"{build.folder} is not signed, and only builds of makers in {path} are taken",
            tries=["npukit build --sign KEY.pem", f"remove {path}"],
        )
    elif maker is not None and maker not in known:
        raise NpukitError(
            f"{build.folder} is signed by a maker whom you do not trust yet: {maker}",
            tries=["ask the maker for that key; if it is the same, --trust, once for all builds of this maker"],
        )
