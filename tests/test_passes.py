"""Each pass from text to text, and the net around the op named in an error.

`passes/NAME.txt` holds the input of the pass NAME and, below a line of dashes, the expected output. The first lines may
name a board other than `pe-mesh`, or set `strict`.
"""

from __future__ import annotations

import numpy as np
import pytest

from helpers import CHECKOUT
from npukit.accel.engines import plugins_of, with_core
from npukit.board.board import load_board
from npukit.errors import NpukitError
from npukit.net.check import check_net
from npukit.net.net import Net
from npukit.net.parse import parse_net
from npukit.net.reference import run_reference
from npukit.net.text import print_net
from npukit.passes import PLACING, SIMPLIFYING, Pass, PassOptions, run_passes

PASSES = {each.name: each for each in (*SIMPLIFYING, *PLACING)}
"""All passes except those of plug-ins, which tests/accel/test_own_passes.py covers."""
TEXTS = CHECKOUT / "tests/passes"
DASHES = "-" * 8 + "\n"


def given(name: str) -> tuple[Net, PassOptions, str]:
    """The input net, the pass options and the expected output."""
    before, _, after = (TEXTS / f"{name}.txt").read_text().partition(DASHES)
    head, start, net = before.partition("net ")
    board = next((CHECKOUT / line[7:] for line in head.splitlines() if line.startswith("board: ")), "pe-mesh")
    engines = with_core(plugins_of(load_board(str(board))))
    return check_net(parse_net(start + net, {})), PassOptions(engines, slower_too=True, strict="strict" in head), after


def made(one: Pass, net: Net, options: PassOptions) -> str:
    try:
        return print_net(run_passes(net, (one,), options))
    except NpukitError as error:
        return "\n".join((f"error: {error.message}", *error.facts, *(f"try: {each}" for each in error.tries), ""))


@pytest.mark.parametrize("name", PASSES)
def test_text_to_text(name: str) -> None:
    net, options, after = given(name)
    assert made(PASSES[name], net, options) == after
    assert after != print_net(net)


@pytest.mark.parametrize("name", [name for name in PASSES if name != "strict"])
def test_a_pass_changes_no_number(name: str) -> None:
    net, options, _ = given(name)
    random = np.random.default_rng(1)
    inputs = [random.integers(-99, 99, net.tensor(each).shape).astype(net.tensor(each).dtype) for each in net.inputs]
    found = check_net(run_passes(net, (PASSES[name],), options))
    for got, want in zip(run_reference(found, inputs), run_reference(net, inputs), strict=True):
        np.testing.assert_array_equal(got, want)


def test_names_of_passes_are_unique() -> None:
    assert len(PASSES) == len(SIMPLIFYING) + len(PLACING)
    assert {path.stem for path in TEXTS.iterdir()} == set(PASSES)


def test_all_passes_in_their_order() -> None:
    net, options, _ = given("place")
    lines = print_net(run_passes(net, (*SIMPLIFYING, *PLACING), options)).splitlines()
    assert lines[2].endswith("conv2d(x, w) on mac_array")
    only = PassOptions(options.engines, only="cpu")
    assert '= conv2d(x, w) on cpu because "--engine cpu"' in print_net(run_passes(net, PLACING, only))
