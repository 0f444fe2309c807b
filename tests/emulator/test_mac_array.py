"""The emulator's MAC array against the numpy model: two independent readings of the hardware manual."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import pytest

from emulator.commands import FIRST_FREE, FIRST_STACK, SRAM_BYTES, overlaps, random_command, spoilt
from emulator.programs import program, running, words
from npukit.board.board import load_board
from npukit.emulator.builtin import Emulator
from npukit.emulator.faults import CoreFault
from oracles.mac_array_command import Command, Error, Flag, Kind
from oracles.mac_array_model import Array

COMMAND = 0x1000
RESULTS = 0x1F00
COMMANDS = 400

# For each byte from the host: run the chain at COMMAND, write its error and cycles to RESULTS, answer.
SERVER = f"""
#include "board.h"
int main(void)
{{
    for (;;) {{
        while (!(UART_STATUS & 1)) {{
            wait_for_event();
        }}
        (void)UART_DATA;
        volatile uint32_t *results = (volatile uint32_t *){RESULTS}U;
        const uint32_t before = ARRAY_BUSY_CYCLES;
        ARRAY_DOORBELL = {COMMAND}U;
        while (ARRAY_STATUS & 1) {{
            wait_for_event();
        }}
        results[0] = ARRAY_BUSY_CYCLES - before;
        results[1] = ARRAY_ERROR;
        results[2] = ARRAY_ERROR_COMMAND;
        results[3] = ARRAY_COMPLETED;
        ARRAY_ERROR = 0;
        UART_DATA = '.';
    }}
}}
"""


@pytest.fixture(scope="module")
def array() -> Iterator[Emulator]:
    with running((program(SERVER), (0,))) as emulator:
        yield emulator


@pytest.fixture(scope="module")
def figures() -> dict[str, int]:
    slot = load_board("pe-mesh").accelerator_named("mac_array")
    assert slot is not None
    return slot.figures


def run(emulator: Emulator, sram: np.ndarray) -> tuple[Error, int]:
    """Run the chain at COMMAND in `sram` and update `sram`. Returns the error and the cycles."""
    emulator.write_memory(0, COMMAND, sram[COMMAND:RESULTS].tobytes())
    emulator.write_memory(0, FIRST_FREE, sram[FIRST_FREE:FIRST_STACK].tobytes())
    emulator.write(b"!")
    assert emulator.read(20) == b"."
    sram[:] = np.frombuffer(emulator.read_memory(0, 0, SRAM_BYTES), np.uint8)
    cycles, error, _, _ = words(emulator, 0, 4, RESULTS)
    return Error(error), cycles


def place(sram: np.ndarray, command: Command, address: int = COMMAND) -> None:
    sram[address : address + 96] = np.frombuffer(command.pack(), np.uint8)


@pytest.mark.parametrize("seed", range(6))
def test_random_commands_leave_the_same_bytes_and_take_the_same_cycles(
    array: Emulator, figures: dict[str, int], seed: int
) -> None:
    random = np.random.default_rng(seed)
    seen = set()
    for _ in range(COMMANDS):
        sram = random.integers(0, 256, SRAM_BYTES, np.uint8)
        command = random_command(random, sram)
        wrong = spoilt(random, command) if random.random() < 0.15 else command
        command = command if overlaps(wrong) else wrong
        place(sram, command)
        expected = sram.copy()
        outcome = Array(expected, figures).execute(COMMAND)
        assert run(array, sram) == outcome, command
        assert np.array_equal(sram[FIRST_FREE:FIRST_STACK], expected[FIRST_FREE:FIRST_STACK]), command
        seen.add((command.kind, outcome[0]))
    assert {(kind, Error.NONE) for kind in Kind} <= seen
    assert {error for _, error in seen} >= {Error.KIND, Error.OPERAND, Error.ALIGNMENT, Error.FIELD}


def test_a_chain_runs_to_its_end(array: Emulator, figures: dict[str, int]) -> None:
    random = np.random.default_rng(1)
    sram = random.integers(0, 256, SRAM_BYTES, np.uint8)
    commands = [random_command(random, sram) for _ in range(3)]
    expected, total = None, 0
    for number, command in enumerate(commands):
        here = COMMAND + 96 * number
        place(sram, replace(command, next=here + 96 if number < 2 else 0), here)
    expected = sram.copy()
    for number in range(3):
        error, cycles = Array(expected, figures).execute(COMMAND + 96 * number, first=number == 0)
        assert error is Error.NONE
        total += cycles
    assert run(array, sram) == (Error.NONE, total)
    assert np.array_equal(sram[FIRST_FREE:FIRST_STACK], expected[FIRST_FREE:FIRST_STACK])


def test_an_error_stops_the_chain_at_the_command_at_fault(array: Emulator) -> None:
    sram = np.zeros(SRAM_BYTES, np.uint8)
    good = random_command(np.random.default_rng(2), sram)
    place(sram, replace(good, next=COMMAND + 96))
    place(sram, replace(good, kind=9), COMMAND + 96)
    completed = words(array, 0, 4, RESULTS)[3]
    error, _ = run(array, sram)
    assert error is Error.KIND
    assert words(array, 0, 4, RESULTS)[2:] == [COMMAND + 96, completed + 1]


def test_a_sum_wraps_at_29_bits(array: Emulator, figures: dict[str, int]) -> None:
    sram = np.zeros(SRAM_BYTES, np.uint8)
    command = Command(
        kind=Kind.CONVOLUTION,
        flags=Flag.RAW,
        **dict.fromkeys(("input_height", "input_width", "output_height", "output_width"), 1),
        **dict.fromkeys(("kernel_height", "kernel_width", "stride_y", "stride_x", "dilation_y", "dilation_x"), 1),
        input_channels=1,
        output_channels=1,
        input=0x2000,
        weights=0x3000,
        parameters=0x4000,
        output=0x5000,
    )
    sram[0x2000], sram[0x3000] = 1, 1
    sram[0x4000:0x4004] = np.array([(1 << 28) - 1], "<i4").view(np.uint8)
    place(sram, command)
    run(array, sram)
    assert int(sram[0x5000:0x5004].view("<i4")[0]) == -(1 << 28)


# The manual's formulas with numbers inserted by hand.
BY_HAND = [
    # 8 x 8 pixels, 3 x 3 x 16 -> 32: B = 2, G = 16, K = 144, r = 9: the sums are longer than 72 + 4 + 18 accesses
    (Kind.CONVOLUTION, Flag.NONE, (8, 8, 16, 32, 3), 28 + 10 + 4 * 9 + 32 * 144 + 8 + 16),
    # the same along pixels: B = 8, G = 4, l = 18: the port is full
    (Kind.CONVOLUTION, Flag.PIXELS, (8, 8, 16, 32, 3), 28 + 8 * 20 + 32 * (16 * 9 + 16) + 16 + 8 + 16),
    # raw, 1 pixel on two lanes, K = 64, r = 4
    (Kind.CONVOLUTION, Flag.RAW, (1, 1, 64, 10, 1), 28 + 5 + 4 + (32 + 4) + 8 + 4),
    # the same with 3 channels: rows of 4 weights, so the sums are as long as the port's accesses
    (Kind.CONVOLUTION, Flag.RAW, (1, 1, 64, 3, 1), 28 + 5 + 4 + 32 + 8 + 4),
    # 5 x 5 pixels, 20 channels, 3 x 3: B = 2, Y = 2, q = 6: the output stage is the longest
    (Kind.DEPTHWISE, Flag.NONE, (5, 5, 20, 20, 3), 28 + 2 * (5 + 2 * (2 * 6 + 5 * 16)) + 8 + 16),
    # 4 x 4 pixels of 10 elements without gaps: 3 pieces a row
    (Kind.ADD, Flag.NONE, (4, 4, 10, 10, 1), 28 + 1 + 4 * 3 * 12 + 8 + 12),
    # 2 x 2 pixels, 40 channels, 2 x 2: B = 3
    (Kind.AVERAGE_POOL, Flag.NONE, (2, 2, 40, 40, 2), 28 + 12 * 5 + 8 + 4),
]


@pytest.mark.parametrize(("kind", "flags", "shape", "cycles"), BY_HAND)
def test_cycles_by_hand(
    array: Emulator, kind: Kind, flags: Flag, shape: tuple[int, int, int, int, int], cycles: int
) -> None:
    height, width, inputs, outputs, kernel = shape
    sram = np.zeros(SRAM_BYTES, np.uint8)
    size = 4 if Flag.RAW in flags else 1
    command = Command(
        kind=kind,
        flags=flags,
        input=0x2000,
        weights=0x4000,
        parameters=0xC000,
        output=0x10000,
        input_height=height + kernel - 1,
        input_width=width + kernel - 1,
        input_row_stride=(width + kernel - 1) * inputs,
        input_pixel_stride=inputs,
        second_row_stride=width * inputs,
        second_pixel_stride=inputs,
        output_height=height,
        output_width=width,
        output_row_stride=width * outputs * size,
        output_pixel_stride=outputs * size,
        input_channels=inputs,
        output_channels=outputs,
        kernel_height=kernel,
        kernel_width=kernel,
        **dict.fromkeys(("stride_y", "stride_x", "dilation_y", "dilation_x"), 1),
    )
    place(sram, command)
    assert run(array, sram) == (Error.NONE, cycles)


ADDITION = Command(
    kind=Kind.ADD,
    input=0x4000,
    input_row_stride=64,
    input_pixel_stride=16,
    weights=0x5000,
    second_row_stride=64,
    second_pixel_stride=16,
    parameters=0x6000,
    output=0x7000,
    output_height=4,
    output_width=4,
    output_channels=16,
    output_row_stride=64,
    output_pixel_stride=16,
)
CONVOLUTION = Command(
    kind=Kind.CONVOLUTION,
    input=0x4000,
    input_height=4,
    input_width=4,
    input_row_stride=64,
    input_pixel_stride=16,
    input_channels=16,
    weights=0x5000,
    parameters=0x6000,
    output=0x7000,
    output_height=4,
    output_width=4,
    output_row_stride=64,
    output_pixel_stride=16,
    output_channels=16,
    **dict.fromkeys(("kernel_height", "kernel_width", "stride_y", "stride_x", "dilation_y", "dilation_x"), 1),
    extra=0x7000,
    extra_row_stride=64,
    extra_pixel_stride=16,
    residual_parameters=0x6800,
)


WIDE = dict.fromkeys(("input_row_stride", "output_row_stride"), 128) | dict.fromkeys(
    ("input_pixel_stride", "output_pixel_stride"), 32
)
OVERLAPS = [
    (replace(ADDITION, output=0x4000), None),
    (replace(ADDITION, output=0x5000), None),
    (replace(ADDITION, output=0x4001), "its input"),
    (replace(ADDITION, output=0x5000, output_row_stride=128), "its second input"),
    (replace(ADDITION, output=0x6010), "its parameters"),
    (replace(ADDITION, output_pixel_stride=15), "its output"),
    (replace(ADDITION, output=0x4010, **WIDE), None),
    (replace(CONVOLUTION, output=0x4000), "its input"),
    (replace(CONVOLUTION, output=0x50F0), "its weights"),
    (replace(CONVOLUTION, flags=Flag.RESIDUAL), None),
    (replace(CONVOLUTION, flags=Flag.RESIDUAL, extra=0x7010), "what it adds"),
    (replace(CONVOLUTION, flags=Flag.RESIDUAL, output=0x6800, extra=0x6800), "its residual parameters"),
    (replace(CONVOLUTION, flags=Flag.ACCUMULATE, extra_pixel_stride=64, extra_row_stride=256), "the accumulators"),
    (replace(CONVOLUTION, kind=Kind.AVERAGE_POOL, output=0x4030), "its input"),
]
"""Commands, and the operand that each output overlaps, where it must not."""


@pytest.mark.parametrize(("command", "overlapped"), OVERLAPS)
def test_the_output_lies_on_no_operand_but_exactly_on_one_that_goes_in_element_by_element(
    command: Command, overlapped: str | None
) -> None:
    sram = np.zeros(SRAM_BYTES, np.uint8)
    place(sram, command)
    assert overlaps(command) == (overlapped is not None)
    with running((program(SERVER), (0,))) as emulator:
        if overlapped is None:
            assert run(emulator, sram)[0] is Error.NONE
        else:
            with pytest.raises(CoreFault, match=f"lays its output on {overlapped}.* undefined") as raised:
                run(emulator, sram)
            assert " in main+" in raised.value.message


@pytest.mark.exhaustive
def test_accumulators_may_be_added_to_in_place() -> None:
    """Software that sums in parts does this: `RAW`, with the initial accumulators exactly at the output."""
    sram = np.zeros(SRAM_BYTES, np.uint8)
    strides = {
        f"{name}_{axis}_stride": size for name in ("extra", "output") for axis, size in (("row", 256), ("pixel", 64))
    }
    place(sram, replace(CONVOLUTION, flags=Flag.ACCUMULATE | Flag.RAW, **strides))
    with running((program(SERVER), (0,))) as emulator:
        assert run(emulator, sram)[0] is Error.NONE
