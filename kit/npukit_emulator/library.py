# SPDX-License-Identifier: GPL-2.0-only
"""The C core for Python: the functions of core/api.h."""

from __future__ import annotations

import ctypes
from collections.abc import Mapping
from ctypes import (
    POINTER,
    c_char,
    c_char_p,
    c_double,
    c_int,
    c_int32,
    c_int64,
    c_size_t,
    c_uint8,
    c_uint16,
    c_uint32,
    c_uint64,
    c_void_p,
)
from pathlib import Path
from typing import Any

from unicorn.unicorn_py3.unicorn import uclib

from npukit_emulator.words import MOST_NEEDS


def _words(*names: str) -> tuple[tuple[str, Any], ...]:
    return tuple((name, c_uint32) for name in names)


class Figure(ctypes.Structure):
    """A named number of the board file."""

    _fields_ = (("name", c_char_p), ("value", c_int64))


class Extent(ctypes.Structure):
    """Addresses from `start` up to before `end`: `struct code_range`."""

    _fields_ = _words("start", "end")


class Memory(ctypes.Structure):
    """`struct memory`."""

    _fields_ = _words("base", "bytes", "wait_cycles", "next_cycles", "line_bytes", "lines", "ways", "data_lines")


class Progress(ctypes.Structure):
    """Instructions and cycles so far, and remarks on the next instruction (`enum remark`)."""

    _fields_ = (("instructions", c_uint16), ("cycles", c_uint16), ("remarks", c_uint16))


class Need(ctypes.Structure):
    """`struct need`: `register` plus `added` must be a multiple of 4."""

    _fields_ = (("register", c_uint16), ("at", c_uint16), ("added", c_int32))


class Joint(ctypes.Structure):
    """A block's relation to its neighbours, and the block's needs: `struct joint`."""

    _fields_ = (
        *((name, c_uint16) for name in ("can_follow", "address", "loaded", "stack_bytes", "stack_at", "fpu_at")),
        *((name, c_uint16) for name in ("need_count", "keeps_needs")),
        ("needs", Need * MOST_NEEDS),
    )


class Counters(ctypes.Structure):
    _fields_ = (
        *((name, c_uint64) for name in ("instructions", "cycles", "asleep", "npu_busy", "dma_bytes")),
        *_words("device_errors", "last_device_error", "last_device_error_address", "running"),
    )


class RaceSide(ctypes.Structure):
    """An access of a race: `struct race_side`."""

    _fields_ = _words("kind", "pe", "address", "tag", "device", "stores")


class Race(ctypes.Structure):
    """Two accesses without order: `struct race`."""

    _fields_ = (*_words("place", "address"), ("sides", RaceSide * 2))


class Fault(ctypes.Structure):
    _fields_ = (
        *_words("kind", "pe", "address", "other"),
        ("registers", c_uint32 * 17),
        ("what", c_char * 128),
        ("race", Race),
        ("since", c_uint64),
    )


class Wait(ctypes.Structure):
    _fields_ = _words("state", "pc", "address", "value")


class Note(ctypes.Structure):
    """A message: `struct note`."""

    _fields_ = (
        ("time", c_uint64),
        *_words("kind", "owner", "source", "destination", "address", "bytes", "flag", "tag"),
    )


class Injection(ctypes.Structure):
    """A line of a plan of faults: `struct injection`."""

    _fields_ = (
        *((name, c_uint64) for name in ("at", "packet", "cycles", "bit", "hop", "part")),
        *_words("kind", "pe", "other", "source", "destination", "tag", "address", "chance", "times"),
        ("seen", c_uint64),
    )


REGISTERS = 17 + 33
"""r0-r12, sp, lr, pc, xpsr; then fpscr and s0-s31."""


Decode = ctypes.CFUNCTYPE(None, POINTER(c_uint8), c_uint32, c_uint32, POINTER(Progress), POINTER(Joint))

_UNICORN = (
    *("open", "close", "ctl", "mem_map", "mem_map_ptr", "mem_protect", "mmio_map", "hook_add"),
    *("emu_start", "emu_stop", "reg_read", "reg_write"),
)

_PROTOTYPES = {
    "mesh_new": (c_void_p, (POINTER(Figure), c_uint32, POINTER(Memory), c_void_p)),
    "mesh_set_core": (None, (c_void_p, c_uint32, c_uint32, c_int, c_uint32, Decode)),
    "mesh_add_rule": (c_int, (c_void_p, c_uint32, c_uint32, c_uint32)),
    "mesh_free": (None, (c_void_p,)),
    "mesh_missing_figure": (c_char_p, ()),
    "mesh_set_pe_dead": (None, (c_void_p, c_uint32)),
    "mesh_set_link_dead": (None, (c_void_p, c_uint32, c_uint32)),
    "mesh_set_root": (None, (c_void_p, c_uint32)),
    "mesh_set_memory": (None, (c_void_p, c_uint32, c_uint32)),
    "mesh_add_accelerator": (c_char_p, (c_void_p, c_uint64, c_void_p, POINTER(Figure), c_uint32)),
    "mesh_set_places": (None, (c_void_p, c_uint32, c_uint32, c_uint64, c_uint32)),
    "mesh_set_beside": (None, (c_void_p, c_void_p)),
    "mesh_compared": (c_uint64, (c_void_p,)),
    "mesh_set_network": (c_char_p, (c_void_p, c_void_p, POINTER(Figure), c_uint32)),
    "mesh_messages": (c_uint64, (c_void_p,)),
    "mesh_device": (c_void_p, (c_void_p, c_uint32, c_uint32)),
    "mesh_set_lacking": (None, (c_void_p, c_uint32)),
    "mesh_add_image": (c_void_p, (c_void_p, c_uint32, Extent, Extent)),
    "mesh_watch_calls": (None, (c_void_p, c_uint32, c_void_p, POINTER(c_uint32), c_uint32)),
    "mesh_power_up": (c_char_p, (c_void_p, c_uint32, c_void_p)),
    "mesh_reset": (None, (c_void_p, c_uint32)),
    "mesh_add_flash": (c_char_p, (c_void_p, POINTER(Figure), c_uint32, c_void_p, c_uint32)),
    "mesh_load_flash": (None, (c_void_p,)),
    "mesh_cut_power": (None, (c_void_p, c_uint64, c_uint32)),
    "mesh_run": (c_int, (c_void_p, c_uint64, c_int, c_double)),
    "mesh_now": (c_uint64, (c_void_p,)),
    "mesh_send": (None, (c_void_p, c_char_p, c_size_t)),
    "mesh_take": (c_size_t, (c_void_p, c_char_p, c_size_t)),
    "mesh_read": (c_int, (c_void_p, c_uint32, c_uint32, c_char_p, c_size_t)),
    "mesh_write": (c_int, (c_void_p, c_uint32, c_uint32, c_char_p, c_size_t)),
    "mesh_trace": (None, (c_void_p, c_int)),
    "mesh_trace_mark": (None, (c_void_p, c_uint32, POINTER(c_uint32), c_size_t)),
    "mesh_trace_take": (c_size_t, (c_void_p, c_char_p, c_size_t)),
    "mesh_alone": (None, (c_void_p, c_uint32, Extent, c_char_p, c_uint32, c_char_p, c_char_p)),
    "mesh_alone_take": (c_size_t, (c_void_p, c_uint32, c_char_p, c_size_t)),
    "mesh_count": (None, (c_void_p, c_uint32, POINTER(Counters))),
    "mesh_fault": (None, (c_void_p, POINTER(Fault))),
    "mesh_be_strict": (None, (c_void_p, c_int)),
    "mesh_add_polled": (None, (c_void_p, c_uint32, Extent)),
    "mesh_debug": (None, (c_void_p, c_uint32)),
    "mesh_debug_break": (None, (c_void_p, c_uint32, c_int)),
    "mesh_debug_resume": (None, (c_void_p, c_int)),
    "mesh_registers": (None, (c_void_p, c_uint32, POINTER(c_uint32))),
    "mesh_set_register": (None, (c_void_p, c_uint32, c_uint32, c_uint32)),
    "mesh_wait": (None, (c_void_p, c_uint32, POINTER(Wait))),
    "mesh_notes": (c_size_t, (c_void_p, POINTER(Note), c_size_t)),
    "mesh_inject": (None, (c_void_p, POINTER(Injection), c_uint32, c_uint32)),
    "mesh_disturb": (None, (c_void_p, c_uint32)),
    "mesh_set_workers": (None, (c_void_p, c_uint32)),
    "mesh_share": (None, (c_void_p, POINTER(c_uint32), c_uint32)),
}


def load_core(path: Path) -> ctypes.CDLL:
    """The compiled core, with typed functions."""
    core = ctypes.CDLL(str(path))
    for name, (result, arguments) in _PROTOTYPES.items():
        function = getattr(core, name)
        function.restype, function.argtypes = result, arguments
    return core


def unicorn_functions() -> ctypes.Array[c_void_p]:
    """`struct unicorn`: the functions of the loaded Unicorn."""
    functions = (ctypes.cast(getattr(uclib, f"uc_{name}"), c_void_p).value for name in _UNICORN)
    return (c_void_p * len(_UNICORN))(*functions)


def figure_array(figures: Mapping[str, int]) -> ctypes.Array[Figure]:
    return (Figure * len(figures))(*(Figure(name.encode(), value) for name, value in figures.items()))
