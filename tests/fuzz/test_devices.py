"""Verbs on devices with false replies: possible figures, or an error that quotes the reply."""

from __future__ import annotations

from pathlib import Path

import pytest
from typer.testing import CliRunner

from end_to_end.builds import DIGITS, shared_build
from fuzz.devices import Liar, fault_in, lying, outcome, verbs, words_of
from npukit.cli.main import app
from npukit.link.messages import ReadCounters, ReadLayers, ReadPes, Run

MODEL = DIGITS / "digits_int8.tflite"
COUNTED = {Run.kind: 8, ReadCounters.kind: 0, ReadPes.kind: 16}
"""Offsets of counters in the answers with counters."""


@pytest.fixture(scope="module")
def digits(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return shared_build(MODEL, tmp_path_factory.mktemp("digits") / "out", pes=4).folder


def told(build: Path, folder: Path, verb: str, kinds: set[int], first: int, word: int, count: int = 24) -> str:
    command = next(each for each in verbs(build, folder) if each[0] == verb)
    with lying(lambda board: Liar(board, kinds, "payload", words_of(word, first, count))):
        done = CliRunner().invoke(app, command)
    assert fault_in(done) == ""
    return done.output


def test_a_board_that_counts_nothing_has_no_cycles(digits: Path, tmp_path: Path) -> None:
    assert "which counts no cycles" in told(digits, tmp_path, "bench", {ReadCounters.kind}, 0, 0)


def test_frames_that_take_no_cycles_are_an_error(digits: Path, tmp_path: Path) -> None:
    assert "0 cycles for a frame" in told(digits, tmp_path, "bench", {Run.kind}, 8, 0)


@pytest.mark.parametrize("verb", ["bench", "monitor"])
@pytest.mark.parametrize("kind", COUNTED)
def test_counters_of_all_ones_are_an_error(kind: int, verb: str, digits: Path, tmp_path: Path) -> None:
    output = told(digits, tmp_path, verb, {kind}, COUNTED[kind], 0xFFFF_FFFF)
    assert ("no core counts" in output) == (verb == "bench" or kind != Run.kind)


@pytest.mark.exhaustive
def test_more_sleep_than_time_is_an_error(digits: Path, tmp_path: Path) -> None:
    assert "of them asleep" in told(digits, tmp_path, "monitor", {ReadCounters.kind}, 20, 0xFFFF, 4)
    assert "of them asleep" in told(digits, tmp_path, "bench", {ReadLayers.kind}, 12, 0xFFFF_FFFE, 4)


@pytest.mark.parametrize("verb", ["bench", "monitor"])
def test_pes_that_come_twice_are_an_error(verb: str, digits: Path, tmp_path: Path) -> None:
    """The first PE of each packet has another PE's number."""
    assert "says that its PEs are" in told(digits, tmp_path, verb, {ReadPes.kind}, 0, 1, 4)


@pytest.mark.parametrize("number", range(4))
def test_a_few_lies(number: int, digits: Path, tmp_path: Path) -> None:
    assert outcome(digits, tmp_path, number)[1] == ""
