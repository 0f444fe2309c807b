"""MetaSchedule's proposals: no tiling twice, equal results for all tilings, and measured costs train the search."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

from helpers import CHECKOUT
from npukit.net.importer.loops import AS_WRITTEN, LoopKernel, Nest, Step, Tiling, scheduling
from npukit.net.importer.lowering import code_again
from npukit.net.net import Net
from npukit.net.ops import TvmCode
from npukit.net.reference import evaluate
from npukit.quantize.models import load_model
from npukit.tuner.meta_schedule import MOST_TERMS, Sum, predicted, searches_for
from npukit.tuning import NOTHING_FOUND

FLOAT = CHECKOUT / "examples/digits/digits_float.onnx"


@pytest.fixture(scope="module")
def digits() -> tuple[Net, dict[str, LoopKernel]]:
    with scheduling("board", NOTHING_FOUND) as opened:
        net = load_model(FLOAT, in_float=True).net
    return net, opened.kernels_of(net)


def padded(kernels: dict[str, LoopKernel]) -> LoopKernel:
    """A convolution with padding."""
    return next(kernel for kernel in kernels.values() if len(searches_for(kernel, AS_WRITTEN, 1, ())) == 2)


@pytest.mark.exhaustive
def test_proposals_come_once_and_compute_the_same(digits: tuple[Net, dict[str, LoopKernel]]) -> None:
    net, kernels = digits
    kernel = padded(kernels)
    rng = np.random.default_rng(1)
    inputs = [rng.normal(size=net.tensor(name).shape).astype(np.float32) for name in net.inputs]
    wanted = evaluate(net, inputs)[net.outputs[0]]
    within, before = searches_for(kernel, AS_WRITTEN, 1000, ())
    asked = [search.ask() for search in (within, before) for _ in range(3)]
    assert len(set(asked)) == 6
    assert None not in asked
    for choice in asked:
        tiling = Tiling.parse(str(choice))
        assert tiling.apart == (choice in asked[3:])
        changed = with_code(net, kernel, tiling)
        assert changed != net
        assert evaluate(changed, inputs)[net.outputs[0]].tobytes() == wanted.tobytes(), choice
    known = {str(choice) for choice in asked[:3]}
    assert searches_for(kernel, AS_WRITTEN, 1000, known)[0].ask() not in known


def with_code(net: Net, kernel: LoopKernel, tiling: Tiling) -> Net:
    made = code_again(kernel, tiling)
    code = {
        op.name: dataclasses.replace(op.attributes, code=made.body, work_bytes=made.work_bytes)
        for op in net.ops
        if op.name in kernel.layers and isinstance(op.attributes, TvmCode)
    }
    return net.with_ops(tuple(dataclasses.replace(op, attributes=code.get(op.name, op.attributes)) for op in net.ops))


@pytest.mark.exhaustive
def test_it_goes_on_from_what_was_cheap(digits: tuple[Net, dict[str, LoopKernel]]) -> None:
    (search, _) = searches_for(padded(digits[1]), AS_WRITTEN, 1000, ())
    for _ in range(9):
        choice = search.ask()
        assert choice is not None
        search.tell(choice, 500)


def test_what_sums_nothing_has_no_search(digits: tuple[Net, dict[str, LoopKernel]]) -> None:
    kernel = padded(digits[1])
    relu = Step("nn.relu", (0,), None, {})
    assert not searches_for(dataclasses.replace(kernel, steps=(relu,)), AS_WRITTEN, 1, ())


SUM = Sum("sum", (8, 8), (16,), (((0,), (2,)), ((1,), (2,))), cheap=True)


def expected(*inside: int, terms: int = 1, of: Sum = SUM) -> float:
    return predicted([of], Tiling((Nest(inside, (terms,)),)))


def test_what_is_read_once_for_many_and_fits_the_registers_is_expected_to_be_fast() -> None:
    assert expected(1, 1) > expected(1, 4) > expected(4, 4)
    assert expected(8, 8) > expected(4, 4), "more sums than registers"
    assert expected(1, 1) > expected(1, 1, terms=4)
    assert expected(1, 4, of=dataclasses.replace(SUM, cheap=False)) > expected(1, 4)
    assert expected(8, 8, terms=MOST_TERMS) == float("inf")
