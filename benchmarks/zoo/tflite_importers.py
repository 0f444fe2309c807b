"""TVM's importer of TFLite and npukit's, each against TFLite Micro or, where it refuses a file, LiteRT.

    python benchmarks/zoo/tflite_importers.py FILE.tflite...

Each importer reads each file in a process of its own with a time limit, and runs random inputs.
"equal": all outputs have the same bytes. "n steps": the largest difference of an integer output, in quantisation steps.
"refused": an error of the importer. "crash": the process ended, or took longer than the limit.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
from benchmarks.zoo.zoo_model import Arrays, Given, TfLite, apart, drawn, net_of

from npukit.errors import NpukitError
from npukit.net.reference import evaluate

SECONDS = 120
"""Time limit of an importer."""
ORACLE_SECONDS = 300
"""Time limit of TFLite Micro and LiteRT together. LiteRT has a limit of its own (`zoo_model.SECONDS`)."""
CRASH = "crash"

Importer = Callable[[Path, Arrays], Arrays]


def by_tvm(path: Path, case: Arrays) -> Arrays:
    """The outputs of TVM's import, compiled by TVM for this machine."""
    import tflite
    import tvm
    from tvm import relax
    from tvm.relax.frontend.tflite import from_tflite

    module = from_tflite(tflite.Model.GetRootAs(path.read_bytes()))
    device: Any = tvm.cpu()
    machine = relax.VirtualMachine(tvm.compile(module, target=tvm.target.Target("llvm")), device)
    outputs = machine["main"](*map(tvm.runtime.tensor, case))
    return [each.numpy() for each in ([outputs] if hasattr(outputs, "numpy") else outputs)]


def by_npukit(path: Path, case: Arrays) -> Arrays:
    """The outputs of npukit's import, by its reference."""
    net, _ = net_of(Given(path))
    found = evaluate(net, case)
    return [found[name] for name in net.outputs]


def verdict(importer: Importer, path: Path, case: Arrays, expected: Arrays) -> str:
    told = apart(partial(_told, importer, path, case, expected), SECONDS)
    return told[0] if told else CRASH


def _told(importer: Importer, path: Path, case: Arrays, expected: Arrays) -> str:
    try:
        found = importer(path, case)
    except Exception as error:
        reason = error.message if isinstance(error, NpukitError) else str(error)
        return f"refused: {(reason.splitlines() or ['without a reason'])[-1][:60]}"
    return compared(found, expected)


def compared(found: Arrays, expected: Arrays) -> str:
    if [each.size for each in found] != [each.size for each in expected]:
        return "other shapes"
    pairs = [(ours.ravel(), theirs.ravel()) for ours, theirs in zip(found, expected, strict=True)]
    if all(np.array_equal(ours, theirs) for ours, theirs in pairs):
        return "equal"
    apart_by = max(float(np.max(np.abs(ours.astype(float) - theirs.astype(float)))) for ours, theirs in pairs)
    is_float = any(theirs.dtype.kind == "f" for _, theirs in pairs)
    return f"{apart_by:.1e} apart" if is_float else f"{apart_by:.0f} steps"


def row(path: Path) -> str:
    runtime = TfLite(Given(path, tflm=sys.executable))
    cases = apart(lambda: [drawn(each, {}, np.random.default_rng(7)) for each in runtime.inputs], SECONDS)
    ran = apart(partial(runtime.run, cases, remembers=False), ORACLE_SECONDS) if cases else []
    if not any(ran):
        return f"| {path.name} | no outputs of either | | |"
    oracle, (expected,) = next(iter(ran[0].items()))
    verdicts = (verdict(importer, path, cases[0], expected) for importer in (by_tvm, by_npukit))
    return f"| {path.name} | {oracle} | {' | '.join(verdicts)} |"


def main() -> None:
    print("| file | compared with | TVM's importer | npukit's |\n|---|---|---|---|")
    for name in sys.argv[1:]:
        print(row(Path(name)), flush=True)


if __name__ == "__main__":
    main()
