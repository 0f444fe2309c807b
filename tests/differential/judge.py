"""The verdict on a network: npukit's integer reference beside the oracles."""

from __future__ import annotations

import re
import traceback
from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from differential.evidence import kinds_of, ops_of
from differential.networks import CALIBRATED, IN_FLOAT, LITERT, Arrays, Network, Within
from frontend.random_tflite import dense_rounded_once
from npukit.errors import NpukitError
from npukit.net.net import Net
from npukit.net.reference import run_reference
from npukit.quantize.models import load_model
from npukit.quantize.scales import quantised

EQUAL, WITHIN, REFUSED, LISTED, FAULT = "equal", "within", "refused", "listed", "FAULT"
NAMED = re.compile(r"\b(op|node|layer|input|output|tensor)\b")


@dataclass(frozen=True)
class Verdict:
    name: str
    seed: int
    outcome: str
    said: str = ""
    """The difference, or the reason of a refusal."""
    net: Net | None = field(default=None, compare=False)
    inputs: Arrays = field(default_factory=list, compare=False)
    ops: tuple[str, ...] = field(default=(), compare=False)
    """The ops of the file."""
    kinds: tuple[str, ...] = field(default=(), compare=False)
    """The kinds of the net's ops."""

    @property
    def built(self) -> bool:
        """True for a network of the sample that is built."""
        return self.net is not None


def read(network: Network, folder: Path) -> Net:
    path = folder / network.file
    path.write_bytes(network.data)
    if network.reads != CALIBRATED:
        return load_model(path, in_float=network.reads == IN_FLOAT).net
    arrays = {f"in{at}": np.stack([case[at] for case in network.cases]) for at in range(len(network.cases[0]))}
    np.savez(folder / "calibration.npz", **arrays)  # pyright: ignore[reportArgumentType]
    return load_model(path, calibration=folder / "calibration.npz").net


def taken(net: Net, case: Sequence[np.ndarray]) -> Arrays:
    """Inputs of the file as inputs of the net: integers where the net quantises real numbers at once."""
    kinds = (net.tensor(name).quantization for name in net.inputs)
    return [
        quantised(value, kind) if kind is not None and value.dtype == np.float32 else value
        for value, kind in zip(case, kinds, strict=True)
    ]


def ours(net: Net, network: Network, oracle: str) -> list[Arrays]:
    with dense_rounded_once() if oracle == LITERT else nullcontext():
        return [run_reference(net, taken(net, case)) for case in network.cases]


def theirs(network: Network, path: Path) -> tuple[dict[str, list[Arrays]], dict[str, str]]:
    """The outputs of each oracle, and the reasons of the oracles without outputs."""
    found, without = dict[str, list[Arrays]](), dict[str, str]()
    for name, oracle in network.oracles.items():
        try:
            found[name] = [oracle(path, list(case)) for case in network.cases]
        except Exception as error:
            without[name] = f"{name}: {str(error).strip().splitlines()[0] if str(error) else type(error).__name__}"
    return found, without


def judged(network: Network, seed: int, folder: Path) -> Verdict:
    def verdict(outcome: str, said: str = "", net: Net | None = None) -> Verdict:
        ops = ops_of(network.name.split("/")[0], network.data)
        inputs, kinds = ([], ()) if net is None else (taken(net, network.cases[0]), kinds_of(net))
        return Verdict(network.name, seed, outcome, said, net, inputs, ops, kinds)

    try:
        net = read(network, folder)
    except NpukitError as refusal:
        return verdict(*_refused(refusal))
    except Exception as error:
        return verdict(FAULT, _crash(error))
    found, without = theirs(network, folder / network.file)
    try:
        told = {name: _told(net, network.within, ours(net, network, name), each) for name, each in found.items()}
    except Exception as error:
        return verdict(FAULT, _crash(error))
    if not told:
        return verdict(FAULT, f"no oracle: {'; '.join(without.values())}", net)
    best = next((said for said in told.values() if said in ("", WITHIN)), None)
    if best is not None:
        return verdict(best or EQUAL, "", net)
    return verdict(FAULT, "; ".join(f"{name}: {said}" for name, said in told.items()), net)


def _crash(error: Exception) -> str:
    frame = traceback.extract_tb(error.__traceback__)[-1]
    return f"crash: {type(error).__name__} in {Path(frame.filename).name}, {frame.name}: {str(error).strip()[:300]}"


def _refused(refusal: NpukitError) -> tuple[str, str]:
    """A refusal without the name of an op or tensor is a fault."""
    named = NAMED.search(refusal.message)
    return (REFUSED, refusal.message) if named else (FAULT, f"refused without a name: {refusal.message}")


def _told(net: Net, within: Within, got: Sequence[Arrays], wanted: Sequence[Arrays]) -> str:
    """Empty if all cases are equal, `within`, or the first difference."""
    for place, name in enumerate(net.outputs):
        pair = (np.stack([case[place] for case in each]) for each in (got, wanted))
        if said := _difference(net, name, within, *pair):
            return said
    same = all(np.array_equal(*pair) for cases in zip(got, wanted, strict=True) for pair in zip(*cases, strict=True))
    return "" if same else WITHIN


def _difference(net: Net, name: str, within: Within, got: np.ndarray, wanted: np.ndarray) -> str:
    if got.shape != wanted.shape:
        return f"{name}: shape {list(got.shape[1:])}, not {list(wanted.shape[1:])}"
    kind, most = net.tensor(name).quantization, float(within.steps)
    if wanted.dtype.kind == "f":
        step = 0.0 if kind is None else float(np.max(kind.scale))
        got = got if kind is None else (got.astype(np.float64) - kind.zero_point) * kind.scale
        finite = wanted[np.isfinite(wanted)]
        most = max(most * step * 1.001, within.relative * float(np.abs(finite).max(initial=0)))
    elif within.decibels is not None:
        return ""
    elif got.dtype != wanted.dtype:
        return f"{name}: {got.dtype}, not {wanted.dtype}"
    apart = np.abs(got.astype(np.float64) - wanted.astype(np.float64))
    apart[(got == wanted) | (np.isnan(got) & np.isnan(wanted))] = 0
    if within.decibels is not None and wanted.dtype.kind == "f":
        return _quiet(name, within.decibels, apart, wanted)
    worst = apart.max(initial=0)
    return (
        f"{name}: {np.count_nonzero(apart > most)} of {got.size} differ by up to {worst:.6g}"
        if not worst <= most
        else ""
    )


def _quiet(name: str, least: float, apart: np.ndarray, wanted: np.ndarray) -> str:
    signal, error = (float(np.sum(np.square(each, dtype=np.float64))) for each in (wanted, apart))
    decibels = 10 * np.log10(max(signal, 1e-30) / max(error, 1e-30))
    return "" if decibels >= least or error == 0 else f"{name}: {decibels:.0f} dB"
