"""The network and DMA in SystemVerilog (`rtl/network`, `rtl/dma`), a chip of PEs compiled by Verilator."""

from __future__ import annotations

import subprocess
from pathlib import Path

from rtl.verilated import RTL

FOLDERS = ("network", "dma", "node", "array")
TOPS = ("noc_router", "pe_dma", "sram_arbiter", "pe_node")
PROGRAM = "mesh"


def sources() -> list[Path]:
    """Packages first."""
    found = [path for folder in FOLDERS for path in sorted((RTL / folder).glob("*.sv"))]
    return sorted(found, key=lambda path: "_pkg" not in path.name)


def lint(top: str) -> str:
    """The warnings of Verilator."""
    command = ["verilator", "--lint-only", "-Wall", "--top-module", top, *map(str, sources())]
    return subprocess.run(command, capture_output=True, text=True, check=False).stderr


def compile_mesh(folder: Path, columns: int, rows: int, *, arrays: bool = False) -> Path:
    """A program that runs scripts on a chip of PEs. Without the MAC arrays it is built in a minute."""
    bench, sizes = RTL / "testbench", {"COLUMNS": columns, "ROWS": rows, "ARRAYS": int(arrays)}
    command = [
        *("verilator", "--cc", "--exe", "--build", "-j", "2", "--hierarchical", "--assert", "-O3"),
        *("--x-assign", "fast", "-Wno-fatal", "--Mdir", str(folder), "-o", PROGRAM, "--top-module", "mesh"),
        *(f"+define+MESH_{name}={value}" for name, value in sizes.items()),
        *("-CFLAGS", f"-O2 -DVL_USER_STOP -DCOLUMNS={columns} -DROWS={rows} -I{RTL / 'device'}"),
        *map(str, sources()),
        *(str(bench / name) for name in ("mesh_node.sv", "mesh_sram.sv", "mesh.sv", "mesh_main.cpp")),
        str(RTL / "device" / "dram.cpp"),
    ]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return folder / PROGRAM
