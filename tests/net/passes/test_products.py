"""Transpositions that a product of two activations takes over, and those that it cannot."""

from __future__ import annotations

from itertools import permutations

import numpy as np
import pytest

from npukit.net.check import check_net
from npukit.net.net import Net
from npukit.net.parse import parse_net
from npukit.net.passes.simplify import with_transposing_products
from npukit.net.reference import evaluate

TOKENS, HEADS, DEPTH = 5, 2, 3


def attention(first: tuple[int, ...], second: tuple[int, ...], result: tuple[int, ...]) -> Net:
    """A product of transposes of two inputs, transposed."""
    sizes = {"first": (1, HEADS, TOKENS, DEPTH), "second": (1, HEADS, DEPTH, TOKENS)}
    orders = {"first": first, "second": second}
    shapes = {name: [sizes[name][orders[name].index(axis)] for axis in range(4)] for name in sizes}
    product = (1, HEADS, TOKENS, TOKENS)
    return check_net(
        parse_net(
            f"""net attention
input first: int8{shapes["first"]} scale 0.5 zero 3
input second: int8{shapes["second"]} scale 0.25 zero -7
op a: int8{list(sizes["first"])} scale 0.5 zero 3 = transpose(first) axes={list(first)}
op b: int8{list(sizes["second"])} scale 0.25 zero -7 = transpose(second) axes={list(second)}
op p: int8{list(product)} scale 2.0 zero 1 = matmul(a, b) clamp=[-128, 127]
op t: int8{[product[axis] for axis in result]} scale 2.0 zero 1 = transpose(p) axes={list(result)}
op y: int8[1, {product[1] * product[2] * product[3]}] scale 2.0 zero 1 = reshape(t)
output y
""",
            {},
        )
    )


CASES = [
    ((0, 2, 1, 3), (0, 2, 3, 1), (0, 2, 1, 3), 0),
    ((0, 1, 2, 3), (0, 1, 3, 2), (0, 1, 2, 3), 0),
    ((0, 1, 3, 2), (0, 2, 1, 3), (0, 2, 1, 3), 1),
    ((0, 2, 1, 3), (0, 2, 1, 3), (0, 1, 3, 2), 1),
    ((0, 2, 1, 3), (3, 0, 1, 2), (0, 2, 1, 3), 1),
]


@pytest.mark.parametrize(("first", "second", "result", "left"), CASES)
def test_what_a_product_cannot_transpose_is_left(
    first: tuple[int, ...], second: tuple[int, ...], result: tuple[int, ...], left: int
) -> None:
    folded = with_transposing_products(attention(first, second, result))
    assert [op.kind for op in folded.ops].count("transpose") == left
    assert [op.kind for op in folded.ops].count("matmul") == 1


def test_any_transpositions_leave_the_result() -> None:
    random = np.random.default_rng(5)
    orders = list(permutations(range(4)))
    for _ in range(60):
        net = attention(*(orders[random.integers(len(orders))] for _ in range(3)))
        folded = check_net(with_transposing_products(net))
        inputs = [random.integers(-128, 128, net.tensor(name).shape, np.int8) for name in net.inputs]
        (name,) = net.outputs
        np.testing.assert_array_equal(evaluate(folded, inputs)[name], evaluate(net, inputs)[name])
