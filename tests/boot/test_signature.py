"""The loader's SHA-256 and Ed25519, compiled for this machine and for the board's core."""

from __future__ import annotations

import ctypes
import hashlib
import random
import re
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey

from npukit.board.board import load_board
from npukit.boot.loader import SIGNATURE
from npukit.data import data_folder
from npukit.project.zig import compile_zig

PRIME, ORDER = 2**255 - 19, 2**252 + 27742317777372353535851937790883648493
SIGN_BIT = 1 << 255
CORE = load_board("pe-mesh").core.type.zig.split()
SOURCE = data_folder("firmware") / SIGNATURE

RFC_8032 = [  # section 7.1: key, message, signature
    (
        "d75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a",
        "",
        "e5564300c360ac729086e2cc806e828a84877f1eb8e5d974d873e065224901555fb8821590a33bacc61e39701cf9b46bd25bf5f0595bbe"
        "24655141438e7a100b",
    ),
    (
        "3d4017c3e843895a92b70aa74d1b7ebc9c982ccf2ec4968cc0cd55f12af4660c",
        "72",
        "92a009a9f0d4cab8720e820b5f642540a2b27b5416503f8fb3762223ebdb69da085ac1e43e15996e458f3613d0f11d8c387b2eaeb4302a"
        "eeb00d291612bb0c00",
    ),
    (
        "fc51cd8e6218a1a38da47ed00230f0580816ed13ba3303ac5deb911548908025",
        "af82",
        "6291d657deec24024827e69c3abe01a30ce548a284743a445e3680d7db5ac3ac18ff9b538d16f290ae67f760984dc6594a7c15e9716ed2"
        "8dc027beceea1ec40a",
    ),
]


class Native:
    """`signature.h` on this machine."""

    def __init__(self, library: Path) -> None:
        self.library = ctypes.CDLL(str(library))
        self.library.signature_is_good.restype = ctypes.c_bool

    def accepts(self, key: bytes, message: bytes, signature: bytes) -> bool:
        assert (len(key), len(signature)) == (32, 64)
        return self.library.signature_is_good(signature, key, message, len(message))

    def digest(self, data: bytes) -> bytes:
        digest = ctypes.create_string_buffer(32)
        self.library.digest_of(data, len(data), digest)
        return digest.raw


@pytest.fixture(scope="session")
def native(library: Path) -> Native:
    return Native(library)


def openssl_accepts(key: bytes, message: bytes, signature: bytes) -> bool:
    try:
        Ed25519PublicKey.from_public_bytes(key).verify(signature, message)
    except InvalidSignature:
        return False
    return True


def signed(number: int) -> tuple[bytes, bytes, bytes]:
    """A key, a message and its signature, derived from a number."""
    chance = random.Random(number)
    key = Ed25519PrivateKey.from_private_bytes(chance.randbytes(32))
    message = chance.randbytes(number)
    return key.public_key().public_bytes_raw(), message, key.sign(message)


def number_of(encoded: bytes) -> int:
    return int.from_bytes(encoded, "little")


def encoded(number: int) -> bytes:
    return number.to_bytes(32, "little")


def test_the_standards_own_signatures_are_good(native: Native) -> None:
    for key, message, signature in RFC_8032:
        assert native.accepts(bytes.fromhex(key), bytes.fromhex(message), bytes.fromhex(signature))


def test_what_openssl_signs_is_good_and_good_for_that_message_alone(native: Native) -> None:
    for number in range(0, 300, 3):
        key, message, signature = signed(number)
        assert native.accepts(key, message, signature)
        assert not native.accepts(key, message + b"\0", signature)
        assert not native.accepts(signed(number + 1)[0], message, signature)


def test_no_bit_of_a_signature_its_key_or_its_message_can_be_another(native: Native) -> None:
    parts = signed(32)
    for part, content in enumerate(parts):
        for bit in range(8 * len(content)):
            changed = [*parts]
            changed[part] = (number_of(content) ^ 1 << bit).to_bytes(len(content), "little")
            assert not native.accepts(*changed), (part, bit)


@pytest.mark.parametrize("turns", range(1, 16))
def test_a_scalar_has_one_form(native: Native, turns: int) -> None:
    """RFC 8032, section 5.1.7: S is below the group's order. Otherwise a signature would have many forms."""
    key, message, signature = signed(32)
    scalar = number_of(signature[32:]) + turns * ORDER
    assert scalar < 1 << 256
    assert not native.accepts(key, message, signature[:32] + encoded(scalar))


def points_of_small_order() -> list[bytes]:
    """Encodings of the points, and their non-canonical encodings beyond the prime."""
    heights = [0, 1, PRIME - 1, *heights_of_order_8(), PRIME, PRIME + 1]
    return [encoded(height | sign) for height in heights for sign in (0, SIGN_BIT)]


def heights_of_order_8() -> Iterator[int]:
    """A doubled point of order 8 has y = 0. Hence x^2 = -y^2, and the curve's equation becomes d y^4 + 2 y^2 = 1."""
    constant = -121665 * pow(121666, -1, PRIME) % PRIME
    distance = square_root(1 + constant)
    for square in ((sign * distance - 1) * pow(constant, -1, PRIME) % PRIME for sign in (1, -1)):
        if pow(square, (PRIME - 1) // 2, PRIME) == 1:
            height = square_root(square)
            yield from (height, PRIME - height)


def square_root(square: int) -> int:
    found = pow(square, (PRIME + 3) // 8, PRIME)
    return found if (found * found - square) % PRIME == 0 else found * pow(2, (PRIME - 1) // 4, PRIME) % PRIME


def test_points_of_small_order_are_no_keys_and_no_commitments(native: Native) -> None:
    """With such a key a signature fits many messages: with S = 0 and R the key itself, one in eight."""
    points = points_of_small_order()
    assert len(set(points)) == 14
    for key in points:
        for commitment in points:
            for number in range(8):
                assert not native.accepts(key, bytes([number]), commitment + bytes(32))


def test_nothing_is_accepted_that_openssl_refuses(native: Native) -> None:
    """Extreme keys, commitments and scalars, in all combinations."""
    key, message, signature = signed(32)
    numbers = [0, 1, 2, PRIME - 1, PRIME, PRIME + 1, 2**255 - 1, ORDER - 1, ORDER, number_of(signature[32:])]
    corners = [encoded(number | sign) for number in numbers for sign in (0, SIGN_BIT)]
    accepted = 0
    for tried in ((a, message, r + s) for a in (*corners, key) for r in (*corners, signature[:32]) for s in corners):
        if native.accepts(*tried):
            accepted += 1
            assert openssl_accepts(*tried)
    assert accepted == 1, "the signature itself"


def test_digests_are_those_of_the_machines_own_library(native: Native) -> None:
    chance = random.Random(1)
    for size in (*range(200), 4095, 4096, 1 << 20):
        data = chance.randbytes(size)
        assert native.digest(data) == hashlib.sha256(data).digest(), size


@pytest.mark.exhaustive
def test_the_boards_object_says_nothing_of_the_machine_and_is_the_same_anywhere(tmp_path: Path) -> None:
    elsewhere = tmp_path / "a copy" / SOURCE.name
    elsewhere.parent.mkdir()
    shutil.copyfile(SOURCE, elsewhere)
    here = compile_zig(SOURCE, tmp_path, CORE).read_bytes()
    for number in range(4):  # with several jobs every third result differed
        folder = tmp_path / str(number)
        folder.mkdir()
        assert here == compile_zig(elsewhere, folder, CORE).read_bytes()
    assert str(tmp_path).encode() not in here
    assert not re.search(rb"\.debug|OUTLINED|[/\\]signature\.zig", here)
