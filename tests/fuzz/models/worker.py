"""Imports damaged files of one format, one per line of standard input, and prints each outcome.

A line is the number of a file. The answer is `net`, `equal`, `not judged`, `refused`, or a fault. The driver detects a
silent or dead worker.
"""

from __future__ import annotations

import random
import sys
import sysconfig
import tempfile
import traceback
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from fuzz.models import mutate, seeds, tables
from fuzz.models.budget import MEMORY, limit_memory, limited_time
from fuzz.models.driver import NOT_JUDGED
from fuzz.models.oracles import compared
from npukit.errors import NpukitError
from npukit.frontend.models import load_net_from_model
from npukit.net.net import Net
from npukit.net.parse import parse_net
from npukit.net.text import print_net, stored_values
from npukit.quantize.models import load_model

FOLDER = Path(tempfile.mkdtemp(prefix="fuzz"))
PACKAGES = [path for path in sys.path if path.endswith("site-packages")]
HOMES = (sys.prefix, sys.base_prefix, sysconfig.get_path("stdlib"), *PACKAGES)
CODE = tuple({str(Path(home).resolve()) for home in HOMES})
HOME = (*CODE, str(Path(__file__).resolve().parents[3]), str(FOLDER), "/proc/", "/sys/", "/dev/")

CASES: Mapping[str, tuple[Callable[[], tuple[bytes, ...]], Callable[[bytes, random.Random], bytes]]] = {
    "tflite": (seeds.tflite_seeds, tables.damaged_tflite),
    "onnx": (seeds.onnx_seeds, mutate.damaged_onnx),
    "onnx_example": (seeds.onnx_example, mutate.damaged_onnx),
    "pt2": (seeds.pytorch_seeds, mutate.damaged_archive),
}


def damaged_file(parser: str, number: int) -> bytes:
    """The damaged file of a number."""
    sound, damage = CASES[parser]
    dice = random.Random(number)
    return damage(dice.choice(sound()), dice)


def outcome(parser: str, data: bytes, number: int) -> str:
    """One word if the file is handled well, else the fault."""
    path = FOLDER / f"model.{parser.partition('_')[0]}"
    path.write_bytes(data)
    try:
        with limited_time():
            net = _read(path)
            parse_net(print_net(net), stored_values(net))
        return _judged(parser, net, path, number)
    except NpukitError as error:
        return (
            "refused" if "\n" not in error.message and len(error.message) < 2000 else f"a message of {error.message!r}"
        )
    except MemoryError:
        return f"large: more than {MEMORY:,} bytes"
    except BaseException as fault:
        place = traceback.extract_tb(fault.__traceback__)[-1]
        return f"{type(fault).__name__}: {fault} ({place.filename}:{place.lineno})"


def _judged(parser: str, net: Net, path: Path, number: int) -> str:
    """`net` without an oracle, `equal`, `not judged` with the reason, or the difference."""
    if parser not in ("tflite", "onnx"):
        return "net"
    said = compared(net, path, np.random.default_rng(number))
    return said if said == "equal" or said.startswith(NOT_JUDGED) else f"otherwise than the oracle: {said}"


def _read(path: Path) -> Net:
    """The file's net. A float program of PyTorch is read in float: otherwise the import would end at the first op."""
    try:
        return load_net_from_model(path)
    except NpukitError as error:
        if path.suffix != ".pt2" or "is a float model" not in error.message:
            raise
    return load_model(path, in_float=True).net


def watched(event: str, arguments: tuple[Any, ...]) -> None:
    """Record opened files other than code and the model's own folder."""
    if event == "open" and isinstance(arguments[0], str) and not str(Path(arguments[0]).resolve()).startswith(HOME):
        touched.append(arguments[0])


touched: list[str] = []


def main() -> None:
    parser = sys.argv[1]
    sound, _ = CASES[parser]
    tempfile.tempdir = str(FOLDER)
    sound()
    limit_memory()
    sys.addaudithook(watched)
    print("ready", flush=True)
    for line in sys.stdin:
        touched.clear()
        said = outcome(parser, damaged_file(parser, int(line)), int(line))
        said = f"it opened {touched[0]!r}" if touched else said
        print(said.encode("unicode_escape").decode(), flush=True)


if __name__ == "__main__":
    main()
