# SPDX-License-Identifier: GPL-2.0-only
"""The emulated board: a mesh of the C core, set up from the board file and the programs."""

from __future__ import annotations

import ctypes
import mmap
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from npukit.emulator.worker.blocks import block_costs
from npukit.emulator.worker.compiler import core_library, device_library
from npukit.emulator.worker.cycles import REFILL
from npukit.emulator.worker.library import (
    Counters,
    Decode,
    Fault,
    Joint,
    Progress,
    figure_array,
    load_core,
    unicorn_functions,
)

OUTCOMES = ("cycle", "output", "idle", "fault", "time", "restart", "power cut")
_FOREVER = (1 << 64) - 1
_MOST_OUTPUT = 1 << 16
_MOST_RECORDS = 1 << 16
_RECORD_BYTES = 40


class CannotStart(Exception):
    """Says why the board could not be set up."""


@dataclass(frozen=True)
class Accelerator:
    """An accelerator of every PE. `library` is the model of a third party; npukit's own are in the core."""

    name: str
    base: int
    figures: Mapping[str, int]
    library: str | None = None


class Flash:
    """The flash of a board, kept in a file that is as long as the flash."""

    def __init__(self, file: str, figures: Mapping[str, int]) -> None:
        self.figures = figures
        with open(file, "r+b") as stream:
            self._bytes = mmap.mmap(stream.fileno(), figures["bytes"])
        self.memory = (ctypes.c_ubyte * figures["bytes"]).from_buffer(self._bytes)


class EmulatedBoard:
    """PEs, their memories and devices, in the state that running has brought them to."""

    def __init__(self, figures: Mapping[str, int], accelerators: Sequence[Accelerator]) -> None:
        self._core = load_core(core_library())
        self._unicorn = unicorn_functions()
        self._decode = Decode(_decode)
        self._kept: list[Any] = []
        array = self._keep(figure_array({**figures, "refill_cycles": REFILL}))
        self._mesh = self._core.mesh_new(array, len(array), ctypes.cast(self._unicorn, ctypes.c_void_p), self._decode)
        if not self._mesh:
            missing = self._core.mesh_missing_figure()
            raise CannotStart(f"the board has no figure {missing.decode()}" if missing else "out of memory")
        for accelerator in accelerators:
            self._attach(accelerator)

    def set_dead(self, pes: Sequence[int], links: Sequence[Sequence[int]]) -> None:
        for pe in pes:
            self._core.mesh_set_pe_dead(self._mesh, pe)
        for pe, other in links:
            self._core.mesh_set_link_dead(self._mesh, pe, other)

    def power_up(self, root: int, programs: Sequence[Sequence[int]]) -> None:
        """Give PEs their cores; those of one entry share one program. Their memories are written afterwards."""
        self._core.mesh_set_root(self._mesh, root)
        for pes in programs:
            image = self._core.mesh_add_image(self._mesh)
            for pe in pes:
                _check(self._core.mesh_power_up(self._mesh, pe, image))

    def start_from_flash(self, root: int, flash: Flash, cause: int) -> None:
        """Let the root PE start as it does by itself."""
        figures = self._keep(figure_array(flash.figures))
        memory = ctypes.addressof(self._keep(flash.memory))
        _check(self._core.mesh_add_flash(self._mesh, figures, len(figures), memory, cause))
        self.power_up(root, [[root]])
        self._core.mesh_load_flash(self._mesh)
        self.reset([root])

    def cut_power(self, operation: int, chance: int) -> None:
        """In the midst of a flash operation, 1 being the next."""
        self._core.mesh_cut_power(self._mesh, operation, chance)

    def flash_operations(self) -> int:
        """Flash operations since the board started."""
        return self._core.mesh_flash_operations(self._mesh)

    def reset(self, pes: Sequence[int]) -> None:
        """Let PEs run from their vector tables."""
        for pe in pes:
            self._core.mesh_reset(self._mesh, pe)

    def run(self, until: int | None, stop_at_output: bool, seconds: float) -> str:
        """Run and say why it stopped: one of `OUTCOMES`."""
        return OUTCOMES[self._core.mesh_run(self._mesh, _FOREVER if until is None else until, stop_at_output, seconds)]

    def now(self) -> int:
        return self._core.mesh_now(self._mesh)

    def send(self, data: bytes) -> None:
        self._core.mesh_send(self._mesh, data, len(data))

    def take(self) -> bytes:
        """What the UART has sent."""
        buffer = ctypes.create_string_buffer(_MOST_OUTPUT)
        count = self._core.mesh_take(self._mesh, buffer, _MOST_OUTPUT)
        return buffer.raw[:count]

    def read(self, place: int, address: int, size: int) -> bytes | None:
        buffer = ctypes.create_string_buffer(size)
        return buffer.raw[:size] if self._core.mesh_read(self._mesh, place, address, buffer, size) else None

    def write(self, place: int, address: int, data: bytes) -> bool:
        return bool(self._core.mesh_write(self._mesh, place, address, data, len(data)))

    def counters(self, pe: int) -> dict[str, int]:
        counters = Counters()
        self._core.mesh_count(self._mesh, pe, counters)
        return {field[0]: getattr(counters, field[0]) for field in Counters._fields_}

    def trace(self, on: bool) -> None:
        """Whether what happens from now on is written down."""
        self._core.mesh_trace(self._mesh, on)

    def mark(self, pe: int, address: int) -> None:
        """Write down, too, when a PE comes to an instruction."""
        self._core.mesh_trace_mark(self._mesh, pe, address)

    def take_trace(self) -> bytes:
        """What was written down since, or the next part of it: entries of `struct trace_record`."""
        buffer = ctypes.create_string_buffer(_MOST_RECORDS * _RECORD_BYTES)
        count = self._core.mesh_trace_take(self._mesh, buffer, _MOST_RECORDS)
        return buffer.raw[: count * _RECORD_BYTES]

    def fault(self) -> dict[str, Any]:
        fault = Fault()
        self._core.mesh_fault(self._mesh, fault)
        return {"kind": fault.kind, "pe": fault.pe, "address": fault.address, "registers": list(fault.registers)}

    def close(self) -> None:
        self._core.mesh_free(self._mesh)

    def _attach(self, accelerator: Accelerator) -> None:
        library = _library(Path(accelerator.library)) if accelerator.library else self._core
        try:
            model = ctypes.c_char.in_dll(library, f"{accelerator.name}_device")
        except ValueError:
            raise CannotStart(f"the emulator has no model of the accelerator {accelerator.name}") from None
        figures = self._keep(figure_array(accelerator.figures))
        address = ctypes.addressof(self._keep(model))
        _check(self._core.mesh_add_accelerator(self._mesh, accelerator.base, address, figures, len(figures)))

    def _keep(self, value: Any) -> Any:
        """C keeps pointers to it."""
        self._kept.append(value)
        return value


def _library(model: Path) -> ctypes.CDLL:
    try:
        return ctypes.CDLL(str(device_library(model)))
    except OSError as error:
        raise CannotStart(f"the model {model.name} cannot be loaded: {error}") from None


def _check(complaint: bytes | None) -> None:
    if complaint:
        raise CannotStart(complaint.decode())


def _decode(code: Any, size: int, address: int, progress: Any, joint: Any) -> None:
    costs = block_costs(ctypes.string_at(code, size), address)
    done = costs.progress
    ctypes.memmove(progress, (Progress * len(done))(*done), ctypes.sizeof(Progress) * len(done))
    joint[0] = Joint(costs.first_can_follow, costs.first_address, costs.last_loaded)
