"""Loads a model file as a Relax module or as a Net."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from os import PathLike
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from tvm.ir import IRModule, save_json

from npukit.application.declared import Layout
from npukit.errors import NpukitError, extra_packages
from npukit.frontend.given import ops_of
from npukit.frontend.pytorch.program import import_pytorch, save_program
from npukit.frontend.shapes import InputShapes
from npukit.frontend.tflite.custom import by_users
from npukit.frontend.tflite.emit import emit_module
from npukit.frontend.tflite.file import is_tflite, read_tflite
from npukit.frontend.tflite.hybrid import hybrids
from npukit.frontend.tflite.ops import CONVERTERS
from npukit.net.importer import net_from_relax
from npukit.net.limits import FILE_BYTES
from npukit.net.net import Net


def load_net_from_model(path: Path | str, *, input_shapes: InputShapes | None = None) -> Net:
    """The integer network of a model file, named after the file."""
    return net_from_relax(import_model(path, input_shapes=input_shapes, dynamic=True), name_of(Path(path)))


def name_of(path: Path) -> str:
    """The name of a model file's network."""
    return re.sub(r"[^\w.-]", "_", path.stem, flags=re.ASCII)


def import_model(
    path: Path | str,
    *,
    input_shapes: InputShapes | None = None,
    custom: Mapping[str, str] | None = None,
    dynamic: bool = False,
) -> IRModule:
    """The model as a Relax module in QDQ form, for each supported file format. `custom`: C of custom ops, by name.
    `dynamic`: TFLite's layers of int8 weights quantise float data at run time; otherwise they are float layers."""
    path, shapes, custom = Path(path), input_shapes or {}, custom or {}
    if path in _HELD:
        return _HELD[path]
    data = _read(path)
    if is_tflite(data) or path.suffix == ".tflite":
        return _of_tflite(data, path.name, shapes, custom, dynamic)
    if path.suffix == ".onnx":
        with extra_packages("onnx", f"{path.name}, an ONNX model,"):
            from npukit.frontend.onnx.file import import_onnx
        return import_onnx(data, path, shapes, custom)
    ops_of(path.name, custom, ())
    if path.suffix == ".pt2":
        return import_pytorch(data, path.name, shapes)
    tries = ["give a .tflite, .onnx or .pt2 file"]
    if path.suffix in (".keras", ".h5"):
        tries = ["convert it with tf.lite.TFLiteConverter.from_keras_model: docs/models.md has the line"]
    raise NpukitError(f"{path.name} is not a model npukit knows", tries=tries)


def _of_tflite(data: bytes, name: str, shapes: InputShapes, custom: Mapping[str, str], dynamic: bool) -> IRModule:
    model = read_tflite(data, name)
    own = {**(hybrids(CONVERTERS) if dynamic else {}), **by_users(model, name, custom)}
    return emit_module(model, {**CONVERTERS, **own}, name, shapes)


def layout_of(path: Path) -> Layout:
    """The order of the axes of a model's images."""
    return "NHWC" if path.suffix == ".tflite" or is_tflite(_read(path)[:8]) else "NCHW"


_HELD: dict[Path, IRModule] = {}
"""Relax modules given through the Python API, by the path of a placeholder file. npukit never reads the placeholder
back. TVM's JSON can name any TVM object, so npukit loads no module from a file."""


@contextmanager
def model_file(model: Any) -> Iterator[Path]:
    """The file of a model: a path as given, or a temporary file for a program of `torch.export` or a Relax module."""
    if isinstance(model, str | PathLike):
        yield Path(model)
        return
    with TemporaryDirectory() as folder:
        if isinstance(model, IRModule):
            path = Path(folder) / "module.relax"
            path.write_text(save_json(model), encoding="utf-8", newline="\n")
            _HELD[path] = model
            try:
                yield path
            finally:
                del _HELD[path]
        else:
            yield save_program(model, Path(folder) / "model.pt2")


def _read(path: Path) -> bytes:
    try:
        FILE_BYTES.check(path.stat().st_size, path.name)
        return path.read_bytes()
    except OSError as fault:
        raise NpukitError(f"cannot read {path}: {fault.strerror}") from fault
