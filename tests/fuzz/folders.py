"""Verbs on modified build folders: PYTHONPATH=kit:tests python -m fuzz.folders --minutes 10

A text file of a build is damaged, and the build's list of digests is updated. A verb must succeed or report an error.
Any other end is printed with the number that repeats it; the exit status is then 1.
"""

from __future__ import annotations

import argparse
import json
import random
import re
import shutil
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from typer.testing import CliRunner

from fuzz.devices import DIGITS, fault_in
from npukit.cli.main import app
from npukit.project.build_folder import MANIFEST
from npukit.project.folder_files import file_digest

TEXTS = ("net.txt", "net.txt", "plan.txt", "plan.txt", MANIFEST)
WORDS = ("", "0", "-1", "1", "3", "255", "65536", "2147483648", "9e99", "nan", '"x"', "[]", "x", "null", "true")
_WORD = re.compile(r'-?\d[\w.+-]*|"[^"]*"|\w+')


def damaged(text: str, dice: random.Random) -> str:
    """Replace words or duplicate, delete and move lines, one to three times."""
    for _ in range(dice.randint(1, 3)):
        lines = text.splitlines(keepends=True)
        here, there = dice.randrange(len(lines)), dice.randrange(len(lines))
        if dice.random() < 0.3:
            line = lines.pop(here) if dice.random() < 0.6 else lines[here]
            lines[there:there] = [line] if dice.random() < 0.7 else []
            text = "".join(lines)
            continue
        words = list(_WORD.finditer(text))
        word = dice.choice(words)
        other = dice.choice((*WORDS, dice.choice(words)[0], dice.choice(words)[0]))
        text = text[: word.start()] + other + text[word.end() :]
    return text


def verbs(build: Path, folder: Path) -> Sequence[list[str]]:
    """Command lines with a build as input."""
    return [
        ["export", str(build), "-o", str(folder / "library"), "--force"],
        ["export", str(build), "--portable", "-o", str(folder / "library"), "--force"],
        ["report", str(build)],
        ["fit", str(DIGITS), "--pes", "4", "--plan", str(build / "plan.txt")],
        ["run", str(build), "--inputs", str(build / "golden.npz"), "-o", str(folder / "answers.npz")],
        ["bench", str(build), "--frames", "1"],
        ["trace", str(build), "-o", str(folder / "trace.json")],
    ]


def outcome(build: Path, folder: Path, number: int) -> tuple[str, str]:
    """The command line of case `number`, and the fault in its end; empty without a fault."""
    dice, copy = random.Random(number), folder / "build"
    shutil.rmtree(copy, ignore_errors=True)
    shutil.copytree(build, copy)
    name = dice.choice(TEXTS)
    text = damaged((copy / name).read_text(encoding="utf-8"), dice)
    (copy / name).write_text(text, encoding="utf-8")
    if name != MANIFEST:
        manifest = json.loads((copy / MANIFEST).read_text(encoding="utf-8"))
        manifest["sha256"][name] = file_digest(copy / name)
        (copy / MANIFEST).write_text(json.dumps(manifest), encoding="utf-8")
    command = dice.choice(verbs(copy, folder))
    return f"{' '.join(command)} ({name})", fault_in(CliRunner().invoke(app, command))


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--minutes", type=float, default=10)
    parser.add_argument("--first", type=int, default=0)
    given = parser.parse_args()
    end, counts, number = time.monotonic() + 60 * given.minutes, Counter[bool](), given.first
    with tempfile.TemporaryDirectory() as folder:
        from npukit import api

        build = api.build(DIGITS, output=Path(folder) / "digits", options=api.Options(pes=4)).folder
        while time.monotonic() < end:
            command, fault = outcome(build, Path(folder), number)
            counts[bool(fault)] += 1
            if fault:
                print(f"{number}: npukit {command}: {fault[:300]}", flush=True)
            number += 1
    print(f"{counts.total():,} commands, {counts[True]:,} faults")
    return 1 if counts[True] else 0


if __name__ == "__main__":
    sys.exit(main())
