"""C divided by rows: the parts that tiles compute, the inputs that they read, and rows that a file must not state."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from npukit.errors import NpukitError
from npukit.net.box import Box
from npukit.net.c_code.rows import EACH, Steps, part_of, rows_of, runs_of, stated_cycles, stated_rows
from npukit.net.check import check_net
from npukit.net.net import Net, Op
from npukit.net.ops import Pair, RowReads, Run, TvmCode
from npukit.net.parse import parse_net
from npukit.net.receptive import cuttable_axes, may_be_cut, needs
from npukit.net.reference import run_reference
from npukit.net.tensor import Tensor
from npukit.net.text import print_net

ROWS, COLUMNS = 6, 4
SHAPE = (1, ROWS, COLUMNS, 1)
COUNT: Run = (ROWS, 0, 1, 1)
OWN = RowReads(((COUNT,),), (4,))


def net_of(statement: str, *reads: RowReads) -> Net:
    """A single-op net: a loop over rows `y` of the output and a loop over columns `x`."""
    loops = [f"  for (int32_t {name} = 0; {name} < {size}; ++{name}) {{\n" for name, size in (("y", 6), ("x", 4))]
    code = f"{loops[0]}  {loops[1]}      {statement}\n    }}\n  }}\n"
    tensors = {"x": Tensor("x", SHAPE, "float32"), "r": Tensor("r", SHAPE, "float32")}
    op = Op("o", TvmCode("o", code, rows=reads), ("x",), ("r",))
    return Net("net", ("x",), ("r",), (op,), tensors, {})


def part_made(net: Net, given: np.ndarray, output: Box) -> np.ndarray:
    """The output of a part's code, run on the part's share of the input."""
    found, op = rows_of(net, net.ops[0]), net.ops[0]
    assert found is not None
    (box,) = set(needs(net, op, output))
    assert box == found.box("p0", output)
    assert isinstance(op.attributes, TvmCode)
    code = part_of(op.attributes.code, found, output)
    tensors = {"x": Tensor("x", box.shape, "float32"), "r": Tensor("r", output.shape, "float32")}
    part = replace(net, ops=(replace(op, attributes=TvmCode("o", code)),), tensors=tensors)
    return run_reference(part, [given[:, *map(slice, box.start, box.stop)]])[0]


APART = OWN._replace(moves=(0,))
HALVES = RowReads(((*((2, row, row + 1, 0) for row in range(3)),),), (0,))
UPWARDS = RowReads((((6, 5, 6, -1),),), (-4,))
WHOLE = RowReads((), (0,))
KERNELS: dict[str, tuple[str, tuple[RowReads, ...], Pair]] = {
    "each row of its own": ("output[((y * 4) + x)] = p0[((y * 4) + x)];", (OWN,), (2, 3)),
    "half as many": ("output[((y * 4) + x)] = p0[((y >> 1) * 4) + x];", (HALVES,), (1, 2)),
    "from the last row on": ("output[(y * 4) + x] = p0[((5 - y) * 4) + x];", (UPWARDS,), (3, 4)),
    "the whole": ("output[(y * 4) + x] = p0[(x + 1) % 4];", (WHOLE,), (0, 6)),
    "two rows of one tensor": (
        "output[(y * 4) + x] = p0[(y * 4) + x] - p1[((5 - y) * 4) + x];",
        (OWN, UPWARDS),
        (2, 4),
    ),
    "a row and the whole": ("output[(y * 4) + x] = p0[(y * 4) + x] - p1[x];", (OWN, WHOLE), (0, 6)),
}


@pytest.mark.parametrize("name", KERNELS)
def test_parts_compute_what_the_whole_computes(name: str) -> None:
    """Runs each part in turn, on arrays that begin at the part's first row."""
    statement, reads, span = KERNELS[name]
    made = net_of(statement, APART, *reads)
    net = replace(made, ops=(replace(made.ops[0], inputs=("x",) * len(reads)),))
    given = np.arange(24, dtype=np.float32).reshape(1, 1, ROWS, COLUMNS, 1)
    assert cuttable_axes(check_net(net), net.ops[0]) == (1,)
    (box,) = set(needs(net, net.ops[0], Box((0, 2, 0, 0), (1, 3, COLUMNS, 1))))
    assert (box.start[1], box.stop[1]) == span
    (want,) = run_reference(net, [given])
    for first, stop in ((0, 2), (2, 5), (5, 6)):
        got = part_made(net, given, Box((0, first, 0, 0), (1, stop, COLUMNS, 1)))
        np.testing.assert_array_equal(got, want[:, :, first:stop])


BOTH = RowReads(((COUNT,), ((COLUMNS, 0, 1, 1),)), (4, 1))
TWO_AXES: dict[str, tuple[str, RowReads, tuple[int, int, int, int]]] = {
    "each of its own": ("output[((y * 4) + x)] = p0[((y * 4) + x)] + 1.0f;", BOTH, (3, 4, 1, 3)),
    "columns turned round": (
        "output[((y * 4) + x)] = p0[((y * 4) + 3) - x];",
        RowReads(((COUNT,), ((4, 3, 4, -1),)), (4, -1)),
        (3, 4, 1, 3),
    ),
    "all of a row": ("output[((y * 4) + x)] = p0[((y * 4) + (x / 2))];", RowReads(((COUNT,),), (4, 0)), (3, 4, 0, 4)),
}


@pytest.mark.parametrize("name", TWO_AXES)
def test_parts_of_a_row_are_tiles_too(name: str) -> None:
    statement, read, (top, bottom, left, right) = TWO_AXES[name]
    net = check_net(net_of(statement, BOTH._replace(moves=(4, 0)), read))
    given = np.random.default_rng(3).normal(size=(1, 1, ROWS, COLUMNS, 1)).astype(np.float32)
    (want,) = run_reference(net, [given])
    assert cuttable_axes(net, net.ops[0]) == (1, 2)
    (box,) = needs(net, net.ops[0], Box((0, 3, 1, 0), (1, 4, 3, 1)))
    assert (box.start[1], box.stop[1], box.start[2], box.stop[2]) == (top, bottom, left, right)
    for row, first, stop in ((0, 0, 3), (3, 1, 3), (5, 3, 4)):
        got = part_made(net, given, Box((0, row, first, 0), (1, row + 1, stop, 1)))
        np.testing.assert_array_equal(got, want[:, :, row : row + 1, first:stop])


def test_a_part_of_several_rows_has_all_of_each() -> None:
    net = net_of(TWO_AXES["each of its own"][0], BOTH, BOTH)
    tiles = {(1, 6, 1, 1): True, (1, 6, 4, 1): True, (1, 3, 1, 1): True, (1, 3, 2, 1): False, (1, 1, 2, 1): False}
    assert {parts: may_be_cut(net, net.ops[0], parts) for parts in tiles} == tiles


def codes(statement: str, *reads: RowReads) -> list[str]:
    """The code of the rows 1 to 3 and of the rows 3 to 5."""
    net = net_of(statement, *reads)
    found, attributes = rows_of(net, net.ops[0]), net.ops[0].attributes
    assert found is not None
    assert isinstance(attributes, TvmCode)
    return [part_of(attributes.code, found, Box((0, row, 0, 0), (1, row + 2, COLUMNS, 1))) for row in (1, 3)]


def test_parts_that_do_the_same_further_on_are_one_code() -> None:
    first, second = codes("output[(y * 4) + x] = p0[(y * 4) + x];", OWN, OWN)
    assert first == second
    assert "y = 0; y < 2" in first


@pytest.mark.parametrize(
    ("statement", "own", "read"),
    [
        ("output[(y * 4) + x] = p0[(y * 4) + x] + y;", APART, OWN),
        ("output[(y * 4) + x] = p0[((y >> 1) * 4) + x];", APART, HALVES),
        ("output[(y * 4) + x] = p0[y];", OWN, RowReads((), (1,))),
    ],
    ids=["a number", "a row for two", "a place in the whole"],
)
def test_parts_that_depend_on_their_place_say_it(statement: str, own: RowReads, read: RowReads) -> None:
    assert "y = 3; y < 5" in codes(statement, own, read)[1]


def test_rows_are_printed_and_read_back() -> None:
    net = net_of(KERNELS["half as many"][0], APART, HALVES)
    assert parse_net(print_net(net), {}) == net


@pytest.mark.parametrize(
    "reads",
    [
        (RowReads((((5, 0, 1, 1),),), (4,)),),
        (RowReads(),),
        (OWN, OWN, OWN),
        (OWN, RowReads((((6, 1, 2, 1),),), (4,))),
        (OWN, RowReads((((6, -1, 1, 1),),), (4,))),
        (OWN, RowReads((((6, 2, 2, 0),),), (0,))),
        (OWN, RowReads((((7, 0, 1, 0),),), (0,))),
        (OWN, RowReads((((-1, 0, 1, 0), (7, 0, 1, 0)),), (0,))),
        (OWN, RowReads(((COUNT,), (COUNT,)), (4,))),
        (OWN, RowReads((), (1, 2))),
        (RowReads((((6, 0, 2, 0),),), (4,)), OWN),
        (RowReads(((COUNT,), ((4, 0, 1, 1),), ((1, 0, 1, 1),)), (4, 1, 1)), OWN),
    ],
)
def test_rows_in_a_file_lie_within_the_tensors_and_the_loops(reads: tuple[RowReads, ...]) -> None:
    """A net from a file may state anything: no statement leads to a tile beyond its tensors or to a fault."""
    with pytest.raises(NpukitError, match="its rows are not those of its output"):
        check_net(net_of("output[(y * 4) + x] = p0[(y * 4) + x];", *reads))


def test_rows_of_other_loops_than_the_code_has_are_refused() -> None:
    net = net_of("output[(y * 4) + x] = p0[(y * 4) + x];", OWN, OWN)
    for loop in (-1, 1, 2):
        op = replace(net.ops[0], attributes=replace(net.ops[0].attributes, loop=loop))
        with pytest.raises(NpukitError, match="its rows are not"):
            check_net(replace(net, ops=(op,)))


def test_runs_of_spans() -> None:
    around = [(max(row - 1, 0), min(row + 2, 6)) for row in range(6)]
    assert runs_of(around) == ((1, 0, 2, 0), (4, 0, 3, 1), (1, 4, 6, 0))


def test_what_templates_state() -> None:
    """Elements become rows of the array; a window beyond the array is cut; a window of everything is the whole."""
    own, pairs, shifted, whole = stated_rows(
        Steps(2, ((2, 2, 0), (1, 1, 3), (0, 5, 0))), (1, 4, 2), ((8, 1), (5,), (5,))
    )
    assert own == RowReads((((4, 0, 1, 1),),), (2,))
    assert pairs == RowReads((((4, 0, 2, 2),),), (2,))
    assert shifted == RowReads((((2, 3, 4, 1), (2, 4, 5, 0)),), (1,))
    assert whole == RowReads((), (0,))
    assert stated_rows(Steps(1, (EACH,)), (1, 4, 2), ((8,),)) == ()


def test_cycles_of_a_template_are_stated_for_a_row_or_for_all() -> None:
    assert stated_cycles(Steps(4, cycles=10), SHAPE) == 3 + ROWS * 10
    assert stated_cycles(Steps(0, cycles=77), SHAPE) == 77


@pytest.mark.parametrize("cycles", [-1, (1 << 64) + 1])
def test_a_file_does_not_state_impossible_cycles(cycles: int) -> None:
    net = net_of("output[y * 4 + x] = p0[y * 4 + x];", OWN, OWN)
    attributes = replace(net.ops[0].of(TvmCode), cycles=cycles)
    with pytest.raises(NpukitError, match="its predicted cycles"):
        check_net(net.with_ops((replace(net.ops[0], attributes=attributes),)))
