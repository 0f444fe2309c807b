"""MCUboot's image format around a mesh image: header, digest, signature. imgtool verifies what this writes."""

from __future__ import annotations

import hashlib
import re
import struct
from dataclasses import dataclass
from typing import Any

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from npukit.boot.keys import public_der
from npukit.errors import NpukitError

_MAGIC = 0x96F3B83D
_HEADER = struct.Struct("<IIHHIIBBHII")
_TLV_INFO = struct.Struct("<HH")
_TLV_INFO_MAGIC = 0x6907
_KEY_HASH, _SHA256, _ED25519 = 0x01, 0x10, 0x24


@dataclass(frozen=True, order=True)
class Version:
    """Images are older or newer by it, in this order."""

    major: int = 0
    minor: int = 0
    revision: int = 0
    build: int = 0

    def __str__(self) -> str:
        return f"{self.major}.{self.minor}.{self.revision}+{self.build}"

    def pack(self) -> bytes:
        return struct.pack("<BBHI", self.major, self.minor, self.revision, self.build)

    @classmethod
    def unpack(cls, data: bytes) -> Version:
        return cls(*struct.unpack("<BBHI", data))

    @classmethod
    def parse(cls, text: str) -> Version:
        """`1.2`, `1.2.3` or `1.2.3+4`."""
        match = re.fullmatch(r"(\d+)\.(\d+)(?:\.(\d+))?(?:\+(\d+))?", text)
        version = cls(*(int(part or 0) for part in match.groups())) if match else None
        if version is None or not version._fits():
            raise NpukitError(
                f"{text} is no version of an image",
                tries=["MAJOR.MINOR.REVISION+BUILD, up to 255.255.65535+4294967295; the last two may be left out"],
            )
        return version

    def _fits(self) -> bool:
        limits = (0xFF, 0xFF, 0xFFFF, 0xFFFF_FFFF)
        parts = (self.major, self.minor, self.revision, self.build)
        return all(part <= limit for part, limit in zip(parts, limits, strict=True))


@dataclass(frozen=True)
class SignedImage:
    """What goes into a slot."""

    data: bytes
    digest: bytes
    version: Version
    signed: bool


def sign_image(payload: bytes, version: Version, key: Ed25519PrivateKey | None) -> SignedImage:
    """The payload with MCUboot's header and trailer; without a key it has a digest only."""
    body = _header(len(payload), version) + payload
    digest = hashlib.sha256(body).digest()
    trailer = _tlv(_SHA256, digest)
    if key is not None:
        trailer += _tlv(_KEY_HASH, hashlib.sha256(public_der(key)).digest()) + _tlv(_ED25519, key.sign(digest))
    info = _TLV_INFO.pack(_TLV_INFO_MAGIC, _TLV_INFO.size + len(trailer))
    return SignedImage(body + info + trailer, digest, version, key is not None)


def _header(payload_bytes: int, version: Version) -> bytes:
    load_address = protected_bytes = flags = padding = 0
    parts: tuple[Any, ...] = (version.major, version.minor, version.revision, version.build)
    return _HEADER.pack(_MAGIC, load_address, _HEADER.size, protected_bytes, payload_bytes, flags, *parts, padding)


def _tlv(kind: int, value: bytes) -> bytes:
    return struct.pack("<HH", kind, len(value)) + value
