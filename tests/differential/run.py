"""All cells of some seeds, judged on all cores; a sample of the networks is also built and run on the emulator."""

from __future__ import annotations

import os
import re
import sys
import tempfile
import tomllib
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from fnmatch import fnmatch
from pathlib import Path
from typing import Any

import numpy as np

from differential import onnx_networks, tflite_networks
from differential.builds import differing
from differential.evidence import OfOps, by_class, of_lone_ops
from differential.judge import EQUAL, FAULT, LISTED, REFUSED, WITHIN, Verdict, judged
from differential.networks import Maker, random_of
from npukit.errors import NpukitError
from npukit.host.parallel import in_order

LIST = Path(__file__).with_name("listed.toml")
BUILT = 0.05
"""Part of the networks that are built and run on the emulator."""
AT_ONCE = 12
"""Networks of a build."""
COMMAND = "python benchmarks/differential/compare.py --seed {seed} --only {name}"


@dataclass(frozen=True)
class Item:
    """A network before it is made."""

    name: str
    seed: int
    maker: Maker
    folder: Path
    """Folder of networks with faults."""


@dataclass(frozen=True)
class Listed:
    """A known fault: the networks and the differences, both as patterns."""

    networks: str
    said: str
    reason: str

    def covers(self, verdict: Verdict) -> bool:
        return fnmatch(verdict.name, self.networks) and re.search(self.said, verdict.said) is not None


def listed(path: Path = LIST) -> list[Listed]:
    return [Listed(**each) for each in tomllib.loads(path.read_text(encoding="utf-8"))["fault"]]


def cells() -> dict[str, Maker]:
    """All cells by name. Programs of PyTorch only if PyTorch is installed."""
    found = [*tflite_networks.cells(), *onnx_networks.cells()]
    try:
        from differential import pytorch_networks
    except ImportError as reason:
        print(f"no PyTorch networks: {reason}", file=sys.stderr)
    else:
        found += pytorch_networks.cells()
    return dict(found)


def verdicts(items: Sequence[Item], known: Sequence[Listed]) -> Iterator[Verdict]:
    """The verdict of each item, in order. An item that ends its process is a fault."""
    rest = list(items)
    while rest:
        try:
            for verdict in in_order(_judged, list(rest)):
                yield _with_list(verdict, known)
                del rest[0]
        except NpukitError as died:
            yield _with_list(Verdict(rest[0].name, rest[0].seed, FAULT, f"crash: {died.message}"), known)
            del rest[0]


def _with_list(verdict: Verdict, known: Sequence[Listed]) -> Verdict:
    if verdict.outcome == FAULT and (found := next((each for each in known if each.covers(verdict)), None)):
        return replace(verdict, outcome=LISTED, said=found.reason)
    return verdict


def _judged(item: Item) -> Verdict:
    with quiet(), tempfile.TemporaryDirectory() as scratch:
        try:
            network = item.maker(random_of(item.name, item.seed))
        except Exception as error:
            return Verdict(item.name, item.seed, FAULT, f"no network: {type(error).__name__}: {error}")
        verdict = judged(network, item.seed, Path(scratch))
    if verdict.outcome == FAULT:
        place = item.folder / f"{item.seed}-{item.name.replace('/', '-')}"
        place.mkdir(parents=True, exist_ok=True)
        (place / network.file).write_bytes(network.data)
        arrays: dict[str, Any] = {
            f"in{at}": np.stack(values) for at, values in enumerate(zip(*network.cases, strict=True))
        }
        np.savez(place / "inputs.npz", **arrays)
    chosen = random_of(f"build {item.name}", item.seed).random() < BUILT and verdict.outcome in (EQUAL, WITHIN, LISTED)
    return verdict if chosen else replace(verdict, net=None, inputs=[])


@contextmanager
def quiet() -> Iterator[None]:
    """Keeps the messages of native libraries from the terminal."""
    kept, nowhere = os.dup(2), os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, 2)
    try:
        yield
    finally:
        os.dup2(kept, 2)
        os.close(kept)
        os.close(nowhere)


def with_builds(found: Sequence[Verdict]) -> Iterator[Verdict]:
    """Faults of the sample on the emulator."""
    samples = [[each for each in found if each.net and each.net.rounds_once == once] for once in (False, True)]
    batches = [sample[start : start + AT_ONCE] for sample in samples for start in range(0, len(sample), AT_ONCE)]
    for faults in in_order(_built, batches):
        yield from faults


def _built(batch: Sequence[Verdict]) -> list[Verdict]:
    try:
        with tempfile.TemporaryDirectory() as scratch:
            wrong = differing([(each.net, each.inputs) for each in batch if each.net is not None], Path(scratch))
    except Exception as error:
        if len(batch) > 1:
            return [fault for start in range(2) for fault in _built(batch[start::2])]
        wrong = {0: f"crash of a build: {type(error).__name__}: {str(error)[:300]}"}
    return [replace(batch[at], outcome=FAULT, said=said) for at, said in wrong.items()]


@dataclass(frozen=True)
class Totals:
    """Numbers of networks by outcome, and refusals by reason."""

    outcomes: Mapping[str, int]
    refusals: Mapping[str, int]
    built: int
    ops: OfOps
    """Compared networks with an op, by format, op, class and outcome."""
    kinds: OfOps
    """The kinds of ops that are alone in a quantised file, by format and op."""

    def __str__(self) -> str:
        counts = ", ".join(f"{self.outcomes.get(each, 0)} {each}" for each in (EQUAL, WITHIN, REFUSED, LISTED, FAULT))
        return f"{sum(self.outcomes.values())} networks: {counts}; {self.built} of them on the emulator"


def totals(found: Sequence[Verdict]) -> Totals:
    refusals = Counter(reason(each.said) for each in found if each.outcome == REFUSED)
    built = sum(each.built for each in found)
    compared = [each for each in found if each.outcome in (EQUAL, WITHIN, LISTED)]
    return Totals(
        dict(Counter(each.outcome for each in found)),
        dict(refusals.most_common()),
        built,
        by_class((each.name, each.outcome, each.ops) for each in compared),
        of_lone_ops((each.name, each.ops, each.kinds) for each in compared),
    )


def reason(said: str) -> str:
    """A refusal without its numbers and names, which differ between networks of equal reason."""
    plain = re.sub(r"^model(\.\w+)?:? ", "", said)
    plain = re.sub(
        r"\([^()]*\)|'[^']*'", "…", re.sub(r"TVM cannot make code of it: .*", "TVM cannot make code of it", plain)
    )
    return re.sub(r"\d+(\.\d+)?(e-?\d+)?", "N", plain)


def tell(verdict: Verdict) -> None:
    """Prints a fault with the command that repeats its network."""
    if verdict.outcome == FAULT:
        again = COMMAND.format(seed=verdict.seed, name=verdict.name)
        print(f"FAULT {verdict.name}: {verdict.said}\n    {again}", flush=True)


def run(
    seeds: Sequence[int], wanted: Callable[[str], bool], folder: Path, told: Callable[[Verdict], None]
) -> list[Verdict]:
    """The verdicts of all seeds; faults on the emulator replace the verdicts of the integer reference."""
    items = [Item(name, seed, maker, folder) for seed in seeds for name, maker in cells().items() if wanted(name)]
    found = list[Verdict]()
    for verdict in verdicts(items, listed()):
        found.append(verdict)
        told(verdict)
    for fault in with_builds(found):
        at = next(at for at, each in enumerate(found) if (each.name, each.seed) == (fault.name, fault.seed))
        found[at] = fault
        told(fault)
    return found
