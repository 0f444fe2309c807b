"""MCUboot's image format around a mesh image: header, security counter, digest, signature. imgtool can verify it."""

from __future__ import annotations

import hashlib
import re
import struct
from dataclasses import astuple, dataclass

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from npukit.boot.keys import public_bytes, public_der
from npukit.errors import NpukitError

_MAGIC = 0x96F3B83D
_HEADER = struct.Struct("<IIHHIIBBHII")
_TLV_INFO = struct.Struct("<HH")
_TLV_INFO_MAGIC, _PROTECTED_MAGIC = 0x6907, 0x6908
_KEY_HASH, _SHA256, _ED25519, _SECURITY_COUNTER = 0x01, 0x10, 0x24, 0x50
_LARGEST_COUNTER = 0xFFFF_FFFF
_LARGEST_VERSION = (0xFF, 0xFF, 0xFFFF, 0xFFFF_FFFF)


@dataclass(frozen=True, order=True)
class Version:
    """Version of an image. Versions compare as older or newer."""

    major: int = 0
    minor: int = 0
    revision: int = 0
    build: int = 0

    def __str__(self) -> str:
        return f"{self.major}.{self.minor}.{self.revision}+{self.build}"

    def pack(self) -> bytes:
        return struct.pack("<BBHI", *astuple(self))

    @classmethod
    def unpack(cls, data: bytes) -> Version:
        return cls(*struct.unpack("<BBHI", data))

    @classmethod
    def parse(cls, text: str) -> Version:
        """Parse `1.2`, `1.2.3` or `1.2.3+4`."""
        match = re.fullmatch(r"(\d+)\.(\d+)(?:\.(\d+))?(?:\+(\d+))?", text)
        parts = [int(part or 0) for part in match.groups()] if match else []
        if not parts or any(part > most for part, most in zip(parts, _LARGEST_VERSION, strict=True)):
            raise NpukitError(
                f"{text} is no version of an image",
                tries=["MAJOR.MINOR.REVISION+BUILD, up to 255.255.65535+4294967295; the last two may be left out"],
            )
        return cls(*parts)


@dataclass(frozen=True)
class SignedImage:
    """An image for a slot. `signer`: the public key of its signature; None if unsigned."""

    data: bytes
    digest: bytes
    version: Version
    signer: bytes | None
    security_counter: int = 0


def sign_image(
    payload: bytes, version: Version, key: Ed25519PrivateKey | None, security_counter: int = 0
) -> SignedImage:
    """The payload with MCUboot's header and trailers; without a key, with a digest alone. A security counter of 0 is
    left out."""
    if not 0 <= security_counter <= _LARGEST_COUNTER:
        raise NpukitError(f"{security_counter} is no security counter", tries=[f"0 to {_LARGEST_COUNTER}"])
    counter = _tlv(_SECURITY_COUNTER, struct.pack("<I", security_counter)) if security_counter else b""
    protected = _tlvs(_PROTECTED_MAGIC, counter) if counter else b""
    load_address = flags = padding = 0
    sizes = (_HEADER.size, len(protected), len(payload), flags)
    header = _HEADER.pack(_MAGIC, load_address, *sizes, *astuple(version), padding)
    body = header + payload + protected
    digest = hashlib.sha256(body).digest()
    trailer = _tlv(_SHA256, digest)
    if key is not None:
        trailer += _tlv(_KEY_HASH, hashlib.sha256(public_der(key)).digest()) + _tlv(_ED25519, key.sign(digest))
    signer = public_bytes(key) if key else None
    return SignedImage(body + _tlvs(_TLV_INFO_MAGIC, trailer), digest, version, signer, security_counter)


def _tlvs(magic: int, tlvs: bytes) -> bytes:
    return _TLV_INFO.pack(magic, _TLV_INFO.size + len(tlvs)) + tlvs


def _tlv(kind: int, value: bytes) -> bytes:
    return struct.pack("<HH", kind, len(value)) + value
