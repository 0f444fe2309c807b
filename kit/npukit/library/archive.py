"""A library as a Model Library Format archive: what microTVM's users know how to unpack. The same bytes every time."""

from __future__ import annotations

import io
import json
import tarfile
from collections.abc import Iterator, Mapping
from typing import Any

from npukit.library.sources import CORTEX_M, EXAMPLE, Library
from npukit.project.build_folder import Build

VERSION = 7
"""The version of the format."""
_WHEN = "1980-01-01 00:00:00Z"
"""No clock goes into the archive."""


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
    device = "cortex-m4" if made.kind == CORTEX_M else "generic"
    main = {
        "constants_size_bytes": made.constant_bytes,
        "device": 1,
        "io_size_bytes": sum(net.tensor(name).bytes for name in (*net.inputs, *net.outputs)),
        "workspace_size_bytes": made.arena_bytes,
        "inputs": {name: _tensor(build, name) for name in net.inputs},
        "outputs": {name: _tensor(build, name) for name in net.outputs},
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


def _tensor(build: Build, name: str) -> Mapping[str, Any]:
    tensor = build.net().tensor(name)
    return {"dtype": tensor.dtype, "shape": list(tensor.shape), "size": tensor.bytes}
