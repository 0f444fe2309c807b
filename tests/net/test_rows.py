"""C divided by rows: the divisible loops, and the rows that each part reads."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from npukit.net.box import Box
from npukit.net.c_code.intervals import Interval, bounds, number
from npukit.net.c_code.rows import Rows, part_of, rows_of
from npukit.net.net import Net, Op
from npukit.net.ops import TvmCode
from npukit.net.receptive import cuttable_axes, may_be_cut, needs
from npukit.net.reference import run_reference
from npukit.net.tensor import Tensor

ROWS, COLUMNS = 6, 4


def net_of(body: str, before: str = "", shape: tuple[int, ...] = (1, ROWS, COLUMNS, 1)) -> Net:
    """A single-op net: declarations in `before`, then a loop over rows `y` of the output."""
    code = f"{before}  for (int32_t y = 0; y < {shape[1]}; ++y) {{\n{body}  }}\n"
    tensors = {"x": Tensor("x", (1, ROWS, COLUMNS, 1), "float32"), "r": Tensor("r", shape, "float32")}
    op = Op("o", TvmCode("o", code), ("x",), ("r",))
    return Net("net", ("x",), ("r",), (op,), tensors, {})


def columns(statement: str, indent: str = "    ") -> str:
    return f"{indent}for (int32_t x = 0; x < {COLUMNS}; ++x) {{\n{indent}  {statement}\n{indent}}}\n"


def rows(net: Net) -> Rows | None:
    return rows_of(net, net.ops[0])


DIVISIBLE = {
    "each row of its own": (columns("output[((y * 4) + x)] = p0[((y * 4) + x)];"), (2, 3)),
    "rows around": (
        columns("float c;")
        + columns("if ((1 <= y) && (y < 5)) {\n      c = p0[((y * 4) + x) - 4];\n    } else {\n      c = 0.0f;\n    }")
        + columns("output[((y * 4) + x)] = p0[((y / 2) * 4)] + p0[(((y + 1) % 6) * 4)];"),
        (1, 4),
    ),
    "a name for a part": ("    int32_t cse_v1 = (y * 4);\n" + columns("output[cse_v1 + x] = p0[cse_v1];"), (2, 3)),
    "half as many": (columns("output[((y * 4) + x)] = p0[((y >> 1) * 4) + x];"), (1, 2)),
    "a place that is held within bounds": (
        "    int32_t v = (int32_t)p0[0];\n    int32_t w = (0) > (v) ? (0) : (v);\n"
        + columns("output[((y * 4) + x)] = p0[((y * 4) + ((w) < (3) ? (w) : (3)))];"),
        (0, 3),
    ),
    "a place that may not fit 32 bits": (
        "    int32_t v = (int32_t)p0[0];\n    int32_t w = (0) > ((v * 4)) ? (0) : ((v * 4));\n"
        + columns("output[((y * 4) + x)] = p0[w];"),
        (0, 6),
    ),
    "a table of places": (columns("output[((y * 4) + x)] = p0[(int32_t)p0[x]];"), (0, 6)),
}


@pytest.mark.parametrize("name", DIVISIBLE)
def test_the_rows_that_a_row_is_made_of(name: str) -> None:
    body, span = DIVISIBLE[name]
    net = net_of(body)
    assert 1 in cuttable_axes(net, net.ops[0])
    (box,) = needs(net, net.ops[0], Box((0, 2, 0, 0), (1, 3, COLUMNS, 1)))
    assert (box.start[1], box.stop[1]) == span


SUM = "  float s[1];\n"
INDIVISIBLE = {
    "what is left from the row before": (SUM, columns("s[0] = s[0] + p0[x];\n    output[(y * 4) + x] = s[0];")),
    "begun by chance": (SUM, "    if (y < 3) {\n      s[0] = 0.0f;\n    }\n" + columns("output[(y * 4) + x] = s[0];")),
    "a row of another": ("", columns("output[(((5 - y) * 4) + x)] = p0[x];")),
    "columns": ("", columns("output[((x * 6) + y)] = p0[x];")),
    "the row before": ("", columns("output[(y * 4) + x] = output[0] + p0[x];")),
    "a place that is not known": ("", columns("output[(int32_t)p0[x]] = p0[x];")),
    "a name that changes": ("", "    int32_t a = 0;\n    a = 4;\n" + columns("output[(a * 4) + x] = p0[x];")),
    "a value before it": ("  int32_t a = 4;\n", columns("output[(y * 4) + x] = p0[a];")),
}


@pytest.mark.parametrize("name", INDIVISIBLE)
def test_what_is_not_divided(name: str) -> None:
    before, body = INDIVISIBLE[name]
    net = net_of(body, before)
    assert rows(net) is None
    assert cuttable_axes(net, net.ops[0]) == ()


def test_a_local_that_each_row_begins_anew() -> None:
    assert rows(net_of("    s[0] = 0.0f;\n" + columns("s[0] = s[0] + p0[x];\n    output[(y * 4) + x] = s[0];"), SUM))


OWN = "  float a[4];\n"
WORK = "  float *a = (float *)(void *)(work + 0);\n"
FILL = columns("a[x] = p0[(y * 4) + x];")
OUT = columns("output[(y * 4) + x] = a[x] + a[3 - x];")
TWICE = columns("output[(y * 4) + x] = a[x];")


@pytest.mark.parametrize("before", [OWN, WORK], ids=["on the stack", "in the workspace"])
@pytest.mark.parametrize(
    ("body", "able"),
    [
        (FILL + OUT, True),
        (columns("a[3 - x] = p0[x];") + OUT, True),
        (columns("for (int32_t z = 0; z < 2; ++z) {\n      a[(x / 2) + (z * 2)] = p0[x];\n    }") + OUT, True),
        (columns("a[x] = p0[x];\n      output[(y * 4) + x] = a[x];"), True),
        (columns("a[x] = p0[x];\n      output[(y * 4) + x] = a[3 - x];"), False),
        (columns("a[x / 2] = p0[x];") + OUT, False),
        (columns("a[x * 2] = p0[x];") + TWICE, False),
        (columns("if (x < 3) {\n        a[x] = p0[x];\n      }") + OUT, False),
        (columns("a[x] = a[x] + p0[x];") + OUT, False),
        (columns("a[x] = p0[x];", "    ").replace("x = 0", "x = 1") + OUT, False),
        (columns("for (int32_t z = 0; z < 2; ++z) {\n a[x] = p0[z];\n }\n output[(y * 4) + x] = a[3 - x];"), False),
        (OUT + FILL, False),
    ],
)
def test_an_array_of_several_elements_that_each_row_begins_anew(before: str, body: str, able: bool) -> None:
    """A row reads only elements of `a` written by the same row, so values from the row before do not matter."""
    assert (rows(net_of(body, before)) is not None) == able


def part_made(net: Net, given: np.ndarray, output: Box) -> np.ndarray:
    """The output of a part's code, run on the part's share of the input."""
    found, op = rows(net), net.ops[0]
    assert found is not None
    (box,) = needs(net, op, output)
    assert box == found.box("p0", net.tensor("x").shape, output)
    assert isinstance(op.attributes, TvmCode)
    begins = {"output": found.steps(output)[0]} | ({"p0": found.begin("p0", box)} if "p0" in found.places else {})
    code = part_of(op.attributes.code, found, *found.steps(output), begins)
    tensors = {"x": Tensor("x", box.shape, "float32"), "r": Tensor("r", output.shape, "float32")}
    part = replace(net, ops=(replace(op, attributes=TvmCode("o", code)),), tensors=tensors)
    return run_reference(part, [given[:, *map(slice, box.start, box.stop)]])[0]


def test_parts_make_what_the_whole_makes() -> None:
    """Runs each part in turn, on arrays that begin at the part's first row."""
    body = columns("output[((y * 4) + x)] = p0[((y * 4) + x)] + p0[(((y >> 1) * 4) + x)];")
    net, given = net_of(body), np.arange(24, dtype=np.float32).reshape(1, 1, ROWS, COLUMNS, 1)
    (want,) = run_reference(net, [given])
    for first, stop in ((0, 2), (2, 5), (5, 6)):
        got = part_made(net, given, Box((0, first, 0, 0), (1, stop, COLUMNS, 1)))
        np.testing.assert_array_equal(got, want[:, :, first:stop])


TWO_AXES = {
    "each of its own": (columns("output[((y * 4) + x)] = p0[((y * 4) + x)] + 1.0f;"), (3, 4, 1, 3)),
    "half as many rows": (columns("output[((y * 4) + x)] = p0[((y >> 1) * 4) + x];"), (1, 2, 1, 3)),
    "two columns for each": (columns("output[((y * 4) + x)] = p0[(y * 4) + ((x / 2) * 3)];"), (3, 4, 0, 4)),
    "columns turned round": (columns("output[((y * 4) + x)] = p0[((y * 4) + 3) - x];"), (3, 4, 1, 3)),
    "two rows, all of each": (
        columns("output[((y * 4) + x)] = p0[((y / 2) * 4) + x] + p0[(((y / 2) + 1) * 4) + x];"),
        (1, 3, 0, 4),
    ),
    "the first two columns alone": (columns("output[((y * 4) + x)] = p0[((y * 4) + (x / 2))];"), (3, 4, 0, 4)),
}


@pytest.mark.parametrize("name", TWO_AXES)
def test_parts_of_a_row_are_tiles_too(name: str) -> None:
    """An input is cut along the second axis if each step reads a single row of it and all steps of a row read the whole
    row."""
    body, (top, bottom, left, right) = TWO_AXES[name]
    net, given = net_of(body), np.random.default_rng(3).normal(size=(1, 1, ROWS, COLUMNS, 1)).astype(np.float32)
    (want,) = run_reference(net, [given])
    assert cuttable_axes(net, net.ops[0]) == (1, 2)
    (box,) = needs(net, net.ops[0], Box((0, 3, 1, 0), (1, 4, 3, 1)))
    assert (box.start[1], box.stop[1], box.start[2], box.stop[2]) == (top, bottom, left, right)
    for row, first, stop in ((0, 0, 3), (3, 1, 3), (5, 3, 4)):
        got = part_made(net, given, Box((0, row, first, 0), (1, row + 1, stop, 1)))
        np.testing.assert_array_equal(got, want[:, :, row : row + 1, first:stop])


def test_a_part_of_several_rows_has_all_of_each() -> None:
    net = net_of(TWO_AXES["each of its own"][0])
    tiles = {(1, 6, 1, 1): True, (1, 6, 4, 1): True, (1, 3, 1, 1): True, (1, 3, 2, 1): False, (1, 1, 2, 1): False}
    assert {parts: may_be_cut(net, net.ops[0], parts) for parts in tiles} == tiles


@pytest.mark.parametrize(
    ("text", "least", "most"),
    [
        ("a + 2 * b", 0, 19),
        ("a - b", -9, 3),
        ("-(a) / 2", -1, 0),
        ("(a - b) >> 1", -5, 1),
        ("b % 4", 0, 3),
        ("a % 4", 0, 3),
        ("((int64_t)a) * (int64_t)3", 0, 9),
    ],
)
def test_bounds(text: str, least: int, most: int) -> None:
    known = {"a": Interval(np.array([0]), np.array([3])), "b": Interval(np.array([0]), np.array([9]))}
    got = bounds(text, {**known, "b": Interval(np.array([0]), np.array([8 if "2 *" in text else 9]))}, 1)
    assert got is not None
    assert (int(got.low[0]), int(got.high[0])) == (least, most)


@pytest.mark.parametrize("text", ["a ? 1 : 2", "p0[a]", "a & 3", "(int8_t)a", "unknown", "(a - 5) % 4", "7 / a", "a <"])
def test_what_has_no_bounds(text: str) -> None:
    assert bounds(text, {"a": number(1, 1)} if text != "7 / a" else {"a": number(0, 1)}, 1) is None


ALIKE = "    int32_t cse_v1 = (y * 4);\n" + columns("output[(cse_v1 + x)] = p0[((y * 4) + x)] + p1[(x / 2)];")


def made_of(body: str, first: int, begins: dict[str, int]) -> str:
    code = net_of(body).ops[0].attributes.code  # pyright: ignore[reportAttributeAccessIssue]
    known = Rows(1, ROWS, {}, {}, {"output": COLUMNS, "p0": COLUMNS}, "y")
    return part_of(code, known, first, first + 2, begins)


def test_parts_that_do_the_same_a_row_on_are_one_code() -> None:
    first, second = (made_of(ALIKE, row, {"output": row, "p0": row}) for row in (0, 3))
    assert first == second


@pytest.mark.parametrize(
    ("body", "begins"),
    [
        (ALIKE, {"output": 3, "p0": 2}),
        (ALIKE.replace("p1[(x / 2)]", "p1[y]"), {"output": 3, "p0": 3}),
        (ALIKE.replace("p1[(x / 2)]", "p1[(y / 2)]"), {"output": 3, "p0": 3}),
        (ALIKE.replace("p1[(x / 2)]", "(float)y"), {"output": 3, "p0": 3}),
        (ALIKE.replace("p1[(x / 2)]", "p1[(int32_t)p0[y]]"), {"output": 3, "p0": 3}),
        ("    if (y < 2) {\n      output[(y * 4)] = 0.0f;\n    }\n", {"output": 3}),
        (columns("output[((y * 4) + x)] = p0[((y % 3) * 4) + x];"), {"output": 3}),
    ],
    ids=["rows around", "a constant by rows", "a row for two", "a number", "a table", "a choice", "rows in turn"],
)
def test_parts_that_depend_on_their_place_say_it(body: str, begins: dict[str, int]) -> None:
    assert "int32_t y = 3; y < 5" in made_of(body, 3, begins)


COLUMNS_FIRST = """  float s[1];
  for (int32_t x = 0; x < 4; ++x) {
    for (int32_t y = 0; y < 6; ++y) {
      s[0] = p0[((y * 4) + x)];
      output[((y * 4) + x)] = s[0] + 1.0f;
    }
  }
"""


def with_code(code: str) -> Net:
    net = net_of("")
    return replace(net, ops=(replace(net.ops[0], attributes=TvmCode("o", code)),))


def test_a_loop_over_rows_may_lie_in_others() -> None:
    """A layout with the loop over columns outside and the loop over rows inside."""
    net, given = with_code(COLUMNS_FIRST), np.arange(24, dtype=np.float32).reshape(1, 1, ROWS, COLUMNS, 1)
    found = rows(net)
    assert found is not None
    assert (found.loop, found.places["p0"][2]) == ("y", (2, 3))
    code = part_of(COLUMNS_FIRST, found, 2, 5, {"output": 2, "p0": 2})
    small = {name: Tensor(name, (1, 3, COLUMNS, 1), "float32") for name in "xr"}
    part = replace(net, ops=(replace(net.ops[0], attributes=TvmCode("o", code)),), tensors=small)
    (got,) = run_reference(part, [given[:, :, 2:5]])
    np.testing.assert_array_equal(got, given[:, :, 2:5] + 1)


@pytest.mark.parametrize(
    "between",
    ["    s[0] = 0.0f;\n    for", "    for (int32_t z = 0; z < 1; ++z) {\n    }\n    for"],
)
def test_a_loop_that_is_not_alone_in_another_is_not_divided(between: str) -> None:
    assert rows(with_code(COLUMNS_FIRST.replace("    for", between, 1))) is None
