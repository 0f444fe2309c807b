"""From a model file to a Relax module and to a Net."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from tvm.ir import IRModule

from npukit.errors import NpukitError
from npukit.frontend.tflite.emit import emit_module
from npukit.frontend.tflite.file import read_tflite
from npukit.frontend.tflite.ops import CONVERTERS
from npukit.net.importer import net_from_relax
from npukit.net.net import Net

InputShapes = Mapping[str, tuple[int, ...]]


def load_net_from_model(path: Path | str, *, input_shapes: InputShapes | None = None) -> Net:
    """The integer network of a model file, named after the file."""
    return net_from_relax(import_model(path, input_shapes=input_shapes), Path(path).stem)


def import_model(path: Path | str, *, input_shapes: InputShapes | None = None) -> IRModule:
    """The model as a Relax module in QDQ form; `input_shapes` closes open shapes, by input name."""
    path = Path(path)
    data = _read(path)
    return _from_tflite(data, path.name, input_shapes or {})


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as fault:
        raise NpukitError(f"cannot read {path}: {fault.strerror}") from fault


def _from_tflite(data: bytes, name: str, input_shapes: InputShapes) -> IRModule:
    return emit_module(read_tflite(data, name), CONVERTERS, name, input_shapes)
