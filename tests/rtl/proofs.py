"""The proofs about router, DMA and arbiter: assertions of `rtl/formal` over modules of `rtl/`, with mutants of each."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from pathlib import Path

RTL = Path(__file__).resolve().parents[2] / "rtl"
PACKAGES = ("network/noc_pkg.sv", "dma/dma_pkg.sv")


class Method(Enum):
    """Induction holds in all cycles, a search by cycles behind reset up to the depth alone."""

    YOSYS = "induction by Yosys"
    Z3 = "induction by z3"
    BASE = "cycles by Yosys"


@dataclass(frozen=True)
class Change:
    """A text of a file of `rtl/`, and its replacement."""

    file: str
    old: str
    new: str


@dataclass(frozen=True)
class Proof:
    name: str
    claim: str
    top: str
    assertions: str
    """A text for the end of the module `top` (.svh), or a harness with that name (.sv), in `rtl/formal`."""
    files: Sequence[str]
    """Modules below `rtl/`, and black boxes in place of others."""
    method: Method
    depth: int
    """Steps of the induction, or cycles."""
    mutants: Mapping[str, Change]
    """Changes behind which the proof fails."""
    sizes: Sequence[Change] = field(default=())
    """Changes to smaller memories, and to cut what is abstracted."""
    mutant_cycles: int = 12
    """Cycles behind reset in which a mutant of an induction fails."""


ARBITER = Proof(
    "arbiter",
    "a bank has a word, bytes are in place, freeze",
    "sram_arbiter",
    "proof_arbiter.svh",
    ("node/sram_arbiter.sv",),
    Method.YOSYS,
    1,
    {
        "a bank of the next row forgets the carry": Change("node/sram_arbiter.sv", "12'(around)", "12'(1'b0)"),
        "the array is not frozen in writes": Change(
            "node/sram_arbiter.sv", "array_enable = !dma_access", "array_enable = !dma_read"
        ),
        "the mask of a word is shifted": Change("node/sram_arbiter.sv", "touched << shift", "touched << address[0]"),
    },
)
OUTPUT = Proof(
    "output",
    "credits, link, round robin, wait of at most 30 cycles",
    "noc_output",
    "proof_output.svh",
    ("network/noc_output.sv",),
    Method.YOSYS,
    2,
    {
        "no round robin: the lowest input first": Change(
            "network/noc_output.sv", "if (wants != 0) last <= winner", "last <= 5"
        ),
        "a grant during a packet": Change("network/noc_output.sv", "room = taken ? 3'd0 : free", "room = free"),
        "a credit comes twice": Change(
            "network/noc_output.sv", "+ 3'(credits[0])", "+ 3'(credits[0]) + 3'(credits[0])"
        ),
        "a request takes no place": Change("network/noc_output.sv", "- 5'(granted_kind[1])", ""),
        "the sender changes with the tail": Change(
            "network/noc_output.sv", "if (wants != 0) from <= winner", "from <= winner"
        ),
    },
)
CHAINS = Proof(
    "chains",
    "a descriptor is done once, its source flag counts then",
    "dma_chains",
    "proof_chains.svh",
    ("dma/dma_chains.sv", "dma/dma_queue.sv"),
    Method.Z3,
    2,
    {
        "an old acknowledgement ends a descriptor": Change(
            "dma/dma_chains.sv", "acknowledged && stale == 0;", "acknowledged;"
        ),
        "done before the acknowledgement": Change(
            "dma/dma_chains.sv", "(state == Send && sent && !wants_acknowledgement)", "(state == Send && sent)"
        ),
        "done with each group": Change("dma/dma_chains.sv", "done = finished && !more", "done = finished"),
        "a dropped wait is forgotten": Change("dma/dma_chains.sv", "+ 4'(fault && state == Wait && !awaited)", ""),
    },
)
RECEIVER = Proof(
    "receiver",
    "a flag once for each message, none behind an error",
    "dma_receiver",
    "proof_receiver.svh",
    ("dma/dma_receiver.sv", "network/noc_number.sv", "formal/noc_crc_box.sv"),
    Method.YOSYS,
    3,
    {
        "a flag with a wrong CRC": Change(
            "dma/dma_receiver.sv", "end_of_packet = good &&", "end_of_packet = arrives &&"
        ),
        "the number is not compared": Change(
            "network/noc_number.sv", "differs = link.number != expected", "differs = 1'b0"
        ),
        "a flag with each packet": Change("dma/dma_receiver.sv", "noc_pkg::Data && now.last &&", "noc_pkg::Data &&"),
        "a flit behind a wrong flit": Change("dma/dma_receiver.sv", "take && (first || !broken)", "take"),
        "an error does not last": Change("network/noc_number.sv", "(closed || differs)", "differs"),
    },
)
PORT = Proof(
    "DMA port",
    "an access in a cycle, reported exactly when bytes move",
    "pe_dma",
    "proof_port.svh",
    (
        *(f"dma/{name}.sv" for name in ("dma_chains", "dma_fetch", "dma_queue", "dma_receiver", "dma_registers")),
        *("dma/dma_sender.sv", "dma/pe_dma.sv"),
        *("network/noc_number.sv", "formal/noc_crc_box.sv", "formal/dma_boxes.sv"),
    ),
    Method.YOSYS,
    2,
    {
        "data is granted during a fetch": Change("dma/pe_dma.sv", "(!fetch_port || fetch_last)", "1'b1"),
        "a fetch is granted with data": Change("dma/pe_dma.sv", "port_free && !granted[0];", "port_free;"),
        "data is granted too early in a packet": Change("dma/dma_sender.sv", "last_port = ends", "last_port = 1"),
        "a list has the port a cycle too short": Change("dma/dma_fetch.sv", "flits_left == 1", "flits_left == 2"),
        "the array runs while a packet is read": Change(
            "dma/pe_dma.sv", "port_access = fetch_read || tx_read ||", "port_access = fetch_read ||"
        ),
    },
)
INPUT = Proof(
    "input",
    "outputs known by the tail; known data leaves in 561 cycles",
    "noc_input",
    "proof_input.svh",
    (
        *(f"network/noc_{name}.sv" for name in ("buffer", "input", "list_route", "number", "route")),
        "formal/noc_crc_box.sv",
    ),
    Method.YOSYS,
    2,
    {
        "a branch is not taken off": Change(
            "network/noc_buffer.sv", "branches[head] <= left & ~granted", "branches[head] <= left"
        ),
        "no offer while an acknowledgement is there": Change(
            "network/noc_input.sv",
            "assign possible[0] = pending[0] &&",
            "assign possible[0] = pending[0] && !pending[2] &&",
        ),
        "a packet that ends before its list has no outputs": Change(
            "network/noc_input.sv", "list_ends || ends_early ||", "list_ends ||"
        ),
        "data passes behind a wrong header": Change("network/noc_input.sv", ".close(wrong_way)", ".close(1'b0)"),
        "a packet whose list is wrong has outputs twice": Change(
            "network/noc_input.sv", "if (reset || wrong_way) list_left", "if (reset) list_left"
        ),
        "the lowest class first": Change(
            "network/noc_input.sv", "possible[2] ? 3'b100", "possible[0] ? 3'b001 : possible[2] ? 3'b100"
        ),
    },
    (
        Change("network/noc_input.sv", "k == 0 ? PACKET_FLITS : k == 1 ? 17 : 1", "k == 0 ? 3 : k == 1 ? 2 : 1"),
        Change(
            "network/noc_buffer.sv",
            "  assign grant = granted != 0;\n",
            "  assign grant = granted != 0;\n  logic [5:0] outputs_0, outputs_1;\n"
            "  assign outputs_0 = branches[0];\n  assign outputs_1 = branches[PLACES - 1];\n",
        ),
    ),
)
BUFFER = Proof(
    "buffer",
    "no packet is lost, doubled, changed or overtaken",
    "noc_buffer",
    "proof_buffer.svh",
    ("network/noc_buffer.sv",),
    Method.BASE,
    13,
    {
        "a multicast leaves after its first branch": Change(
            "network/noc_buffer.sv", "last_branch = (left & ~granted) == 0", "last_branch = 1"
        ),
        "a place for the next packet is passed over": Change(
            "network/noc_buffer.sv",
            "if (known) known_place <= after(known_place)",
            "if (known) known_place <= known_place",
        ),
        "flits go to the wrong place": Change("network/noc_buffer.sv", "A'({head, F'(0)})", "A'({read_place, F'(0)})"),
        "a branch is sent twice": Change(
            "network/noc_buffer.sv", "branches[head] <= left & ~granted", "branches[head] <= left"
        ),
    },
    (
        Change("network/noc_buffer.sv", "PLACES = 2, FLITS = 32", "PLACES = 2, FLITS = 3, WIDTH = 1"),
        Change("network/noc_buffer.sv", "[143:0]", "[WIDTH - 1:0]"),
    ),
)
ROUTER = Proof(
    "router",
    "order, no packet lost or doubled, credits",
    "router_proof",
    "router_proof.sv",
    tuple(
        f"network/noc_{name}.sv"
        for name in ("buffer", "crc", "input", "list_route", "number", "output", "route", "router")
    ),
    Method.BASE,
    7,
    {
        "an acknowledgement goes to the next output": Change(
            "network/noc_router.sv", "wanted[i] = wants[6 * i + o]", "wanted[i] = wants[6 * i + (o + 5) % 6]"
        ),
        "a place is free too early": Change("network/noc_input.sv", "tails[k] && lasts[k]", "1'b1"),
        "the flits of another input are sent": Change(
            "network/noc_output.sv", "flits[128 * from +: 128]", "flits[128 * (from ^ 3'd2) +: 128]"
        ),
    },
    (
        Change("network/noc_input.sv", "k == 1 ? 17 : 1", "k == 1 ? 2 : 1"),
        Change("network/noc_input.sv", "after != link.crc", "1'b0"),
    ),
)
CHECK = Proof(
    "array's check",
    "an accepted command has its output in the SRAM",
    "array_command_check",
    "proof_check.svh",
    (
        "array/array_pkg.sv",
        *(f"array/array_{name}.sv" for name in ("command_check", "command_errors", "command_fetch", "plan")),
        "array/array_weight_rows.sv",
    ),
    Method.YOSYS,
    2,
    {
        "the lower end is not compared": Change(
            "array/array_command_errors.sv", "outside = 38'(base) < below || ", "outside = "
        ),
        "32-bit results count as bytes": Change(
            "array/array_command_errors.sv", "length = raw ? {20'd0, output_channels, 2'd0} :", "length ="
        ),
        "the last row is left out": Change(
            "array/array_command_check.sv",
            "ya = 18'(output_height) - 1; yb = magnitude(output_row)",
            "ya = 18'(output_height) - 2; yb = magnitude(output_row)",
        ),
        "a stride is cut, not saturated": Change("array/array_command_check.sv", "|m[31:17] ? 18'h3FFFF : m", "m"),
    },
    (
        Change(
            "array/array_command_check.sv",
            "  always_ff @(posedge clock) if (enable) begin\n    y <= ya * yb;\n    x <= xa * xb;\n",
            "  (* anyseq *) logic [35:0] any_y, any_x;\n  logic [17:0] ya_before, yb_before, xa_before, xb_before;\n"
            "  always_ff @(posedge clock) if (enable) begin\n    y <= any_y;\n    x <= any_x;\n"
            "    {ya_before, yb_before, xa_before, xb_before} <= {ya, yb, xa, xb};\n",
        ),
    ),
    16,
)
WRITES = Proof(
    "array's writes",
    "each lies in a pixel of the output",
    "array_write_back",
    "proof_writes.svh",
    ("array/array_pkg.sv", *(f"array/array_{name}.sv" for name in ("items", "steps", "walker", "write_back"))),
    Method.YOSYS,
    2,
    {
        "a row has a pixel too many": Change(
            "array/array_walker.sv", "here.column + 1 == 17'(width)", "here.column == 17'(width)"
        ),
        "rows that are not there": Change("array/array_walker.sv", "here.row < 17'(height)", "here.row <= 17'(height)"),
        "channels that are not there": Change(
            "array/array_items.sv", "count = left < 18'(most) ? left[4:0] : most", "count = most"
        ),
        "the next group begins with the row of the last": Change(
            "array/array_walker.sv", "next.row = group.row;", "next.row = here.row;"
        ),
    },
)
ARRAY_PORT = Proof(
    "array's port",
    "a write is an access of results",
    "array_port",
    "proof_array_port.svh",
    ("array/array_port.sv",),
    Method.YOSYS,
    1,
    {
        "the weights write too": Change(
            "array/array_port.sv", "port_write = winner[Write]", "port_write = winner[Write] || winner[Weights]"
        ),
        "a byte too many": Change("array/array_port.sv", "<< port_bytes)", "<< (port_bytes + 1))"),
        "two accesses in a cycle": Change("array/array_port.sv", "else if (contend[Window])", "if (contend[Window])"),
    },
)
QUICK = (ARBITER, RECEIVER, CHAINS, PORT, OUTPUT, CHECK, WRITES, ARRAY_PORT, INPUT)
"""Seconds each."""
PROOFS = (*QUICK, BUFFER, ROUTER)
