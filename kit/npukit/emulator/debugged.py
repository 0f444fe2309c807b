"""The built-in emulator with a debugger attached to a PE."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from npukit.board.board import Board
from npukit.board.cores import CORES, CORTEX_M
from npukit.emulator.builtin import Emulator
from npukit.emulator.fault_plan import FaultPlan
from npukit.emulator.faults import CoreFault
from npukit.emulator.gdb import GdbOrder, GdbServer, Signal
from npukit.emulator.waiting import Senders
from npukit.errors import NpukitError
from npukit.project.images.image import Image

_SECONDS_BETWEEN_LOOKS = 0.1


@dataclass(frozen=True)
class Debugger:
    """gdb, attached to a PE through a local port."""

    pe: int
    port: int


class DebuggedEmulator(Emulator):
    """An emulator that waits for gdb before the first cycle, and halts at gdb's request. All PEs halt together. After
    gdb disconnects, the run goes on without gdb."""

    def __init__(
        self,
        board: Board,
        images: Sequence[Image],
        models: Mapping[str, Path] | None,
        dram: bytes,
        debugger: Debugger,
        *,
        chips: Sequence[int] = (0,),
        plan: FaultPlan | None = None,
        senders: Senders | None = None,
    ) -> None:
        core = CORES[board.cpu_of(debugger.pe)]
        if core.architecture is not CORTEX_M:
            raise NpukitError(f"the built-in emulator shows gdb no {core.title}", tries=["no --gdb"])
        self._pe = self._debugged = debugger.pe
        self._breakpoints: set[int] = set()
        self._gdb = GdbServer(debugger.port, self)
        self.port = self._gdb.port
        try:
            super().__init__(board, images, models, dram, chips=chips, strict=True, plan=plan, senders=senders)
        except BaseException:
            self._gdb.close()
            raise

    def close(self) -> None:
        self._gdb.close()
        super().close()

    def registers(self) -> list[int]:
        """r0-r12, sp, lr, pc, xpsr, fpscr, s0-s31."""
        return self._registers(self._pe)

    def set_register(self, number: int, value: int) -> None:
        self._worker.ask("set_register", pe=self._pe, number=number, value=value)

    def memory(self, address: int, size: int) -> bytes | None:
        """Bytes of the PE's SRAM. None outside memory."""
        try:
            return self.read_memory(self._pe, address, size)
        except NpukitError:
            return None

    def set_memory(self, address: int, data: bytes) -> bool:
        """Write the PE's SRAM. False outside memory."""
        try:
            self.write_memory(self._pe, address, data)
        except NpukitError:
            return False
        return True

    def set_breakpoint(self, address: int, on: bool) -> None:
        self._worker.ask("breakpoint", address=address, on=on)
        (self._breakpoints.add if on else self._breakpoints.discard)(address)

    def _run(self, until: int | None, *, stop_at_output: bool, seconds: float) -> str:
        try:
            outcome = super()._run(until, stop_at_output=stop_at_output, seconds=min(seconds, _SECONDS_BETWEEN_LOOKS))
        except CoreFault as fault:
            if fault.pe == self._pe:
                self._stand_still(Signal.FAULT)
            raise
        if outcome == "stop":
            self._stand_still(Signal.TRAP)
            return "time"
        self._patience.answered(self._now)  # the user's time in the debugger does not count
        if self._gdb.interrupts():
            self._stand_still(Signal.INTERRUPT)
        return outcome

    def _stand_still(self, why: Signal) -> None:
        """Halt until gdb resumes the run."""
        order = self._gdb.serve(why)
        if order is GdbOrder.LEAVE:
            for address in list(self._breakpoints):
                self.set_breakpoint(address, on=False)
        self._worker.ask("resume", step=order is GdbOrder.STEP)
