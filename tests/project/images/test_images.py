"""Projects built for real: both compilers, both kinds of memory."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from dataclasses import replace
from functools import cache
from itertools import product
from pathlib import Path

import pytest

from helpers import first_of, make_by_hand
from npukit.board.board import load_board
from npukit.errors import DoesNotFit, NpukitError
from npukit.plan.predict.memory import FIRMWARE_BYTES, program_bytes
from npukit.project.images.elf import Elf
from object_cache import compiled_anew
from project.identity import ACTIVATION_BYTES, CONSTANT_BYTES, NET, Built, build_identity, identity_sources

BOARDS = ("pe-mesh", "mps2-an386", "stm32f4-disco", "nrf52840-dk")
TOOLCHAINS = ("gcc", "zig")
BUILDS = [("pe-mesh", "gcc"), *product(BOARDS, ["zig"]), *product(BOARDS[1:], ["gcc"])]

Identity = Callable[[str, str], Built]


@pytest.fixture(scope="module")
def identity(tmp_path_factory: pytest.TempPathFactory) -> Identity:
    """The identity net for a board and a compiler, built once for all tests."""
    return cache(lambda board, compiler: build_identity(board, compiler, tmp_path_factory.mktemp("identity")))


@pytest.mark.parametrize(
    ("board_name", "compiler"),
    first_of(BUILDS, 5),
)
def test_the_image_is_laid_out_as_planned(identity: Identity, board_name: str, compiler: str) -> None:
    (image,) = identity(board_name, compiler).images
    elf, board = Elf(image.elf), load_board(board_name)
    assert elf.sections[".constants"].size == CONSTANT_BYTES
    assert elf.sections[".activations"].size == ACTIVATION_BYTES
    assert elf.sections[".activations"].end == board.memory_for("activations").end
    assert elf.symbols["__stack_top"] - elf.symbols["__stack_bottom"] == image.memory.stack == image.stack.bytes
    assert elf.symbols["vectors"] == board.memory_for("code").origin
    # Larger than the RPC server alone, smaller than `FIRMWARE_BYTES`, which the planner reserves for any network's
    # program.
    assert 3000 < image.memory.code < FIRMWARE_BYTES


@pytest.mark.parametrize("compiler", TOOLCHAINS)
def test_one_memory_is_accounted_for_to_the_byte(identity: Identity, compiler: str) -> None:
    (image,) = identity("pe-mesh", compiler).images
    assert sum({**vars(image.memory), "banks": 0}.values()) == load_board("pe-mesh").memory[0].size


@pytest.mark.exhaustive
@pytest.mark.parametrize("compiler", TOOLCHAINS)
def test_two_folders_give_the_same_bytes(identity: Identity, tmp_path: Path, compiler: str) -> None:
    with compiled_anew():
        (first,) = build_identity("pe-mesh", compiler, tmp_path / "other place/é").images
    (second,) = identity("pe-mesh", compiler).images
    assert first.binary.read_bytes() == second.binary.read_bytes()
    assert first.elf.read_bytes() == second.elf.read_bytes()
    assert str(tmp_path).encode() not in first.elf.read_bytes()


@pytest.mark.parametrize("compiler", TOOLCHAINS)
def test_the_projects_own_makefile_gives_the_same_bytes(identity: Identity, tmp_path: Path, compiler: str) -> None:
    built = identity("pe-mesh", compiler)
    project = shutil.copytree(built.project.folder, tmp_path / "a place")
    make_by_hand(project, compiler)
    for path in (built.images[0].elf, built.images[0].binary):
        assert (project / "build" / path.name).read_bytes() == path.read_bytes()


def test_roles_have_images_of_their_own_and_only_the_root_pes_serves_the_host(tmp_path: Path) -> None:
    board = load_board("pe-mesh")
    sources = [identity_sources(board, 0, (0,)), identity_sources(board, 1, tuple(range(1, 16)))]
    built = build_identity("pe-mesh", "zig", tmp_path, *sources)
    root, workers = (Elf(image.elf).symbols for image in built.images)
    assert [image.pes for image in built.images] == [(0,), tuple(range(1, 16))]
    assert "rpc_serve" in root
    assert "rpc_serve" not in workers
    assert built.images[1].memory.code < built.images[0].memory.code / 2
    worker, root = (program_bytes(16, tiles=1, tensors=tensors)[0] for tensors in (0, 2))
    assert built.images[1].memory.code < worker < root / 2
    assert (built.project.folder / "roles/1/net/net.c").is_file()


def test_a_plug_ins_driver_is_compiled_with_the_headers_beside_it(tmp_path: Path) -> None:
    plug_in = tmp_path / "plug-in"
    plug_in.mkdir()
    (plug_in / "doubler.h").write_text("int doubler_run(int value);\n")
    (plug_in / "doubler.c").write_text('#include "doubler.h"\nint doubler_run(int value) { return 2 * value; }\n')
    net = '#include "doubler.h"\n' + NET.read_text().replace("return 0;", "return doubler_run(BYTES) - 2 * BYTES;")
    sources = replace(identity_sources(load_board("pe-mesh"), net=net), drivers=(plug_in / "doubler.c",))
    built = build_identity("pe-mesh", "zig", tmp_path, sources)
    assert (built.project.folder / "firmware/engines/doubler/doubler.c").is_file()
    assert "doubler_run" in Elf(built.images[0].elf).symbols


def test_a_network_that_does_not_fit_is_refused_with_its_figures(tmp_path: Path) -> None:
    board = load_board("pe-mesh")
    net = NET.read_text().replace("arena[2 * BYTES]", "arena[130000]")
    sources = replace(identity_sources(board, net=net), activation_bytes=130_080)
    with pytest.raises(DoesNotFit, match=r"too large for memory SRAM of 131072: .*activations 130080, stack \d+"):
        build_identity("pe-mesh", "zig", tmp_path, sources)


def test_constants_other_than_planned_are_refused(tmp_path: Path) -> None:
    sources = replace(identity_sources(load_board("pe-mesh")), constant_bytes=32)
    with pytest.raises(NpukitError, match="constants are not the size the plan says"):
        build_identity("pe-mesh", "zig", tmp_path, sources)


def test_what_does_not_compile_is_one_line(tmp_path: Path) -> None:
    sources = identity_sources(load_board("pe-mesh"), net="int net_run(void) { return missing; }\n")
    with pytest.raises(NpukitError, match=r"compile net/net.c: net/net.c:1.*missing") as caught:
        build_identity("pe-mesh", "zig", tmp_path, sources)
    assert "\n" not in caught.value.message


@pytest.mark.parametrize("board_name", BOARDS)
def test_nothing_of_this_machine_is_in_the_project(identity: Identity, board_name: str) -> None:
    folder = identity(board_name, "zig").project.folder
    for path in folder.rglob("*"):
        assert path.is_dir() or str(folder.parent) not in path.read_text()
