"""A sample of the mutants from `benchmarks/mutants.py`: validation finds every mutant. Also the proofs that a mutant is
equivalent."""

from __future__ import annotations

import random
import re
from collections.abc import Iterator
from dataclasses import replace
from unittest import mock

import numpy as np
import pytest
from benchmarks.mutants import CYCLES, Verdict, chosen, judge, score, told, with_proofs

from end_to_end.builds import DIGITS, shared_build
from mutation.mutations import CLASSES, Mutant, in_own_data, in_structs, swapped_calls
from mutation.programs import (
    of_assembly,
    of_constants,
    of_exponential,
    of_overwritten,
    of_parameters,
    of_reciprocal,
    of_unread,
)
from mutation.proofs import of_listed, of_member, of_nothing, of_waits
from mutation.workshop import KeptWorker, Workshop
from npukit.accel.cortex_m.kernels.softmax import softmax_tables
from npukit.net.requantize import requantization
from npukit.plan.ir.plan import Plan

COMMAND = """.conv_command = {
    .kind = MAC_ARRAY_CONVOLUTION,
    .tag = 0,
    .input_height = 8,
    .input_width = 5,
    .output_height = 8,
    .output_width = 4,
    .kernel_height = 3,
    .kernel_width = 3,
    .stride_y = 1,
    .stride_x = 1,
    .dilation_y = 1,
    .dilation_x = 1,
    .pad_top = 1,
    .pad_left = 1,
    .input_zero = -128,
},
"""
SAMPLE = 6
MESSAGE = r"the DMA of PE \d stores it for message \d+, descriptor \S+"
OTHER = r"(mac_array|the core) of PE \d (loads|stores) it [^,]+"
RACE_OF_A_MESSAGE = re.compile(f"a race on .*: ({MESSAGE}, then {OTHER}|{OTHER}, then {MESSAGE}), and nothing orders")


@pytest.fixture(scope="module")
def workshop(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Workshop]:
    folder = tmp_path_factory.mktemp("mutants")
    made = shared_build(DIGITS / "digits_int8.tflite", folder / "build", pes=2)
    worker = mock.patch("npukit.emulator.builtin.WorkerProcess", KeptWorker)
    patience = mock.patch("npukit.emulator.patience.LEAST_CYCLES", CYCLES)
    with worker, patience:
        yield Workshop(made, folder / "scratch")
    KeptWorker.end()


def changed(workshop: Workshop, kind: str, file: str, before: str, after: str) -> Verdict:
    """The verdict on a mutant: `after` instead of `before` in the first line of `file` with `before`."""
    lines = workshop.text(file).split("\n")
    at = next(number for number, line in enumerate(lines) if before in line)
    mutant = Mutant(kind, file, at + 1, lines[at], lines[at].replace(before, after))
    return judge(workshop, "2 PEs", mutant)


@pytest.mark.exhaustive
def test_a_sample_is_killed(workshop: Workshop) -> None:
    sample = chosen({"2 PEs": workshop}, SAMPLE, 5)
    assert sample == chosen({"2 PEs": workshop}, SAMPLE, 5)
    assert {mutant.kind for _, mutant in sample} == set(CLASSES)
    verdicts = with_proofs([judge(workshop, name, mutant) for name, mutant in sample])
    assert score(verdicts) == 1, told(verdicts)


def test_each_wait_for_a_message_that_is_dropped_is_a_race_with_both_sides(workshop: Workshop) -> None:
    lines = [(file, line) for file in workshop.sources for line in workshop.text(file).split("\n")]
    waits = [(file, line) for file, line in lines if file.endswith("net/net.c") and "= noc_wait(" in line]
    assert {file for file, _ in waits} == {"roles/0/net/net.c", "roles/1/net/net.c"}
    for file, line in waits:
        verdict = changed(workshop, "C", file, line, re.sub(r"noc_wait\(\d+, \d+\)", "0", line))
        assert RACE_OF_A_MESSAGE.search(verdict.said), (line, verdict)


def test_records_are_read_once_their_pe_is_done(workshop: Workshop) -> None:
    """PE 1 computes and records a layer a second time, long after its last message."""
    late = "if (observed != 0) { for (volatile int32_t i = 0; i < 20000; i++) { } net_end_layer(5); }"
    sent = "status = noc_send(&net_constants.message_5_descriptor_0);"
    verdict = changed(workshop, "C", "roles/1/net/net.c", sent, f"{sent} {late}")
    assert verdict.outcome == "survived", verdict


@pytest.mark.parametrize(
    ("kind", "file", "before", "after"),
    [
        ("C", "roles/0/net/net.c", "noc_wait(3, 1); /* average_pool_0", "noc_wait(3, 0); /* average_pool_0"),
        ("assembly", "roles/0/net/routines.S", "push {r4-r11, lr}", "push {r4-r10, r12, lr}"),
    ],
)
def test_what_once_passed_is_killed(workshop: Workshop, kind: str, file: str, before: str, after: str) -> None:
    verdict = changed(workshop, kind, file, before, after)
    assert verdict.outcome == "killed", verdict


def test_the_same_bytes_are_the_same_mutant(workshop: Workshop) -> None:
    assert changed(workshop, "C", "roles/0/net/net.c", "int32_t status = 0;", "int32_t status = 1;").outcome == "same"
    assert changed(workshop, "C", "roles/0/net/net.c", "int32_t status = 0;", "int32_t status;;;(").outcome == "invalid"


def test_looks_at_a_flag_are_proven_to_change_cycles_alone_unless_they_never_end() -> None:
    loop = "for (uint32_t look = 0; look < LOOKS; look++) {"

    def proven(after: str) -> str:
        return of_listed(f"8 PEs, {Mutant('firmware', 'firmware/noc/noc.c', 111, loop, after)}")

    assert all(proven(loop.replace(*other)) for other in (("= 0", "= 1"), ("= 0", "= 16"), ("<", "!="), ("<", ">=")))
    assert proven(loop.replace("look++", "look--")) == ""


def test_waits_for_a_single_sender_may_change_places_if_the_later_message_comes_first(workshop: Workshop) -> None:
    """PE 1 sends `add_0` before `average_pool_0`."""
    first, second = (
        f"status = noc_wait({flag}, 1); /* {name} from PE 1 */" for flag, name in ((2, "add_0"), (3, "average_pool_0"))
    )

    def proven(before: str, after: str, plan: Plan) -> bool:
        return of_waits(Mutant("C", "roles/0/net/net.c", 1, before, after), plan) != ""

    plan = workshop.plan
    assert proven(f"{first}\nrun();\n{second}", f"{second}\nrun();\n{first}", plan)
    assert not proven(f"{second}\nrun();\n{first}", f"{first}\nrun();\n{second}", plan), "the earlier message alone"
    sends = "noc_send(&message);"
    assert not proven(f"{first}\n{sends}\n{second}", f"{second}\n{sends}\n{first}", plan), "the sender may need it"
    turned = replace(plan, pes=(plan.pes[0], replace(plan.pes[1], steps=plan.pes[1].steps[::-1])))
    assert not proven(f"{first}\nrun();\n{second}", f"{second}\nrun();\n{first}", turned), "the other order"


def number_of(member: str, text: str, value: int) -> Mutant:
    lines = text.split("\n")
    at = next(number for number, line in enumerate(lines) if line.startswith(f"    .{member} ="))
    return Mutant("commands", "constants.c", at + 1, lines[at], f"    .{member} = {value},")


def test_members_that_no_device_reads_are_proven_by_those_beside_them() -> None:
    assert "no output reads a column" not in of_member(number_of("input_width", COMMAND, 4), COMMAND)
    assert "no output reads a column" in of_member(number_of("input_width", COMMAND, 6), COMMAND)
    assert of_member(number_of("input_height", COMMAND, 9), COMMAND) == "", "the last row is padding, and would not be"
    assert of_member(number_of("dilation_y", COMMAND, 2), COMMAND) == ""
    one = COMMAND.replace("kernel_height = 3", "kernel_height = 1")
    assert "one row" in of_member(number_of("dilation_y", one, 2), one)
    assert of_member(number_of("input_zero", COMMAND, 5), COMMAND) == ""
    unpadded = COMMAND.replace("pad_top = 1", "pad_top = 0").replace("pad_left = 1", "pad_left = 0")
    unpadded = unpadded.replace("output_height = 8", "output_height = 6").replace(
        "output_width = 4", "output_width = 3"
    )
    assert "padding" in of_member(number_of("input_zero", unpadded, 5), unpadded)


def test_mutants_are_those_of_their_seed_and_leave_tags_alone() -> None:
    of_seed = [[str(each) for each in in_structs("c", COMMAND, random.Random(seed))] for seed in (1, 1, 2)]
    assert of_seed[0] == of_seed[1] != of_seed[2]
    assert not any(".tag" in each for each in of_seed[0])
    data = bytes(range(1, 97))
    listing = "0x00000  struct mac_array_command: tag = 0, kind = MAC_ARRAY_CONVOLUTION\n"
    own = list(in_own_data(3, data, listing, random.Random(1)))
    assert own
    assert all(each.kind == "commands" and each.line not in (6, 7) for each in own)


@pytest.mark.exhaustive
def test_steps_of_a_frame_are_swapped() -> None:
    frame = "    status = noc_send(a);\n    if (status != 0) {\n    }\n    status = noc_wait(1, 2);\n"
    other = "    status = noc_wait(1, 2);\n    if (status != 0) {\n    }\n    status = noc_send(a);\n"
    assert [each.text(frame) for each in swapped_calls("net.c", frame)] == [other]


def line_of(text: str, before: str, after: str, kind: str = "assembly") -> Mutant:
    """A mutant with `after` instead of `before` in the first line with `before`."""
    lines = text.split("\n")
    at = next(number for number, line in enumerate(lines) if before in line)
    return Mutant(kind, "routines.S", at + 1, lines[at], lines[at].replace(before, after))


def test_a_reciprocal_is_proven_by_running_it(workshop: Workshop) -> None:
    text = workshop.text("roles/0/net/routines.S")
    entries = softmax_tables(np.array([(1 << 31) - 1, 5000, 0]), 2)
    assert "were run" in of_reciprocal(line_of(text, "mov r9, #1", "movw r9, #1"), text, entries, 2)
    assert of_reciprocal(line_of(text, "rsb r8, r8, #35", "rsb r8, r8, #34"), text, entries, 2) == ""
    assert of_reciprocal(line_of(text, "ldrsb r4, [r0, #0]", "nop"), text, entries, 2) == "", "it is no part of it"
    assert "were run" in of_exponential(-1 << 31, (-1 << 31) + 128, text, 2)
    assert of_exponential(1 << 20, 1 << 21, text, 2) == ""


def test_the_proofs_find_the_table_of_exponentials(workshop: Workshop) -> None:
    constants, routines = (workshop.text(f"roles/0/net/{name}") for name in ("constants.c", "routines.S"))
    line = next(line for line in constants.partition("/* constants per row")[2].split("\n") if f" {-1 << 31}," in line)
    smallest = line_of(constants, line, line.replace("-2147483648", "-2147483646", 1), "constants")
    assert "were run" in of_constants(smallest, constants, routines, workshop.net)
    carry = line_of(routines, "adc r5, r5, #0", "nop")
    assert "were run" in of_assembly(carry, routines, constants, workshop.net)


UNREAD = """    add r0, r0, #16
    mov r1, r2
    ldr r0, [sp, #4]
    add r0, r0, #4
    add r2, r0, #1
    strb r2, [r1], #1
    pop {r4-r11, pc}
"""


def test_a_register_that_is_loaded_anew_is_not_read() -> None:
    assert of_unread(line_of(UNREAD, "#16", "#17"), UNREAD)
    assert of_unread(line_of(UNREAD, "#4\n".strip(), "#5"), UNREAD) == "", "the address of a load"
    assert of_unread(line_of(UNREAD, "add r0, r0, #4", "add r0, r0, #5"), UNREAD) == "", "the next line reads it"
    assert of_unread(line_of(UNREAD, "], #1", "], #2"), UNREAD), "the routine returns"
    last = UNREAD.replace("strb r2, [r1], #1", "ldrb lr, [r0], #1")
    assert of_unread(line_of(last, "], #1", "], #0"), last), "the routine returns, and gives nothing back"


def test_parameters_are_proven_for_every_sum(workshop: Workshop) -> None:
    net = workshop.net
    dense = next(op for op in net.ops if op.kind == "dense")
    factors = requantization(net, dense)
    count = len(factors.shifts)
    padded = [np.pad(each, (0, 16 - count)) for each in (factors.multipliers, factors.shifts)]
    before = np.frombuffer(
        bytes(64) + padded[0].astype("<i4").tobytes() + padded[1].astype(np.int8).tobytes(), np.uint8
    )

    def proven(at: int, value: int) -> bool:
        after = before.copy()
        after[at] ^= value
        return bool(of_parameters(before, after, net))

    def proven_in_blocks(at: int, value: int) -> bool:
        own = [np.resize(each[4 * n : 4 * n + 4], 4) for n in range(2) for each in (np.zeros(4, np.int64), *padded)]
        kinds = ("<i4", "<i4", np.int8)
        blocks = np.frombuffer(b"".join(each.astype(kinds[n % 3]).tobytes() for n, each in enumerate(own)), np.uint8)
        after = blocks.copy()
        after[at] ^= value
        return bool(of_parameters(blocks, after, net))

    assert proven_in_blocks(36 + 16, 1) == proven(64 + 16, 1), "the multiplier of channel 4"
    assert not proven_in_blocks(36 + 19, 2), "a multiplier far off"
    assert proven(4 * 15, 1), "the lanes behind the channels are read by nothing"
    assert not proven(2, 1), "a bias of 65536 more"
    assert not proven(64 + 3, 2), "a multiplier far off"


def test_a_byte_that_the_next_store_writes_does_not_stay() -> None:
    text = "    strb lr, [r1], #1\n    ldrb lr, [r0], #1\n    strb lr, [r1], #1\n    pop {r4-r11, pc}\n"
    assert of_overwritten(line_of(text, "strb", "strh"), text)
    assert of_overwritten(line_of(text, "#1", "#2"), text) == "", "it writes elsewhere"
    last = Mutant("assembly", "routines.S", 3, "    strb lr, [r1], #1", "    strh lr, [r1], #1")
    assert of_overwritten(last, text) == "", "it is the last store"


def test_a_descriptor_without_bytes_moves_nothing() -> None:
    text = ".message_0_descriptor_0 = {\n    .row_bytes = 0,\n    .rows = 1,\n},\n"
    assert of_nothing(line_of(text, ".rows = 1", ".rows = 0", "descriptors"), text)
    other = text.replace(".rows = 1", ".source_pe = 0")
    assert of_nothing(line_of(other, "_pe = 0", "_pe = 2", "descriptors"), other)
    full = text.replace("row_bytes = 0", "row_bytes = 4")
    assert of_nothing(line_of(full, ".rows = 1", ".rows = 0", "descriptors"), full) == ""
