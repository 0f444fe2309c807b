"""A client with TVM and numpy, without npukit: python stock_client.py TRACKER_PORT KEY CASES.npz OUT.npz."""

from __future__ import annotations

import sys
from collections.abc import Callable

import numpy as np
import tvm
from tvm import rpc


def main(port: str, key: str, cases: str, out: str) -> None:
    remote = rpc.connect_tracker("127.0.0.1", int(port)).request(key)
    network, device = remote.system_lib(), remote.cpu()
    arrays = np.load(cases)
    images, like = arrays["in0"], arrays["out0"]
    scores = tvm.runtime.tensor(np.zeros(like.shape[1:], like.dtype), device)
    results = []
    for image in images:
        network["run"](tvm.runtime.tensor(image, device), scores)
        results.append(scores.numpy())
    timed = network.time_evaluator("run", device, number=2, repeat=3)
    seconds = timed(tvm.runtime.tensor(images[0], device), scores).results
    least = network.time_evaluator("run", device, number=1, min_repeat_ms=1)
    by_name = remote.get_function("npukit.run")
    by_name(tvm.runtime.tensor(images[0], device), scores)
    np.savez(
        out,
        results=np.stack(results),
        seconds=np.array(seconds),
        least=np.array(least(tvm.runtime.tensor(images[0], device), scores).results),
        by_name=scores.numpy(),
        wrong=np.array(error_of(lambda: network["run"](scores))),
    )


def error_of(call: Callable[[], object]) -> str:
    try:
        call()
    except Exception as error:
        return str(error)
    return ""


if __name__ == "__main__":
    main(*sys.argv[1:])
