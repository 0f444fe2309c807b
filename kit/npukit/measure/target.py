"""Targets of a build: the built-in emulator, also with RTL, Renode, QEMU, or a device on a serial port."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from npukit.board.board import Board
from npukit.emulator.builtin import Compared, Emulator
from npukit.emulator.debugged import DebuggedEmulator, Debugger
from npukit.emulator.fault_plan import FaultPlan
from npukit.emulator.here import usual
from npukit.emulator.qemu import QemuMachine
from npukit.emulator.renode.machine import RenodeMachine
from npukit.emulator.renode.render import Dram
from npukit.emulator.rtl import Waves, rtl_libraries
from npukit.emulator.waiting import Senders
from npukit.errors import NpukitError
from npukit.link.companions import CompanionSession, SharedLink
from npukit.link.messages import DRAM_PE, LINKED_PE, Counters
from npukit.link.session import ANSWER_SECONDS, Session
from npukit.link.transport import Transport
from npukit.link.transports import open_serial
from npukit.plan.ir.plan import Plan
from npukit.progress import SILENT, Progress
from npukit.project.build_folder import Build

EMULATED_SECONDS = 3600.0
"""Seconds for an answer of the built-in emulator, as a limit for machines that are too slow. The emulator itself
detects that nothing more can come, or that the board has taken too many of its cycles (`emulator/patience.py`)."""

PROGRAM_SECONDS = 120.0
"""Seconds for an answer of Renode and QEMU. Renode's cores take turns, and a busy machine is slow."""

_PATIENT_SECONDS = 86_400.0
"""Seconds for an answer while a debugger stops the firmware."""


C_MODELS, RTL = "emulator", "rtl"
"""The built-in emulator: with C models alone, and with accelerators and network in RTL beside the models."""

EMULATORS = (C_MODELS, RTL, "renode", "qemu")


@dataclass(frozen=True)
class Target:
    """A running build with the session."""

    name: str
    session: Session
    board: Board
    emulator: Emulator | None = None
    """The built-in emulator, if the target is one. It can set the next frames' schedule, and values in memory."""

    @cached_property
    def counts_cycles(self) -> bool:
        """True if the target's counter counts cycles. QEMU's timer ticks with the instructions. In Renode, a PE that
        waits for another PE waits for its turn.

        QEMU may also be at the other end of a line: the firmware of its boards counts instructions only there. Counters
        of a board without any are 0.
        """
        if self.name == "renode":
            return self.session.device.pe_count == 1
        counts = self._counters.cycles > 0
        return counts and (self.board.qemu is None or not self.counts_instructions)

    @cached_property
    def counts_instructions(self) -> bool:
        """True if the board counts instructions: a mesh, and a stock board on QEMU."""
        return self._counters.instructions > 0

    @cached_property
    def _counters(self) -> Counters:
        return self.session.counters()

    @property
    def in_rtl(self) -> Compared | None:
        """The work of the RTL so far. None without RTL."""
        return self.emulator.compared() if self.emulator and self.name == RTL else None

    @property
    def unit(self) -> str:
        """The unit of the board's counter."""
        return "cycles" if self.counts_cycles else "ticks"


@dataclass(frozen=True)
class Emulation:
    """Options of the built-in emulator. `strict`: slower checks of memory. `races`: look for races too. `faults`: a
    plan of faults."""

    strict: bool = False
    races: bool = True
    faults: FaultPlan | None = None
    debugger: Debugger | None = None
    waves: Waves | None = None
    """Waveforms of accelerators in RTL."""


@contextmanager
def open_target(
    build: Build, on: str | None = None, emulation: Emulation = Emulation(), progress: Progress = SILENT
) -> Iterator[Target]:
    """Start the build on `on`, by default the board's first installed emulator, and shake hands."""
    name = on or usual(build.board)
    transport = start(build, name, emulation, progress)
    try:
        with Session(transport, build.build_id, _patience(name, emulation), network_pe(build)) as session:
            _fill_dram(build, name, session)
            yield Target(name, session, build.board, transport if isinstance(transport, Emulator) else None)
    finally:
        transport.close()


def _patience(name: str, emulation: Emulation) -> float:
    if emulation.debugger:
        return _PATIENT_SECONDS
    seconds = {C_MODELS: EMULATED_SECONDS, RTL: EMULATED_SECONDS, "renode": PROGRAM_SECONDS, "qemu": PROGRAM_SECONDS}
    return seconds.get(name, ANSWER_SECONDS)


@contextmanager
def open_targets(
    builds: Mapping[str, Build],
    on: str | None = None,
    emulation: Emulation = Emulation(),
    progress: Progress = SILENT,
) -> Iterator[dict[str, Target]]:
    """Start networks side by side on a shared board and link, and shake hands with each in a separate session."""
    build = next(iter(builds.values()))
    name = on or usual(build.board)
    transport = start(build, name, emulation, progress)
    try:
        link, targets = SharedLink(transport), dict[str, Target]()
        for network, each in builds.items():
            session = CompanionSession(link.line(), each.build_id, _patience(name, emulation), network_pe(each))
            session.open()
            emulator = transport if isinstance(transport, Emulator) else None
            targets[network] = Target(name, session, each.board, emulator)
        _fill_dram(build, name, next(iter(targets.values())).session)
        yield targets
    finally:
        transport.close()


def network_pe(build: Build) -> int:
    """The PE that answers sessions with the build's network."""
    linked = build.board.root_pe
    coresident = build.manifest.coresident
    return coresident.network_pe if coresident and coresident.network_pe != linked else LINKED_PE


def _fill_dram(build: Build, name: str, session: Session) -> None:
    """Write the DRAM over the link. Emulators with a DRAM start with the contents."""
    data = build.dram() if name not in EMULATORS else None
    for chip in build.manifest.chips if data else ():
        session.write_memory(0, data or b"", DRAM_PE + chip)


def start(build: Build, name: str, emulation: Emulation = Emulation(), progress: Progress = SILENT) -> Transport:
    """Start the build on an emulator, or open the line to a device with the build."""
    if name != C_MODELS and (emulation.faults or emulation.debugger):
        raise NpukitError(f"--faults and --gdb are for the built-in emulator, not for {name}", tries=["--on emulator"])
    if name != RTL and emulation.waves:
        raise NpukitError(f"--waves is for accelerators in RTL, not for {name}", tries=["--on rtl"])
    if name not in EMULATORS:
        return open_serial(name, build.board.uart, progress)
    _refuse_what_only_others_run(build, name)
    if name == "qemu":
        first, *others = sorted(build.images(), key=lambda image: image.pes)
        return QemuMachine(build.board, first.elf, [image.elf for image in others])
    if name == "renode":
        data = build.dram()
        return RenodeMachine(build.board, build.images(), Dram(data, build.manifest.chips) if data else None)
    waves = emulation.waves is not None
    rtl = rtl_libraries(build.board, build.rtl(), progress, waves=waves) if name == RTL else None
    return _built_in(build, emulation, rtl)


def _refuse_what_only_others_run(build: Build, name: str) -> None:
    """Raise an error if the emulator does not support the board, or no emulator supports its accelerator."""
    if build.only_on_hardware:
        raise NpukitError(
            f"only hardware runs this build: {build.only_on_hardware} has no model for emulators",
            tries=["--on serial", "npukit export BUILD -o LIBRARY, for the firmware of a board that has it"],
        )
    if (C_MODELS if name == RTL else name) not in build.board.runs_on:
        raise NpukitError(
            f"board {build.board.name} does not run on {name}",
            tries=[f"--on {other}" for other in build.board.runs_on],
        )


def _built_in(build: Build, emulation: Emulation, rtl: Mapping[str, Path] | None) -> Transport:
    parts = build.board, build.images(), build.models(), build.dram() or b""
    senders = {key: pes for plan in build.plans() for key, pes in senders_of(plan).items()}
    chips = build.manifest.chips
    if emulation.debugger:
        return DebuggedEmulator(*parts, emulation.debugger, chips=chips, plan=emulation.faults, senders=senders)
    pe = network_pe(build)
    return Emulator(
        *parts,
        chips=chips,
        rtl=rtl,
        waves=emulation.waves,
        layers=[op.name for op in build.net().ops] if rtl and not build.manifest.coresident else (),
        strict=emulation.strict,
        races=emulation.races,
        plan=emulation.faults,
        senders=senders,
        asked=None if pe == LINKED_PE else pe,
        predicted_cycles=sum(plan.predicted.latency_cycles for plan in build.plans()),
    )


def senders_of(plan: Plan) -> Senders:
    """The PEs whose messages increment each flag of each PE."""
    found: dict[tuple[int, int], set[int]] = defaultdict(set)
    for message in plan.messages:
        for landing in message.landings:
            found[landing.pe, landing.flag].add(message.source_pe)
    return {key: sorted(pes) for key, pes in found.items()}
