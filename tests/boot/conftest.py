"""The loader's C for this machine, compiled once per process."""

from __future__ import annotations

from pathlib import Path

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from boot.native import Device, compile_device, small_board
from npukit.boot.keys import public_bytes
from npukit.boot.provision import takes_of


@pytest.fixture(scope="session")
def library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return compile_device(small_board(), tmp_path_factory.mktemp("loader"))


@pytest.fixture(scope="session")
def key() -> Ed25519PrivateKey:
    return Ed25519PrivateKey.generate()


@pytest.fixture
def device(library: Path, key: Ed25519PrivateKey) -> Device:
    """A board with a key and an empty flash."""
    return Device(library, small_board(), takes_of(public_bytes(key)).record())
