"""Wrong plug-ins: the error names plug-in and op, and no build folder is left."""

from __future__ import annotations

from pathlib import Path

import pytest

from accel.boards import with_accelerator
from end_to_end.builds import DIGITS, build
from npukit.accel.plugins import plugin_for
from npukit.board.board import load_board
from npukit.errors import NpukitError

GOOD = """
from pathlib import Path
import numpy as np
from npukit.accel.interface import Abilities, Address, Call, Commands, ConstantArray, Cost, Lowered, Struct


class accelerator:
    name = "vendor"
    version = "7"
    commands = None
    model = None

    def __init__(self, slot):
        self.slot = slot

    def refusal(self, net, op):
        return None if op.kind == "dense" else "only dense"

    def cost(self, net, op, output):
        return Cost(100, 12)

    def lower(self, tile):
        return Lowered((self.array(tile),), Call("vendor_dense", self.arguments(tile)))

    def array(self, tile):
        return ConstantArray(f"{tile.name}_words", np.zeros(3, np.int32))

    def arguments(self, tile):
        return (tile.inputs[0].address, Address(f"{tile.name}_words"), tile.output.address)

    def sources(self, board):
        return (Path(__file__).with_name("vendor.c"),)
"""
DRIVER = """#include <stdint.h>
int32_t vendor_dense(void *input, const int32_t *words, void *output);
int32_t vendor_dense(void *input, const int32_t *words, void *output)
{
    (void)input, (void)words, (void)output;
    return 0;
}
"""

REFUSAL_AND_COST = GOOD[GOOD.index("        return None if") : GOOD.index("\n\n    def lower")]
ABOUT_THE_OP = "the plug-in vendor is wrong about dense_0 (dense): it "
WRONG = {
    "a refusal without words": ('"only dense"', "7", "it refuses with 7, which is no reason in words"),
    "an empty refusal": ('"only dense"', '" "', "it refuses with ' ', which is no reason in words"),
    "a refusal that fails": ('op.kind == "dense"', "op.sort", "fails in `refusal`: AttributeError"),
    "a negative cost": ("Cost(100, 12)", "Cost(-100, 12)", ABOUT_THE_OP + "says for [0:1, 0:10] cycles = -100"),
    "a cost that is no number": ("Cost(100, 12)", "Cost(100, 'x')", "constant_bytes = 'x'"),
    "no cost": ("Cost(100, 12)", "None", ABOUT_THE_OP + "says for [0:1, 0:10] a cost of None"),
    "what it cannot do": ("Cost(100, 12)", "net.constants[op.inputs[0]]", ABOUT_THE_OP + "fails in `cost`: KeyError"),
    "other constants than promised": ("Cost(100, 12)", "Cost(100, 40)", "its constants are 12 bytes, its cost says 40"),
    "an arena for other operands": ("Cost(100, 12)", "Cost(100, 12, 64, arena=(0,))", "an arena for 1 operands"),
    "an operand that fills no line": ("Cost(100, 12)", "Cost(100, 12, 64, arena=(0, 8))", "an operand at 8 of 64"),
    "an operand outside the arena": ("Cost(100, 12)", "Cost(100, 12, 64, arena=(0, 64))", "an operand at 64 of 64"),
    "a lowering to nothing": ("return Lowered", "return None or 7 or", "lowers [0:1, 0:10] to nonsense: 7 is not"),
    "a lowering that fails": ("np.zeros(3, ", "np.zeros(-3, ", ABOUT_THE_OP + "fails in `lower`: ValueError"),
    "constants of a wrong name": ('f"{tile.name}_words", np', '"words", np', "must be a C name that begins with"),
    "constants of a wrong type": ("np.int32", "np.complex64", "is of complex64"),
    "no name of a function": ('"vendor_dense"', '"vendor dense"', "'vendor dense' is no name of a C function"),
    "an unknown symbol": ('Address(f"{tile.name}_words")', 'Address("elsewhere")', "elsewhere is neither an operand"),
    "an address outside": ('_words")', '_words", 12)', "_words + 12 is outside of it"),
    "commands without a format": ('Call("vendor_dense", self.arguments(tile))', "Commands(())", "no command format"),
    "a missing driver": ('"vendor.c"', '"absent.c"', "the plug-in vendor names a source that is not there"),
    "a missing wrapper": (
        'Call("vendor_dense"',
        'Call("vendor_danse"',
        "no driver of the plug-in vendor has the function vendor_danse, which dense_0 calls",
    ),
    "no version": ('version = "7"', "", "the plug-in vendor has no `version`"),
    "another name": ('name = "vendor"', 'name = "rival"', "the plug-in vendor is named rival"),
    "a missing model": ("model = None", "model = Path('absent.c')", "names a model that is not there: absent.c"),
    "missing RTL": (
        "model = None",
        "model, rtl = None, Path('absent')",
        "names a folder of RTL that is not there: absent",
    ),
    "abilities that are none": (
        'version = "7"',
        'version, abilities = "7", "all"',
        "`abilities`: 'all' is no Abilities",
    ),
    "a pattern of no kind of op": (
        'version = "7"',
        'version, abilities = "7", Abilities(patterns=(("dense", "dance"),))',
        "the plug-in vendor has wrong `abilities`: a pattern has 'dance', which is no kind of op",
    ),
    "a pattern of one op": (
        'version = "7"',
        'version, abilities = "7", Abilities(patterns=(("dense",),))',
        "a pattern is a tuple of two kinds of op or more",
    ),
    "a pattern that it cannot do": (
        REFUSAL_AND_COST,
        REFUSAL_AND_COST.replace('op.kind == "dense"', 'op.kind in ("dense", "fused")').replace(
            "100", "len(op.attributes.clamp)"
        )
        + '\n\n    abilities = Abilities(patterns=(("conv2d", "add"),))',
        "the plug-in vendor is wrong about add_0 (conv2d + add): it fails in `cost`: AttributeError",
    ),
    "a wait that no driver has": (
        'version = "7"',
        'version, abilities = "7", Abilities(wait="vendor_weight")',
        "no driver of the plug-in vendor has the function vendor_weight, which dense_0 calls",
    ),
    "figures it does not take": ("self.slot = slot", "slot.figures['speed']", "does not take its figures"),
    "no plug-in": ("class accelerator", "class something", "cannot be loaded: AttributeError"),
    "a file that is not Python": ("class accelerator", "clash accelerator", "cannot be loaded: SyntaxError"),
}


def plugin(folder: Path, text: str) -> str:
    (folder / "vendor.py").write_text(text)
    (folder / "vendor.c").write_text(DRIVER)
    lines = ('name = "vendor"', 'plugin = "vendor.py"', "base = 0xE600_0000")
    return with_accelerator(folder, "pe-mesh", *lines)


def build_with(folder: Path, text: str, toolchain: str | None = None) -> None:
    build(DIGITS / "digits_int8.tflite", folder / "out", plugin(folder, text), pes=1, toolchain=toolchain)


@pytest.mark.parametrize("what", WRONG)
def test_it_is_named_with_what_is_wrong(what: str, tmp_path: Path) -> None:
    old, new, says = WRONG[what]
    assert old in GOOD
    with pytest.raises(NpukitError) as raised:
        build_with(tmp_path, GOOD.replace(old, new, 1))
    assert says in str(raised.value)
    assert "vendor" in str(raised.value)
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("hook", "broken"),
    [
        ("refusal", "return [][1]"),
        ("cost", "return np.zeros(3).reshape(2)"),
        ("lower", "return {}[tile]"),
        ("sources", "raise OSError(board)"),
        ("__init__", "self.slot = slot.speed"),
    ],
)
def test_a_hook_that_raises_is_named_with_its_line(hook: str, broken: str, tmp_path: Path) -> None:
    lines = [*map(str, GOOD.splitlines())]
    place = next(number for number, line in enumerate(lines) if f"def {hook}(" in line) + 1
    lines.insert(place, f"        {broken}")
    with pytest.raises(NpukitError) as raised:
        build_with(tmp_path, "\n".join(lines))
    assert f" at {tmp_path / 'vendor.py'}:{place + 1}: " in str(raised.value)


def test_a_plug_in_that_is_no_python_is_named_with_its_line(tmp_path: Path) -> None:
    with pytest.raises(NpukitError, match=r"SyntaxError at .*vendor\.py:7: "):
        build_with(tmp_path, GOOD.replace("class accelerator", "clash accelerator"))


def test_a_missing_wrapper_is_named_with_either_compiler(tmp_path: Path) -> None:
    with pytest.raises(NpukitError, match="has the function vendor_danse, which dense_0 calls"):
        build_with(tmp_path, GOOD.replace('Call("vendor_dense"', 'Call("vendor_danse"'), "zig")


@pytest.mark.exhaustive
def test_all_of_them_are_wrong_in_one_thing_only(tmp_path: Path) -> None:
    build_with(tmp_path, GOOD)
    assert (tmp_path / "out/project/firmware/engines/vendor/vendor.c").is_file()


def test_no_such_plug_in(tmp_path: Path) -> None:
    board = with_accelerator(tmp_path, "pe-mesh", 'name = "vendor"', 'plugin = "absent"', "base = 0xE600_0000")
    with pytest.raises(NpukitError, match=r"the plug-in vendor should be at .*absent, where there is none"):
        build(DIGITS / "digits_int8.tflite", tmp_path / "out", board, pes=1)


def test_a_figure_that_no_plugin_knows_names_its_line_of_the_board_file(tmp_path: Path) -> None:
    text = (DIGITS.parents[1] / "boards/pe-mesh.toml").read_text().replace("accumulator_bits", "accumulator_bit")
    (tmp_path / "mine.toml").write_text(text)
    board = load_board(str(tmp_path / "mine.toml"))
    line = next(number for number, each in enumerate(text.splitlines(), 1) if each.startswith("accumulator_bit"))
    with pytest.raises(NpukitError, match="accumulator_bit") as caught:
        plugin_for(board.accelerator[0], board)
    assert f"mine.toml, line {line}" in caught.value.tries[0]
