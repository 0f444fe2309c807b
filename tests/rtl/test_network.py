"""The network and DMA in SystemVerilog: bytes and cycles of random loads equal the built-in emulator's."""

from __future__ import annotations

import struct
from collections.abc import Iterator, Sequence
from dataclasses import replace

import pytest

from npukit.emulator.fault_plan import FaultPlan
from oracles.dma_model import DRAM, MULTICAST, Descriptor
from rtl.mesh import TOPS, compile_mesh, lint
from rtl.network_loads import (
    ARRIVALS,
    COLUMNS,
    DESCRIPTORS,
    FLAG,
    LISTS,
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
INTERVAL, SECOND = 2000, 1
SENT = {0: [10, 10, 2, 1, 10], 1: [2], 6: [10], 2: [DRAM], 10: [DRAM]}
"""Places of the messages of some PEs, an interval apart, PE after PE. From the DRAM a message comes to the PE."""
ALL = (10, 3, 6, 1, 2, 15)
"""Destinations of a multicast: its list has two flits."""
ONE_PACKET, THREE_PACKETS = 64, 1200
"""Bytes of a message."""
LINKS = ((1, 4), (2, 4), (6, 1), (10, 1))
"""Routers and ports on the way from PE 0 to PE 10."""
BITS = ((0, LOST), (0, 3), (0, 17), (0, 20), (0, 24), (0, 26), (0, 40), (0, 130), (0, 8), (1, 5))
"""Flit and bit: a lost packet; the DRAM, x and y of the place; the sender; the CRC; a list that the packet does not
have; the first data. Of a message with a wrong CRC the emulator writes no byte."""
BITS_OF_PACKETS = ((0, LOST), (0, 3), (0, 17), (0, 26), (1, 5))
BITS_OF_LISTS = ((0, LOST), (0, 7), (0, 17), (0, 26), (1, 18), (1, 130), (2, 28), (2, 50), (3, 5))
"""The same of a packet with a list in flits 1 and 2."""


class Messages(Load):
    """`SENT`. The messages of PE 0 to PE 10 go to all of `ALL` with `lists`."""

    def __init__(self, row_bytes: int, lists: bool = False) -> None:
        self._row_bytes, self._lists = row_bytes, lists
        super().__init__(1)

    def _fill(self, number: int) -> None:
        before = sum(len(places) for pe, places in SENT.items() if pe < number)
        for each, place in enumerate(SENT.get(number, ())):
            self.pes[number].rings.append((INTERVAL * (1 + before + each), DESCRIPTORS + 48 * each))
            self.pes[number].descriptors.append(self._message(number, place, before + each))

    def _message(self, pe: int, place: int, turn: int) -> Descriptor:
        source, start, to = (DRAM, 0, pe) if place == DRAM else (pe, SOURCES, place)
        address = ARRIVALS + self._row_bytes * turn
        fields = {"source_pe": source, "source": start, "row_bytes": self._row_bytes, "rows": 1}
        made = Descriptor(**fields, destination_pe=to, destination=address, destination_flag=FLAG)
        if not self._lists or (pe, place) != (0, ALL[0]):
            return made
        at = LISTS + len(self.pes[pe].lists)
        self.pes[pe].lists += b"".join(struct.pack("<II", each, address) for each in ALL)
        return replace(made, kind=made.kind | MULTICAST, destination_pe=at, destination=len(ALL))


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
@pytest.mark.parametrize(
    ("row_bytes", "lists", "bits"),
    [(ONE_PACKET, False, BITS), (THREE_PACKETS, False, BITS_OF_PACKETS), (THREE_PACKETS, True, BITS_OF_LISTS)],
)
def test_a_fault_of_a_link_shows_where_it_shows_in_the_emulator(
    mesh: Mesh, hop: int, row_bytes: int, lists: bool, bits: Sequence[tuple[int, int]]
) -> None:
    """The first packet of a message is struck: later packets on the link do not arrive either."""
    load = Messages(row_bytes, lists)
    for flit, bit in bits:
        kind = {"kind": "drop"} if bit == LOST else {"kind": "flip", "bit": 144 * flit + bit}
        struck = {"from": 0, "to": 10, "packet": SECOND, "hop": hop, "part": 0, **kind}
        plan = FaultPlan.model_validate({"fault": [struck]})
        wanted, rung = emulated(load, plan=plan)
        assert any(wanted.errors)
        seen = mesh.run(load, rung, [LinkFault(rung[0][SECOND], *LINKS[hop], flit, bit)])
        assert not compared(wanted, seen), (flit, bit)
    assert not mesh.violations


@pytest.mark.parametrize("top", TOPS)
def test_verilator_has_nothing_to_warn_of(top: str) -> None:
    assert lint(top) == ""
