"""An emulated board with flash: it boots alone, restarts, and can lose power at any step."""

from __future__ import annotations

from enum import IntEnum
from pathlib import Path

from npukit.board.board import Board
from npukit.boot.loader import flash_of
from npukit.emulator.builtin import Emulator
from npukit.errors import NpukitError


class Cause(IntEnum):
    """Causes of a board's start: hardware manual, section 7.1."""

    POWER = 0
    LINE_BREAK = 1
    RESTART = 2
    WATCHDOG = 3


_CAUSES = {"restart": Cause.RESTART, "watchdog": Cause.WATCHDOG}
"""Cause of a restart by the board itself, by the outcome of the emulator's run."""


class FlashedBoard(Emulator):
    """A board that boots from the flash in `file`. The file keeps the board's changes, however the process ends. A
    missing file is created: an erased flash with `loader` at the beginning. Each start of the board resets the time."""

    def __init__(
        self, board: Board, file: Path, loader: bytes | None = None, models: dict[str, Path] | None = None
    ) -> None:
        flash = flash_of(board)
        self._file = file
        self.has_power = True
        if loader is not None and not file.exists():
            file.write_bytes(loader.ljust(flash.bytes, b"\xff"))
        if not file.is_file() or file.stat().st_size != flash.bytes:
            fact = f"{file} is not the flash of this board, which has {flash.bytes} bytes"
            raise NpukitError(fact, tries=[f"remove {file}"])
        figures = {**flash.model_dump(exclude={"slot_bytes"}), "bytes": flash.bytes}
        self._flash = {"file": str(file.resolve()), "figures": figures}
        super().__init__(board, (), models)

    def restart(self) -> None:
        """Send a break on the line, after which the loader listens to the host."""
        self._begin(Cause.LINE_BREAK)

    def power_on(self) -> None:
        """Switch the power off, if on, and on again."""
        self._begin(Cause.POWER)

    def cut_power(self, operation: int, chance: int = 0) -> None:
        """Cut the power in the midst of a flash operation (1: the next). `chance` selects the contents left behind."""
        self._worker.ask("cut_power", operation=operation, chance=chance)

    def flash(self) -> bytes:
        return self._file.read_bytes()

    def write(self, data: bytes) -> None:
        if self.has_power:
            super().write(data)

    def _begin(self, cause: Cause) -> None:
        self.has_power = True
        self._output = b""
        self._worker.ask("restart", cause=cause)

    def _run(self, until: int | None, *, stop_at_output: bool, seconds: float) -> str:
        if not self.has_power:
            return "idle"
        outcome = super()._run(until, stop_at_output=stop_at_output, seconds=seconds)
        if cause := _CAUSES.get(outcome):
            self._worker.ask("restart", cause=cause)
        return outcome

    def _survived(self, outcome: str) -> str:
        self.has_power = outcome != "power cut"
        return outcome
