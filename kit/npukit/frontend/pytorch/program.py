"""Programs of `torch.export` as Relax modules, through TVM's importer.

PyTorch unpickles some parts of a .pt2 file and evaluates others. npukit copies only arrays and a graph of known
operators to a new archive. It refuses or omits all other content.
"""

from __future__ import annotations

import json
import logging
import re
import struct
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, redirect_stdout
from io import BytesIO, StringIO
from math import prod
from pathlib import Path
from typing import Any
from zipfile import ZIP_STORED, BadZipFile, ZipFile

import tvm
from tvm import relax
from tvm.ir import IRModule

from npukit.errors import NpukitError, extra_packages, first_line
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


GRAPH = "models/model.json"
WEIGHTS = "data/weights/model_weights_config.json"
CONSTANTS = "data/constants/model_constants_config.json"
SAMPLES = "data/sample_inputs/model.pt"
ENCRYPTED = 1
"""Flag bit of an encrypted entry in a zip file."""
KEPT = ("archive_format", "archive_version", "byteorder", ".data/version")

DAMAGE = (BadZipFile, struct.error, KeyError, ValueError, TypeError, AttributeError, RuntimeError, EOFError)
OPERATOR = re.compile(
    r"torch\.ops\.(aten\.(?!from_file\b)|quantized_decomposed\.)\w+\.\w+"
    r"|torch\.ops\.torchao\.dequantize_affine\.default"
    r"|_operator\.(getitem|add|sub|mul|floordiv|mod|neg|eq|ne|ge|gt|le|lt)"
)
SYMBOLIC = re.compile(
    r"(Symbol\('[a-z]+\d+'(, \w+=(True|False))*\)|Integer\(-?\d{1,12}\)|(Add|Mul|FloorDiv|Mod)\(|[), ])+"
)
STRUCTURES = {None, "builtins.tuple", "builtins.list", "builtins.dict"}


def checked_archive(data: bytes, name: str) -> bytes:
    """The archive in `data`, reduced to parts without code. `name`: the file's name in errors."""
    try:
        with ZipFile(BytesIO(data)) as file:
            if sum(entry.file_size for entry in file.infolist()) > len(data):
                raise ValueError("it holds more bytes than it has")
            if any(entry.compress_type != ZIP_STORED or entry.flag_bits & ENCRYPTED for entry in file.infolist()):
                raise ValueError("it is compressed or encrypted")
            parts = {entry.filename.partition("/")[2]: file.read(entry) for entry in file.infolist()}
        checked, target = _checked(parts, name), BytesIO()
        with ZipFile(target, "w", ZIP_STORED) as file:
            for key, part in checked.items():
                file.writestr(f"model/{key}", part)
        return target.getvalue()
    except DAMAGE as fault:
        tries = ["torch.export.save(torch.export.export(model, inputs), FILE) with PyTorch 2.9 or newer"]
        raise NpukitError(f"{name} is damaged, or no program of torch.export ({fault})", tries=tries) from fault


def _checked(parts: Mapping[str, bytes], name: str) -> dict[str, bytes]:
    graph = json.loads(parts[GRAPH])
    for node in _tables(graph):
        _check_node(node, name)
    graph["guards_code"] = []
    kept = {key: parts[key] for key in KEPT if key in parts}
    kept |= {GRAPH: json.dumps(graph).encode(), SAMPLES: b""}
    for config, folder in ((WEIGHTS, "data/weights/"), (CONSTANTS, "data/constants/")):
        found = {}
        for key, payload in json.loads(parts[config])["config"].items():
            path, meta = payload["path_name"], payload["tensor_meta"]
            if payload["use_pickle"] or not re.fullmatch(r"(weight|tensor)_\d+", path):
                raise NpukitError(
                    f"{name}: {key!r} is kept as a Python object, which could run code; npukit reads arrays"
                )
            if prod(int(size["as_int"]) for size in meta["sizes"]) > max(len(parts[folder + path]), 1):
                raise ValueError(f"{key!r} has more numbers than its file")
            found[folder + path] = parts[folder + path]
        kept |= {config: parts[config], **found}
    return kept


def _tables(value: Any) -> Iterator[dict[str, Any]]:
    """Every table in a JSON value, however deep."""
    yield from [value] if isinstance(value, dict) else []
    for part in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
        yield from _tables(part)


def _check_node(table: Mapping[str, Any], name: str) -> None:
    target = table.get("target")
    if "inputs" in table and target is not None and not OPERATOR.fullmatch(target):
        raise NpukitError(f"{name} calls {target!r}, which npukit does not read")
    if "expr_str" in table and not SYMBOLIC.fullmatch(table["expr_str"]):
        raise NpukitError(
            f"{name} has a size that is computed in a way npukit does not read: {table['expr_str'][:80]!r}"
        )
    structures = [json.loads(table[key]) for key in ("in_spec", "out_spec") if key in table]
    for part in _tables(structures):
        if part.get("type") not in STRUCTURES:
            raise NpukitError(f"{name} takes or gives a {part['type']}; npukit reads tuples, lists and dictionaries")
