"""Cycles of the mathematical functions called by C in float (`MATH` in `kit/npukit/net/c_code/function.py`).

    python benchmarks/core/c_functions.py [NAME ...] [--toolchain gcc]

Each function is a separate op on one PE of `pe-mesh`, called for 256 numbers from -8 to 8, the range of golden cases,
or from a part of the function's domain. The printed cycles of a call leave out the loop around the call, the call
instruction, loads and stores.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterable, Iterator, Mapping

import numpy as np
from benchmarks.core.core_predictions import measured

from npukit.net.c_code.function import MATH
from npukit.net.check import check_net
from npukit.net.importer.tir.cycles import CALL, FLOAT, LOAD, STORE, TURN
from npukit.net.net import Net, Op
from npukit.net.ops import TvmCode
from npukit.net.tensor import Tensor

CALLS = 256
DOMAINS: Mapping[str, tuple[float, float]] = {
    **dict.fromkeys(("acosf", "asinf", "atanhf"), (-0.95, 0.95)),
    **dict.fromkeys(("log10f", "log1pf", "log2f", "logf", "powf", "sqrtf"), (0.05, 4)),
    "acoshf": (1, 4),
}
SECOND = {"atan2f": "p2[i]", "copysignf": "p2[i]", "fmodf": "p2[i]", "hypotf": "p2[i]", "powf": "p2[i]", "ldexpf": "3"}


def code_of(name: str) -> str:
    given = ", ".join(("p1[i]", *([SECOND[name]] if name in SECOND else [])))
    loop = f"  for (int32_t i = 0; i < {CALLS}; ++i) {{\n    output[i] = {name}({given});\n  }}\n"
    return f"{loop}  output[0] = output[0] + p0[0];\n"


def net_of(name: str) -> Net:
    """A network of one function's calls. Arguments are constants, because an activation may lie outside the domain."""
    random = np.random.default_rng(5)
    low, high = DOMAINS.get(name, (-8, 8))
    constants = {
        "first": random.uniform(low, high, CALLS).astype(np.float32),
        "second": random.uniform(0.5, 3, CALLS).astype(np.float32),
    }
    tensors = [Tensor("x", (1, 1), "float32"), Tensor("y", (1, CALLS), "float32")]
    tensors += [Tensor(each, (CALLS,), "float32") for each in constants]
    inputs = ("x", "first", *(["second"] if "p2" in code_of(name) else []))
    op = Op("y", TvmCode(name, code_of(name)), inputs, ("y",))
    kept = {each.name: each for each in tensors if each.name in (*inputs, "y")}
    return check_net(Net(name, ("x",), ("y",), (op,), kept, {each: constants[each] for each in inputs[1:]}))


def function_cycles(names: Iterable[str], toolchain: str) -> Iterator[tuple[str, float]]:
    for name in names:
        (found,) = measured(net_of(name), toolchain, plain=True)
        loads = LOAD[FLOAT] * (2 if "p2" in code_of(name) else 1)
        yield name, found.cycles / CALLS - (TURN + loads + CALL + STORE[FLOAT])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", default=sorted(MATH))
    parser.add_argument("--toolchain", default="gcc")
    given = parser.parse_args()
    for name, taken in function_cycles(given.names, given.toolchain):
        print(f"{name} {taken:.0f}", flush=True)


if __name__ == "__main__":
    main()
