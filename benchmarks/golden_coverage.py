"""Events of a build's network, and the number that its golden cases or other numbers of cases reach.

PYTHONPATH=kit .venv/bin/python benchmarks/golden_coverage.py BUILD
"""

from __future__ import annotations

import sys
from pathlib import Path
from time import process_time

import numpy as np

from npukit.measure import golden
from npukit.measure.cases import noise
from npukit.net.net import Net
from npukit.net.reference.coverage import Coverage, Watch
from npukit.project.build_folder import load_build


def of_noise(net: Net, count: int) -> Coverage:
    """The coverage of noise alone."""
    watch = Watch(net)
    _, seen = watch.frame([noise(net, name, count) for name in net.inputs])
    reached = {key: np.asarray(places.any(axis=0)) for key, places in seen.items()}
    return Coverage(watch.possible(seen), reached)


def main(folder: Path) -> None:
    net = load_build(folder).net()
    if not net.states:
        plain = of_noise(net, golden.LEAST_CASES)
        print(f"{golden.LEAST_CASES} cases of noise: {plain.count} of {plain.events} events")
    for most in (3, 8, 12):
        golden.GOLDEN_CASES = most
        begun = process_time()
        found = golden.golden(net)
        seconds, reached = process_time() - begun, found.coverage
        print(f"at most {most} chosen: {reached.count} of {reached.events} events, {seconds:.2f} s of the processor")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
