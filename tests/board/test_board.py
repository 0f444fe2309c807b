"""Board files: their content, inheritance between files, and errors."""

from __future__ import annotations

from contextlib import suppress
from functools import partial
from pathlib import Path

import pytest

from npukit.accel.engines import plugins_of
from npukit.board.board import known_boards, load_board
from npukit.data import PLUGINS, data_folder
from npukit.errors import DoesNotFit, NpukitError

PE_MESH = (data_folder("boards") / "pe-mesh.toml").read_text()


def wrong(folder: Path, text: str) -> str:
    path = folder / "mine.toml"
    path.write_text(text)
    with pytest.raises(NpukitError) as found:
        load_board(str(path))
    return found.value.message


def test_the_boards_that_ship() -> None:
    assert [(board.name, board.pe_count) for board in known_boards()] == [
        ("arduino-nano-33-ble", 1),
        ("esp32c3", 1),
        ("microbit", 1),
        ("mps2-an385", 1),
        ("mps2-an386", 1),
        ("mps2-an500", 1),
        ("mps2-an505", 1),
        ("mps2-an521", 2),
        ("mps3-an547", 1),
        ("netduinoplus2", 1),
        ("nrf52840-dk", 1),
        ("nrf5340-dk", 1),
        ("nucleo-h743zi", 1),
        ("nucleo-l4r5zi", 1),
        ("pe-mesh", 16),
        ("pe-mesh-152", 152),
        ("pe-mesh-7296", 7296),
        ("pe-mesh-rv", 16),
        ("pico", 1),
        ("pico-dual", 2),
        ("pico2", 1),
        ("pico2-dual", 2),
        ("pico2-rv", 1),
        ("pico2-rv-dual", 2),
        ("riscv-virt", 1),
        ("riscv-virt-f", 1),
        ("riscv-virt-v", 1),
        ("spinnaker2", 152),
        ("spinnaker2-48", 7296),
        ("stm32f4-disco", 1),
    ]


def test_larger_meshes_are_the_same_silicon() -> None:
    small, large = load_board("pe-mesh"), load_board("pe-mesh-7296")
    assert large.noc == small.noc
    assert large.accelerator == small.accelerator
    assert large.memory == small.memory


def test_a_mesh_of_risc_v_cores_has_the_same_plans_figures() -> None:
    arm, risc_v = load_board("pe-mesh"), load_board("pe-mesh-rv")
    assert (risc_v.noc, risc_v.accelerator, risc_v.memory) == (arm.noc, arm.accelerator, arm.memory)
    assert risc_v.mesh == arm.mesh
    assert (arm.energy is None, risc_v.energy) == (False, None), "an empty table takes that of the other file away"


def test_a_chip_of_public_limits_is_no_stronger_than_the_mesh_but_for_its_dram() -> None:
    ours, chip = load_board("pe-mesh-152"), load_board("spinnaker2")
    assert ours.noc is not None
    assert chip.noc is not None
    assert len(chip.mesh.dead_pes) == 4
    assert chip.noc.border_cycles(5) == 5 * 16 / 2.5
    assert chip.noc.chip_link_bytes_per_cycle * chip.noc.chip_links_per_border < 8
    assert chip.noc.port_bytes_per_cycle == ours.noc.port_bytes_per_cycle
    assert chip.accelerator[0].figures["accumulator_bits"] < ours.accelerator[0].figures["accumulator_bits"]
    whole = load_board("spinnaker2-48")
    assert whole.pe_count - len(whole.mesh.dead_pes) == 7104


def test_a_board_file_of_ones_own(tmp_path: Path) -> None:
    (tmp_path / "mine.toml").write_text(PE_MESH.replace('name = "pe-mesh"', 'name = "mine"'))
    assert load_board(str(tmp_path / "mine.toml")).name == "mine"


def test_an_unknown_board() -> None:
    with pytest.raises(NpukitError, match="board pdp-11 is not known"):
        load_board("pdp-11")


def test_a_plug_ins_package_brings_boards(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Known by name, also to `like`; npukit's own boards come first."""
    entry = tmp_path / "vendor-1.dist-info/entry_points.txt"
    entry.parent.mkdir()
    entry.write_text(f"[{PLUGINS}]\nvendor = vendor:accelerator\n")
    (tmp_path / "vendor/boards").mkdir(parents=True)
    (tmp_path / "vendor/__init__.py").write_text("raise RuntimeError('boards are known without an import')")
    for name, like in (("vendor-one", "pe-mesh"), ("vendor-two", "vendor-one"), ("microbit", "pe-mesh")):
        text = f'like = "{like}"\nname = "{name}"\nsummary = "A vendor\'s"\n'
        (tmp_path / f"vendor/boards/{name}.toml").write_text(text)
    monkeypatch.syspath_prepend(str(tmp_path))
    assert {"vendor-one", "vendor-two"} <= {board.name for board in known_boards()}
    assert load_board("vendor-two").accelerator == load_board("pe-mesh").accelerator
    assert load_board("microbit").summary != "A vendor's"


def test_without_its_package_a_board_of_the_sources_says_how_to_install_it(monkeypatch: pytest.MonkeyPatch) -> None:
    chip = load_board("spinnaker2")
    for module in ("npukit.data", "npukit.accel.plugins"):
        monkeypatch.setattr(f"{module}.entry_points", lambda **_: [])
    for find in (partial(load_board, "spinnaker2"), partial(plugins_of, chip)):
        with pytest.raises(NpukitError) as error:
            find()
        assert error.value.tries[0] == "pip install ./kit/npukit_mla, in the folder of npukit's sources"


def test_not_toml(tmp_path: Path) -> None:
    assert "is not TOML" in wrong(tmp_path, "name = ")


def test_a_field_nobody_knows(tmp_path: Path) -> None:
    assert "core.turbo" in wrong(tmp_path, PE_MESH.replace("[core]", "[core]\nturbo = true"))


def test_a_field_of_the_wrong_type(tmp_path: Path) -> None:
    assert "core.clock_hz" in wrong(tmp_path, PE_MESH.replace("clock_hz = 300_000_000", 'clock_hz = "fast"'))


def test_nowhere_to_put_the_stack(tmp_path: Path) -> None:
    assert "stack must have exactly one memory" in wrong(tmp_path, PE_MESH.replace(', "stack"]', "]"))


def test_several_banks_are_for_one_core(tmp_path: Path) -> None:
    more = '[[memory]]\nname = "more"\norigin = 0x9_0000\nsize = 16\nholds = ["activations"]\n\n[mesh]'
    fault = "activations must have exactly one memory to live in, not SRAM and more"
    assert fault in wrong(tmp_path, PE_MESH.replace("[mesh]", more))


def test_like_a_board_that_is_not_there(tmp_path: Path) -> None:
    assert "is like atlantis, which is not there" in wrong(tmp_path, 'like = "atlantis"')


def test_a_dead_pe_that_does_not_exist(tmp_path: Path) -> None:
    assert "PE 16 is named as dead" in wrong(tmp_path, PE_MESH.replace("dead_pes = []", "dead_pes = [16]"))


def test_memories_that_overlap(tmp_path: Path) -> None:
    extra = '[[memory]]\nname = "more"\norigin = 0x1_0000\nsize = 0x2_0000\nholds = []\n\n[mesh]'
    assert "memories SRAM and more overlap" in wrong(tmp_path, PE_MESH.replace("[mesh]", extra))


def test_a_mesh_without_a_network(tmp_path: Path) -> None:
    begin, end = PE_MESH.index("[noc]"), PE_MESH.index("[uart]")
    assert "16 PEs need a [noc]" in wrong(tmp_path, PE_MESH[:begin] + PE_MESH[end:])


HALF = "[[kind]]\npes = [1, [8, 15]]\naccelerators = []\n\n"


def test_kinds_of_pe_carry_some_of_the_accelerators(tmp_path: Path) -> None:
    (tmp_path / "half.toml").write_text(PE_MESH.replace("[core]", HALF + "[core]"))
    assert load_board(str(tmp_path / "half.toml")).lacking == {"mac_array": frozenset((1, *range(8, 16)))}
    assert load_board("pe-mesh").lacking == {}


SMALL = HALF.replace("accelerators = []", "memory_bytes = 0x1_0000")


def test_kinds_of_pe_have_less_memory(tmp_path: Path) -> None:
    (tmp_path / "small.toml").write_text(PE_MESH.replace("[core]", SMALL + "[core]").replace(', "renode"', ""))
    board = load_board(str(tmp_path / "small.toml"))
    assert [board.seen_by(pe).memory[0].size >> 10 for pe in (0, 1, 2, 8)] == [128, 64, 128, 64]
    assert board.lacking == {}, "a kind that names no accelerators carries them all"


OTHER = HALF.replace("accelerators = []", 'cpu = "rv32imc"')


def test_kinds_of_pe_have_other_cores(tmp_path: Path) -> None:
    events = "[events]\nbase = 0xE600_0000\n\n[core]"
    text = PE_MESH.replace("[core]", OTHER + events).replace(', "renode"', "")
    (tmp_path / "other.toml").write_text(text)
    board = load_board(str(tmp_path / "other.toml"))
    assert board.cpus == ("cortex-m4f", "rv32imc")
    assert [board.cpu_of(pe) for pe in (0, 1, 2, 8)] == ["cortex-m4f", "rv32imc"] * 2
    assert board.seen_by(1).core.type.title == "RV32IMC"
    (tmp_path / "other.toml").write_text(text.replace("rv32imc", "z80"))
    with pytest.raises(NpukitError, match=r"kind\.0\.cpu: .* the cores are cortex-m0, "):
        load_board(str(tmp_path / "other.toml"))


CONTRADICTIONS = {
    "a kind has 262,144 bytes of memory SRAM": ("[core]", SMALL.replace("0x1_0000", "0x4_0000") + "[core]"),
    "runs_on names renode, whose PEs": ("[core]", SMALL + "[core]"),
    "runs_on names renode, whose PEs here have the same core": ("[core]", OTHER + "[core]"),
    "PE 16 is named as dead": ("dead_pes = []", "dead_pes = [16]"),
    "PEs 0 and 5 are named as a dead link": ("dead_links = []", "dead_links = [[0, 5]]"),
    "registers of timer at 0x1000 lie in memory SRAM": ("base = 0xE100_0000", "base = 0x1000"),
    "PE 16 is named in a kind": ("[core]", HALF.replace("15", "16") + "[core]"),
    "PE 9 is of 2 kinds": ("[core]", HALF + HALF.replace("1, [8, 15]", "9") + "[core]"),
    "a kind of PE carries abacus": ("[core]", HALF.replace("[]", '["abacus"]') + "[core]"),
    "a Cortex-M4F has events of its own": ("[timer]", "[events]\nbase = 0xE600_0000\n\n[timer]"),
    "none of a Cortex-M55's vectors": ('cpu = "cortex-m4f"', 'cpu = "cortex-m55"'),
    "timer and noc have their registers at one address": ("base = 0xE100_0000", "base = 0xE200_0000"),
}


@pytest.mark.parametrize("fault", CONTRADICTIONS)
def test_numbers_that_contradict_each_other_are_named_and_do_not_fit(tmp_path: Path, fault: str) -> None:
    path = tmp_path / "mine.toml"
    path.write_text(PE_MESH.replace(*CONTRADICTIONS[fault]))
    with pytest.raises(DoesNotFit, match=rf"mine\.toml, line \d+ contradicts itself: .*{fault}") as found:
        load_board(str(path))
    assert found.value.exit_status == 3


def test_chips_that_no_byte_can_reach(tmp_path: Path) -> None:
    path = tmp_path / "mine.toml"
    several = PE_MESH.replace("chips = { columns = 1, rows = 1 }", "chips = { columns = 2, rows = 1 }")
    path.write_text(several.replace("chip_links_per_border = 2", "chip_links_per_border = 0"))
    with pytest.raises(DoesNotFit, match="no byte a cycle crosses a border"):
        load_board(str(path))


def test_renode_has_no_torus(tmp_path: Path) -> None:
    path = tmp_path / "mine.toml"
    path.write_text(PE_MESH.replace("dead_pes = []", 'dead_pes = []\nchip_links = "hexagonal torus"'))
    with pytest.raises(DoesNotFit, match="runs_on names renode, whose chips here are linked as a grid"):
        load_board(str(path))


ABSURD = {
    "mesh.pes.columns: Input should be less than or equal to 1024, not 1000000000": (
        "pes = { columns = 4,",
        "pes = { columns = 1_000_000_000,",
    ),
    "mesh.pes.columns: Input should be greater than 0, not 0": ("pes = { columns = 4,", "pes = { columns = 0,"),
    "core.clock_hz: Input should be greater than 0, not 0": ("clock_hz = 300_000_000", "clock_hz = 0"),
    "memory.0.size: Input should be less than or equal to 4294967295, not 1000000000000": (
        "size = 0x2_0000",
        "size = 1_000_000_000_000",
    ),
    "noc.hop_cycles: Input should be greater than or equal to 0, not -1": ("\nhop_cycles = ", "\nhop_cycles = -1 # "),
    "noc.chip_link_bytes_per_cycle: Input should be a multiple of 0.01, not 2.503": (
        "chip_link_bytes_per_cycle = 4",
        "chip_link_bytes_per_cycle = 2.503",
    ),
    "1 chips of 1,047,552 PEs are more than 65,536 PEs": (
        "pes = { columns = 4, rows = 4 }",
        "pes = { columns = 1024, rows = 1023 }",
    ),
}


@pytest.mark.parametrize("fault", ABSURD)
def test_absurd_figures_end_at_once(tmp_path: Path, fault: str) -> None:
    assert ABSURD[fault][0] in PE_MESH
    assert fault in wrong(tmp_path, PE_MESH.replace(*ABSURD[fault], 1))


@pytest.mark.parametrize("given", ["-1", "true", "nan", "1" + "0" * 30, '"x"', "[]", "1.5", "2020-01-01"])
def test_whatever_a_field_is_it_is_read_or_refused_with_its_line(tmp_path: Path, given: str) -> None:
    path, lines = tmp_path / "mine.toml", PE_MESH.splitlines()
    fields = [(number, line.split(" = ")[0]) for number, line in enumerate(lines) if " = " in line and line[0] != "#"]
    refusals = list[str]()
    for number, field in fields:
        path.write_text("\n".join([*lines[:number], f"{field} = {given}", *lines[number + 1 :]]))
        with suppress(NpukitError):
            load_board(str(path))
            continue
        with pytest.raises(NpukitError) as found:
            load_board(str(path))
        refusals.append(found.value.message)
    assert refusals
    assert all("mine.toml, line " in message for message in refusals)


def test_two_accelerators_of_one_name(tmp_path: Path) -> None:
    twice = PE_MESH + '\n[[accelerator]]\nname = "mac_array"\nbase = 0xE310_0000\n'
    assert "2 accelerators are called mac_array" in wrong(tmp_path, twice)


def test_like_a_board_of_npukits_own(tmp_path: Path) -> None:
    (tmp_path / "mine.toml").write_text('like = "pe-mesh"\nname = "mine"\n')
    assert load_board(str(tmp_path / "mine.toml")).mesh == load_board("pe-mesh").mesh


def test_an_unknown_board_or_key_is_told_with_the_nearest_known_one(tmp_path: Path) -> None:
    with pytest.raises(NpukitError) as board:
        load_board("nucleo-l4r5z")
    assert board.value.tries[0] == "did you mean nucleo-l4r5zi?"
    path = tmp_path / "mine.toml"
    path.write_text('like = "pe-mesh"\nname = "mine"\nsummary = "mine"\n\n[core]\ncpu = "cortex-m4f"\nclok_hz = 1\n')
    with pytest.raises(NpukitError, match=r"has an unknown key: core\.clok_hz") as key:
        load_board(str(path))
    assert key.value.tries[0] == "did you mean clock_hz?"
