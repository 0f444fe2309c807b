"""Files rendered for Renode, checked without Renode: syntax, names, addresses."""

from __future__ import annotations

import importlib.util
import json
import re
from dataclasses import replace
from pathlib import Path
from types import ModuleType

import pytest

from emulator.renode.languages import (
    STANDARD_KEYWORDS,
    Entry,
    constructor_parameters,
    parse_platform,
    parse_script,
    parse_suite,
)
from npukit.board.board import AcceleratorSlot, Board, load_board
from npukit.data import data_folder
from npukit.emulator.renode.render import (
    DEVICES,
    MODELS,
    RENODE_PES,
    SCRIPT,
    STOCK_MODELS,
    Dram,
    devices_source,
    objection,
    render_renode,
)
from npukit.emulator.renode.suite import GoldenFrame, render_suite
from npukit.errors import DoesNotFit
from npukit.project.images.image import Image, Overlay
from project.identity import build_identity

GOLDEN_TEXT = Path(__file__).parent / "golden"
SCS = 0xE000_E000
"""Armv7-M's system control space."""


@pytest.fixture(scope="module")
def board() -> Board:
    return load_board("pe-mesh")


def rendered(board: Board, folder: Path, *pes: tuple[int, ...], overlays: tuple[Overlay, ...] = ()) -> Path:
    """The folder with everything but the suite; the images need not exist."""
    images = [Image(folder / "images" / f"image-{number}.elf", each, overlays) for number, each in enumerate(pes)]
    render_renode(board, images, folder / "renode")
    return folder / "renode"


def platform(board: Board, folder: Path, *pes: tuple[int, ...]) -> dict[str, Entry]:
    return parse_platform((rendered(board, folder, *pes) / "board.repl").read_text())


def test_every_reference_leads_to_something(board: Board, tmp_path: Path) -> None:
    entries = platform(board, tmp_path, tuple(range(16)))
    for name, entry in entries.items():
        named = [*entry.references, *(cpu for _, cpu in entry.places or ()), *(to for to, _ in entry.wires.values())]
        assert set(named) <= set(entries), name


def test_attributes_are_those_the_devices_take(board: Board, tmp_path: Path) -> None:
    models = {name.removesuffix(".cs"): (data_folder("templates") / "renode" / name).read_text() for name in MODELS}
    seen = set()
    for entry in platform(board, tmp_path, (0, 1)).values():
        room, _, name = entry.type.partition(".")
        if room == "PeMesh":
            assert {*entry.attributes, "machine"} == {*constructor_parameters(models[name], name), "machine"}, name
            seen.add(name)
    assert seen == {"Mesh", "Noc", "MacArray", "Timer", "Uart", "Flash"}


def test_addresses_are_the_board_s(board: Board, tmp_path: Path) -> None:
    entries = platform(board, tmp_path, (0, 1, 5))
    sram = board.memory[0]
    assert board.noc is not None
    for pe in (0, 1, 5):
        cpu = f"cpu{pe}"
        assert entries[f"sram{pe}"].places == [(sram.origin, cpu)]
        assert entries[f"sram{pe}"].attributes["size"] == sram.size
        assert entries[f"nvic{pe}"].places == [(SCS, cpu)]
        assert entries[f"timer{pe}"].places == [(board.timer.base, cpu)]
        assert entries[f"noc{pe}"].places == [(board.noc.base, cpu)]
        assert entries[f"noc{pe}"].attributes["pe"] == pe
        assert entries[f"macArray{pe}"].places == [(board.accelerator[0].base, cpu)]
    assert entries["uart"].places == [(board.uart.base, "cpu0")]
    assert board.flash is not None
    assert entries["flash"].places == [(board.flash.base, "cpu0")]
    assert entries["flashMemory"].places == [(board.flash.window, "cpu0")]
    assert entries["uart"].attributes["baud"] == board.uart.baud


REFRESH = "dram_refresh_interval", "dram_refresh_cycles"
"""Renode's network times a message alone: no refresh, and no queue of requests."""


def test_figures_are_the_board_s(board: Board, tmp_path: Path) -> None:
    entries = platform(board, tmp_path, (0,))
    assert board.noc is not None
    for name, value in board.noc.model_dump().items():
        if name not in ("base", "window", "flags", "shared", "chip_link_bytes_per_cycle", "dram_requests", *REFRESH):
            assert entries["mesh"].attributes[camel(name)] == value
    assert entries["mesh"].attributes["chipLinkBytesPer100Cycles"] == board.noc.chip_link_bytes_per_100_cycles
    assert entries["noc0"].attributes["flags"] == board.noc.flags
    for name, value in board.accelerator[0].figures.items():
        assert entries["macArray0"].attributes[camel(name)] == value
    assert board.flash is not None
    assert entries["flashMemory"].attributes["size"] == board.flash.bytes
    for name in ("page_bytes", "loader_bytes", "once_bytes", "erase_cycles", "program_cycles"):
        assert entries["flash"].attributes[camel(name)] == getattr(board.flash, name)
    assert entries["cpu0"].attributes["PerformanceInMips"] == board.core.clock_hz // 10**6


def camel(name: str) -> str:
    first, *rest = name.split("_")
    return first + "".join(part.capitalize() for part in rest)


def test_no_core_sees_two_things_at_one_address(board: Board, tmp_path: Path) -> None:
    entries = platform(board, tmp_path, tuple(range(16)))
    seen = [place for entry in entries.values() for place in entry.places or ()]
    assert len(seen) == len(set(seen))
    assert {cpu for _, cpu in seen} == {f"cpu{pe}" for pe in range(16)}


def test_dead_links_are_passed_on_and_the_first_live_pe_is_the_root(board: Board, tmp_path: Path) -> None:
    mesh = board.mesh.model_copy(update={"dead_pes": (0,), "dead_links": ((1, 2), (5, 9))})
    entries = platform(board.model_copy(update={"mesh": mesh}), tmp_path, (1, 2))
    assert entries["mesh"].attributes["deadLinks"] == "1-2 5-9"
    assert entries["uart"].places == [(board.uart.base, "cpu1")]


def test_the_script_loads_what_is_there(board: Board, tmp_path: Path) -> None:
    overlay = Overlay(3, 0x1000, b"\x07\xff")
    folder = rendered(board, tmp_path, (0, 3), (1, 2), overlays=(overlay,))
    commands = parse_script((folder / "run.resc").read_text())
    included = [command.split("/")[1] for command in commands if command.startswith("include")]
    assert included == [DEVICES]
    assert all((folder / name).is_file() for name in included)
    assert "$image_1?=$ORIGIN/../images/image-1.elf" in commands
    loads = [command for command in commands if command.startswith("sysbus LoadELF")]
    assert loads == [
        *(f"sysbus LoadELF $image_0 cpu=sysbus.cpu{pe}" for pe in (0, 3)),
        *(f"sysbus LoadELF $image_1 cpu=sysbus.cpu{pe}" for pe in (1, 2)),
    ]
    assert "$own_0?=$ORIGIN/own-3-00001000.bin" in commands
    assert "sysbus LoadBinary $own_0 0x00001000 cpu=sysbus.cpu3" in commands
    assert (folder / "own-3-00001000.bin").read_bytes() == overlay.data


def test_the_script_fills_the_dram_of_each_chip_whenever_the_board_starts(board: Board, tmp_path: Path) -> None:
    render_renode(board, [Image(tmp_path / "image.elf", (0,))], tmp_path, Dram(b"\1\2\3", (0, 2)))
    commands = parse_script((tmp_path / SCRIPT).read_text())
    assert "$dram?=$ORIGIN/dram.bin" in commands
    restart = commands[commands.index("macro reset") : commands.index("runMacro $reset")]
    assert [line for line in restart if "Dram" in line] == [f"sysbus.mesh LoadDram $dram {chip}" for chip in (0, 2)]
    assert (tmp_path / "dram.bin").read_bytes() == b"\1\2\3"


@pytest.mark.parametrize("models", [MODELS, STOCK_MODELS])
def test_the_devices_are_one_file_that_begins_with_what_they_use(models: tuple[str, ...]) -> None:
    text = devices_source(models)
    used, _, bodies = text.partition("\n\n")
    licence, *lines = used.split("\n")
    assert licence == "// SPDX-License-Identifier: Apache-2.0"
    assert all(re.fullmatch(r"using [\w.]+;", line) for line in lines)
    assert len(set(lines)) == len(lines)
    assert not re.search(r"^\s*using [\w.]+;", bodies, re.M)
    for name in models:
        assert f"class {name.removesuffix('.cs')}" in bodies


def test_rendering_twice_gives_the_same_bytes(board: Board, tmp_path: Path) -> None:
    one, two = (rendered(board, tmp_path / name, (0, 1), (2,)) for name in ("one", "two"))
    assert {path.name: path.read_bytes() for path in one.iterdir()} == {p.name: p.read_bytes() for p in two.iterdir()}


@pytest.mark.parametrize("name", ["board.repl", "run.resc"])
def test_the_text_is_the_golden_one(board: Board, tmp_path: Path, name: str) -> None:
    folder = rendered(board, tmp_path, (0, 1))
    assert (folder / name).read_text() == (GOLDEN_TEXT / name).read_text()


def test_an_accelerator_that_the_core_computes_needs_no_device(board: Board, tmp_path: Path) -> None:
    bare = board.model_copy(update={"accelerator": (AcceleratorSlot(name="dream"),)})
    assert objection(bare, [Image(Path("x"), (0,))]) is None
    assert {entry.type for entry in platform(bare, tmp_path, (0,)).values() if "Array" in entry.type} == set()
    assert "dream0" not in platform(bare, tmp_path, (0,))


def test_what_renode_cannot_be_is_said(board: Board) -> None:
    many = objection(board.model_copy(update={"name": "big"}), [Image(Path("x"), tuple(range(RENODE_PES + 1)))])
    assert isinstance(many, DoesNotFit)
    assert many.message == "33 PEs do not fit in a Renode machine: its translation library knows at most 32 cores"
    strange = board.model_copy(update={"accelerator": (AcceleratorSlot(name="dream", base=0xE300_0000),)})
    refusal = objection(strange, [Image(Path("x"), (0,))])
    assert refusal is not None
    assert refusal.message == "there is no Renode model of the accelerator dream"
    other = objection(load_board("mps2-an386"), [Image(Path("x"), (0,))])
    assert other is not None
    assert other.tries == ("--on qemu", "--on emulator")
    assert objection(board, [Image(Path("x"), tuple(range(RENODE_PES)))]) is None


# --- the Robot suite


@pytest.fixture(scope="module")
def suite_folder(board: Board, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Needs a real image: the suite changes bytes of the constants."""
    folder = tmp_path_factory.mktemp("suite")
    image = build_identity("pe-mesh", "zig", folder).images[0]
    images = [replace(Image(image.elf, image.pes), pes=(0, 1, 2))]
    render_renode(board, images, folder / "renode")
    frame = GoldenFrame("a  net\n*** odd", "00" * 16, (b"\1\2",), (b"\3",))
    render_suite(board, images, frame, folder / "renode")
    return folder / "renode"


def test_the_suite_calls_keywords_that_exist(suite_folder: Path) -> None:
    suite = parse_suite((suite_folder / "firmware.robot").read_text())
    known = {*STANDARD_KEYWORDS, *suite.keywords, *library_keywords(suite_folder)}
    assert suite.settings == {"Library": ["FirmwareLink.py"], "Test Teardown": ["Leave"]}
    assert list(suite.tests) == ["Firmware Answers", "Golden Frame Is Reproduced", "Broken Image Is Found Out"]
    for name, calls in {**suite.keywords, **suite.tests}.items():
        assert calls, name
        assert set(calls) <= known, name


def library_keywords(folder: Path) -> set[str]:
    methods = vars(load_library(folder).FirmwareLink)
    return {name.replace("_", " ").title() for name in methods if not name.startswith("_")}


def load_library(folder: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location("FirmwareLink", folder / "FirmwareLink.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_suite_looks_at_every_pe_and_changes_bytes_of_the_constants(suite_folder: Path, board: Board) -> None:
    text = (suite_folder / "firmware.robot").read_text()
    assert "IN    0    1    2\n" in text
    array = board.accelerator[0].base
    assert board.noc is not None
    assert array is not None
    for register in (board.noc.base + 0x0C, array + 0x10):
        assert f"ReadDoubleWord 0x{register:08X} sysbus.cpu${{pe}}" in text
    places = [int(cell, 16) for cell in parse_suite(text).cells if re.fullmatch(r"0x\w{8}", cell)]
    assert len(places) == 8
    assert all(places[0] - 8 <= place < places[0] + 8 for place in places)  # the identity's constants: 16 bytes


def test_the_golden_frame_is_written_and_a_name_cannot_break_the_suite(suite_folder: Path) -> None:
    golden = json.loads((suite_folder / "golden.json").read_text())
    assert (golden["inputs"], golden["outputs"], golden["build_id"]) == (["0102"], ["03"], "00" * 16)
    assert (suite_folder / "firmware.robot").read_text().count("***") == 8


@pytest.mark.parametrize(
    ("name", "platform_file", "uart", "mips"),
    [
        ("stm32f4-disco", "platforms/boards/stm32f4_discovery.repl", "usart2", 168),
        ("nrf52840-dk", "platforms/boards/nrf52840dk_nrf52840.repl", "uart0", 64),
    ],
)
def test_a_stock_board_is_renode_s_own_platform(
    name: str, platform_file: str, uart: str, mips: int, tmp_path: Path
) -> None:
    stock = load_board(name)
    folder = rendered(stock, tmp_path, (0,))
    text = (folder / "board.repl").read_text()
    assert f'using "{platform_file}"' in text
    assert f"PerformanceInMips: {mips}\n" in text
    assert f"frequency: {stock.core.clock_hz}\n" in text
    script = (folder / "run.resc").read_text()
    assert f"connector Connect sysbus.{uart} link" in script
    assert "    sysbus LoadELF $image\n" in script
    assert sorted(path.name for path in folder.iterdir()) == ["Devices.cs", "board.repl", "run.resc"]
