"""Races: each class of unordered accesses is a fault with both sides. With an ordering wait there is no fault. The
values would be right either way, because each program allows enough time where it does not wait."""

from __future__ import annotations

import re

import pytest

from emulator.programs import program, resident_bytes, run_to_sleep
from helpers import first_of
from npukit.board.board import load_board
from npukit.emulator.builtin import Emulator
from npukit.emulator.faults import CoreFault
from npukit.project.images.image import Image

LONG, MEBIBYTE = 3_000_000, 1 << 20
A, B, SOURCE, LANDS = 0x12000, 0x12100, 0x12200, 0x12300
MEMORY = f"""
#include "board.h"
#define BYTE(address) (*(volatile uint8_t *)(address))
static _Alignas(16) uint32_t pool[24] = {{
    0, 4, {A}, 0, 0, {B}, 1 | 1 << 16, 0, 0, 1 | 1 << 16, 0, 0, 16 | 16 << 16, 0x01010101, 0x0101, 0x7F800000}};
static _Alignas(16) uint32_t sends[12] = {{0, 1 | 7 << 16, 0, {SOURCE}, 1, {LANDS}, 16 | 1 << 16, 0, 0, 0x0201}};
static _Alignas(16) uint32_t fetches[12] = {{0, 1 | 8 << 16, 0, {SOURCE}, 0, {A}, 16 | 1 << 16, 0, 0, 0x02FF}};
static void fill(void)
{{
    for (uint32_t i = 0; i < 16; i++) {{
        BYTE({A}U + i) = BYTE({SOURCE}U + i) = (uint8_t)i;
    }}
}}
static void until(uint32_t cycles)
{{
    while (TIMER_CYCLES < cycles) {{
    }}
}}
static void await(uint32_t flag, uint32_t count)
{{
    while (DMA_FLAG(flag) < count) {{
        wait_for_event();
    }}
}}
static void await_array(void)
{{
    while (ARRAY_STATUS != 0) {{
        wait_for_event();
    }}
}}
"""
UNUSED = "(void)pool, (void)sends, (void)fetches, (void)await, (void)await_array, (void)until;"
POOL, SEND, FETCH = (
    f"{name}_DOORBELL = (uint32_t){of};" for name, of in (("ARRAY", "pool"), ("DMA", "sends"), ("DMA", "fetches"))
)
ARRAY_OF_0 = "mac_array of PE 0"
MESSAGE = r"the DMA of PE 0 {} for message 7, descriptor sends"
CORE = r"the core of PE {} {} it at pc 0x\w+ (main|fill|await)\+0x\w+ \(.*main\.c:\d+\)"

RACES = {
    "the core rewrites the source of a message": (
        (f"{SEND} %s BYTE({SOURCE}) = 1;", "await(1, 1);", ""),
        (CORE.format(0, "stores"), MESSAGE.format("loads it")),
    ),
    "the core rewrites an operand of a command": (
        (f"{POOL} %s BYTE({A}) = 1;", "await_array();", ""),
        (CORE.format(0, "stores"), f"{ARRAY_OF_0} loads it for the command pool"),
    ),
    "the core reads what a command computes": (
        (f"{POOL} until(9000); %s (void)BYTE({B});", "await_array();", ""),
        (CORE.format(0, "loads"), f"{ARRAY_OF_0} stores it for the command pool"),
    ),
    "the core writes where a command computes": (
        (f"{POOL} %s BYTE({B}) = 1;", "await_array();", ""),
        (CORE.format(0, "stores"), f"{ARRAY_OF_0} stores it for the command pool"),
    ),
    "the core reads what a message brings": (
        (SEND, f"until(9000); %s (void)BYTE({LANDS});", "await(2, 1);"),
        (CORE.format(1, "loads"), MESSAGE.format("stores it")),
    ),
    "the core looks at the flag and does not wait for it": (
        (SEND, f"until(9000); %s (void)DMA_FLAG(2); (void)BYTE({LANDS});", "await(2, 1);"),
        (CORE.format(1, "loads"), MESSAGE.format("stores it")),
    ),
    "an array reads what a message brings": (
        (f"{FETCH} until(9000); %s {POOL} await_array();", "await(2, 1);", ""),
        ("the DMA of PE 0 stores it for message 8, descriptor fetches", f"{ARRAY_OF_0} loads it for the command pool"),
    ),
    "a message takes what a command computes": (
        (f"{POOL} until(9000); sends[3] = {B}; %s {SEND}", "await_array();", ""),
        (f"{ARRAY_OF_0} stores it for the command pool", MESSAGE.format("loads it")),
    ),
    "the core writes where a message lands": (
        (SEND, f"until(9000); %s BYTE({LANDS}) = 1;", "await(2, 1);"),
        (CORE.format(1, "stores"), MESSAGE.format("stores it")),
    ),
    "a descriptor that waits for its turn is changed": (
        (f"{SEND} {FETCH} %s fetches[6] = 0;", "await(2, 1);", ""),
        (CORE.format(0, "stores"), "the DMA of PE 0 loads its descriptor for message 8, descriptor fetches"),
    ),
    "a descriptor is changed": (
        (f"{SEND} until(9000); %s sends[6] = 0;", "await(1, 1);", ""),
        (CORE.format(0, "stores"), MESSAGE.format("loads its descriptor")),
    ),
    "a command is changed": (
        (f"{POOL} until(9000); %s pool[4] = 0;", "await_array();", ""),
        (CORE.format(0, "stores"), f"{ARRAY_OF_0} loads it for the command pool"),
    ),
}
"""Statements of PE 0; statements of PE 1; the wait, inserted at `%s`; and the two sides of the race.

The wait is the last of the three, or the second if PE 1 does nothing.
"""


def run(first: str, second: str) -> None:
    source = f"{MEMORY}int main(void) {{ fill(); if (DMA_PE == 0) {{ {first} }} else {{ {second} }} return 0; }}"
    image = Image(program(source.replace("fill(); if", f"{UNUSED} fill(); if")), (0, 1))
    with Emulator(load_board("pe-mesh"), [image], strict=True) as emulator:
        run_to_sleep(emulator)


def parts(name: str, *, waits: bool) -> tuple[str, str]:
    first, second, third = RACES[name][0]
    wait = third or second
    chosen = wait if waits else ""
    return first.replace("%s", chosen), second.replace("%s", chosen) if third else ""


@pytest.mark.parametrize("name", RACES)
def test_a_race_is_a_fault_with_both_sides(name: str) -> None:
    with pytest.raises(CoreFault) as raised:
        run(*parts(name, waits=False))
    for side in RACES[name][1]:
        assert re.search(side, raised.value.message), raised.value.message
    assert "nothing orders the two" in raised.value.message


@pytest.mark.parametrize("name", RACES)
def test_with_its_wait_it_is_none(name: str) -> None:
    run(*parts(name, waits=True))


def test_neighbouring_bytes_do_not_race() -> None:
    run(
        f"sends[3] += 1; sends[5] += 1; sends[6] = 2 | 1 << 16; {SEND} BYTE({SOURCE}) = 9;",
        f"BYTE({LANDS}) = 1; until(9000); BYTE({LANDS} + 3) = 1;",
    )


COUNTS = f"sends[2] = DMA_PE; sends[4] = 0; sends[5] = {LANDS} + 16 * DMA_PE; {SEND}"


@pytest.mark.parametrize("count", [1, 2])
def test_a_count_says_so_many_messages_and_no_more(count: int) -> None:
    """Two messages, of PE 0 and of PE 1, increment the same flag of PE 0."""
    reads = f"{COUNTS} until(9000); await(2, {count}); (void)BYTE({LANDS}); (void)BYTE({LANDS} + 16);"
    if count == 2:
        run(reads, COUNTS)
        return
    with pytest.raises(CoreFault, match=r"the DMA of PE [01] stores it for message 7, .* the core of PE 0 loads it"):
        run(reads, COUNTS)


ENDLESS = {
    "messages whose flags nobody reads": f"{SEND} while (DMA_COMPLETED < n) {{ }}",
    "commands": f"{POOL} await_array();",
}


@pytest.mark.parametrize("name", first_of(list(ENDLESS)))
def test_a_long_run_takes_no_more_memory(name: str) -> None:
    """Compares the worker's memory after many thousand operations with its memory after four times as many."""
    source = f"fill(); for (uint32_t n = 1; DMA_PE == 0; n++) {{ (void)n; {ENDLESS[name]} }} {UNUSED} return 0;"
    image = Image(program(f"{MEMORY}int main(void) {{ {source} }}"), (0, 1))
    with Emulator(load_board("pe-mesh"), [image], strict=True) as emulator:
        emulator.run(LONG)
        before = resident_bytes(emulator.worker_process_id)
        emulator.run(3 * LONG)
        assert resident_bytes(emulator.worker_process_id) - before < MEBIBYTE


@pytest.mark.parametrize("waits", [False, True])
def test_after_many_messages_a_race_is_still_found_and_no_other(waits: bool) -> None:
    """Enough messages for records to be reused: the last message still has both sides of its own."""
    messages = f"for (uint32_t n = 1; n <= 40000; n++) {{ {SEND} while (DMA_COMPLETED < n) {{ }} }}"
    last = f"{FETCH} {'await(2, 1);' if waits else ''} BYTE({A}) = 1;"
    first = f"{messages} DMA_FLAG(2) = 0; {last}"
    if waits:
        run(first, "")
        return
    with pytest.raises(CoreFault) as raised:
        run(first, "")
    for side in (CORE.format(0, "stores"), "the DMA of PE 0 stores it for message 8, descriptor fetches"):
        assert re.search(side, raised.value.message), raised.value.message
