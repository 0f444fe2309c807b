"""Messages as descriptors: what the C says is what the plan says, and what cannot be said is refused."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace

import numpy as np
import pytest

from net.small_nets import op_net, quantized
from npukit.accel.engines import assign_engines, engines_of
from npukit.board.board import load_board
from npukit.codegen.generate import generate
from npukit.codegen.streamed import dram_image
from npukit.errors import NpukitError
from npukit.net.net import Net
from npukit.net.ops import Conv2d
from npukit.plan.graph import Graph
from npukit.plan.memory import control_bytes
from npukit.plan.placement import pes_in_order
from npukit.plan.plan import DRAM, Plan, Send, View
from npukit.plan.planner import plan_network
from npukit.plan.throughput import densest_plan
from plan.test_rounds import heavy

BOARD = load_board("pe-mesh")
PES = 6


def _net() -> Net:
    weights = np.random.default_rng(12).integers(-127, 128, (64, 3, 3, 32)).astype(np.int8)
    output = quantized("y", (1, 24, 24, 64), 0.5)
    filters = quantized("w", weights.shape, 0.01)
    net = op_net(Conv2d(padding=(1, 1, 1, 1)), [quantized("x", (1, 24, 24, 32), 0.1, 4)], output, {filters: weights})
    return assign_engines(net, engines_of(BOARD))


def _plan(net: Net) -> Plan:
    plan = plan_network(net, BOARD, engines_of(BOARD), max_pes=PES)
    assert plan.messages
    return plan


def _generated(net: Net, plan: Plan) -> dict[int, Mapping[str, str]]:
    made = generate(net, plan, BOARD, engines_of(BOARD), bytes(16))
    return {sources.pes[0]: sources.files for sources in made}


def test_the_bytes_that_move_are_those_of_the_plan() -> None:
    """Read back from the C: every byte of every landing is written once by its message, from the right place."""
    net = _net()
    plan = _plan(net)
    files = _generated(net, plan)
    for number, message in enumerate(plan.messages):
        descriptors = _descriptors(files[message.source_pe], number)
        assert descriptors
        for landing in message.landings:
            moved = [move for each in descriptors for move in _moves(each, files[message.source_pe], landing.pe)]
            ahead = 0 if landing.pe == message.source_pe else _bytes_before_arena(plan, landing.pe)
            target = [ahead + place for place in _places(net, plan, landing.pe, message.tensor, landing.view)]
            source = _places(net, plan, message.source_pe, message.tensor, message.source)
            assert sorted(moved) == sorted(zip(source, target, strict=True))
        counted = [int(each["destination_flag"]) for each in descriptors if each["destination_flag"] != "NOC_NO_FLAG"]
        assert sorted(counted) == sorted({landing.flag for landing in message.landings})
        assert [each["source_flag"] for each in descriptors].count("0") == 1
        assert descriptors[-1]["source_flag"] == "0"


def _bytes_before_arena(plan: Plan, number: int) -> int:
    return control_bytes(sum(1 for pe in plan.pes if pe.pe == number for _ in pe.computes()))


def _descriptors(files: Mapping[str, str], number: int) -> list[dict[str, str]]:
    texts = re.findall(rf"\.message_{number}_descriptor_\d+ = {{(.*?)}},", files["constants.c"], re.S)
    return [dict(re.findall(r"\.(\w+) = (.*),", text)) for text in texts]


def _moves(descriptor: dict[str, str], files: Mapping[str, str], pe: int) -> list[tuple[int, int]]:
    """(source byte, destination byte), as offsets in the arenas, that a descriptor moves to a PE."""
    start = _destinations(descriptor, files).get(pe)
    if start is None:
        return []
    offsets = dict(re.findall(r"(at_\w+) = (\d+),", files["memory.h"]))
    name, _, more = descriptor["source"].removeprefix("ARENA(").removesuffix(")").partition(" + ")
    source = int(offsets[name]) + int(more or 0)
    row_bytes, rows = int(descriptor["row_bytes"]), int(descriptor["rows"])
    strides = int(descriptor["source_stride"]), int(descriptor["destination_stride"])
    return [
        (source + row * strides[0] + byte, start + row * strides[1] + byte)
        for row in range(rows)
        for byte in range(row_bytes)
    ]


def _destinations(descriptor: dict[str, str], files: Mapping[str, str]) -> dict[int, int]:
    if "options" not in descriptor:
        return {int(descriptor["destination_pe"]): _offset(descriptor["destination"])}
    listed = descriptor["destination_pe"].rpartition(".")[2]
    text = re.search(rf"\.{listed} = {{(.*?)\n}},", files["constants.c"], re.S)
    assert text is not None
    found = {int(pe): _offset(address) for pe, address in re.findall(r"\.pe = (\d+), \.address = (.*?) }", text[1])}
    assert len(found) == int(descriptor["destination"])
    return found


def _offset(address: str) -> int:
    found = re.fullmatch(r"\(uint32_t\)&net_activations(?:\.arena|_of_pe_\d+)\[(\d+)\]", address)
    assert found is not None
    return int(found[1])


def _places(net: Net, plan: Plan, pe: int, tensor: str, view: View) -> list[int]:
    """Where in a PE's arena each byte of a view lies, in the box's order."""
    buffer = next(each for each in plan.pes if each.pe == pe).buffer(view.buffer)
    size = net.tensor(tensor).bytes // net.tensor(tensor).elements
    places = np.arange(buffer.box.elements * size).reshape(*buffer.box.shape, size) + buffer.offset
    inner = zip(view.box.offset_in(buffer.box), view.box.shape, strict=True)
    return places[tuple(slice(o, o + n) for o, n in inner)].ravel().tolist()


def test_streamed_constants_come_from_where_the_plan_keeps_them_in_dram() -> None:
    net = heavy()
    plan = densest_plan(Graph(net), BOARD, engines_of(BOARD), pes_in_order(BOARD)[:2])
    made = generate(net, plan, BOARD, engines_of(BOARD), bytes(16))
    files = {sources.pes[0]: sources.files for sources in made}
    dram = {buffer.name: buffer for buffer in plan.dram}
    streamed = [n for n, message in enumerate(plan.messages) if message.source_pe == DRAM]
    senders = {step.message: pe.pe for pe in plan.pes for step in pe.steps if isinstance(step, Send)}
    assert streamed
    for number in streamed:
        descriptors = _descriptors(files[senders[number]], number)
        source = dram[plan.messages[number].source.buffer]
        assert descriptors[0]["source_pe"] == "NOC_DRAM"
        assert descriptors[0]["source"] == f"(const void *)0x{source.offset:08X}U"
        assert all(each["source_flag"] == "NOC_NO_FLAG" for each in descriptors)


def test_the_dram_holds_every_streamed_constant_once() -> None:
    """As many bytes as the layers' weights and parameters, and each layer's weights among them."""
    net = heavy()
    plan = densest_plan(Graph(net), BOARD, engines_of(BOARD), pes_in_order(BOARD)[:2])
    made = generate(net, plan, BOARD, engines_of(BOARD), bytes(16))
    image = dram_image(plan, [piece for sources in made for piece in sources.streamed])
    weights = net.constants[net.ops[-1].inputs[1]]
    first_block = weights[:16].T.tobytes()
    assert image.count(first_block) == 1
    assert len(image) >= sum(net.constants[op.inputs[1]].nbytes for op in net.ops)


def test_buffers_of_several_frames_are_refused() -> None:
    net = _net()
    plan = _plan(net)
    root = plan.pes[0]
    slots = tuple(replace(buffer, slots=2) for buffer in root.buffers)
    with pytest.raises(NpukitError, match="2 slots"):
        _generated(net, replace(plan, pes=(replace(root, buffers=slots), *plan.pes[1:])))


def test_messages_sent_one_after_the_other_are_one_chain() -> None:
    """As many doorbells as runs of sends."""
    net = _net()
    plan = _plan(net)
    files = _generated(net, plan)
    for pe in plan.pes:
        sends = [isinstance(step, Send) for step in pe.steps]
        runs = sum(now and not before for before, now in zip([False, *sends], sends, strict=False))
        assert files[pe.pe]["net.c"].count("noc_send(") == runs
