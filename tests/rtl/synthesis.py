"""The RTL synthesised by Yosys: the size of each part of a PE in gates of a public library, and circuits for an ECP5.

Modules are synthesised apart, without optimisation across their borders: a part is the sum of its modules. An array of
words that the RTL writes is memory, if the words have more than 6 bits; its bits are counted, its gates are not.
"""

from __future__ import annotations

import json
import subprocess
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

RTL = Path(__file__).resolve().parents[2] / "rtl"
TOP = "pe_node"
LIMIT = 4 * 3600.0
"""Seconds of a program."""
NAND2, FLIP_FLOP = 0.798, 4.522
"""Square micrometres of NAND2_X1 and DFF_X1 of the NanGate 45 nm Open Cell Library (PDK v1.3, 2010)."""
GATES = {
    "INV": ("!A", 0.532),
    "BUF": ("A", 0.798),
    "NAND2": ("!(A*B)", NAND2),
    "NAND3": ("!(A*B*C)", 1.064),
    "NOR2": ("!(A+B)", 0.798),
    "NOR3": ("!(A+B+C)", 1.064),
    "AND2": ("A*B", 1.064),
    "OR2": ("A+B", 1.064),
    "XOR2": ("A*!B+!A*B", 1.596),
    "XNOR2": ("A*B+!A*!B", 1.596),
    "MUX2": ("S*B+!S*A", 1.862),
    "AOI21": ("!(A*B+C)", 1.064),
    "OAI21": ("!((A+B)*C)", 1.064),
    "AOI22": ("!(A*B+C*D)", 1.330),
    "OAI22": ("!((A+B)*(C+D))", 1.330),
    "ZERO": ("CONST0", 0.0),
    "ONE": ("CONST1", 0.0),
}
"""Function and square micrometres of the gates, each the smallest of its kind in the same library."""

PARTS = {
    "array_multipliers": ("array", "multipliers and accumulators"),
    "array_output": ("array", "output stage"),
    "array_reciprocal": ("array", "output stage"),
    "array_patches": ("array", "loads: patches, sliding window, weights of the lanes"),
    "array_window": ("array", "loads: patches, sliding window, weights of the lanes"),
    "array_lane_weights": ("array", "loads: patches, sliding window, weights of the lanes"),
    "array_operand_file": ("array", "operand file, choice of operands"),
    "array_operands": ("array", "operand file, choice of operands"),
    "array_sums": ("array", "operand file, choice of operands"),
    "array_transposer": ("array", "transposer"),
    "array_weights": ("array", "weights queue"),
    "array_parameters": ("array", "parameter store"),
    "array_extra": ("array", "residuals, write-back"),
    "array_write_back": ("array", "residuals, write-back"),
    "mac_array": ("array", "commands: registers, fetch, check, plan, timer, port"),
    "pe_dma": ("DMA", "registers, chains"),
    "dma_flags": ("DMA", "flags"),
    "dma_fetch": ("DMA", "fetch and check of descriptors"),
    "dma_check": ("DMA", "fetch and check of descriptors"),
    "dma_sender": ("DMA", "sender"),
    "dma_receiver": ("DMA", "receiver"),
    "noc_router": ("router", "inputs: numbers, choice"),
    "noc_buffer": ("router", "buffers"),
    "noc_route": ("router", "routes"),
    "noc_list_route": ("router", "routes"),
    "noc_output": ("router", "outputs"),
    TOP: ("SRAM port", "arbiter"),
}
"""Group and part of a module and of all modules inside it, unless they have a part of their own."""


@dataclass(frozen=True)
class Size:
    cells: int = 0
    flip_flops: int = 0
    memory_bits: int = 0
    area: float = 0.0
    """Square micrometres of gates and flip-flops."""

    def __add__(self, other: Size) -> Size:
        return Size(
            self.cells + other.cells,
            self.flip_flops + other.flip_flops,
            self.memory_bits + other.memory_bits,
            self.area + other.area,
        )

    @property
    def nand2(self) -> int:
        return round(self.area / NAND2)


def sources() -> list[Path]:
    """Packages first."""
    files = [path for room in ("array", "network", "dma", "node") for path in (RTL / room).glob("*.sv")]
    return sorted(files, key=lambda path: ("_pkg" not in path.name, path))


def library() -> str:
    """The gates as a genlib file of ABC, each with the same delay."""
    return "".join(
        f"GATE {name} {area} Y={function};{'' if area == 0 else ' PIN * UNKNOWN 1 999 1 0 1 0'}\n"
        for name, (function, area) in GATES.items()
    )


def to_gates(top: str) -> str:
    """The commands of Yosys from the RTL to gates and memories."""
    files = " ".join(map(str, sources()))
    return "; ".join(
        (
            f"read_verilog -sv -DSYNTHESIS {files}",
            f"hierarchy -check -top {top}",
            *("proc", "opt", "fsm", "opt", "wreduce", "peepopt", "opt_clean", "alumacc", "share", "opt"),
            *("memory -nomap", "opt_clean", "select -set rom t:$mem_v2 r:WR_PORTS=0 %i"),
            *("select -set narrow t:$mem_v2 r:WIDTH<=6 %i", "memory_map @rom @narrow"),
            *("opt -fast -full", "techmap", "opt -fast"),
            *("dfflegalize -cell $_DFF_P_ 01 -cell $_DFFE_PP_ 01", "opt_clean"),
            *("abc -genlib gates.genlib", "opt_clean", "write_json netlist.json"),
        )
    )


def run(commands: str, folder: Path, seconds: float) -> None:
    """Yosys in a folder. An error names the last line of its output."""
    program = ["yosys", "-q", "-p", commands]
    done = subprocess.run(program, cwd=folder, capture_output=True, text=True, timeout=seconds, check=False)
    if done.returncode:
        raise RuntimeError((done.stderr or done.stdout).strip().splitlines()[-1])


def sizes(folder: Path, top: str = TOP, seconds: float = LIMIT) -> Mapping[tuple[str, str], Size]:
    """The size of each part below a module."""
    (folder / "gates.genlib").write_text(library())
    run(to_gates(top), folder, seconds)
    return counted(json.loads((folder / "netlist.json").read_text())["modules"], top)


def counted(modules: Mapping[str, Any], top: str) -> Mapping[tuple[str, str], Size]:
    """The sizes of parts in a netlist of Yosys."""
    own = {name: _own(module["cells"].values()) for name, module in modules.items()}
    inside = {name: Counter(cell["type"] for cell in module["cells"].values()) for name, module in modules.items()}

    @cache
    def below(name: str, part: tuple[str, str]) -> Counter[tuple[str, tuple[str, str]]]:
        """How often each module stands for each part, in an instance."""
        here = PARTS.get(_written(name), part)
        found = Counter({(name, here): 1})
        for kind, count in inside[name].items():
            if kind in modules:
                found.update({key: count * each for key, each in below(kind, here).items()})
        return found

    found: dict[tuple[str, str], Size] = dict.fromkeys(PARTS.values(), Size())
    for (name, part), count in below(_named(modules, top), ("", "")).items():
        for _ in range(count):
            found[part] = found.get(part, Size()) + own[name]
    return {part: size for part, size in found.items() if size != Size()}


def _named(modules: Mapping[str, Any], top: str) -> str:
    return next(name for name in modules if _written(name) == top)


def _written(name: str) -> str:
    """The module's name in the RTL: Yosys adds parameters."""
    return name.split("\\")[1] if "\\" in name else name


def _own(cells: Iterator[Any]) -> Size:
    total = Size()
    for cell in cells:
        kind, parameters = cell["type"], cell.get("parameters", {})
        if kind in GATES:
            total += Size(cells=int(GATES[kind][1] > 0), area=GATES[kind][1])
        elif kind.startswith("$_DFF"):
            total += Size(flip_flops=1, area=FLIP_FLOP)
        elif kind.startswith("$mem"):
            total += Size(memory_bits=int(parameters["SIZE"], 2) * int(parameters["WIDTH"], 2))
        elif kind.startswith("$_"):
            raise ValueError(f"a gate without an area: {kind}")
    return total
