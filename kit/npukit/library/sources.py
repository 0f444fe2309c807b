"""C sources of a build's network for other firmware: no main loop, no link, no board."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, partial
from pathlib import Path
from typing import Any

import numpy as np
from jinja2 import Environment

from npukit import __version__
from npukit.accel.cpu import Cpu
from npukit.accel.engines import assign_engines, engines_of
from npukit.accel.interface import Engines
from npukit.board.board import Board
from npukit.codegen.frame import ChainStep, JoinStep, KernelStep, RestoreStep
from npukit.codegen.names import LONGEST_C_NAME, c_string, comment_text, macro
from npukit.codegen.program import Program, gather
from npukit.codegen.render import has_one_instance, library_frame, places_of, render_library
from npukit.codegen.roles import Role, alone
from npukit.codegen.states import STATES
from npukit.codegen.tensors import TensorRow, tensor_rows
from npukit.data import data_folder
from npukit.errors import NpukitError
from npukit.measure.golden import GOLDEN_FRAMES
from npukit.net.c_code.function import C_TYPES
from npukit.net.net import CORE, LINK, Net
from npukit.net.passes.at_link import without_link
from npukit.net.tensor import Tensor
from npukit.plan.ir.plan import Plan
from npukit.plan.planner import Planned, plan_network, plan_with_kernels
from npukit.plan.tensors.graph import Graph
from npukit.plan.tensors.problem import Problem
from npukit.project.build_folder import Build
from npukit.templates import templates_in

LINE = 116

EXAMPLE = "selftest/main.c"
"""Path of the example, in a folder of its own, because an Arduino library compiles all C beside the header."""

AUTHOR = "npukit"
PROPERTIES = "library.properties"
"""Arduino's description of the library."""

CORTEX_M, PORTABLE = "Cortex-M4", "portable C"


@dataclass(frozen=True)
class Library:
    """Files of a library by name, and figures of the header."""

    name: str
    kind: str
    files: Mapping[str, str]
    arena_bytes: int
    constant_bytes: int


def library(build: Build, portable: bool, labels: Sequence[str] = ()) -> Library:
    """The library of the build's network: in plain C, or with the build's kernels in assembly."""
    net, plan, engines = planned_for_library(build, portable)
    program = gather(net, plan, plan.pes[0], engines)
    # The firmware around the library places all constants together, and calls a function to reset the states.
    arrays = tuple(replace(array, near=False) for array in program.arrays)
    steps = tuple(step for step in program.steps if not isinstance(step, RestoreStep))
    records = tuple(record for record in program.records if record.symbol != STATES)
    role = alone(replace(program, arrays=arrays, steps=steps, records=records))
    name = _plain(net.name, "network")
    others = {**render_library(role, name), **drivers_of(program, build.board)}
    values = _values(build, net, plan, role, name, labels)
    compiled = sorted((file for file in others if file.endswith((".c", ".S"))), key=lambda file: ("/" in file, file))
    values |= {"states": list(_states(program, role)), "sources": [f"{name}.c", *compiled]}
    made = _templates(name, values["accelerators"])
    values["headers"] = sorted(file for file in (*others, *made.values()) if file.endswith(".h"))
    own = {file: _environment().get_template(template).render(**values) for template, file in made.items()}
    return Library(name, values["kind"], {**others, **own}, role.arena_bytes, role.constants.bytes)


def _states(program: Program, role: Role) -> Iterator[dict[str, Any]]:
    """Each state: address, bytes, and initial value, as a byte or an array of constants."""
    places = places_of(role)
    for row in (dict(row) for record in program.records if record.symbol == STATES for row in record.rows):
        initial = places.field(row["initial"]) if "initial" in row else ""
        yield {**row, "data": places.field(row["data"]), "initial": initial}


def _templates(name: str, accelerators: Sequence[str]) -> dict[str, str]:
    """Names of files by template."""
    return {
        **({"board.h.j2": f"{DRIVERS}/board.h"} if accelerators else {}),
        "library.h.j2": f"{name}.h",
        "library.c.j2": f"{name}.c",
        "main.c.j2": EXAMPLE,
        "Makefile.j2": "Makefile",
        "CMakeLists.txt.j2": "CMakeLists.txt",
        "module.yml.j2": "zephyr/module.yml",
        "library.properties.j2": PROPERTIES,
        "sketch.ino.j2": "examples/sketch/sketch.ino",
        "library.json.j2": "library.json",
        "pack.pdsc.j2": f"npukit.{name}.pdsc",
        "README.md.j2": "README.md",
    }


@dataclass(frozen=True)
class _End:
    """An input or output in the header."""

    name: str
    comment: str
    c_type: str
    elements: int
    address: str
    shape: tuple[int, ...]
    scale: str | None
    """None if the values are not quantised, or quantised by axis."""
    zero_point: int = 0
    least: int = 0
    most: int = 0


def _values(build: Build, net: Net, plan: Plan, role: Role, name: str, labels: Sequence[str]) -> dict[str, Any]:
    golden = build.golden()
    inputs = _ends("input", net, net.inputs, tensor_rows(net, plan, role.first, "input"))
    outputs = _ends("output", net, net.outputs, tensor_rows(net, plan, role.first, "output"))
    return {
        "version": __version__,
        "author": AUTHOR,
        "model": net.name,
        "model_string": c_string(net.name),
        "build_id": build.manifest.build_id,
        "name": name,
        "macro": name.upper(),
        "kind": CORTEX_M if role.first.routines else PORTABLE,
        "assembly": bool(role.first.routines),
        "board": build.board,
        "accelerators": sorted({part.engine.name for part in role.first.parts if part.engine.name != CORE}),
        "wrappers": role.first.wrappers,
        "one_instance": has_one_instance(role),
        "arena_bytes": role.arena_bytes,
        "constant_bytes": role.constants.bytes,
        "frame": library_frame(role),
        "steps": list(map(c_string, _step_names(plan, role))),
        "labels": [c_string(label) for label in labels],
        "inputs": inputs,
        "outputs": outputs,
        "frames": GOLDEN_FRAMES if net.states else 1,
        "given": [_listed(golden[f"in{i}"][0]) for i in range(len(inputs))],
        "wanted": [_listed(golden[f"out{i}"][0]) for i in range(len(outputs))],
    }


def _step_names(plan: Plan, role: Role) -> Iterator[str]:
    """Layers of each step of a run, or the function that waits in a step without layers."""
    layers = [step.op for step in plan.pes[0].computes()]
    for step in role.steps:
        match step:
            case ChainStep():
                yield ", ".join(layers[layer] for layer, _ in step.layers)
            case KernelStep():
                yield layers[step.layer]
            case JoinStep():
                yield step.wait
            case _:
                yield ""


def _ends(what: str, net: Net, tensors: Sequence[str], rows: Sequence[TensorRow]) -> list[_End]:
    plain = [_plain(name, "unnamed") for name in tensors]
    names = [f"{what}_{short if plain.count(short) == 1 else index}" for index, short in enumerate(plain)]
    return [_end(name, net.tensor(own), row.address) for name, own, row in zip(names, tensors, rows, strict=True)]


def _end(name: str, tensor: Tensor, address: str) -> _End:
    meaning, c_type = f"{tensor.name}: {tensor.dtype} {list(tensor.shape)}", C_TYPES[tensor.dtype]
    end = _End(name, comment_text(meaning), c_type, tensor.elements, address, tensor.shape, None)
    quantization = tensor.quantization
    if quantization is None or len(quantization.scales) != 1:
        return end
    meaning += f"; real value = {quantization.scale!r} * (value - {quantization.zero_point})"
    limits, scale = np.iinfo(tensor.dtype), repr(float(np.float32(quantization.scale)))
    end = replace(end, comment=comment_text(meaning), scale=scale, zero_point=quantization.zero_point)
    return replace(end, least=int(limits.min), most=int(limits.max))


def _plain(name: str, otherwise: str) -> str:
    """A part of a C name that resembles `name`."""
    letters = re.sub(r"[^a-z0-9]+", "_", name.lower()).strip("_")[:LONGEST_C_NAME]
    return letters if letters[:1].isalpha() else f"{otherwise}_{letters}".rstrip("_")


def _listed(values: np.ndarray) -> str:
    """The values as a C initialiser."""
    return ", ".join(float(v).hex() if values.dtype.kind == "f" else str(int(v)) for v in values.ravel())


@cache
def _environment() -> Environment:
    environment = templates_in("export")
    lines = partial(textwrap.fill, width=LINE, initial_indent="    ", subsequent_indent="    ")
    environment.filters |= {"macro": macro, "comment": comment_text, "lines": lines}
    return environment


DRIVERS = "drivers"
HOOKS = "include/accelerator.h"
"""Header of a driver's hooks into the firmware around it."""
EVENTS = "core_events.h"
"""Header with the implementation of the hooks, in the folder of an architecture."""


def drivers_of(program: Program, board: Board) -> dict[str, str]:
    """C files of the program's accelerators, and the headers beside them, by name. No two files may share a name."""
    used = {part.engine.name: part.engine for part in program.parts if part.engine.name != CORE}
    sources = [source for engine in used.values() for source in engine.sources(board)]
    found: dict[str, Path] = {}
    hooks = (HOOKS, f"{board.core.type.architecture.firmware}/{EVENTS}")
    files = [data_folder("firmware") / hook for hook in hooks if sources]
    for source in sources:
        files += [source, *sorted(source.parent.glob("*.h"))]
    for path in dict.fromkeys(files):
        if path.name in found:
            raise NpukitError(f"two drivers bring {path.name}: {found[path.name]} and {path}", tries=["other names"])
        found[path.name] = path
    return {f"{DRIVERS}/{name}": path.read_text(encoding="utf-8") for name, path in found.items()}


ROOM = 1 << 28
"""Bytes assumed for a portable library. The firmware around the library decides whether the real memory is enough."""

PORTABLE_TRY = "npukit export BUILD --portable"


def planned_for_library(build: Build, portable: bool) -> tuple[Net, Plan, Engines]:
    """The net without the link's ops, the plan for a single PE, and the engines of the plan."""
    if not portable and build.board.core.type.assembly == "dsp":
        net, plan = build.net(), build.plan()
        _refuse_mesh(plan)
        engines = engines_of(build.board)
        again = _again(build, net, engines)
        if [pe.steps for pe in again.plan.pes] != [pe.steps for pe in plan.pes]:
            raise NpukitError(
                f"npukit {__version__} plans this network otherwise than npukit {build.manifest.npukit} did",
                tries=["build again"],
            )
        if any(op.engine == LINK for op in net.ops):
            net = without_link(net)
            again = _again(build, net, engines)
        return net, again.plan, again.engines
    # Every op on the core, without assembly, on a single PE with ample memory.
    whole, engines = without_link(build.net()), {CORE: Cpu()}
    net = assign_engines(whole.with_ops(tuple(part for op in whole.ops for part in op.parts)), engines, only=CORE)
    memory = tuple(m.model_copy(update={"size": ROOM}) for m in build.board.memory)
    roomy = build.board.model_copy(update={"memory": memory, "noc": None})
    return net, plan_network(net, roomy, engines, objective="latency", max_pes=1), engines


def _refuse_mesh(plan: Plan) -> None:
    """Raise an error if the plan needs more than a core and accelerators."""
    fault = way = ""
    if len(plan.pes) > 1:
        fault, way = f"the build runs on {len(plan.pes)} PEs; a library runs on one core", "npukit build MODEL --pes 1"
    elif any(pe.memory.banks for pe in plan.pes):
        fault = "the build's activations lie in several memories; a library has one"
        way = "a board file in which one memory holds activations"
    elif plan.dram:
        fault = "weights of the build are streamed from DRAM, for which a library has no network-on-chip"
        way = "a board whose memory holds the weights"
    if fault:
        raise NpukitError(fault, tries=[way, PORTABLE_TRY])


def _again(build: Build, net: Net, engines: Engines) -> Planned:
    problem = Problem(Graph(net), build.board, engines, max_pes=1)
    return plan_with_kernels(problem, build.plan().objective, build.manifest.preference)
