"""Output of a library as a folder or an archive, complete or not at all."""

from __future__ import annotations

import io
import json
import tarfile
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from npukit.errors import NpukitError
from npukit.library.sources import AUTHOR, CORTEX_M, EXAMPLE, PROPERTIES, Library, library
from npukit.library.spec import SPEC, spec_files
from npukit.net.tensor import Tensor
from npukit.project.build_folder import Build
from npukit.writing import new_folder, write_file

ARCHIVE = ".tar"


@dataclass(frozen=True)
class Exported:
    """Result of an export: the written files."""

    output: str
    name: str
    kind: str
    arena_bytes: int
    constant_bytes: int
    files: tuple[str, ...]

    def to_json(self) -> dict[str, Any]:
        return asdict(self)


def export(build: Build, output: Path, portable: bool, labels: Path | None = None, *, force: bool = False) -> Exported:
    """Write a Model Library Format archive if `output` ends in .tar, else a folder. The folder must be new, empty, or
    with `force` an earlier export."""
    properties = output / PROPERTIES
    earlier = properties.is_file() and f"\nauthor={AUTHOR} " in properties.read_text(encoding="utf-8", errors="replace")
    is_free = output.is_dir() and not any(output.iterdir())
    if output.exists() and output.suffix != ARCHIVE and not (is_free or (force and earlier)):
        raise NpukitError(f"{output} is there already", tries=["--force", *_TRIES] if earlier else _TRIES)
    made = library(build, portable, _labels(build, labels) if labels else ())
    if output.suffix == ARCHIVE:
        write_file(output, archive(build, made))
    else:
        _write_folder(output, dict(made.files))
    return Exported(str(output), made.name, made.kind, made.arena_bytes, made.constant_bytes, tuple(sorted(made.files)))


_TRIES = ("another folder with -o",)


def export_spec(build: Build, output: Path, *, force: bool = False) -> tuple[str, ...]:
    """Write memory images and their `spec.json` into a folder that is new, empty, or with `force` an earlier export."""
    if output.exists() and any(output.iterdir()) and not (force and (output / SPEC).is_file()):
        raise NpukitError(f"{output} is there already", tries=_TRIES)
    files = spec_files(build)
    _write_folder(output, files)
    return tuple(sorted(files))


def _labels(build: Build, path: Path) -> list[str]:
    """Lines of a file, a line for each value of the network's first output."""
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except (OSError, ValueError) as error:
        raise NpukitError(f"{path} cannot be read: {error}") from error
    net = build.net()
    count = net.tensor(net.outputs[0]).elements
    if len(lines) != count:
        raise NpukitError(f"{path} has {len(lines)} labels, {net.outputs[0]} {count} values", tries=["a label a line"])
    return lines


def _write_folder(output: Path, files: Mapping[str, str]) -> None:
    with new_folder(output) as folder:
        for name, text in files.items():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            (folder / name).write_text(text, encoding="utf-8", newline="\n")


VERSION = 7
"""Version of the format."""
_WHEN = "1980-01-01 00:00:00Z"
"""Constant date: the archive must not depend on the clock."""


def archive(build: Build, made: Library) -> bytes:
    """A tar file. Every member is a plain file with a relative path."""
    stream = io.BytesIO()
    with tarfile.open(fileobj=stream, mode="w", format=tarfile.USTAR_FORMAT) as tar:
        for name, text in sorted(_members(build, made)):
            data = text.encode()
            member = tarfile.TarInfo(f"./{name}")
            member.size, member.mode = len(data), 0o644
            tar.addfile(member, io.BytesIO(data))
    return stream.getvalue()


def _members(build: Build, made: Library) -> Iterator[tuple[str, str]]:
    yield "metadata.json", json.dumps(_metadata(build, made), indent=2, sort_keys=True) + "\n"
    yield "src/net.txt", (build.folder / "net.txt").read_text(encoding="utf-8")
    yield "README.md", made.files["README.md"]
    yield EXAMPLE, made.files[EXAMPLE]
    for name in (name for name in made.files if name.endswith((".c", ".h", ".S")) and name != EXAMPLE):
        yield f"codegen/host/{'include' if name.endswith('.h') else 'src'}/{name}", made.files[name]


def _metadata(build: Build, made: Library) -> Mapping[str, Any]:
    net = build.net()

    def shown(tensor: Tensor) -> Mapping[str, Any]:
        return {"dtype": tensor.dtype, "shape": list(tensor.shape), "size": tensor.bytes}

    device = "cortex-m4" if made.kind == CORTEX_M else "generic"
    main = {
        "constants_size_bytes": made.constant_bytes,
        "device": 1,
        "io_size_bytes": sum(net.tensor(name).bytes for name in (*net.inputs, *net.outputs)),
        "workspace_size_bytes": made.arena_bytes,
        "inputs": {name: shown(net.tensor(name)) for name in net.inputs},
        "outputs": {name: shown(net.tensor(name)) for name in net.outputs},
    }
    module = {
        "model_name": made.name,
        "executors": ["aot"],
        "export_datetime": _WHEN,
        "target": [{"kind": "c", "keys": ["arm_cpu", "cpu"], "mcpu": device}],
        "external_dependencies": [],
        "memory": {"functions": {"main": [main], "operator_functions": []}, "sids": []},
        "style": "full-model",
    }
    return {"modules": {made.name: module}, "version": VERSION}
