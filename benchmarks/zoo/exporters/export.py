"""Files that public packages export, for the zoo.

    PYTHON benchmarks/zoo/exporters/export.py FOLDER [--only WORD] [--jobs N]

PYTHON has torch, torchvision, torchao, timm, transformers, onnx, onnxscript, onnxruntime, keras, tensorflow,
litert-torch and ai-edge-quantizer. `exported.toml` lists the models. FOLDER gets PACKAGE/MODEL.FORMAT. A file that is
there is kept. Each model is exported in a process of its own; FOLDER/refused.json has each exporter's own refusals.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import tomllib
from concurrent.futures import ThreadPoolExecutor
from importlib import import_module
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[3]))
from benchmarks.zoo.exporters.formats import OF_FILES, OF_MODULES, of_keras
from benchmarks.zoo.exporters.models import Made, listed, settle, settle_keras

SECONDS = 900
"""Time limit of a model in all formats."""


def models() -> list[Made]:
    return list(listed(tomllib.loads(Path(__file__).with_name("exported.toml").read_text(encoding="utf-8"))["group"]))


def place(folder: Path, model: Made, form: str) -> Path:
    return folder / model.package / f"{model.name}.{form}"


def export(folder: Path, model: Made) -> dict[str, str]:
    """Write the missing files of a model; the exporters' refusals by format."""
    refused: dict[str, str] = {}
    wanted = [form for form in model.formats if not place(folder, model, form).exists()]
    for form in wanted:
        file = place(folder, model, form)
        file.parent.mkdir(parents=True, exist_ok=True)
        try:
            with tempfile.TemporaryDirectory(dir=file.parent) as scratch:
                _export(folder, model, form, Path(scratch) / file.name)
                (Path(scratch) / file.name).replace(file)
        except Exception as fault:
            refused[form] = f"{type(fault).__name__}: {fault}".splitlines()[0]
    return refused


def _export(folder: Path, model: Made, form: str, file: Path) -> None:
    if model.package == "keras":
        import_module("keras").utils.set_random_seed(0)
        made = model.build()[0]
        settle_keras(made)
        of_keras(made, form, file)
        return
    torch = import_module("torch")
    torch.manual_seed(0)
    module, inputs = model.build()
    settle(module, inputs)
    if form in OF_FILES:
        source, quantise = OF_FILES[form]
        quantise(place(folder, model, source), file, inputs)
    else:
        with torch.no_grad():
            OF_MODULES[form](module, inputs, file)


def apart(folder: Path, model: Made) -> dict[str, str]:
    """The refusals of a model exported in a process of its own."""
    if all(place(folder, model, form).exists() for form in model.formats):
        return {}
    command = [sys.executable, __file__, str(folder), "--model", f"{model.package}/{model.name}"]
    try:
        ended = subprocess.run(command, capture_output=True, text=True, timeout=SECONDS, check=False)
    except subprocess.TimeoutExpired:
        return {"all": f"not done after {SECONDS} s"}
    told: dict[str, str] = {"all": f"exit status {ended.returncode}"}
    return json.loads(ended.stdout.splitlines()[-1]) if ended.returncode == 0 and ended.stdout else told


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--only", default="")
    parser.add_argument("--model", help=argparse.SUPPRESS)
    parser.add_argument("--jobs", type=int, default=2)
    given = parser.parse_args()
    if given.model:
        (model,) = (each for each in models() if f"{each.package}/{each.name}" == given.model)
        print(json.dumps(export(given.folder, model)))
        return
    wanted = [each for each in models() if given.only in f"{each.package}/{each.name}"]
    refused: dict[str, Any] = {}
    with ThreadPoolExecutor(given.jobs) as pool:
        for model, told in zip(wanted, pool.map(lambda each: apart(given.folder, each), wanted), strict=True):
            refused |= {f"{model.package}/{model.name}": told} if told else {}
            print(f"{model.package}/{model.name}: {len(model.formats) - len(told)} files", *told.items(), flush=True)
    (given.folder / "refused.json").write_text(json.dumps(refused, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
