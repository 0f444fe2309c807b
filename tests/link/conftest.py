from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from link.device_process import Pipes, build_device


@pytest.fixture(scope="session")
def device_program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build_device(tmp_path_factory.mktemp("device"))


@pytest.fixture
def pipes(device_program: Path) -> Iterator[Pipes]:
    transport = Pipes(device_program)
    yield transport
    transport.close()
