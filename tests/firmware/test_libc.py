"""The memory functions against Python's bytes."""

from __future__ import annotations

import ctypes

import pytest
from hypothesis import given
from hypothesis import strategies as st

from firmware.host import host_library

SIZE = 48
places = st.integers(0, SIZE // 2)
sizes = st.integers(0, SIZE // 2)


@pytest.fixture(scope="module")
def libc(tmp_path_factory: pytest.TempPathFactory) -> ctypes.CDLL:
    return host_library(tmp_path_factory.mktemp("libc"), "libc/string.c")


@given(data=st.binary(min_size=SIZE, max_size=SIZE), to=places, start=places, size=sizes)
def test_memmove_moves_overlapping_bytes(libc: ctypes.CDLL, data: bytes, to: int, start: int, size: int) -> None:
    memory = ctypes.create_string_buffer(data, SIZE)
    address = ctypes.addressof(memory)
    libc.memmove(ctypes.c_void_p(address + to), ctypes.c_void_p(address + start), ctypes.c_size_t(size))
    assert memory.raw == data[:to] + data[start : start + size] + data[to + size :]


@given(data=st.binary(min_size=SIZE, max_size=SIZE), to=places, start=places, size=sizes)
def test_memcpy_copies(libc: ctypes.CDLL, data: bytes, to: int, start: int, size: int) -> None:
    source, target = ctypes.create_string_buffer(data, SIZE), ctypes.create_string_buffer(SIZE)
    end = ctypes.c_void_p(ctypes.addressof(target) + to), ctypes.c_void_p(ctypes.addressof(source) + start)
    libc.memcpy(*end, ctypes.c_size_t(size))
    assert target.raw == bytes(to) + data[start : start + size] + bytes(SIZE - to - size)


@given(to=places, size=sizes, value=st.integers(-128, 255))
def test_memset_sets(libc: ctypes.CDLL, to: int, size: int, value: int) -> None:
    memory = ctypes.create_string_buffer(SIZE)
    libc.memset(ctypes.c_void_p(ctypes.addressof(memory) + to), value, ctypes.c_size_t(size))
    assert memory.raw == bytes(to) + bytes([value & 0xFF]) * size + bytes(SIZE - to - size)


@given(
    pair=st.binary(max_size=SIZE).flatmap(lambda a: st.tuples(st.just(a), st.binary(min_size=len(a), max_size=len(a))))
)
def test_memcmp_orders_as_bytes_do(libc: ctypes.CDLL, pair: tuple[bytes, bytes]) -> None:
    left, right = pair
    assert libc.memcmp(left, right, ctypes.c_size_t(len(left))) == (left > right) - (left < right)
