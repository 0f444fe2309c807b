"""Programs of `torch.export` as Relax modules, through TVM's importer."""

from __future__ import annotations

import logging
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stdout
from io import BytesIO, StringIO
from pathlib import Path
from typing import Any

import tvm
from tvm import relax
from tvm.ir import IRModule

from npukit.errors import NpukitError, extra_packages, first_line
from npukit.frontend.pytorch.archive import checked_archive
from npukit.frontend.shapes import InputShapes, check_input_names, closed_shape, fixed_values


def import_pytorch(data: bytes, name: str, input_shapes: InputShapes) -> IRModule:
    """The program in a .pt2 file as a Relax module. `data`: the file's bytes; `name`: its name in errors."""
    archive = checked_archive(data, name)
    with extra_packages("torch", f"{name}, a PyTorch program,"):
        from npukit.frontend.pytorch.translate import translated
    try:
        with _quiet():
            module = translated(BytesIO(archive))
    except Exception as fault:
        raise NpukitError(f"{name} cannot be imported: {first_line(fault)}") from fault
    inputs: list[Any] = list(module["main"].params)  # type: ignore[attr-defined]
    check_input_names(name, [each.name for each in inputs], input_shapes)
    if fixed_values(input_shapes):
        raise NpukitError(f"{name}: an input of a PyTorch program is fixed before it is exported")
    sizes: dict[Any, int] = {}
    for each in inputs:
        stated = tuple(int(size) if isinstance(size, int | tvm.tirx.IntImm) else 0 for size in each.ty.shape)
        shape = closed_shape(name, each.name, stated, input_shapes)
        sizes |= {
            size: known for size, known in zip(each.ty.shape, shape, strict=True) if isinstance(size, tvm.tirx.Var)
        }
    return relax.transform.BindSymbolicVars(sizes)(module) if sizes else module  # type: ignore[attr-defined, arg-type]


def save_program(program: Any, path: Path) -> Path:
    """Saves a program of `torch.export` as a .pt2 file. Returns the path."""
    if type(program).__name__ != "ExportedProgram":
        tries = ["torch.export.export(model, inputs), if it is a module of PyTorch's"]
        raise NpukitError(
            f"a {type(program).__name__} is neither a model file nor a program of torch.export", tries=tries
        )
    import torch  # pyright: ignore[reportMissingImports]

    torch.export.save(program, path)
    return path


@contextmanager
def _quiet() -> Iterator[None]:
    """Silences warnings of PyTorch and TVM about each other."""
    logging.disable(logging.WARNING)
    try:
        with warnings.catch_warnings(action="ignore"), redirect_stdout(StringIO()):
            yield
    finally:
        logging.disable(logging.NOTSET)
