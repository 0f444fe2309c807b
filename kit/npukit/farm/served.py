"""The board behind a server: a build, its target, and a session, opened at the first request."""

from __future__ import annotations

import socket
from collections.abc import Sequence
from contextlib import ExitStack
from functools import cached_property
from math import ceil
from pathlib import Path
from typing import Any

import numpy as np

from npukit.boot.maker import check_maker
from npukit.emulator.here import usual
from npukit.errors import NpukitError
from npukit.farm.trial import run_trial
from npukit.farm.trials import unpacked
from npukit.link.flash_port import open_board, update_of
from npukit.link.programmer import program
from npukit.link.update import flash
from npukit.measure.bench import bench
from npukit.measure.cases import Cases, load_cases
from npukit.measure.target import EMULATORS, Target, open_target
from npukit.measure.validate import run_case
from npukit.net.net import Net
from npukit.net.tensor import Tensor
from npukit.progress import Silent
from npukit.project.build_folder import GOLDEN, Build, load_build

MOST_FRAMES = 1 << 20
"""Most frames of a request."""


class ServedBoard:
    """A build on a board, which stays reserved until `close`."""

    def __init__(self, folder: Path, on: str | None) -> None:
        self._folder = folder
        self._on = on
        self._open = ExitStack()

    def describe(self) -> dict[str, Any]:
        """Facts for clients about the network and its board."""
        net, board = self._net, self._build.board
        return {
            "model": net.name,
            "board": board.name,
            "build_id": self._build.manifest.build_id,
            "host": socket.gethostname(),
            "on": self._on or usual(board),
            "clock_hz": board.core.clock_hz,
            "inputs": [_description(net.tensor(name)) for name in net.inputs],
            "outputs": [_description(net.tensor(name)) for name in net.outputs],
        }

    def run(self, inputs: Sequence[np.ndarray]) -> list[np.ndarray]:
        """Run a frame."""
        return run_case(self._target.session, self._net, self._case(inputs), 0, observe=False)

    def reset(self) -> None:
        """Reset the network's states, kept between frames."""
        self._target.session.reset_states()

    def close(self) -> None:
        """Release the board."""
        self._open.close()

    def time(self, inputs: Sequence[np.ndarray], number: int, repeat: int, least_seconds: float) -> list[float]:
        """Seconds a frame by the board's clock: `repeat` averages over `number` frames, each alone on the board. An
        average takes more frames if `number` frames take less than `least_seconds`."""
        if not self._target.counts_cycles:
            raise NpukitError(f"{self._target.name} counts no cycles", tries=["--on emulator", "--on a device"])
        case = self._case(inputs)
        once = self._seconds(case)
        frames = max(number, ceil(least_seconds / once)) if once else number
        _check_frames(frames * repeat)
        return [sum(self._seconds(case) for _ in range(frames)) / frames for _ in range(repeat)]

    def bench(self, frames: int) -> dict[str, Any]:
        """The JSON of `npukit bench` over `frames` frames."""
        _check_frames(frames)
        clock = self._build.board.core.clock_hz
        golden = load_cases(self._folder / GOLDEN, self._net, None)
        return bench(self._target, self._net, self._build.plan(), golden, clock, frames, Silent()).to_json()

    def trial(self, archive: bytes) -> dict[str, Any]:
        """Measure another build for the same board. A device is flashed with this build first."""
        self._open.close()
        self.__dict__.pop("_target", None)
        with unpacked(archive) as build:
            if build.board.name != self._build.board.name:
                raise NpukitError(f"the build is for {build.board.name}, this board is a {self._build.board.name}")
            if self._on not in (None, *EMULATORS):
                _write_onto(build, self._on)
            return run_trial(build, self._on).to_json()

    @cached_property
    def _build(self) -> Build:
        return load_build(self._folder)

    @cached_property
    def _net(self) -> Net:
        return self._build.net()

    @cached_property
    def _target(self) -> Target:
        return self._open.enter_context(open_target(self._build, self._on))

    def _case(self, inputs: Sequence[np.ndarray]) -> Cases:
        checked = []
        for index, array in enumerate(inputs):
            tensor = self._net.tensor(self._net.inputs[index])
            if str(array.dtype) != tensor.dtype or array.size != tensor.elements:
                raise NpukitError(
                    f"input {index} is {array.dtype} {array.shape}, the network takes {tensor.dtype} {tensor.shape}"
                )
            checked.append(array.reshape(1, *tensor.shape))
        return Cases(tuple(checked), {})

    def _seconds(self, case: Cases) -> float:
        """Seconds of a frame by the board's clock."""
        for index, array in enumerate(case.inputs):
            self._target.session.write_input(index, array[0].tobytes())
        return self._target.session.run().cycles / self._build.board.core.clock_hz


def _write_onto(build: Build, port: str) -> None:
    """Flash a device: unsigned through npukit's loader, if it accepts any image, or with the board's programmer."""
    check_maker(build)
    if build.board.programmer:
        program(build, port, Silent(), dry_run=False)
        return
    with open_board(build, port, None, Silent()) as transport:
        flash(transport, update_of(build, None, "0.0.0", may_be_older=True))


def _check_frames(frames: int) -> None:
    if not 0 < frames <= MOST_FRAMES:
        raise NpukitError(f"a request is of 1 to {MOST_FRAMES:,} frames, not {frames:,}")


def _description(tensor: Tensor) -> dict[str, Any]:
    return {"name": tensor.name, "shape": list(tensor.shape), "dtype": tensor.dtype}
