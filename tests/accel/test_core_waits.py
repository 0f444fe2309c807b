"""Wait states of a board's memories: their prediction, and the choice of constants for memory without wait states."""

from __future__ import annotations

import pytest

from end_to_end.builds import DIGITS
from npukit import api
from npukit.accel.core_kernels import CoreKernels, choose_core_kernels
from npukit.accel.core_waits import NO_WAITS, CoreWaits, core_waits
from npukit.accel.cortex_m.code.assembly import Assembly, CodeWorth
from npukit.accel.cpu import Cpu
from npukit.board.board import Waits, load_board
from npukit.net.net import CORE
from npukit.quantize.models import load_model

FLASH = Waits(cycles=5, next_cycles=2, line_bytes=8, lines=16, data_lines=4)


def _nested() -> Assembly:
    """After 4 bytes, a loop of 3 passes with 18 bytes of its own, around a loop of 4 passes with 10 bytes."""
    code = Assembly()
    code.emit("movw r0, #1000")
    with code.loop(3, closing=("subs r1, r1, #1",)):
        code.emit("movw r2, #1000", "movw r2, #1000", "movw r2, #1000")
        with code.loop(4, closing=("subs r2, r2, #1",)):
            code.emit("movw r3, #1000")
    return code


@pytest.mark.parametrize(("kept", "fetched"), [(64, 32), (16, 4 + 3 * 28), (4, 4 + 3 * (18 + 4 * 10))])
def test_a_loop_is_fetched_once_where_the_cache_holds_it(kept: int, fetched: int) -> None:
    code = _nested()
    assert code.bytes == 32
    assert code.fetched_bytes(kept) == fetched


def test_code_that_waits_is_worth_less_where_its_loops_are_not_kept() -> None:
    code = _nested()
    at_once, kept, anew = (code.cost(CodeWorth(0, fetch, 64 // size)) for fetch, size in ((0, 1), (1, 1), (1, 16)))
    assert at_once == code.instructions + code.cycles
    assert (kept, anew) == (at_once + 32, at_once + 4 + 3 * (18 + 4 * 10))


def test_kernels_are_chosen_by_what_their_fetches_cost() -> None:
    """A cache of 1 KB cannot hold a loop unrolled for eight blocks."""
    net = load_model(DIGITS / "digits_int8.tflite").net
    net = net.with_ops(tuple(op.placed(CORE) for op in net.ops))
    waits = core_waits(load_board("nucleo-l4r5zi"))
    without, chosen = (choose_core_kernels(net, "latency", waits=each) for each in (NO_WAITS, waits))

    def code_waits(kernels: CoreKernels) -> int:
        return sum(waits.of_code(each.kernels) for each in kernels.ops.values())

    assert code_waits(chosen) < 0.7 * code_waits(without)


def test_constants_that_the_cache_does_not_hold_are_waited_for_in_each_sweep() -> None:
    waits = CoreWaits(FLASH, FLASH)
    assert waits.of_constants("op", size=32, sweeps=10) == 5 * 4
    assert waits.of_constants("op", size=40, sweeps=10) == 5 * 5 * 10
    assert CoreWaits().of_constants("op", size=40, sweeps=10) == 0


def test_constants_that_gain_most_for_their_bytes_are_near() -> None:
    gains = {"once": (100, 100), "often": (1000, 100), "large": (2000, 500)}
    assert CoreWaits(FLASH, FLASH).with_near(gains, 250).near == {"once", "often"}
    assert CoreWaits(FLASH, FLASH).with_near(gains, 600).near == {"often", "large"}


def test_what_is_near_is_not_waited_for() -> None:
    board, net = load_board("nucleo-l4r5zi"), load_model(DIGITS / "digits_int8.tflite").net
    net = net.with_ops(tuple(op.placed(CORE) for op in net.ops))
    there = Cpu(core=board.core.type, waits=core_waits(board))
    near = there.with_constants_near(net, 1 << 20)
    dense = next(op for op in net.ops if op.kind == "dense")
    assert dense.name in near.waits.near
    assert near.constants_near(net) > 1000
    assert there.with_constants_near(net, 0).constants_near(net) == 0


def test_a_board_whose_memory_is_full_keeps_constants_in_flash(tmp_path_factory: pytest.TempPathFactory) -> None:
    """Constants are copied to SRAM as far as there is room; with all of the board's SRAM, nearly all constants."""
    folder = tmp_path_factory.mktemp("boards")
    path = folder / "small.toml"
    path.write_text(SMALL)
    large, small = (api.fit(DIGITS / "digits_int8.tflite", board=name) for name in ("nucleo-l4r5zi", str(path)))
    assert small.predicted["latency_cycles"] > 1.1 * large.predicted["latency_cycles"]


SMALL = """like = "nucleo-l4r5zi"
name = "small"
summary = "a board with less SRAM"

[[memory]]
name = "Flash"
origin = 0x0800_0000
size = 0x20_0000
holds = ["code", "constants"]
waits = { cycles = 5, next_cycles = 2, line_bytes = 8, lines = 128, ways = 4, data_lines = 32 }

[[memory]]
name = "RAM"
origin = 0x2000_0000
size = 0x4000
holds = ["activations", "stack"]
"""
