"""Reference of ops as C code: the same C code, run in a sandbox.

Results equal the device's to the last bit: IEEE single precision, one operation at a time in the order of the C code
(no fused multiply-add, no reordering), with the same `firmware/libm`. Any NaN becomes Arm's default NaN. The sandbox is
WebAssembly without imports: no files, no clock, no calls out, access to its own memory only. A store outside its
memory, or more steps than an op of a network can need, ends the run.
"""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from pathlib import Path
from typing import cast

import numpy as np
import wasmtime

from npukit.data import data_folder
from npukit.errors import NpukitError
from npukit.host.programs import find_zig, run
from npukit.net.attributes import TvmCode
from npukit.net.c_code.function import declaration, math_functions, pointers
from npukit.net.net import Net, Op

NAN = np.uint32(0x7FC00000)

STEPS_A_CALL, STEPS_A_CYCLE = 1 << 28, 16
"""Sandbox steps allowed per call, and additional steps per predicted cycle of its loops. Of 277 ops in the tests of
float operators, none took more than 4 steps a cycle."""


def tvm_code(net: Net, op: Op, operands: Sequence[np.ndarray]) -> np.ndarray:
    output, attributes = net.tensor(op.output), op.attributes
    assert isinstance(attributes, TvmCode)
    activations = [value for name, value in zip(op.inputs, operands, strict=True) if name not in net.constants]
    result = np.empty((len(activations[0]), *output.shape), output.dtype)
    blank, work = np.zeros(output.shape, output.dtype), np.zeros(attributes.work_bytes, np.uint8)
    sources, steps = _sources(_Same(net)), STEPS_A_CALL + STEPS_A_CYCLE * attributes.cycles
    function = sources.index(_source(net, op))
    for case in range(len(result)):
        given = [
            value if name in net.constants else value[case] for name, value in zip(op.inputs, operands, strict=True)
        ]
        arrays = [*given, blank, *([work] if work.size else [])]
        result[case] = _sandbox(sources).call(function, arrays, len(given), steps)
    if result.dtype == np.float32:
        result.view(np.uint32)[np.isnan(result)] = NAN
    return result


@dataclass(frozen=True, eq=False)
class _Same:
    """A net as a cache key, compared by identity. A stream looks up the same net in every frame."""

    net: Net

    def __hash__(self) -> int:
        return id(self.net)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Same) and other.net is self.net


@lru_cache(maxsize=4)
def _sources(same: _Same) -> tuple[str, ...]:
    net = same.net
    ops = (part for op in net.ops for part in op.parts)
    return tuple(dict.fromkeys(_source(net, op) for op in ops if isinstance(op.attributes, TvmCode)))


def _source(net: Net, op: Op) -> str:
    """The C function without its name, from the parameter list on."""
    attributes = op.of(TvmCode)
    parameters = (declaration(each.dtype, each.name, written=each.written) for each in pointers(net, op))
    return f"({', '.join(parameters)})\n{{\n{attributes.code}}}\n"


@cache
def _sandbox(sources: tuple[str, ...]) -> Sandbox:
    return Sandbox(sources, math=any(math_functions(source) for source in sources))


FLAGS = (
    *("-target", "wasm32-freestanding", "-mnontrapping-fptoint", "-Wl,--no-entry", "-Wl,-z,stack-size=65536"),
    *("-std=c11", "-O1", "-w", "-ffreestanding", "-fno-builtin", "-fno-strict-aliasing", "-fno-crash-diagnostics"),
    *("-ffp-contract=off", "-fno-math-errno", "-Wl,--export=__heap_base"),
)
COMPILER_SECONDS = 300
"""Time limit of a compilation in seconds. Longer than any compilation, even the first of a fresh zig."""
MOST_MEMORY_BYTES = 1 << 31
"""Maximum bytes of a sandbox's memory: half the address space of WebAssembly."""
MOST_FUEL = 1 << 34
"""Maximum steps of a call, for a single case. Stops an endless loop after seconds."""
_PAGE, _ALIGNMENT = 1 << 16, 16
_TRIES = ("build the model again", "npukit doctor")


class Sandbox:
    """C functions compiled together, called by index in `sources`: each text from the parameter list on."""

    def __init__(self, sources: Sequence[str], *, math: bool) -> None:
        self._engine = _engine()
        self._module = wasmtime.Module(self._engine, _compiled(tuple(sources), math))

    def call(self, function: int, arrays: Sequence[np.ndarray], result: int, steps: int) -> np.ndarray:
        """The array `result` after a call with pointers to all arrays, in fresh memory, within `steps` steps."""
        store = wasmtime.Store(self._engine)
        store.set_limits(memory_size=MOST_MEMORY_BYTES)
        store.set_fuel(min(steps, MOST_FUEL))
        try:
            return _called(store, self._module, function, arrays, result)
        except (wasmtime.Trap, wasmtime.WasmtimeError) as fault:
            reason = str(fault).strip().splitlines()[-1].strip()
            raise NpukitError(f"its code cannot be run: {reason}", tries=["build the model again"]) from fault


def _called(
    store: wasmtime.Store, module: wasmtime.Module, function: int, arrays: Sequence[np.ndarray], result: int
) -> np.ndarray:
    exports = wasmtime.Instance(store, module, []).exports(store)
    memory = cast(wasmtime.Memory, exports["memory"])
    every = [*arrays, table := np.empty(len(arrays), np.uint32)]
    places, end = _places(every, cast(wasmtime.Global, exports["__heap_base"]).value(store))
    table[:] = places[:-1]
    memory.grow(store, max(0, -(-end // _PAGE) - memory.size(store)))
    image = bytearray(end - places[0])
    for place, array in zip(places, every, strict=True):
        image[place - places[0] : place - places[0] + array.nbytes] = np.ascontiguousarray(array).tobytes()
    memory.write(store, image, places[0])
    cast(wasmtime.Func, exports["call"])(store, function, places[-1])
    wanted = arrays[result]
    made = memory.read(store, places[result], places[result] + wanted.nbytes)
    return np.frombuffer(made, wanted.dtype).reshape(wanted.shape)


def _places(arrays: Sequence[np.ndarray], start: int) -> tuple[list[int], int]:
    """The start address of each array, and the end of the last."""
    places = []
    for array in arrays:
        start = -(-start // _ALIGNMENT) * _ALIGNMENT
        places.append(start)
        start += array.nbytes
    return places, start


@cache
def _engine() -> wasmtime.Engine:
    config = wasmtime.Config()
    config.consume_fuel = True
    config.parallel_compilation = False  # threads would not survive a later fork
    return wasmtime.Engine(config)


@cache
def _compiled(sources: tuple[str, ...], math: bool) -> bytes:
    """The functions as a WebAssembly module. `math`: include `firmware/libm`."""
    libm = data_folder("firmware") / "libm"
    head = '#include <stdbool.h>\n#include <stdint.h>\n#include "math.h"\n'
    functions = [f"void function_{index}{source}" for index, source in enumerate(sources)]
    functions += ["void call(int32_t function, void *const *given)\n{\n    switch (function) {"]
    functions += [_case(index, source) for index, source in enumerate(sources)] + ["    }\n}\n"]
    with tempfile.TemporaryDirectory(prefix="npukit-") as scratch:
        (Path(scratch) / "functions.c").write_text(head + "\n".join(functions), encoding="utf-8", newline="\n")
        objects = map(str, sorted(libm.glob("*.c"))) if math else ()
        _compile(["-Wl,--export=call", f"-I{libm}", "functions.c", *objects, "-o", "functions.wasm"], scratch)
        return (Path(scratch) / "functions.wasm").read_bytes()


def _case(index: int, source: str) -> str:
    """A case of the exported dispatcher, which calls a function. A single export, because each takes time."""
    pointers = (f"given[{place}]" for place in range(source.partition(")")[0].count("*")))
    return f"    case {index}:\n        function_{index}({', '.join(pointers)});\n        break;"


def _compile(arguments: Sequence[str], folder: str) -> None:
    try:
        done = run([find_zig() or "zig", "cc", *FLAGS, *arguments], Path(folder), seconds=COMPILER_SECONDS)
    except OSError as fault:
        raise NpukitError(f"the C of the network's ops cannot be compiled: {fault}", tries=_TRIES) from fault
    if done.returncode != 0:
        said = next((line for line in done.stderr.splitlines() if "error" in line), done.stderr[:200])
        raise NpukitError(f"the C of the network's ops cannot be compiled: {said}", tries=_TRIES)
