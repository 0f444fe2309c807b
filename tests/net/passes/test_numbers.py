"""Numbers in which C that is else alike differs become constants."""

from __future__ import annotations

import numpy as np

from npukit.net.c_code.rows import EACH, Steps, rows_of, stated_rows
from npukit.net.check import check_net
from npukit.net.net import Net, Op
from npukit.net.ops import TvmCode
from npukit.net.passes.numbers import LOAD_CYCLES, with_numbers_as_constants
from npukit.net.reference import run_reference
from npukit.net.tensor import Tensor

SCALED = """  for (int32_t i = 0; i < 8; ++i) {{
    output[i] = ((((float)(((int32_t)p0[i]) {zero})) * {scale}f) * 2.5f) + {added} + {scale}f;
  }}
"""


ROWS = stated_rows(Steps(1, (EACH,)), (8,), [(8,)])


def net_of(*codes: str) -> Net:
    """A float of the same eight integers by each code."""
    ops = tuple(
        Op(f"o{place}", TvmCode("scaled", code, rows=ROWS), ("x",), (f"y{place}",)) for place, code in enumerate(codes)
    )
    tensors = {"x": Tensor("x", (8,), "int8"), **{op.output: Tensor(op.output, (8,), "float32") for op in ops}}
    return Net("scaled", ("x",), tuple(op.output for op in ops), ops, tensors)


def codes_of(net: Net) -> list[str]:
    return [op.attributes.code for op in net.ops if isinstance(op.attributes, TvmCode)]


def test_ops_that_differ_in_numbers_have_one_code_and_compute_what_they_did() -> None:
    before = net_of(
        SCALED.format(zero="- 3", scale="0.033088237", added="(-1.0f)"),
        SCALED.format(zero="+ 47", scale="1.5e-05", added="7.25f"),
    )
    after = with_numbers_as_constants(before)
    codes = codes_of(after)
    assert codes[0] == codes[1]
    assert "2.5f" in codes[0]
    assert [op.of(TvmCode).cycles for op in after.ops] == [3 * LOAD_CYCLES] * 2
    assert [after.constants[name].tolist() for name in after.ops[1].inputs[1:]] == [
        [47],
        [np.float32(1.5e-05), np.float32(7.25)],
    ]
    assert all(rows_of(check_net(after), op) is not None for op in after.ops)
    given = np.arange(-4, 4, dtype=np.int8)
    for one, other in zip(run_reference(before, [given[None]]), run_reference(after, [given[None]]), strict=True):
        assert np.array_equal(one, other)


def test_other_code_and_its_subscripts_stay() -> None:
    alone = SCALED.format(zero="- 3", scale="0.5", added="1.0f")
    shifted = [f"  output[0] = p0[(((int32_t)p0[0]) + {place})];\n" for place in (2, 3)]
    net = net_of(alone, *shifted)
    assert codes_of(with_numbers_as_constants(net)) == codes_of(net)
    assert not with_numbers_as_constants(net).constants
