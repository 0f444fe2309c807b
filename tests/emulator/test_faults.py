"""Every fault that the emulator must detect: provoked, and reported with PE, place, cause and last messages."""

from __future__ import annotations

import re

import pytest

from emulator.programs import RESULTS, program, run_to_sleep, words
from npukit.board.board import load_board
from npukit.emulator import patience
from npukit.emulator.builtin import Emulator
from npukit.emulator.faults import CoreFault
from npukit.emulator.waiting import Senders
from npukit.project.images.image import Image, Overlay
from oracles.dma_model import DRAM

PAIR = '__asm volatile("ldrd r2, r3, [%0]" :: "r"(0x10002) : "r2", "r3");'
DEEP = """
__attribute__((noinline)) static uint32_t deep(uint32_t n)
{
    volatile uint32_t room[64] = {n};
    return n == 0 ? 0 : deep(n - 1) + room[n % 64];
}
"""


FAULTS = {
    "a_store_to_nothing": ("REGISTER(0x30000000U) = 1;", "a store to address 0x30000000, where nothing is"),
    "a_load_from_nothing": ("RESULTS[0] = REGISTER(0x20000U);", "a load from address 0x00020000, where nothing is"),
    "an_undefined_instruction": ('__asm volatile("udf #0");', "an undefined instruction"),
    "a_misaligned_pair": (PAIR, "an access to several words at address 0x00010002, which is not a multiple of 4"),
    "half_a_register": ("*(volatile uint8_t *)0xE2000100U = 1;", "register that is not an aligned word (offset 0x100)"),
    "an_svc": ('__asm volatile("svc #0");', "an SVC instruction, for which the board has no handler"),
    "a_breakpoint": ('__asm volatile("bkpt #0");', "a breakpoint"),
    "a_message_into_code": ("DMA_DOORBELL = (uint32_t)&copies[12];", "to address 0x00000040 in the code of PE 1"),
    "a_deep_stack": ("RESULTS[0] = deep(1000);", "the stack overflows: its pointer would be 0x0001e"),
    "a_jump_to_nothing": ("((void (*)(void))0x40000001U)();", "a jump to address 0x40000000, where it has no code"),
    "an_fpu_that_is_off": (
        'REGISTER(0xE000ED88U) = 0; __asm volatile("dsb\\n\\tisb\\n\\tvmov s0, %0" :: "r"(1) : "s0");',
        "an FPU instruction before CPACR enables the FPU",
    ),
    "a_sleep_for_good": ('__asm volatile("wfi");', "a WFI that nothing ends"),
    "a_store_into_own_code": (
        "*(volatile uint32_t *)0x40 = 0;",
        "a store to address 0x00000040 in its own code",
    ),
    "a_doorbell_too_early": (
        "RESULTS[0] = 1; REGISTER(0xE3000000U) = WORK;",
        "a doorbell without a barrier after the last store to memory",
    ),
    "a_message_too_early": (
        "RESULTS[0] = 1; REGISTER(0xE2000000U) = WORK;",
        "a doorbell without a barrier after the last store to memory",
    ),
    "a_wrong_return": ('__asm volatile("bx %0" :: "r"(0xFFFFFFF9U));', "an exception return outside an exception"),
}
"""By guilty function: its only statement, and the fault's text."""
GUILTY = f"""#include "board.h"
static const _Alignas(16) uint32_t copies[24] = {{
    0, 1 | 9U << 16, 1, 0x10000, 0, 0x11000, 16 | 1U << 16, 0, 0, 0x05FF, 0, 0,
    0, 1 | 8U << 16, 0, 0x10000, 1, 0x40, 4 | 1U << 16, 0, 0, 0x05FF, 0, 0,
}};
{DEEP}
static const uint8_t filler[1024] __attribute__((used)) = {{1}}; /* a page of what nobody may write */
#define GUILTY(name, statement) __attribute__((noinline)) static void name(void) {{ statement RESULTS[1] = 1; }}
{chr(10).join(f"GUILTY({name}, {statement})" for name, (statement, _) in FAULTS.items())}
static void (*const guilty[])(void) = {{{", ".join(FAULTS)}}};
int main(void)
{{
    if (DMA_PE == 1) {{
        DMA_DOORBELL = (uint32_t)&copies[0];
        return 0;
    }}
    while (DMA_FLAG(5) == 0) {{
        wait_for_event();
    }}
    guilty[RESULTS[32]]();
    wait_for_event();
    return 0;
}}
"""
PLACES = {
    "a_message_into_code": r" in main\+0x\w+ \(board\.h:\d+\)",
    "a_deep_stack": r" in deep\+0x\w+ \(.*main\.c:\d+\)",
    "a_jump_to_nothing": r", outside its code \(lr: behind a_jump_to_nothing\+0x\w+ \(.*main\.c:LINE\)\)",
    "a_jump_to_another_pe": r", outside its code \(lr: behind a_jump_to_another_pe\+0x\w+ \(.*main\.c:LINE\)\)",
    "a_wrong_return": r", outside its code \(lr: behind main\+0x\w+ \(.*main\.c:\d+\)\)",
}
"""Reported places other than the guilty line: the DMA continues while the core is elsewhere."""


@pytest.mark.parametrize("name", FAULTS)
@pytest.mark.parametrize("strict", [False, True])
def test_a_fault_is_told_with_pe_place_registers_and_messages(name: str, strict: bool) -> None:
    chosen = Overlay(0, RESULTS + 4 * 32, list(FAULTS).index(name).to_bytes(4, "little"))
    image = Image(program(GUILTY), (0, 1), (chosen,))
    with Emulator(load_board("pe-mesh"), [image], strict=strict) as emulator, pytest.raises(CoreFault) as raised:
        emulator.read(20)
    place = PLACES.get(name, rf" in {name}\+0x\w+ \(.*main\.c:LINE\)")
    line = GUILTY[: GUILTY.index(f"GUILTY({name}")].count("\n") + 1
    pattern = rf"PE 0 stopped at pc 0x\w{{8}}{place.replace('LINE', str(line))}: .*{re.escape(FAULTS[name][1])}"
    assert re.match(pattern, raised.value.message), raised.value.message
    registers, *messages = raised.value.facts
    assert re.fullmatch(r"registers: (r\d+=0x\w+ ){13}sp=0x1f\w+ lr=0x\w+ pc=0x\w+ xpsr=0x\w+", registers)
    assert any("message 9, 16 bytes from PE 1 to PE 0 at 0x11000, flag 5, arrived" in message for message in messages)


def faulting(source: str, pes: tuple[int, ...] = (0,), *, strict: bool = True) -> CoreFault:
    """The fault that the program causes."""
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


WALK = """
    const uint32_t *at = (const uint32_t *)0x10000;
    for (uint32_t i = 0; i < 9; i++) {
        __asm volatile("%s" : "+r"(at) : : "r2", "r3", "cc", "memory");
    }
    RESULTS[0] = 7;
"""


@pytest.mark.parametrize(
    ("step", "stops"),
    [
        ("ldrd r2, r3, [%0]\\n\\tadds %0, #2", "0x00010002"),
        ("ldrd r2, r3, [%0], #8\\n\\tsubs %0, #6", "0x00010002"),
        ("ldm %0!, {r2, r3}\\n\\tsubs %0, #7\\n\\tmov r2, %0\\n\\tmov %0, r2", "0x00010001"),
        ("str %0, [sp, #-8]!\\n\\tldr r2, [sp], #8\\n\\tldrd r2, r3, [r2]\\n\\tadds %0, #3", "0x00010003"),
        ("lsrs r2, %0, #1\\n\\tldrd r2, r3, [r2]\\n\\tadds %0, #4", "0x00008002"),
        ("cmp %0, #0x10000\\n\\tite ne\\n\\tldrdne r2, r3, [%0]\\n\\taddeq %0, #1", "0x00010001"),
        ("ldrd r2, r3, [%0], #8", None),
        ("ldm %0!, {r2, r3}\\n\\tsubs %0, #4", None),
        ("cmp %0, #0\\n\\tit eq\\n\\tldrdeq r2, r3, [%0, #1020]\\n\\tadd %0, #1\\n\\tsub %0, #1", None),
        ("add r2, sp, #-32\\n\\tldrd r2, r3, [r2]\\n\\tadds %0, #1", None),
    ],
)
def test_an_address_is_followed_through_a_block(step: str, stops: str | None) -> None:
    """Only the misaligned access faults, however its address was computed, without a check of every access."""
    source = f'#include "board.h"\nint main(void) {{ {WALK % step} return 0; }}'
    with Emulator(load_board("pe-mesh"), [Image(program(source), (0,))]) as emulator:
        if stops is None:
            run_to_sleep(emulator)
            assert words(emulator, 0, 1) == [7]
        else:
            with pytest.raises(CoreFault, match=rf"in main\+.* several words at address {stops}"):
                emulator.read(20)


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
    uint32_t word = 0;
    RESULTS[0] = deep(9); DMA_FLAG(3) = 1; RESULTS[1] = TIMER_CYCLES; __asm volatile("sev");
    __asm volatile("cmp %1, #0\\n\\tittt ne\\n\\tstrne %1, [%1]\\n\\tldrne %0, [%1]\\n\\tstrne %0, [%1]\\n\\t"
        "b 1f\\n1: cmp %1, %1\\n\\tb 2f\\n2: adds %0, #1" : "+r"(word) : "r"(0x10080) : "cc", "memory");
    RESULTS[2] = word; /* what follows the accesses under IT is under none */
    return 0;
}}"""
    image = Image(program(source), (0,))
    counted = []
    for strict in (False, True):
        with Emulator(load_board("pe-mesh"), [image], strict=strict) as emulator:
            run_to_sleep(emulator)
            counted.append((emulator.counters(0), words(emulator, 0, 3)))
    assert counted[0] == counted[1]
    assert counted[0][1][2] == 0x10081


def test_a_stack_that_just_fits_is_no_fault() -> None:
    source = f'#include "board.h"\n{DEEP}\nint main(void) {{ RESULTS[0] = 1 + deep(10); return 0; }}'
    with Emulator(load_board("pe-mesh"), [Image(program(source), (0,))]) as emulator:
        run_to_sleep(emulator)
        assert words(emulator, 0, 1) != [0]


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
    first, second, third, *registers = silence({(0, 3): [5], (5, 4): [9]})
    assert first.startswith("PE 0 waits for flag 3 (it reads 0), which PE 5 counts: at pc 0x")
    assert "in main+" in first
    assert second.startswith("PE 5 waits for flag 4 (it reads 0), which PE 9 counts")
    assert third.startswith("PE 9 waits for flag 6 (it reads 0): at pc")
    assert all(re.search(r" in main\+0x\w+ \(\w+\.[ch]:\d+\)$", line) for line in (first, second, third))
    assert [line[:22] for line in registers] == ["registers of PE 0: r0=", "registers of PE 9: r0="]


def test_a_circle_of_waits_is_named() -> None:
    assert silence({(0, 3): [5], (5, 4): [9], (9, 6): [5]})[3] == "PE 5 and PE 9 wait for each other"


def test_a_pe_that_waits_for_no_other_ends_the_chain() -> None:
    lines = silence({(0, 3): [7]}, (0,))
    assert [line.split(" at ")[0] for line in lines][1:2] == ["PE 7 has no program"]


def test_data_from_dram_ends_the_chain() -> None:
    lines = silence({(0, 3): [DRAM]}, (0,))
    assert "waits for flag 3 (it reads 0), which data from the DRAM of chip 0 counts" in lines[0]
    assert lines[1].startswith("registers of PE 0")


ENDLESS = """#include "board.h"
__attribute__((noinline)) static void compute_for_ever(void) { for (;;) { RESULTS[0]++; } }
static void await(uint32_t flag) { while (DMA_FLAG(flag) == 0) { wait_for_event(); } }
int main(void)
{
    if (DMA_PE == 0) { await(3); }
    compute_for_ever();
    return 0;
}
"""


def test_an_answer_that_never_comes_is_a_named_time_out(monkeypatch: pytest.MonkeyPatch) -> None:
    """Counts cycles of the board, whatever the emulator's speed. Reports the PE, the place and the waiting PE; later
    reads end at once."""
    monkeypatch.setattr(patience, "LEAST_CYCLES", 2_000_000)
    image = Image(program(ENDLESS), (0, 5))
    with Emulator(load_board("pe-mesh"), [image], senders={(0, 3): [5]}, predicted_cycles=50_000) as emulator:
        emulator.expect(4)
        emulator.write(b"?")
        assert emulator.read(600) == b""
        assert emulator.time() == 2_000_000 + 20 * 50_000 * 4
        why, first, second, *_ = emulator.silence()
        assert emulator.read(600) == b""
        assert emulator.time() < 12_000_000
    assert why.startswith(
        "time-out: the board has run for 6,000,000 cycles since it was asked, beyond its budget of 6,"
    )
    assert first.startswith("PE 0 waits for flag 3 (it reads 0), which PE 5 counts")
    assert re.match(r"PE 5 runs at pc 0x\w+ in compute_for_ever\+0x\w+ \(.*main\.c:\d+\)", second)


def test_time_on_this_machine_runs_out_otherwise() -> None:
    with Emulator(load_board("pe-mesh"), [Image(program(ENDLESS), (5,))], asked=5) as emulator:
        assert emulator.read(0.2) == b""
        assert re.match(r"time-out: the board has run for [\d,]+ cycles .*, of its budget", emulator.silence()[0])
