"""Every fault that the built-in emulator must notice: provoked, and named with PE, place, cause and last messages."""

from __future__ import annotations

import pytest

from emulator.programs import RESULTS, program, run_to_sleep, words
from npukit.board.board import load_board
from npukit.emulator.builtin import Emulator
from npukit.emulator.faults import CoreFault
from npukit.emulator.waiting import Senders
from npukit.project.image import Image

PAIR = '__asm volatile("ldrd r2, r3, [%0]" :: "r"(0x10002) : "r2", "r3");'
DEEP = """
__attribute__((noinline)) static uint32_t deep(uint32_t n)
{
    volatile uint32_t room[64] = {n};
    return n == 0 ? 0 : deep(n - 1) + room[n % 64];
}
"""


def faulting(source: str, pes: tuple[int, ...] = (0,), *, strict: bool = True) -> CoreFault:
    """The fault to which the program leads."""
    image = Image(program(f'#include "board.h"\n{source}'), pes)
    with Emulator(load_board("pe-mesh"), [image], strict=strict) as emulator, pytest.raises(CoreFault) as raised:
        emulator.read(20)
    return raised.value


@pytest.mark.parametrize(
    ("instruction", "kind"),
    [
        ("ldrd r2, r3, [%0]", "r"),
        ("strd r2, r3, [%0, #8]", "r"),
        ("ldmia %0, {r2, r3}", "r"),
        ("stmia %0, {r2, r3}", "r"),
        ("vldr s0, [%0]", "r"),
        ("vstmia %0, {s0, s1}", "r"),
        ("ldrex r2, [%0]", "r"),
    ],
)
def test_words_in_pairs_and_lists_must_be_aligned(instruction: str, kind: str) -> None:
    text = f'__asm volatile("{instruction}" :: "{kind}"(0x10002) : "r2", "r3", "s0", "memory");'
    fault = faulting(f"int main(void) {{ {text} return 0; }}")
    assert "several words at address 0x00010002" in fault.message
    assert "main" in fault.message


def test_single_loads_and_aligned_pairs_do_not_fault() -> None:
    source = f"""#include "board.h"
int main(void) {{
    __asm volatile("ldr r2, [%0]\\n\\tstr r2, [%0, #1]\\n\\tldrh r3, [%0, #1]" :: "r"(0x10002) : "r2", "r3", "memory");
    {PAIR.replace("0x10002", "0x10004")}
    RESULTS[0] = 7;
    return 0;
}}"""
    with Emulator(load_board("pe-mesh"), [Image(program(source), (0,))], strict=True) as emulator:
        run_to_sleep(emulator)
        assert words(emulator, 0, 1) == [7]


def test_strictness_changes_neither_cycles_nor_instructions() -> None:
    source = f"""#include "board.h"
{DEEP}
int main(void)
{{
    RESULTS[0] = deep(9); DMA_FLAG(3) = 1; RESULTS[1] = TIMER_CYCLES; __asm volatile("sev");
    return 0;
}}"""
    image = Image(program(source), (0,))
    counted = []
    for strict in (False, True):
        with Emulator(load_board("pe-mesh"), [image], strict=strict) as emulator:
            run_to_sleep(emulator)
            counted.append((emulator.counters(0), words(emulator, 0, 2)))
    assert counted[0] == counted[1]


def test_a_stack_that_leaves_its_place() -> None:
    fault = faulting(f"{DEEP}\nint main(void) {{ RESULTS[0] = deep(1000); return 0; }}", strict=False)
    assert "the stack overflows: its pointer would be 0x0001e" in fault.message
    assert "in deep+" in fault.message
    assert "main.c:" in fault.message
    assert "sp=0x1f" in fault.facts[0]


def test_a_stack_that_just_fits_is_no_fault() -> None:
    source = f'#include "board.h"\n{DEEP}\nint main(void) {{ RESULTS[0] = 1 + deep(10); return 0; }}'
    with Emulator(load_board("pe-mesh"), [Image(program(source), (0,))]) as emulator:
        run_to_sleep(emulator)
        assert words(emulator, 0, 1) != [0]


def test_a_store_into_the_code_of_another_pe() -> None:
    fault = faulting("int main(void) { if (DMA_PE == 2) { WINDOW(3, 8) = 0; } return 0; }", (2, 3))
    assert fault.message.startswith("PE 2 stopped at pc 0x")
    assert "address 0x00000008 in the code of PE 3" in fault.message
    assert "main.c:2" in fault.message


def test_a_jump_into_the_memory_of_another_pe() -> None:
    fault = faulting("int main(void) { ((void (*)(void))(0xF0020001U))(); return 0; }", (0, 1))
    assert "a jump to address 0xf0020000" in fault.message


COPY = """
static const _Alignas(16) uint32_t copy[12] = {0, 1 | 9U << 16, %s, 0x10000, %s, %s, 16 | 1U << 16, 0, 0, 0x%s, 0, 0};
"""


def test_a_message_into_the_code_of_another_pe_tells_the_last_messages() -> None:
    source = COPY % (1, 4, "0x40", "05FF") + (
        "int main(void) { if (DMA_PE == 1) { DMA_DOORBELL = (uint32_t)copy; } wait_for_event(); return 0; }"
    )
    fault = faulting(source, (1, 4))
    assert fault.pe == 1
    assert "its DMA would write to address 0x00000040 in the code of PE 4" in fault.message
    assert any("message 9, 16 bytes from PE 1 to PE 4 at 0x00040, flag 5, left" in fact for fact in fault.facts)


def test_memory_of_another_pe_that_holds_no_code_may_be_written() -> None:
    source = COPY % (1, 4, "0x11000", "05FF") + (
        "int main(void) { if (DMA_PE == 1) { RESULTS[0] = 5; DMA_DOORBELL = (uint32_t)copy; } return 0; }"
    )
    elf = program(f'#include "board.h"\n{source}')
    with Emulator(load_board("pe-mesh"), [Image(elf, (1, 4))], strict=True) as emulator:
        run_to_sleep(emulator)
        assert words(emulator, 4, 1, RESULTS + 0x1000) == [5]


WAITING = """#include "board.h"
static void await(uint32_t flag) { while (DMA_FLAG(flag) == 0) { wait_for_event(); } }
int main(void)
{
    const uint32_t pe = DMA_PE;
    await(pe == 0 ? 3 : pe == 5 ? 4 : 6);
    return 0;
}
"""


def silence(senders: Senders, pes: tuple[int, ...] = (0, 5, 9)) -> tuple[str, ...]:
    image = Image(program(WAITING), pes)
    with Emulator(load_board("pe-mesh"), [image], senders=senders) as emulator:
        run_to_sleep(emulator)
        return emulator.silence()


def test_who_waits_for_whom_is_told_from_the_root_on() -> None:
    first, second, third = silence({(0, 3): [5], (5, 4): [9]})
    assert first.startswith("PE 0 waits for flag 3 (it reads 0), which PE 5 counts: at pc 0x")
    assert "in main+" in first
    assert second.startswith("PE 5 waits for flag 4 (it reads 0), which PE 9 counts")
    assert third.startswith("PE 9 waits for flag 6 (it reads 0): at pc")


def test_a_circle_of_waits_is_named() -> None:
    assert silence({(0, 3): [5], (5, 4): [9], (9, 6): [5]})[-1] == "PE 5 and PE 9 wait for each other"


def test_a_pe_that_waits_for_no_other_ends_the_chain() -> None:
    lines = silence({(0, 3): [7]}, (0,))
    assert [line.split(" at ")[0] for line in lines][1:] == ["PE 7 has no program"]
