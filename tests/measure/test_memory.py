"""Memory changed since loading is named: PE, region, word."""

from __future__ import annotations

import random
from collections.abc import Iterator
from contextlib import closing
from itertools import chain
from pathlib import Path
from struct import pack
from typing import cast

import pytest

from end_to_end.builds import shared_build
from helpers import CHECKOUT
from npukit import api
from npukit.emulator.builtin import Emulator
from npukit.errors import Differs
from npukit.link.session import Session
from npukit.measure.memory import _regions, check_memory
from npukit.project.build_folder import Build
from npukit.project.images.regions import LoadedRegion, digest, step_kinds

DIGITS = CHECKOUT / "examples" / "digits" / "digits_int8.tflite"


@pytest.fixture(scope="module")
def build(tmp_path_factory: pytest.TempPathFactory) -> Build:
    return shared_build(DIGITS, tmp_path_factory.mktemp("digits") / "digits", pes=4)


@pytest.fixture(scope="module")
def board(build: Build) -> Iterator[tuple[Emulator, Session]]:
    with closing(Emulator(build.board, build.images(), build.models(), build.dram() or b"")) as emulator:
        session = Session(emulator, build.build_id)
        session.open()
        yield emulator, session


@pytest.mark.exhaustive
def test_every_flipped_bit_is_named_with_its_pe_region_and_word(build: Build, board: tuple[Emulator, Session]) -> None:
    """Flips a bit in each region of each PE, except in the root's code. The board still answers: the flipped code does
    not run."""
    emulator, session = board
    regions, chance = list(chain(*_regions(build))), random.Random(5)
    assert {region.name for region in regions} == {"code", "constants", "own data"}
    assert check_memory(session, build) == sum(len(region.data) for region in regions)
    for region in regions:
        if (region.pe, region.name) == (0, "code"):
            continue
        at = chance.randrange(len(region.data))
        address, (good,) = region.address + at, emulator.read_memory(region.pe, region.address + at, 1)
        emulator.write_memory(region.pe, address, bytes([good ^ 1 << chance.randrange(8)]))
        with pytest.raises(Differs, match=f"the {region.name} of PE {region.pe} is .* {address & ~3:#x} ") as raised:
            check_memory(session, build)
        assert raised.value.tries
        emulator.write_memory(region.pe, address, bytes([good]))
    check_memory(session, build)


class Memory:
    """A session with a PE whose memory holds `data`."""

    def __init__(self, data: bytes) -> None:
        self._data = data

    def digest(self, address: int, count: int, pe: int) -> int:
        del pe
        return digest(self._data[address : address + count])


def test_a_table_may_write_many_words_into_commands(monkeypatch: pytest.MonkeyPatch) -> None:
    """Rows that write a word each, before the row that starts the command behind them."""
    count, patch, run = 100, step_kinds()["NET_PATCH"], step_kinds()["NET_RUN"]
    rows = b"".join(pack("<BBHI", patch, word, 0, 0x1000 + word) for word in range(count))
    rows += pack("<BBHI", run, 0, 0, len(rows) + 8)
    region = LoadedRegion(3, "PE 3", "own data", 0, rows + bytes(4 * count))
    monkeypatch.setattr("npukit.measure.memory._regions", lambda build: [[region]])
    written = rows + b"".join(pack("<I", 0x1000 + word) for word in range(count))
    assert check_memory(cast(Session, Memory(written)), cast(Build, None)) == len(region.data)
    with pytest.raises(Differs, match="own data of PE 3"):
        check_memory(cast(Session, Memory(written[:-1] + b"\1")), cast(Build, None))


@pytest.mark.exhaustive
def test_run_names_weights_that_flipped_meanwhile(build: Build, tmp_path: Path) -> None:
    region = next(region for region in chain(*_regions(build)) if (region.pe, region.name) == (2, "constants"))
    (tmp_path / "faults.toml").write_text(
        f'[[fault]]\nkind = "flip sram"\npe = 2\naddress = {region.address + 100}\nbit = 0\nat = 1000\n'
    )
    with pytest.raises(Differs, match="the constants of PE 2 is not what was loaded"):
        api.run(build, faults=tmp_path / "faults.toml")
