"""Facts that several benchmarks need: the version of npukit, the networks of MLPerf Tiny, processor seconds."""

from __future__ import annotations

import os
import resource
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from unittest import mock

from npukit.tuning import TUNED_VARIABLE

CHECKOUT = Path(__file__).resolve().parents[1]
DIGITS = CHECKOUT / "examples/digits/digits_int8.tflite"
NETWORKS = {
    "ad01_int8": "anomaly detection",
    "kws_ref_model": "keyword spotting",
    "pretrainedResnet_quant": "image classification",
    "vww_96_int8": "visual wake words",
}
"""The networks of MLPerf Tiny by the name of their file."""


def commit() -> str:
    """The checked-out commit, with " and changes" if kit, firmware, rtl, templates or boards differ from it."""
    changed = _git("status", "--porcelain", "--", "kit", "firmware", "rtl", "templates", "boards")
    return _git("rev-parse", "--short=7", "HEAD") + (" and changes" if changed else "")


def _git(*words: str) -> str:
    return subprocess.run(["git", *words], cwd=CHECKOUT, capture_output=True, text=True, check=True).stdout.strip()


def processor_seconds() -> float:
    """Processor seconds of this process and of its finished children."""
    used = (resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return sum(each.ru_utime + each.ru_stime for each in used)


@contextmanager
def untuned() -> Iterator[Path]:
    """A new folder, without tuning records for builds inside of the context."""
    with tempfile.TemporaryDirectory() as folder, mock.patch.dict(os.environ, {TUNED_VARIABLE: f"{folder}/tuned.json"}):
        yield Path(folder)


def model_file(models: Path, name: str) -> Path:
    """The file of a network: the digits' in this repository, any other in the folder of models."""
    return DIGITS if name == DIGITS.stem else models / f"{name}.tflite"
