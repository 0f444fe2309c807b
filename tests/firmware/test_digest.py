"""Digest of loaded memory: firmware and host compute the same, and the documented changes are detected."""

from __future__ import annotations

import ctypes
import random
import subprocess

import pytest

from helpers import HOST_COMPILER
from npukit.data import data_folder
from npukit.project.images.regions import FACTOR, digest, word_of

MODULUS = FACTOR * 2**32 - 1
WITNESSES = (2, 3, 5, 7, 11, 13, 17, 19, 23, 29, 31, 37)
"""Witnesses of the Miller-Rabin test: enough for all numbers below 3.3e24."""


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> ctypes.CDLL:
    path, rpc = tmp_path_factory.mktemp("digest") / "digest.so", data_folder("firmware") / "rpc"
    subprocess.run(
        [*HOST_COMPILER, "-std=c11", "-O1", "-fPIC", "-shared", f"-I{rpc}", rpc / "digest.c", "-o", path], check=True
    )
    loaded = ctypes.CDLL(str(path))
    loaded.digest_update.restype = ctypes.c_uint64
    return loaded


def test_firmware_and_host_agree_at_every_length(library: ctypes.CDLL) -> None:
    for size in range(130):
        data = random.Random(size).randbytes(size)
        assert library.digest_update(ctypes.c_uint64(1), data, size) == digest(data)
    large = bytes([0xFF]) * 40_000
    assert library.digest_update(ctypes.c_uint64(1), large, len(large)) == digest(large)


def is_prime(number: int) -> bool:
    odd = (number - 1) // (power := (number - 1) & -(number - 1))
    for witness in WITNESSES:
        value = pow(witness, odd, number)
        squares = [value]
        while len(squares) < power.bit_length():
            squares.append(squares[-1] ** 2 % number)
        if squares[-1] != 1 or not (squares[0] == 1 or number - 1 in squares):
            return False
    return True


def test_the_modulus_is_a_safe_prime_above_2_to_the_63() -> None:
    """With a safe prime, powers of 2 repeat after 2^62 bits at the earliest: no two flipped bits cancel."""
    assert is_prime(MODULUS)
    assert is_prime((MODULUS - 1) // 2)
    assert MODULUS > 2**63


def test_every_flipped_bit_and_any_two_change_the_digest() -> None:
    data = random.Random(1).randbytes(256)
    whole, bits = int.from_bytes(data, "little"), range(8 * len(data))

    def of(number: int) -> int:
        return digest(number.to_bytes(len(data), "little"))

    assert of(whole) not in {of(whole ^ 1 << bit) for bit in bits}
    two = random.Random(2)
    for _ in range(2000):
        assert of(whole ^ 1 << two.choice(bits)) != of(whole)
        first, second = two.sample(bits, 2)
        assert of(whole ^ 1 << first ^ 1 << second) != of(whole)


def test_the_digest_of_a_word_says_the_word() -> None:
    assert word_of(digest(b"\x78\x56\x34\x12")) == 0x12345678
