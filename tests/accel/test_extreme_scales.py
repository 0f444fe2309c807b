"""Scales from 2^-30 to 2^20 and extreme zero points: every engine is exact, or the op is refused by name."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pytest

from accel.core_networks import CoreBuilder, run_on_emulator
from accel.run_net import run_net
from codegen.random_ops import MAKERS, Bundle
from helpers import first_of
from npukit.board.board import load_board
from npukit.errors import NpukitError
from npukit.net.check import check_net
from npukit.net.net import Net
from npukit.net.ops.kind import Scales
from npukit.net.ops.table import SPECS
from npukit.net.tensor import Quantization

SMALLEST, LARGEST, NEAR = -30, 20, 6
SCALED = (
    *("add", "average_pool", "conv2d", "dense", "depthwise_conv2d", "matmul", "max_pool", "mean", "multiply"),
    *("prelu", "requantize", "subtract", "transpose_conv2d"),
)
ON_THE_ARRAY = ("add", "average_pool", "conv2d", "dense", "depthwise_conv2d", "max_pool", "mean")


@dataclass
class Extreme(Bundle):
    """Ops with extreme scales; most tensors of an op have scales near each other."""

    exponent: int = 0

    def quantization(self, low: float = 1, high: float = 2) -> Quantization:
        if self.pick(0, 2) == 0:
            self.exponent = self.pick(SMALLEST, LARGEST)
        near = min(max(self.exponent + self.pick(-NEAR, NEAR), SMALLEST), LARGEST)
        return Quantization((2.0**near * (1 if self.pick(0, 1) else self.random.uniform(1, 2)),), (self.zero(),))

    def zero(self) -> int:
        return (-128, -127, 127)[self.pick(0, 2)]


def net_of(kinds: tuple[str, ...], seed: int, each: int) -> tuple[Net, Counter[bool]]:
    """A net of the accepted ops among random ops of these kinds, and the counts of accepted and refused ops."""
    bundle, told = Extreme(np.random.default_rng(seed)), Counter[bool]()
    for kind in kinds * each:
        MAKERS[kind](bundle)
        told[_is_refused(bundle)] += 1
    ops = tuple(bundle.ops)
    read = {name for op in ops for name in op.inputs}
    whole = bundle.net()
    return check_net(replace(whole, inputs=tuple(name for name in whole.inputs if name in read))), told


def _is_refused(bundle: Bundle) -> bool:
    """Check whether the last op is refused by name. A refused op is removed."""
    op = bundle.ops[-1]
    said = ""
    try:
        check_net(bundle.net([op]).alone(op))
    except NpukitError as error:
        said = error.message
        bundle.ops.pop()
    assert not said or op.name in said
    return bool(said)


def test_some_are_refused_by_their_name_and_most_are_not() -> None:
    _, told = net_of(SCALED, 7, 60)
    assert 5 < told[True] < told[False]


@pytest.mark.exhaustive
@pytest.mark.parametrize("seed", first_of([1, 2]))
def test_the_core_is_exact(seed: int, tmp_path: Path) -> None:
    net, _ = net_of(SCALED, seed, 2)
    net = net.with_ops(tuple(op.placed("cpu") for op in net.ops))
    ran = run_on_emulator(net, tmp_path)
    assert ran.validation.passed, ran.validation.mismatches


def with_extreme_scales(net: Net, seed: int) -> Net:
    """The accepted ops of `net`, between tensors of extreme scales."""
    bundle, ops, tensors = Extreme(np.random.default_rng(seed)), [], dict(net.tensors)
    for op in net.ops:
        names = [*net.activations(op), op.output]
        alike = bundle.quantization() if SPECS[op.kind].scales in (Scales.EQUAL, Scales.EQUAL_OR_NONE) else None
        drawn = {name: replace(tensors[name], quantization=alike or bundle.quantization()) for name in names}
        alone = replace(net, tensors={**tensors, **drawn}).alone(op)
        try:
            check_net(alone)
        except NpukitError:
            continue
        tensors |= drawn
        ops.append(op)
    inputs = tuple(name for op in ops for name in net.activations(op))
    return check_net(
        replace(net, inputs=inputs, outputs=tuple(op.output for op in ops), ops=tuple(ops), tensors=tensors)
    )


def plain_layers() -> Net:
    """Independent layers, each of a kind with assembly kernels."""
    b = CoreBuilder("plain")
    made = [b.conv(b.input(1, 6, 5, 4), 8, kernel) for kernel in (1, 3, 3)]
    made += [b.depthwise(b.input(1, 6, 6, 8)) for _ in range(3)]
    made += [b.dense(b.input(1, 20), 8) for _ in range(3)]
    made += [b.add(b.input(1, 4, 4, 4), b.input(1, 4, 4, 4)) for _ in range(3)]
    made += [b.pool(b.input(1, 6, 6, 4), 2, 2, maximum=maximum) for maximum in (True, False)]
    return b.net(*made)


@pytest.mark.exhaustive
@pytest.mark.parametrize("seed", first_of([5, 6, 7]))
def test_kernels_in_assembly_are_exact(seed: int, tmp_path: Path) -> None:
    ran = run_on_emulator(with_extreme_scales(plain_layers(), seed), tmp_path)
    assert ran.validation.passed, ran.validation.mismatches
    notes = ran.planned.kernels.values()
    assert sum(not note.startswith("plain C: ") for note in notes) > len(notes) / 2


@pytest.mark.exhaustive
@pytest.mark.parametrize("seed", first_of([3, 4]))
def test_the_array_is_exact(seed: int, tmp_path: Path) -> None:
    net, _ = net_of(ON_THE_ARRAY, seed, 4)
    ran = run_net(net, load_board("pe-mesh"), tmp_path)
    assert ran.validation.passed, ran.validation.mismatches
    assert sum(op.engine == "mac_array" for op in ran.net.ops) > len(ran.net.ops) / 3
