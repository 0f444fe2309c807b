"""Several frames at once: every frame's outputs and every tile on every PE, bit for bit."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from end_to_end.builds import DIGITS, shared_build
from helpers import models
from npukit import api
from npukit.emulator.builtin import Emulator
from npukit.link.messages import DRAM_PE
from npukit.link.session import Session
from npukit.measure.golden import golden
from npukit.measure.validate import run_case


@pytest.mark.exhaustive
def test_replicas_take_a_round_of_frames_and_give_them_back_in_order(tmp_path: Path) -> None:
    """More cases than a round has frames, and not a multiple of a round."""
    built = shared_build(DIGITS / "digits_int8.tflite", tmp_path / "out", pes=4, objective="throughput")
    frames = built.plan().frames
    assert frames >= 4
    with np.load(DIGITS / "digits.npz") as file:
        images = file["in0"][: 3 * frames - 1]
    np.savez(tmp_path / "images.npz", in0=images)
    shared_build(DIGITS / "digits_int8.tflite", tmp_path / "one", pes=1)
    (together,) = api.run(tmp_path / "out", inputs=tmp_path / "images.npz")
    (alone,) = api.run(tmp_path / "one", inputs=tmp_path / "images.npz")
    assert np.array_equal(together, alone)
    found = api.validate(tmp_path / "out", inputs=tmp_path / "images.npz")
    assert found.passed, found.mismatches
    measured, single = api.bench(tmp_path / "out"), api.bench(tmp_path / "one")
    assert measured.interval_cycles is not None
    assert single.interval_cycles is not None
    assert measured.interval_cycles < single.interval_cycles / 3
    assert abs(measured.interval_cycles - built.plan().predicted.interval_cycles) < 0.1 * measured.interval_cycles


def test_what_one_pe_cannot_hold_is_streamed_from_dram(tmp_path: Path) -> None:
    built = shared_build(models() / "ad01_int8.tflite", tmp_path / "out", pes=1)
    assert built.dram()
    found = api.validate(tmp_path / "out", inputs=models() / "ad01_int8.npz", expect="out0_tflm")
    assert found.passed, found.mismatches


def test_the_host_fills_the_dram_of_a_board_that_nobody_has_loaded(tmp_path: Path) -> None:
    built = shared_build(models() / "ad01_int8.tflite", tmp_path / "out", pes=1)
    dram, net = built.dram(), built.net()
    assert dram
    cases = golden(net).cases
    with Emulator(built.board, built.images()) as board, Session(board, built.build_id) as session:
        assert not np.array_equal(run_case(session, net, cases, 0, observe=False)[0], cases.expected[0][0])
        session.write_memory(0, dram, DRAM_PE)
        assert session.read_memory(1000, 5000, DRAM_PE) == dram[1000:6000]
        assert np.array_equal(run_case(session, net, cases, 0, observe=False)[0], cases.expected[0][0])
