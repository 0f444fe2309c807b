"""The provision record, which sets for good whose images a board takes (`docs/protocol.md`, section 7)."""

from __future__ import annotations

import hashlib
import struct
from dataclasses import dataclass
from enum import IntEnum

from npukit.boot.keys import fingerprint

RECORD_BYTES, COPIES = 64, 2

_RECORD = struct.Struct("<4sI32s24s")
_MAGIC = b"NPPR"
_POLICY_KEY = 0x3CA5965A
_POLICY_OPEN = _POLICY_KEY ^ 0xFFFF_FFFF
_NO_KEY = b"takes images without a signature"


class Policy(IntEnum):
    """Policies by which a board accepts images."""

    NONE = 0
    """Not provisioned: the board starts no image."""
    KEY = 1
    OPEN = 2
    DAMAGED = 3
    """Unreadable record: the board starts no image."""


@dataclass(frozen=True)
class Takes:
    """The images that a board accepts. With the policy KEY: images signed with `key` (32 bytes)."""

    policy: Policy
    key: bytes | None = None

    def __str__(self) -> str:
        if self.key:
            return f"images signed with key {fingerprint(self.key)} alone"
        return "any image, signed or not" if self.policy is Policy.OPEN else "no image"

    def record(self) -> bytes:
        """The record's bytes; empty for the policy NONE."""
        if self.policy is Policy.NONE:
            return b""
        fields = _MAGIC + struct.pack("<I", _POLICY_KEY if self.key else _POLICY_OPEN) + (self.key or _NO_KEY)
        return fields + hashlib.sha256(fields).digest()[: RECORD_BYTES - len(fields)]


def takes_of(public_key: bytes | None) -> Takes:
    """Provision for images signed with this key alone; without a key, for any image."""
    return Takes(Policy.KEY, public_key) if public_key else Takes(Policy.OPEN)


def read_takes(records: bytes) -> Takes:
    """Decode a board's provision from the copies of the record."""
    for at in range(0, COPIES * RECORD_BYTES, RECORD_BYTES):
        record = records[at : at + RECORD_BYTES]
        key = _RECORD.unpack(record)[2]
        for takes in (Takes(Policy.KEY, key), Takes(Policy.OPEN)):
            if record == takes.record():
                return takes
    return Takes(Policy.DAMAGED if records.strip(b"\xff") else Policy.NONE)
