"""Builds whose firmware tests itself: a flipped bit in any region of any PE is an error with region and PE."""

from __future__ import annotations

import random
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest

from end_to_end.builds import DIGITS, build
from npukit import api
from npukit.emulator.builtin import Emulator
from npukit.emulator.flashed import FlashedBoard
from npukit.errors import NpukitError
from npukit.link.session import Session
from npukit.project.build_folder import Build
from npukit.project.images.elf import Elf
from npukit.project.images.regions import CODE, REGIONS, LoadedRegion, regions_of

UNUSED_VECTOR = 36
"""Offset of a byte in the code: the vector of an exception that never occurs."""
BYTES_A_FRAME = 64
EXPECTED = "self_test_expected"


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Build:
    folder = tmp_path_factory.mktemp("digits") / "out"
    return build(DIGITS / "digits_int8.tflite", folder, pes=4, self_test=True)


@contextmanager
def board(built: Build) -> Iterator[Emulator]:
    """A loaded board before its start."""
    with closing(Emulator(built.board, built.images(), built.models(), built.dram() or b"")) as emulator:
        yield emulator


def opened(built: Build, emulator: Emulator) -> Session:
    session = Session(emulator, built.build_id)
    session.open()
    return session


def regions(built: Build) -> list[LoadedRegion]:
    return [region for image in built.images() for pe in regions_of(image).values() for region in pe]


def flip(emulator: Emulator, region: LoadedRegion, chance: random.Random) -> None:
    at = region.address + (UNUSED_VECTOR if region.name == CODE else chance.randrange(len(region.data)))
    (good,) = emulator.read_memory(region.pe, at, 1)
    emulator.write_memory(region.pe, at, bytes([good ^ 1 << chance.randrange(8)]))


@pytest.mark.exhaustive
def test_it_is_exact_and_costs_little(built: Build) -> None:
    assert {region.name for region in regions(built)} == set(REGIONS)
    assert api.validate(built).passed


@pytest.mark.parametrize("pe", range(4))
@pytest.mark.parametrize("name", REGIONS)
def test_what_was_wrong_from_the_start_is_named(built: Build, name: str, pe: int) -> None:
    found = [region for region in regions(built) if (region.name, region.pe) == (name, pe)]
    for region in found:
        with board(built) as emulator:
            flip(emulator, region, random.Random(pe))
            with pytest.raises(NpukitError, match=f"the {name} of PE {pe} are not what was loaded"):
                opened(built, emulator).run()
    assert found or name != CODE


def frames_of_a_round(of_pe: list[LoadedRegion]) -> int:
    return sum(-(-len(region.data) // BYTES_A_FRAME) for region in of_pe) + len(REGIONS)


@pytest.mark.exhaustive
@pytest.mark.parametrize("pe", [0, 2])
def test_what_goes_wrong_meanwhile_is_named_within_a_round(built: Build, pe: int) -> None:
    of_pe = [region for region in regions(built) if region.pe == pe]
    most = frames_of_a_round(of_pe)
    for region in of_pe:
        with board(built) as emulator:
            session = opened(built, emulator)
            session.run(frames=3)
            flip(emulator, region, random.Random(pe))
            with pytest.raises(NpukitError, match=f"the {region.name} of PE {pe} are not what was loaded"):
                session.run(frames=2 * most)
            (state,) = (state for state in session.pes() if state.pe == pe)
            assert state.frames <= 3 + 2 * most


@pytest.mark.exhaustive
def test_a_loader_that_brings_no_digests_leaves_those_of_the_first_frame(built: Build) -> None:
    address = Elf(built.images()[0].elf).symbols[EXPECTED]
    of_root = [region for region in regions(built) if region.pe == 0]
    code = next(region for region in of_root if region.name == CODE)
    with board(built) as emulator:
        emulator.write_memory(0, address, bytes(32))
        session = opened(built, emulator)
        session.run(frames=3)
        flip(emulator, code, random.Random(0))
        with pytest.raises(NpukitError, match="the code of PE 0 are not"):
            session.run(frames=2 * frames_of_a_round(of_root))


@pytest.mark.exhaustive
def test_the_board_s_loader_brings_them(built: Build, tmp_path: Path) -> None:
    flash = tmp_path / "flash"
    api.flash(built, port=f"emulator:{flash}")
    told = [(overlay, Elf(image.elf).symbols[EXPECTED]) for image in built.images() for overlay in image.overlays]
    with closing(FlashedBoard(built.board, flash, models=built.models())) as emulator:
        emulator.power_on()
        opened(built, emulator).run()
        digests = {each.pe: each.data for each, address in told if each.address == address}
        place = {each.pe: address for each, address in told}
        assert set(digests) == {pe.pe for pe in built.plan().pes}
        assert all(emulator.read_memory(pe, place[pe], len(data)) == data for pe, data in digests.items())
