"""Verbs on damaged files from a user: PYTHONPATH=kit:tests python -m fuzz.givens --minutes 10

The files are arrays (inputs, calibration, golden cases), board descriptions, tuned records, images. A verb must succeed
or end with an error of npukit's own. Any other end is printed with the number that repeats it; the exit status is then
1.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import shutil
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Mapping
from pathlib import Path
from unittest import mock

import numpy as np
from typer.testing import CliRunner

from fuzz.devices import DIGITS, fault_in
from fuzz.folders import damaged
from helpers import CHECKOUT
from npukit.cli.main import app
from npukit.project.build_folder import MANIFEST
from npukit.project.folder_files import file_digest
from npukit.tuning import FORMAT, TUNED_VARIABLE

FLOATS = DIGITS.with_name("digits_float.onnx")
BOARDS = ("pe-mesh", "pe-mesh-rv", "pico2-dual", "mps2-an386", "esp32c3", "mps3-an547")
TYPES = ("int8", "uint8", "int32", "int64", "float16", "float32", "float64", "complex64", "bool", "U3", "S2", "M8[s]")
VALUES = (np.nan, np.inf, -np.inf, 1e39, -1e300, 0, 127, 128, -129, 2**31, 2**63)

Command = list[str]


def damaged_arrays(path: Path, dice: random.Random) -> None:
    """Change the type, shape, name or a value of an array, or bytes of the file."""
    with np.load(path) as stored:
        arrays = dict(stored)
    name = dice.choice(sorted(arrays))
    array = arrays[name]
    change = dice.randrange(6)
    with np.errstate(all="ignore"):
        if change == 0:
            arrays[name] = array.astype(dice.choice(TYPES))
        elif change == 1:
            arrays[name] = array.reshape(dice.choice([(-1,), (1, *array.shape), array.shape[::-1]]))
        elif change == 2:
            arrays[name] = array[: dice.choice([0, 1, len(array) - 1])]
        elif change == 3:
            arrays[name] = array.astype(np.float64)
            arrays[name].flat[dice.randrange(array.size)] = dice.choice(VALUES)
        elif change == 4:
            arrays[dice.choice(["", "x", "in0", "in9", "out0", "a/b", "labels"])] = arrays.pop(name)
    np.savez(path, **arrays)  # pyright: ignore[reportArgumentType]
    if change == 5:
        damaged_bytes(path, dice)


def damaged_bytes(path: Path, dice: random.Random) -> None:
    """Replace one to eight bytes, or cut the end off."""
    data = bytearray(path.read_bytes())
    for _ in range(dice.randint(1, 8)):
        data[dice.randrange(len(data))] = dice.choice([0, 1, 127, 128, 255, dice.randrange(256)])
    path.write_bytes(data[: dice.randrange(len(data))] if dice.random() < 0.2 else data)


def damaged_words(path: Path, dice: random.Random) -> None:
    path.write_text(damaged(path.read_text(encoding="utf-8"), dice), encoding="utf-8")


def inputs(build: Path, folder: Path, dice: random.Random) -> Command:
    file = Path(shutil.copy(DIGITS.with_name("digits.npz"), folder / "given.npz"))
    damaged_arrays(file, dice)
    verb = dice.choice([["run", str(build), "-o", str(folder / "answers.npz")], ["validate", str(build)]])
    return [*verb, "--inputs", str(file)]


def calibration(build: Path, folder: Path, dice: random.Random) -> Command:
    file = folder / "given.npz"
    np.savez(file, in0=np.random.default_rng(1).random((16, 8, 8, 1), np.float32))
    damaged_arrays(file, dice)
    return ["build", str(FLOATS), "--calibration", str(file), "--pes", "1", "--no-check", "-o", str(folder / "made")]


def board(build: Path, folder: Path, dice: random.Random) -> Command:
    file = Path(shutil.copy(CHECKOUT / "boards" / f"{dice.choice(BOARDS)}.toml", folder / "given.toml"))
    damaged_words(file, dice)
    return dice.choice([["boards", str(file)], ["fit", str(DIGITS), "--board", str(file), "--pes", "2"]])


def tuned(build: Path, folder: Path, dice: random.Random) -> Command:
    record = {"what": "conv", "choice": "a", "cost": 1, "before": 2, "tried": ["a", "b"]}
    file = Path(os.environ[TUNED_VARIABLE])
    file.write_text(json.dumps({"format": FORMAT, "records": {"conv 8x8": record, "": record}}, indent=1))
    damaged_words(file, dice)
    return ["fit", str(DIGITS), "--pes", "1"]


def part_of_a_build(build: Path, folder: Path, dice: random.Random) -> Command:
    """Damage an image, golden cases or a result of a build, and update its digest in the manifest."""
    copy = Path(shutil.copytree(build, folder / "build"))
    manifest = json.loads((copy / MANIFEST).read_text(encoding="utf-8"))
    name = dice.choice(sorted(manifest["sha256"]))
    change = damaged_arrays if name == "golden.npz" and dice.random() < 0.7 else damaged_bytes
    change(copy / name, dice)
    manifest["sha256"][name] = file_digest(copy / name)
    (copy / MANIFEST).write_text(json.dumps(manifest), encoding="utf-8")
    return dice.choice([["validate", str(copy)], ["report", str(copy)], ["bench", str(copy), "--frames", "1"]])


GIVENS: Mapping[str, Callable[[Path, Path, random.Random], Command]] = {
    each.__name__: each for each in (inputs, calibration, board, tuned, part_of_a_build)
}


def outcome(build: Path, number: int) -> tuple[str, str]:
    """The kind of file of case `number`, and the fault in the verb's end; empty without a fault."""
    dice = random.Random(number)
    kind = dice.choice(sorted(GIVENS))
    with (
        tempfile.TemporaryDirectory() as folder,
        mock.patch.dict(os.environ, {TUNED_VARIABLE: f"{folder}/tuned.json"}),
    ):
        command = GIVENS[kind](build, Path(folder), dice)
        return f"{kind}: npukit {command[0]}", fault_in(CliRunner().invoke(app, command))


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--minutes", type=float, default=10)
    parser.add_argument("--first", type=int, default=0)
    given = parser.parse_args()
    end, counts, number = time.monotonic() + 60 * given.minutes, Counter[bool](), given.first
    with tempfile.TemporaryDirectory() as folder:
        from npukit import api

        build = api.build(DIGITS, output=Path(folder) / "digits", options=api.Options(pes=2)).folder
        while time.monotonic() < end:
            what, fault = outcome(build, number)
            counts[bool(fault)] += 1
            if fault:
                print(f"{number}: {what}: {fault[:300]}", flush=True)
            number += 1
    print(f"{counts.total():,} commands, {counts[True]:,} faults")
    return 1 if counts[True] else 0


if __name__ == "__main__":
    sys.exit(main())
