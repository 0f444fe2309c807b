"""The tutorial's five networks, from export to validated firmware: processor seconds of each step.

    python benchmarks/tutorial.py PYTHON [--only NAME] [--folder FOLDER]

PYTHON has the packages of `docs/models.md`. The commands are the page's. Writes `benchmarks/tutorial.json` and the
table of the page.
"""

from __future__ import annotations

import argparse
import json
import re
import shlex
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from benchmarks.state import CHECKOUT, commit, processor_seconds

FILE = Path(__file__).with_suffix(".json")
PAGE = CHECKOUT / "docs/models.md"
SCRIPTS = CHECKOUT / "examples/exporters"
STEPS = ("python", "fit", "build", "validate")
NAMES = ("gestures", "faces", "landmarks", "sentences", "plants")


def typed(name: str) -> list[list[str]]:
    """The page's commands for a network."""
    lines = re.findall(r"^    (?:\$ )?((?:python|npukit) .*)$", PAGE.read_text(encoding="utf-8"), re.M)
    return [shlex.split(line) for line in lines if name in line]


def measured(name: str, python: str, folder: Path) -> dict[str, Any]:
    """The figures of a network, exported and built in a folder."""
    (folder / f"{name}.py").write_bytes((SCRIPTS / f"{name}.py").read_bytes())
    programs = {"python": [python], "npukit": [sys.executable, "-c", "from npukit.cli.main import run; run()"]}
    seconds, said = dict[str, float](), ""
    for program, *words in typed(name):
        before = processor_seconds()
        ran = subprocess.run([*programs[program], *words], cwd=folder, capture_output=True, text=True, check=False)
        if ran.returncode:
            sys.exit(f"{program} {shlex.join(words)}:\n{ran.stderr[-3000:]}")
        seconds["python" if program == "python" else words[0]] = round(processor_seconds() - before, 1)
        said = ran.stdout
    told = json.loads((folder / "out" / name / "npukit.json").read_text(encoding="utf-8"))["summary"]
    return {
        "commit": commit(),
        "seconds": seconds,
        "pes": told["pes_used"],
        "cycles": told["predicted"]["latency_cycles"],
        "hertz": told["clock_hz"],
        "result": "; ".join(_results(said, told)),
    }


def _results(said: str, told: Mapping[str, Any]) -> Iterator[str]:
    yield from re.findall(r"equal bit for bit: \d+ \w+", said)
    yield from re.findall(r"accuracy: \S+", said)
    if told.get("reached"):
        yield f"{told['reached']['db']:.0f} dB from float"


def table() -> Iterator[str]:
    rows = json.loads(FILE.read_text(encoding="utf-8"))
    yield "| network | export | `fit` | `build` | `validate` | PEs | frame, ms | result |"
    yield "|---|--:|--:|--:|--:|--:|--:|---|"
    for name, row in ((name, rows[name]) for name in NAMES if name in rows):
        seconds = " | ".join(f"{row['seconds'][step]:.0f}" for step in STEPS)
        yield f"| {name} | {seconds} | {row['pes']} | {1000 * row['cycles'] / row['hertz']:.3f} | {row['result']} |"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("python")
    parser.add_argument("--only", default="")
    parser.add_argument("--folder", type=Path)
    given = parser.parse_args()
    rows = json.loads(FILE.read_text(encoding="utf-8")) if FILE.exists() else {}
    with tempfile.TemporaryDirectory() as scratch:
        folder = given.folder or Path(scratch)
        folder.mkdir(parents=True, exist_ok=True)
        for name in NAMES:
            if given.only in name:
                rows[name] = measured(name, given.python, folder)
                FILE.write_text(json.dumps(rows, indent=1) + "\n", encoding="utf-8")
                print(name, rows[name], flush=True)


if __name__ == "__main__":
    main()
