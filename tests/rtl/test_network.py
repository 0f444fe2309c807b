"""The network and DMA in SystemVerilog: bytes and cycles of random loads equal the built-in emulator's."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from npukit.emulator.fault_plan import FaultPlan
from oracles.dma_model import DRAM, Descriptor
from rtl.mesh import TOPS, compile_mesh, lint
from rtl.network_loads import (
    ARRIVALS,
    COLUMNS,
    DESCRIPTORS,
    FLAG,
    LOST,
    ROWS,
    SOURCES,
    LinkFault,
    Load,
    Mesh,
    compared,
    differences,
    emulated,
)
from rtl.verilated import is_installed

pytestmark = pytest.mark.skipif(not is_installed(), reason="Verilator is not installed: the RTL is not simulated")
LOADS = 8
INTERVAL, BYTES, SECOND = 2000, 64, 1
SENT = {0: [10, 10, 2, 1, 10], 1: [2], 6: [10], 2: [DRAM], 10: [DRAM]}
"""Places of the messages of some PEs, an interval apart, PE after PE. From the DRAM a message comes to the PE."""
LINKS = ((1, 4), (2, 4), (6, 1), (10, 1))
"""Routers and ports on the way from PE 0 to PE 10."""
BITS = ((0, LOST), (0, 3), (0, 17), (0, 20), (0, 24), (0, 26), (0, 40), (0, 130), (0, 8), (1, 5))
"""Flit and bit: a lost packet; the DRAM, x and y of the place; the sender; the CRC; a list that the packet does not
have; the first data. Of a message with a wrong CRC the emulator writes no byte."""


class Messages(Load):
    """`SENT`."""

    def _fill(self, number: int) -> None:
        before = sum(len(places) for pe, places in SENT.items() if pe < number)
        for each, place in enumerate(SENT.get(number, ())):
            self.pes[number].rings.append((INTERVAL * (1 + before + each), DESCRIPTORS + 48 * each))
            self.pes[number].descriptors.append(_descriptor(number, place, before + each))


def _descriptor(pe: int, place: int, turn: int) -> Descriptor:
    source, start, to = (DRAM, 0, pe) if place == DRAM else (pe, SOURCES, place)
    fields = {"source_pe": source, "source": start, "destination_pe": to, "destination": ARRIVALS + BYTES * turn}
    return Descriptor(**fields, row_bytes=BYTES, rows=1, destination_flag=FLAG)


@pytest.fixture(scope="module")
def mesh(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Mesh]:
    mesh = Mesh(compile_mesh(tmp_path_factory.mktemp("mesh"), COLUMNS, ROWS))
    yield mesh
    mesh.close()


@pytest.mark.exhaustive
def test_random_loads_leave_the_same_bytes_in_the_same_cycles(mesh: Mesh) -> None:
    for seed in range(LOADS):
        assert not differences(mesh, Load(seed)), seed
    assert not mesh.violations


@pytest.mark.exhaustive
@pytest.mark.parametrize("hop", range(len(LINKS)))
def test_a_fault_of_a_link_shows_where_it_shows_in_the_emulator(mesh: Mesh, hop: int) -> None:
    load = Messages(1)
    for flit, bit in BITS:
        kind = {"kind": "drop"} if bit == LOST else {"kind": "flip", "bit": 144 * flit + bit}
        plan = FaultPlan.model_validate({"fault": [{"from": 0, "to": 10, "packet": SECOND, "hop": hop, **kind}]})
        wanted, rung = emulated(load, plan=plan)
        assert any(wanted.errors)
        seen = mesh.run(load, rung, [LinkFault(rung[0][SECOND], *LINKS[hop], flit, bit)])
        assert not compared(wanted, seen), (flit, bit)
    assert not mesh.violations


@pytest.mark.parametrize("top", TOPS)
def test_verilator_has_nothing_to_warn_of(top: str) -> None:
    assert lint(top) == ""
