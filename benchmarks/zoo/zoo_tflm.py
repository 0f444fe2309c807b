"""Runs a TFLite model on TFLite Micro, in an environment with `tflite-micro`: arrays in, arrays out.

    python benchmarks/zoo/zoo_tflm.py MODEL IN.npz OUT.npz [remembers]

With `remembers`, states are kept from case to case.
"""

from __future__ import annotations

import sys

import numpy as np
from tflite_micro.python.tflite_micro import runtime  # pyright: ignore[reportMissingImports]

ARENA = 64 * 1024 * 1024


def main(model: str, given: str, output: str, remembers: str = "") -> None:
    arrays, found = np.load(given), {}
    inputs = sorted({int(name.partition("_in")[2]) for name in arrays.files})
    with open(model, "rb") as file:
        data = file.read()
    interpreter = runtime.Interpreter.from_bytes(data, arena_size=ARENA)
    for case in sorted({int(name.partition("_in")[0].removeprefix("case")) for name in arrays.files}):
        if case and not remembers:
            interpreter = runtime.Interpreter.from_bytes(data, arena_size=ARENA)
        for place in inputs:
            interpreter.set_input(arrays[f"case{case}_in{place}"], place)
        interpreter.invoke()
        for place in range(_outputs(interpreter)):
            found[f"case{case}_out{place}"] = interpreter.get_output(place)
    np.savez(output, **found)


def _outputs(interpreter: runtime.Interpreter) -> int:
    """The number of outputs, by trial, because the interpreter does not report it."""
    for place in range(64):
        try:
            interpreter.get_output_details(place)
        except (IndexError, RuntimeError, ValueError):
            return place
    return 64


if __name__ == "__main__":
    main(*sys.argv[1:])
