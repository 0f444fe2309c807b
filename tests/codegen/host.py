"""Generated programs compiled for the host of the tests, and called through ctypes."""

from __future__ import annotations

import ctypes
import shutil
import subprocess
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import numpy as np

from helpers import CHECKOUT, TRAPS, ZIG
from npukit.codegen.sources import Sources

FIRMWARE = CHECKOUT / "firmware"
WARNINGS = ["-Wall", "-Wextra", "-Wconversion", "-Wshadow", "-Werror"]
FLAGS = ["-std=c11", "-O1", "-fno-strict-aliasing", "-ffp-contract=off", *WARNINGS]
# Undefined behaviour ends the process with a trap.
COMPILERS = {
    "cc": ["cc", "-fsanitize=undefined", "-fsanitize-undefined-trap-on-error"],
    "zig": [*ZIG, *TRAPS],
}
COMPILER = COMPILERS["cc" if shutil.which("cc") else "zig"]

Observer = Callable[[int], None]
_OBSERVER = ctypes.CFUNCTYPE(None, ctypes.c_uint32)


OBSERVER = """/* Calls back as each layer ends. */
#include "net.h"
typedef void observer(uint32_t layer);
void observe(observer *one);
static observer *observing;
void observe(observer *one) { observing = one; net_control->observed = one != 0; }
void net_begin_layer(void) {}
int32_t net_end_layer(uint32_t layer) { observing(layer); return 0; }
"""


class _Tensor(ctypes.Structure):
    _fields_ = (
        ("name", ctypes.c_char_p),
        ("data", ctypes.POINTER(ctypes.c_uint8)),
        ("row_bytes", ctypes.c_uint32),
        ("rows", ctypes.c_uint32),
        ("stride", ctypes.c_uint32),
        ("in_dram", ctypes.c_bool),
        ("frame_stride", ctypes.c_uint32),
        ("frame_offsets", ctypes.POINTER(ctypes.c_uint32)),
        ("conversion", ctypes.c_void_p),
    )


class _Layer(ctypes.Structure):
    _fields_ = (
        ("data", ctypes.POINTER(ctypes.c_uint8)),
        *((name, ctypes.c_uint32) for name in ("row_bytes", "rows", "row_stride", "planes", "plane_stride")),
    )


class _Description(ctypes.Structure):
    _fields_ = (
        ("model", ctypes.c_char_p),
        ("board", ctypes.c_char_p),
        ("build_id", ctypes.c_uint8 * 16),
        ("input_count", ctypes.c_uint16),
        ("output_count", ctypes.c_uint16),
        ("frame_count", ctypes.c_uint16),
        ("pe_count", ctypes.c_uint16),
        ("chip_count", ctypes.c_uint16),
        ("link_bytes", ctypes.c_uint16),
        ("inputs", ctypes.POINTER(_Tensor)),
        ("outputs", ctypes.POINTER(_Tensor)),
        ("layer_names", ctypes.POINTER(ctypes.c_char_p)),
    )


class HostProgram:
    """A program's tables and `net_run`."""

    def __init__(self, library: Path) -> None:
        self._library = ctypes.CDLL(str(library))
        self._library.net_run.restype = ctypes.c_int32
        self.description = _Description.in_dll(self._library, "net_description")
        count = ctypes.POINTER(ctypes.c_uint32).in_dll(self._library, "net_layer_count")[0]
        self._layers = (_Layer * count).in_dll(self._library, "net_layers")

    @property
    def layer_names(self) -> list[str]:
        return [self.description.layer_names[i].decode() for i in range(len(self._layers))]

    def run(self, inputs: Sequence[np.ndarray], observer: Observer | None = None) -> list[bytes]:
        """Run a frame. Returns the bytes of the outputs."""
        assert self.status(inputs, observer) == 0
        return [_read(self.description.outputs[i]) for i in range(self.description.output_count)]

    def status(self, inputs: Sequence[np.ndarray], observer: Observer | None = None) -> int:
        """Run a frame. Returns the status of `net_run`."""
        for index, values in enumerate(inputs):
            _write(self.description.inputs[index], values.tobytes())
        callback = _OBSERVER(observer) if observer else None
        self._library.observe(callback)
        return self._library.net_run()

    def layer(self, index: int) -> bytes:
        """The output of a layer, while still in memory."""
        layer = self._layers[index]
        start = ctypes.addressof(layer.data.contents)
        rows = [
            start + plane * layer.plane_stride + row * layer.row_stride
            for plane in range(layer.planes)
            for row in range(layer.rows)
        ]
        return b"".join(ctypes.string_at(row, layer.row_bytes) for row in rows)


def build(sources: Sources, folder: Path) -> HostProgram:
    """Compile a program with its project's flags."""
    write_files({**sources.files, "observer.c": OBSERVER}, folder)
    library = folder / "net.so"
    includes = [f"-I{folder}", *(f"-I{FIRMWARE / name}" for name in ("include", "rpc", "mac_array"))]
    units = [*sorted(folder.glob("*.c")), *sources.drivers]
    compile_c([*includes, "-shared", "-fPIC", *map(str, units), "-o", str(library)])
    return HostProgram(library)


def write_files(files: Mapping[str, str], folder: Path) -> None:
    for name, text in files.items():
        (folder / name).write_text(text)


def compile_c(arguments: Sequence[str]) -> None:
    done = subprocess.run([*COMPILER, *FLAGS, *arguments], capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr


def _write(tensor: _Tensor, data: bytes) -> None:
    assert len(data) == tensor.row_bytes * tensor.rows
    for row in range(tensor.rows):
        part = data[row * tensor.row_bytes : (row + 1) * tensor.row_bytes]
        ctypes.memmove(ctypes.addressof(tensor.data.contents) + row * tensor.stride, part, len(part))


def _read(tensor: _Tensor) -> bytes:
    start = ctypes.addressof(tensor.data.contents)
    return b"".join(ctypes.string_at(start + row * tensor.stride, tensor.row_bytes) for row in range(tensor.rows))
