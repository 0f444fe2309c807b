"""Long networks of small ops: processor seconds to import, fit and build them.

    PYTHONPATH=kit:tests:. python benchmarks/large/long_chains.py [--ops 250 500 1000] [--import-only]

Each op reads the output of the previous op. `adds` and `tables` run on accelerator and core without constants of their
own, `dense` has weights of 256 bytes an op, and `moves` are transpositions, of which each pair cancels out. Twice the
ops should take twice the time.
"""

from __future__ import annotations

import argparse
import resource
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import tflite

from frontend.tflite_models import Model
from npukit import api
from npukit.errors import DoesNotFit
from npukit.quantize.models import load_model

WIDTH = 16


def chain(kind: str, ops: int) -> bytes:
    """A TFLite model of `ops` ops of one kind in sequence."""
    model = Model()
    model.input("x0", (1, WIDTH), 0.05)
    model.constant("axes", np.array([1, 0], np.int32))
    weights = np.random.default_rng(0)
    for number in range(ops):
        source, result = f"x{number}", f"x{number + 1}"
        shape = (WIDTH, 1) if kind == "moves" and number % 2 == 0 else (1, WIDTH)
        model.tensor(result, shape, 1 / 128 if kind == "tables" else 0.05)
        if kind == "adds":
            model.op("ADD", [source, source], [result], "Add")
        elif kind == "tables":
            model.op("TANH", [source], [result])
        elif kind == "moves":
            model.op("TRANSPOSE", [source, "axes"], [result], "Transpose")
        else:
            model.constant(f"w{number}", weights.integers(-127, 128, (WIDTH, WIDTH)).astype(np.int8), 0.01)
            options = {"FusedActivationFunction": tflite.ActivationFunctionType.RELU}
            model.op("FULLY_CONNECTED", [source, f"w{number}", ""], [result], "FullyConnected", **options)
    return model.bytes([f"x{ops}"])


def timed(work: Callable[[], object]) -> str:
    """Processor seconds of `work`, child processes included; or "does not fit" and the seconds until the refusal."""
    before = _used()
    try:
        work()
    except DoesNotFit:
        return f"does not fit ({_used() - before:.1f})"
    return f"{_used() - before:.1f}"


def _used() -> float:
    children = resource.getrusage(resource.RUSAGE_CHILDREN)
    return time.process_time() + children.ru_utime + children.ru_stime


def rows(kinds: list[str], counts: list[int], *, import_only: bool) -> Iterator[str]:
    for kind in kinds:
        for ops in counts:
            with tempfile.TemporaryDirectory() as folder:
                path = Path(folder) / f"{kind}.tflite"
                path.write_bytes(chain(kind, ops))
                told = [timed(lambda path=path: load_model(path))]
                if not import_only:
                    told.append(timed(lambda path=path: api.fit(path)))
                    told.append(timed(lambda path=path: api.build(path, output=path.with_suffix(""))))
            yield f"| {kind} | {ops:,} | {' | '.join(told)} |"


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--kinds", nargs="+", default=["adds", "tables", "dense", "moves"])
    parser.add_argument("--ops", nargs="+", type=int, default=[250, 500, 1000])
    parser.add_argument("--import-only", action="store_true")
    given = parser.parse_args()
    load_all_modules()
    print("| chain | ops | import |" + ("" if given.import_only else " fit | build |"))
    for row in rows(given.kinds, given.ops, import_only=given.import_only):
        print(row, flush=True)


def load_all_modules() -> None:
    """Build a network of one op first. This loads all modules, which takes seconds and must not be timed."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "one.tflite"
        path.write_bytes(chain("adds", 1))
        api.build(path, output=path.with_suffix(""))


if __name__ == "__main__":
    main()
