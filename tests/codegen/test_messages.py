"""Messages as descriptors: the generated C moves the bytes of the plan."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest

from net.small_nets import op_net, quantized
from npukit.accel.engines import assign_engines, engines_of
from npukit.board.board import load_board
from npukit.board.noc import DESTINATION_BYTES, DRAM
from npukit.codegen.generate import generate
from npukit.codegen.sources import Sources, Spot
from npukit.codegen.streamed import dram_image
from npukit.net.net import Net
from npukit.net.ops import Conv2d
from npukit.plan.ir.plan import Plan, Send, View
from npukit.plan.planner import plan_network
from npukit.plan.predict.memory import control_bytes
from npukit.plan.tensors.graph import Graph
from npukit.plan.tensors.problem import Problem
from npukit.plan.tensors.routes import pes_in_order
from plan.batch.test_batch_emitter import heavy
from plan.planning import best_plan

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


class _Made:
    """The generated code of a PE: a share of the role's C, and the PE's own data."""

    def __init__(self, sources: Sources, pe: int) -> None:
        self.files, self.pe = sources.files, pe
        self._own = next((own for own in sources.own.pes if own.pe == pe), None)

    def descriptors(self, number: int) -> list[dict[str, Any]]:
        """Descriptors of a message, in order, from the C or from the PE's own data."""
        rows = self._rows("noc_descriptor")
        found = [(offset, row) for offset, row in rows.items() if int(row["tag"]) == number]
        return [row for _, row in sorted(found, key=lambda each: each[0])]

    def destinations(self, descriptor: dict[str, Any]) -> dict[int, int]:
        """Offset of the first destination byte in the activations, by PE."""
        if "options" not in descriptor:
            return {int(descriptor["destination_pe"]): self.place(descriptor["destination"])}
        first, count = descriptor["destination_pe"], int(descriptor["destination"])
        listed = [self._listed(first, index) for index in range(count)]
        return {int(row["pe"]): self.place(row["address"]) for row in listed}

    def place(self, value: Any) -> int:
        """An offset from the start of the activations."""
        if isinstance(value, Spot):
            return value.offset
        foreign = re.fullmatch(r"\(uint32_t\)&net_activations_of_pe_\d+\[(\d+)\]", value)
        if foreign:
            return int(foreign[1])
        own = re.fullmatch(r"(?:\(uint32_t\))?ARENA\((\w+)(?: \+ (\d+))?\)", value)
        assert own is not None, value
        offsets = dict(re.findall(r"(at_\w+) = (\d+),", self.files["memory.h"]))
        return self._ahead() + int(offsets[own[1]]) + int(own[2] or 0)

    def _ahead(self) -> int:
        layers = re.search(r"NET_LAYERS = (\d+)", self.files["memory.h"])
        assert layers is not None
        return control_bytes(int(layers[1]))

    def _rows(self, struct: str) -> dict[int, dict[str, Any]]:
        if self._own:
            rows = [row for row in self._own.rows if row.struct == struct]
            return {row.offset: dict(zip(row.names, row.values, strict=True)) for row in rows}
        texts = re.findall(r"\.message_\d+_descriptor_\d+ = {(.*?)},", self.files["constants.c"], re.S)
        return {index: dict(re.findall(r"\.(\w+) = (.*),", text)) for index, text in enumerate(texts)}

    def _listed(self, first: Any, index: int) -> dict[str, Any]:
        if self._own:
            return self._rows("noc_destination")[first.offset + DESTINATION_BYTES * index]
        text = re.search(rf"\.{first.rpartition('.')[2]} = {{(.*?)\n}},", self.files["constants.c"], re.S)
        assert text is not None
        pe, address = re.findall(r"\.pe = (\d+), \.address = (.*?) }", text[1])[index]
        return {"pe": pe, "address": address}


def _generated(net: Net, plan: Plan) -> dict[int, _Made]:
    made = generate(net, plan, BOARD, engines_of(BOARD), bytes(16))
    return {pe: _Made(sources, pe) for sources in made for pe in sources.pes}


def test_the_bytes_that_move_are_those_of_the_plan() -> None:
    """Reads C and data back: each message writes every byte of its landings once, from the right address."""
    net = _net()
    plan = _plan(net)
    made = _generated(net, plan)
    for number, message in enumerate(plan.messages):
        sender = made[message.source_pe]
        descriptors = sender.descriptors(number)
        assert descriptors
        for landing in message.landings:
            moved = [move for each in descriptors for move in _moves(each, sender, landing.pe)]
            target = _places(net, plan, landing.pe, message.tensor, landing.view)
            source = _places(net, plan, message.source_pe, message.tensor, message.source)
            assert sorted(moved) == sorted(zip(source, target, strict=True))
        counted = [int(each["destination_flag"]) for each in descriptors if each["destination_flag"] != "NOC_NO_FLAG"]
        assert sorted(counted) == sorted({landing.flag for landing in message.landings})
        sent = [str(each["source_flag"]) for each in descriptors]
        assert sent.count("0") == sent[-1:].count("0") == plan.by_pe[message.source_pe].awaits_sent


def _bytes_before_arena(plan: Plan, number: int) -> int:
    return control_bytes(sum(1 for pe in plan.pes if pe.pe == number for _ in pe.computes()))


def _moves(descriptor: dict[str, Any], sender: _Made, pe: int) -> list[tuple[int, int]]:
    """Pairs of source and destination byte that a descriptor moves to a PE, as offsets in the activations."""
    start = sender.destinations(descriptor).get(pe)
    if start is None:
        return []
    source = sender.place(descriptor["source"])
    row_bytes, rows = int(descriptor["row_bytes"]), int(descriptor["rows"])
    strides = int(descriptor["source_stride"]), int(descriptor["destination_stride"])
    return [
        (source + row * strides[0] + byte, start + row * strides[1] + byte)
        for row in range(rows)
        for byte in range(row_bytes)
    ]


def _places(net: Net, plan: Plan, pe: int, tensor: str, view: View) -> list[int]:
    """Offset of each byte of a view in the PE's activations, in the box's order."""
    buffer = next(each for each in plan.pes if each.pe == pe).buffer(view.buffer)
    size = net.tensor(tensor).bytes // net.tensor(tensor).elements
    places = np.arange(buffer.box.elements * size).reshape(*buffer.box.shape, size)
    places += _bytes_before_arena(plan, pe) + buffer.offset
    inner = zip(view.box.offset_in(buffer.box), view.box.shape, strict=True)
    return places[tuple(slice(o, o + n) for o, n in inner)].ravel().tolist()


@pytest.mark.exhaustive
def test_streamed_constants_come_from_where_the_plan_keeps_them_in_dram() -> None:
    net = heavy()
    plan = best_plan(Problem(Graph(net), BOARD, engines_of(BOARD), pes_in_order(BOARD)[:2]), objective="throughput")
    made = _generated(net, plan)
    dram = {buffer.name: buffer for buffer in plan.dram}
    streamed = [n for n, message in enumerate(plan.messages) if message.source_pe == DRAM]
    senders = {step.message: pe.pe for pe in plan.pes for step in pe.steps if isinstance(step, Send)}
    assert streamed
    for number in streamed:
        sender = made[senders[number]]
        descriptors = sender.descriptors(number)
        source = dram[plan.messages[number].source.buffer]
        assert descriptors[0]["source_pe"] == "NOC_DRAM"
        assert descriptors[0]["source"] in (source.offset, f"(const void *)0x{source.offset:08X}U")
        assert all(each["source_flag"] == "NOC_NO_FLAG" for each in descriptors)


@pytest.mark.exhaustive
def test_the_dram_holds_every_streamed_constant_once() -> None:
    """The image has at least the bytes of the layers' weights, and holds a block of weights once."""
    net = heavy()
    plan = best_plan(Problem(Graph(net), BOARD, engines_of(BOARD), pes_in_order(BOARD)[:2]), objective="throughput")
    made = generate(net, plan, BOARD, engines_of(BOARD), bytes(16))
    image = dram_image(plan, [piece for sources in made for piece in sources.streamed])
    weights = net.constants[net.ops[-1].inputs[1]]
    first_block = weights[:16].T.tobytes()
    assert image.count(first_block) == 1
    assert len(image) >= sum(net.constants[op.inputs[1]].nbytes for op in net.ops)


def test_messages_sent_one_after_the_other_are_one_chain() -> None:
    """One doorbell per run of sends."""
    net = _net()
    plan = _plan(net)
    made = _generated(net, plan)
    for pe in plan.pes:
        sends = [isinstance(step, Send) for step in pe.steps]
        runs = sum(now and not before for before, now in zip([False, *sends], sends, strict=False))
        assert made[pe.pe].files["net.c"].count("noc_send(") == runs
