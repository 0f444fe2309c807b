"""Core: sleep and events, peripherals, faults, repeatable runs."""

from __future__ import annotations

from pathlib import Path

import pytest

from emulator.programs import RESULTS, program, run_to_sleep, running, words
from npukit.board.board import load_board
from npukit.emulator.builtin import Emulator
from npukit.errors import NpukitError
from npukit.project.images.image import Image, Overlay


def run_alone(body: str, count: int) -> list[int]:
    """RESULTS on PE 0 after the statements."""
    source = f'#include "board.h"\nint main(void) {{ {body} return 0; }}'
    with running((program(source), (0,))) as emulator:
        run_to_sleep(emulator)
        return words(emulator, 0, count)


def test_sev_lets_the_next_wfe_through_once() -> None:
    values = run_alone(
        'RESULTS[0] = 1; __asm volatile("sev"); wait_for_event(); RESULTS[1] = 1; wait_for_event(); RESULTS[2] = 1;', 3
    )
    assert values == [1, 1, 0]


def test_a_skipped_sev_sends_nothing() -> None:
    values = run_alone(
        'RESULTS[0] = 1; __asm volatile("cmp sp, #0\\n\\tit eq\\n\\tseveq"); wait_for_event(); RESULTS[1] = 1;', 2
    )
    assert values == [1, 0]


def test_an_event_before_the_wfe_is_not_lost() -> None:
    """The MAC array refuses the command at once: the event register is set before the core sleeps."""
    values = run_alone("ARRAY_DOORBELL = 4; wait_for_event(); RESULTS[0] = ARRAY_ERROR; RESULTS[1] = ARRAY_STATUS;", 2)
    assert values == [2, 2]


def test_sleep_is_counted() -> None:
    body = """
    const uint32_t before = TIMER_SLEEP;
    ARRAY_DOORBELL = WORK;
    wait_for_event();
    RESULTS[0] = TIMER_SLEEP - before;
    RESULTS[1] = ARRAY_BUSY_CYCLES;
    """
    source = f'#include "board.h"\nint main(void) {{ {body} return 0; }}'
    add = bytes([0, 0, 0, 0, 3]) + bytes(91)  # refused: a size of zero
    with running((program(source), (0,))) as emulator:
        emulator.write_memory(0, 0x11000, add)
        run_to_sleep(emulator)
        assert words(emulator, 0, 2) == [26, 28]  # the check takes 28 cycles, the core sleeps two cycles later


def test_a_register_access_in_an_it_block_survives_a_stop() -> None:
    """The core stops before the load and continues in the middle of the block."""
    body = """
    uint32_t a = 1, b = 2, c = 3;
    __asm volatile("cmp %0, #1\\n\\titte eq\\n\\tldreq %0, [%3]\\n\\tmoveq %1, #7\\n\\tmovne %2, #9"
        : "+r"(a), "+r"(b), "+r"(c) : "r"(0xE2000014U) : "cc");
    RESULTS[0] = a; RESULTS[1] = b; RESULTS[2] = c;
    """
    assert run_alone(body, 3) == [16, 7, 3]


SIXTEEN = bytes.fromhex("10 22 00 bf 70 47")
"""movs r2, #16; nop; bx lr"""
SIXTEEN_OF_A_REGISTER = bytes.fromhex("08 bf 0a 68 70 47")
"""it eq; ldreq r2, [r1]; bx lr"""


@pytest.mark.parametrize("place", ["in the program", "outside"])
def test_what_is_known_of_code_is_not_believed_of_another_pe_whose_code_differs(place: str) -> None:
    """Both PEs run the same program, but PE 1 has another function at `at`. The function's access must not get lost."""
    source = """
#include "board.h"
__attribute__((naked, noinline)) static void sixteen(void) { __asm volatile("movs r2, #16\\n\\tnop\\n\\tbx lr"); }
int main(void)
{
    uint32_t found = 0;
    const uint32_t place = RESULTS[1] ? RESULTS[1] : (uint32_t)sixteen;
    __asm volatile("movs r2, #0\\n\\tmov r1, %1\\n\\tcmp r1, r1\\n\\tblx %2\\n\\tmov %0, r2"
        : "=r"(found) : "r"(0xE2000014U), "r"(place) : "r1", "r2", "lr", "cc");
    RESULTS[0] = found;
    return 0;
}
"""
    with running((program(source), (0, 1))) as emulator:
        at = emulator.read_memory(0, 0, 0x4000).index(SIXTEEN) if place == "in the program" else 0x1_8000
        for pe, code in ((0, SIXTEEN), (1, SIXTEEN_OF_A_REGISTER)):
            emulator.write_memory(pe, at, code)
            emulator.write_memory(pe, RESULTS + 4, (at | 1).to_bytes(4, "little"))
        run_to_sleep(emulator)
        assert [words(emulator, pe, 1) for pe in (0, 1)] == [[16], [16]]


CUT_FROM_ITS_IT = """
#include "board.h"
__attribute__((naked, noinline, aligned(1024))) static void cut(void)
{
    __asm volatile("b 1f\\n\\t.space 0x3F8\\n1:\\tcmp r0, r0\\n\\tit eq\\n\\tldrsbeq.w r3, [r0]\\n\\tldrsb.w r3, [r0]"
        "\\n\\tcmp r0, #0\\n\\tb 2f\\n2:\\tmovs r2, #16\\n\\tbx lr");
}
int main(void)
{
    uint32_t found = 0;
    __asm volatile("movs r2, #0\\n\\tmov r0, %1\\n\\tblx %2\\n\\tmov %0, r2"
        : "=r"(found) : "r"((uint32_t)cut & ~1U), "r"(cut) : "r0", "r2", "r3", "lr", "cc", "memory");
    RESULTS[0] = found;
    return 0;
}
"""


def test_a_load_in_another_page_than_its_it_instruction_leaves_no_condition_behind() -> None:
    with Emulator(load_board("pe-mesh"), [Image(program(CUT_FROM_ITS_IT), (0,))], strict=True) as emulator:
        run_to_sleep(emulator)
        assert words(emulator, 0, 1) == [16]


def test_a_conditional_access_sees_what_others_have_done_by_then() -> None:
    """PE 0 polls a flag under IT and records when it sees the flag. PE 1 signals late and records when."""
    source = """
#include "board.h"
static const _Alignas(16) uint32_t signal[12] = {0, 1, 1, 0, 0, 0, 0, 0, 0, 0x01FF, 0, 0};
int main(void)
{
    uint32_t seen = 0, before, after;
    if (DMA_PE == 1) {
        while (TIMER_CYCLES < 70000U) {
        }
        RESULTS[0] = TIMER_CYCLES;
        DMA_DOORBELL = (uint32_t)signal;
        return 0;
    }
    do {
        before = TIMER_CYCLES;
        __asm volatile("cmp %0, #0\\n\\tit eq\\n\\tldreq %0, [%1]" : "+r"(seen) : "r"(0xE2000104U) : "cc", "memory");
        after = TIMER_CYCLES;
    } while (seen == 0);
    RESULTS[0] = before;
    RESULTS[1] = after;
    return 0;
}
"""
    with running((program(source), (0, 1))) as emulator:
        run_to_sleep(emulator)
        (before, after), (rung,) = words(emulator, 0, 2), words(emulator, 1, 1)
    comes = rung + 20 + 4 + 1  # one flit over one link
    assert before - 15 < comes < after + 8  # the doorbell is rung a few cycles after its time is read


def test_a_vector_table_that_leads_nowhere_is_a_fault() -> None:
    overlay = Overlay(0, 4, (0x4000_0001).to_bytes(4, "little"))
    image = Image(program(ECHO), (0,), (overlay,))
    with (
        Emulator(load_board("pe-mesh"), [image]) as emulator,
        pytest.raises(NpukitError, match="a jump to address 0x40000000"),
    ):
        emulator.read(5)


def test_the_time_is_exact_in_the_middle_of_a_block() -> None:
    body = """
    uint32_t first, second, third;
    __asm volatile("ldr %0, [%3]\\n\\tnop\\n\\tnop\\n\\tnop\\n\\tldr %1, [%3]\\n\\tnop\\n\\tldr %2, [%3]"
        : "=&r"(first), "=&r"(second), "=&r"(third) : "r"(0xE1000000U));
    RESULTS[0] = second - first; RESULTS[1] = third - second;
    """
    assert run_alone(body, 2) == [5, 3]


def test_a_store_with_write_back_happens_once() -> None:
    body = """
    uint32_t flag = 0xE2000100U;
    __asm volatile("str %1, [%0], #4" : "+r"(flag) : "r"(5) : "memory");
    RESULTS[0] = flag; RESULTS[1] = DMA_FLAG(0); RESULTS[2] = DMA_FLAG(1);
    """
    assert run_alone(body, 3) == [0xE2000104, 5, 0]


ECHO = """
#include "board.h"
int main(void)
{
    for (;;) {
        while (!(UART_STATUS & 1)) {
            wait_for_event();
        }
        const uint32_t byte = UART_DATA;
        while (!(UART_STATUS & 2)) {
        }
        UART_DATA = byte;
    }
}
"""


def test_the_uart_echoes_at_its_speed() -> None:
    with running((program(ECHO), (0,))) as emulator:
        assert emulator.read(5) == b""
        before = emulator.time()
        emulator.write(b"x")
        assert emulator.read(5) == b"x"
        # 10 bits at 1 Mbaud are 3000 cycles, once each way.
        assert 6000 < emulator.time() - before < 6050


def test_bytes_that_nobody_reads_are_lost() -> None:
    source = """
#include "board.h"
int main(void)
{
    while (TIMER_CYCLES < 3000U * 310U) {
    }
    RESULTS[0] = UART_STATUS;
    RESULTS[1] = UART_STATUS;
    while (UART_STATUS & 1) {
        RESULTS[2]++;
        RESULTS[3] = UART_DATA;
    }
    return 0;
}
"""
    with running((program(source), (0,))) as emulator:
        emulator.write(bytes(i % 251 for i in range(300)))
        run_to_sleep(emulator)
        assert words(emulator, 0, 4) == [7, 3, 256, 255 % 251]


def test_an_endless_loop_ends_with_the_timeout() -> None:
    source = '#include "board.h"\nint main(void) { for (;;) { RESULTS[0]++; } }'
    with running((program(source), (0,))) as emulator:
        assert emulator.read(0.3) == b""
        assert words(emulator, 0, 1)[0] > 1000


RING = """
#include "board.h"
static _Alignas(16) uint32_t descriptor[12];
int main(void)
{
    const uint32_t pe = DMA_PE, next = (pe + 1U) % 16U;
    const uint32_t fields[12] = {0, 1, pe, 0x10000U, next, 0x10000U, 4U | 1U << 16, 0, 0, 0x01FFU, 0, 0};
    for (uint32_t i = 0; i < 12; i++) {
        ((volatile uint32_t *)descriptor)[i] = fields[i];
    }
    for (uint32_t round = 1; round <= 20; round++) {
        while (pe != 0 && DMA_FLAG(1) < round) {
            if (pe % 2U) {
                wait_for_event();
            }
        }
        RESULTS[0] += pe + round;
        RESULTS[round] = TIMER_CYCLES;
        DMA_DOORBELL = (uint32_t)descriptor;
        while (pe == 0 && DMA_FLAG(1) < round) {
        }
    }
    return 0;
}
"""


def test_runs_repeat_to_the_cycle() -> None:
    """Polling PEs and sleeping PEs, each waiting for the PE before it."""

    def everything() -> list[object]:
        with running((program(RING), tuple(range(16)))) as emulator:
            run_to_sleep(emulator)
            return [(emulator.counters(pe), words(emulator, pe, 21)) for pe in range(16)]

    first = everything()
    assert everything() == first
    assert words_of(first[0])[0] == sum(sum(pe + r for pe in range(16)) for r in range(1, 21))


def words_of(found: object) -> list[int]:
    assert isinstance(found, tuple)
    return found[1]


def test_time_passes_in_run() -> None:
    source = '#include "board.h"\nint main(void) { for (;;) { RESULTS[0] = TIMER_CYCLES; } }'
    with running((program(source), (0,))) as emulator:
        emulator.run(100_000)
        assert emulator.time() == 100_000
        assert 99_000 < words(emulator, 0, 1)[0] <= 100_100
        emulator.run(50_000)
        assert emulator.time() == 150_000


def test_overlays_are_each_pe_s_own() -> None:
    elf = program('#include "board.h"\nint main(void) { RESULTS[1] = RESULTS[0] + 1; return 0; }')
    overlays = tuple(Overlay(pe, RESULTS, (10 * pe).to_bytes(4, "little")) for pe in (0, 1))
    with Emulator(load_board("pe-mesh"), [Image(elf, (0, 1), overlays)]) as emulator:
        run_to_sleep(emulator)
        assert [words(emulator, pe, 2)[1] for pe in (0, 1)] == [1, 11]


def test_a_dead_worker_is_said() -> None:
    with running((program(ECHO), (0,))) as emulator:
        emulator._worker._process.kill()
        with pytest.raises(NpukitError, match="worker process was killed by SIGKILL"):
            emulator.read(1)


def test_a_board_of_another_kind_is_refused() -> None:
    board = load_board("nrf52840-dk").model_copy(update={"runs_on": ("renode",)})
    with pytest.raises(NpukitError, match="nrf52840-dk does not run on the built-in emulator"):
        Emulator(board, [])


def test_an_image_that_is_no_elf_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "not.elf"
    path.write_text("hello")
    with pytest.raises(NpukitError, match=r"not\.elf cannot be read"):
        Emulator(load_board("pe-mesh"), [Image(path, (0,))])


def test_pes_of_one_image_share_pages_until_they_write() -> None:
    """Each PE has its own copy of the pages written. The host writes to the memory of a single PE."""
    elf = program('#include "board.h"\nint main(void) { RESULTS[DMA_PE] = RESULTS[32] + DMA_PE; return 0; }')
    overlay = Overlay(5, RESULTS + 128, (100).to_bytes(4, "little"))
    with Emulator(load_board("pe-mesh"), [Image(elf, (0, 5, 9), (overlay,))]) as emulator:
        run_to_sleep(emulator)
        found = [words(emulator, pe, 10) for pe in (0, 5, 9)]
    assert [values[pe] for values, pe in zip(found, (0, 5, 9), strict=True)] == [0, 105, 9]
    assert [sum(values) for values in found] == [0, 105, 9]
