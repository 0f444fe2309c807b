"""Session with a board: handshake, inputs, runs, outputs, layers, memory."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from time import monotonic, sleep
from typing import TypeVar

from npukit.errors import DoesNotFit, NpukitError
from npukit.link import messages
from npukit.link.conversation import Begun, Conversation, NoAnswer, Refused
from npukit.link.fault import explain_fault, explain_status, ways_out
from npukit.link.runs import StartedRun
from npukit.link.transport import Transport, Witness
from npukit.project.images.regions import REGIONS

ANSWER_SECONDS = 10.0
_RUN_SECONDS = 60.0
_SETTLE_SECONDS = 10.0
"""Seconds to wait for other PEs after the root PE has finished."""
GIVEN_UP = -1
"""Error code of a PE whose wait for other PEs ended when the host broke off the run."""
STOPPED = -32
"""Error code of a PE whose frame ended at a requested stop (`StopBehind`)."""
SELF_TEST_WRONG = -16
"""Error code of a PE whose code is not as loaded. The codes of the other regions follow, downwards."""
_SMALLEST_PACKET = 64
_LARGEST_PACKET = 65_000
_LARGEST_ELEMENT = 4
"""Bytes of the largest element that the firmware converts."""
_ADDRESSES = 1 << 32
_MOST_EVENTS = 1 << 20
_FEW = 8
"""Most PEs listed in an error."""

Item = TypeVar("Item")


@dataclass(frozen=True)
class Device:
    """The board at the other end of the link, as it describes itself."""

    protocol: int
    pe: int
    board: str
    model: str
    build_id: bytes
    inputs: tuple[messages.TensorInfo, ...]
    outputs: tuple[messages.TensorInfo, ...]
    layers: tuple[str, ...]
    """Names of the layers of the PE with the link."""
    pe_count: int
    """Number of the network's PEs."""
    largest_packet: int


class Session:
    """A session over a transport; closing the session closes the transport.

    Lost and damaged frames are repeated. A device that does not answer within `answer_seconds` (runs have another
    limit), or answers nonsense, raises `NpukitError`. With `build_id`, a device with another build raises `DoesNotFit`.
    `pe`: answers for the network; by default the PE with the link.
    """

    def __init__(
        self,
        transport: Transport,
        build_id: bytes | None = None,
        answer_seconds: float = ANSWER_SECONDS,
        pe: int = messages.LINKED_PE,
    ) -> None:
        self._transport = transport
        self._expected = build_id
        self._answer_seconds = answer_seconds
        self._conversation = Conversation(transport, answer_seconds, pe)
        self._run_number = self._conversation.chance.getrandbits(32)
        self._device: Device | None = None
        self._pes: list[int] = []
        self.linked = pe == messages.LINKED_PE

    def __enter__(self) -> Session:
        try:
            self.open()
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(self, *raised: object) -> None:
        self.close()

    def open(self) -> Device:
        """Shake hands. Returns the device's description."""
        greeting, reply = self._conversation.converse(messages.Hello())
        self._check(greeting)
        self._conversation.window = greeting.window
        self._device = Device(
            reply.protocol,
            reply.pe,
            greeting.board,
            greeting.model,
            greeting.build_id,
            self._collect(partial(messages.Describe, messages.Table.INPUTS), greeting.inputs),
            self._collect(partial(messages.Describe, messages.Table.OUTPUTS), greeting.outputs),
            tuple(
                layer.name
                for layer in self._collect(partial(messages.Describe, messages.Table.LAYERS), greeting.layers)
            ),
            greeting.pes,
            greeting.largest_packet,
        )
        return self._device

    def close(self) -> None:
        self._transport.close()

    @property
    def device(self) -> Device:
        if self._device is None:
            raise NpukitError("the link is not open yet", tries=["open() the session first"])
        return self._device

    def write_input(self, index: int, data: bytes) -> None:
        """Write a whole input. A run may overwrite inputs: write all before each run."""
        tensor = _tensor(self.device.inputs, index, "input")
        if len(data) != tensor.bytes:
            raise NpukitError(f"input {tensor.name} takes {tensor.bytes} bytes, not {len(data)}")
        pieces = self._pieces(len(data))
        self._conversation.ask_all(messages.WriteInput(index, at, data[at : at + size]) for at, size in pieces)

    def run(self, observe: bool = False, frames: int = 1, seconds: float | None = None) -> messages.RunResult:
        """Run frames in a row. An observed run goes layer by layer, and leaves a record of each layer of the last
        frame.

        The outputs are from the last frame. Later frames read as inputs the bytes left there by the frame before. A
        failed run raises an `NpukitError` that names the PE.
        """
        return self.end_run(self.begin_run(observe, frames), seconds)

    def run_and_stop(self, stops: Mapping[int, tuple[int, int]], seconds: float | None = None) -> dict[int, int]:
        """Run an observed frame that stops on some PEs. `stops`: for each PE a layer, and the pieces of the layer to
        compute.

        Returns the address of the layer's output for each stopped PE; the memory there is as the layer left it. Then
        reset a board of several PEs: the others wait for messages from the stopped PEs.
        """
        for pe, (layer, pieces) in stops.items():
            self._conversation.ask(messages.StopBehind(layer, pieces), pe=pe)
        self._finish(self.begin_run(observe=True), seconds)
        return {pe.pe: pe.fault_address for pe in self.pes() if pe.pe in stops and pe.status == STOPPED}

    def begin_run(self, observe: bool = False, frames: int = 1) -> Begun[messages.RunResult]:
        """Request a run without waiting for its end. Sessions with other networks of the board may go on meanwhile."""
        if isinstance(self._transport, Witness):
            self._transport.expect(frames)
        return self._conversation.begin(messages.Run(self._next_run(), observe, frames))

    def end_run(self, begun: Begun[messages.RunResult], seconds: float | None = None) -> messages.RunResult:
        """Wait for a run that has begun. Returns the result."""
        result, waits = self._finish(begun, seconds)
        if result.status != 0:
            raise self._failed_run(result.status, waits)
        return result

    def start(self, frames: int) -> StartedRun:
        """Begin a run of `frames` frames in the background."""
        return StartedRun(self._conversation, self._next_run(), frames, lambda code: self._failed_run(code, ()))

    def reset(self) -> Device:
        """Restart the board, and shake hands again."""
        try:
            self._conversation.insist(messages.Reset())
        except Refused as refused:
            if (
                refused.status != messages.Status.NO_SESSION
            ):  # NO_SESSION: the board has restarted, and the reply was lost
                raise
        return self.open()

    def reset_states(self) -> None:
        """Reset the network's states, kept between frames, with effect from the next frame."""
        self._conversation.ask(messages.ResetStates())

    def _next_run(self) -> int:
        self._run_number = (self._run_number + 1) & 0xFFFF_FFFF
        return self._run_number

    def _finish(
        self, begun: Begun[messages.RunResult], seconds: float | None
    ) -> tuple[messages.RunResult, tuple[str, ...]]:
        """The run's result. Without result in time the run is broken off; then also lines about the PEs that waited."""
        limit = max(_RUN_SECONDS, self._answer_seconds) if seconds is None else seconds
        try:
            return self._conversation.end(begun, limit), ()
        except NoAnswer as silent:
            if self.device.pe_count == 1:
                raise
            self._conversation.break_off()
            return self._conversation.ask(begun.request), silent.facts

    def _failed_run(self, status: int, waits: tuple[str, ...]) -> NpukitError:
        pes = self.pes()
        named = [cause for pe in pes if (cause := _cause(pe))] or [*waits[:1]] or [explain_status(status)]
        return NpukitError(
            f"{self.device.model} failed to run on {self.device.board}: {'; '.join(named)}",
            facts=waits,
            tries=ways_out((status, *(pe.status for pe in pes))),
        )

    def read_output(self, index: int) -> bytes:
        """A whole output of the last run, which must have succeeded."""
        tensor = _tensor(self.device.outputs, index, "output")
        pieces = self._pieces(tensor.bytes)
        return b"".join(self._conversation.ask_all(messages.ReadOutput(index, size, at) for at, size in pieces))

    def pes(self) -> tuple[messages.PeState, ...]:
        """State of each PE of the network, the PE with the link first."""
        states = self._collect(messages.ReadPes, self.device.pe_count)
        named = [each.pe for each in states]
        self._pes = self._pes or named
        if named != self._pes or len(set(named)) < len(named):
            raise NpukitError(f"the device says that its PEs are {_few(named)}, and said before {_few(self._pes)}")
        return states

    def settle(self) -> None:
        """Wait until every PE of the network has finished as many frames as the PE with the link."""
        until = monotonic() + _SETTLE_SECONDS
        while self.device.pe_count > 1 and len({pe.frames for pe in self.pes()}) > 1:
            if monotonic() > until:
                raise NpukitError("the root PE is done with its frames, other PEs are not", tries=["npukit monitor"])
            sleep(0.01)

    def layers(self, pe: int, count: int) -> tuple[messages.LayerRecord, ...]:
        """A PE's records of `count` layers in the last observed run, which must have succeeded."""
        return self._collect(messages.ReadLayers, count, pe)

    def events(self, pe: int, first: int) -> messages.PeEvents:
        """A PE's events from number `first` on, without overwritten events."""
        ask = partial(self._conversation.ask, pe=pe)
        reply = ask(messages.ReadEvents(first))
        start, found = reply.first, list(reply.events)
        while start + len(found) < reply.written and len(found) < _MOST_EVENTS:
            more = ask(messages.ReadEvents(start + len(found)))
            if not more.events:
                raise NpukitError(f"PE {pe} overwrites its events faster than they can be read", tries=["stop its run"])
            if more.first != start + len(found):
                start, found = more.first, []
            found += more.events
        return messages.PeEvents(reply.written, start, tuple(found))

    def read_memory(self, address: int, size: int, pe: int | None = None) -> bytes:
        """Memory of a PE. The PE with the link shows only memory declared readable."""
        _check_addresses(address, size)
        pieces = self._pieces(size)
        return b"".join(
            self._conversation.ask_all((messages.ReadMemory(address + at, part) for at, part in pieces), pe)
        )

    def digest(self, address: int, size: int, pe: int | None = None) -> int:
        """Digest (`project/images/regions.py`) of up to 1 MB of a PE's memory, from a multiple of 4 on. The PE with the
        link digests only loaded memory that never changes."""
        _check_addresses(address, size)
        return self._conversation.ask(messages.ReadDigest(address, size), pe=pe)

    def write_memory(self, address: int, data: bytes, pe: int | None = None) -> None:
        """Write memory that the PE with the link declares writable, or a DRAM."""
        _check_addresses(address, len(data))
        pieces = self._pieces(len(data))
        self._conversation.ask_all(
            (messages.WriteMemory(address + at, data[at : at + size]) for at, size in pieces), pe
        )

    def counters(self) -> messages.Counters:
        """The core's counters since reset."""
        return self._conversation.ask(messages.ReadCounters())

    def lines(self) -> tuple[str, ...]:
        """Lines of text from the firmware since the last call, at most the last 1000."""
        lines = tuple(self._conversation.lines)
        self._conversation.lines.clear()
        return lines

    def _check(self, greeting: messages.Greeting) -> None:
        if not _SMALLEST_PACKET <= greeting.largest_packet <= _LARGEST_PACKET:
            raise NpukitError(
                f"the device says its largest packet has {greeting.largest_packet} bytes; "
                f"the protocol allows {_SMALLEST_PACKET} to {_LARGEST_PACKET}"
            )
        if greeting.window == 0:
            raise NpukitError("the device says that no request may be under way")
        if self._expected is not None and greeting.build_id != self._expected:
            raise DoesNotFit(
                f"the device runs build {greeting.build_id.hex()} ({greeting.model} on {greeting.board}), "
                f"not build {self._expected.hex()}",
                tries=["npukit flash the build folder onto the device", "the build folder the device was flashed from"],
            )

    def _collect(
        self, request: Callable[[int], messages.Request[tuple[Item, ...]]], count: int, pe: int | None = None
    ) -> tuple[Item, ...]:
        """`count` items, requested from the first missing item on."""
        items: tuple[Item, ...] = ()
        while len(items) < count:
            items += self._conversation.ask(request(len(items)), pe=pe)
        if len(items) > count:
            raise NpukitError(f"the device lists {len(items)} items where it says it has {count}")
        return items

    def _pieces(self, size: int) -> Iterator[tuple[int, int]]:
        """Offsets and sizes of the pieces of a transfer of `size` bytes, in either direction. Before its data a request
        has no more bytes than a reply. Pieces hold whole floats."""
        most = (self.device.largest_packet - messages.REPLY_HEADER_BYTES) // _LARGEST_ELEMENT * _LARGEST_ELEMENT
        return ((offset, min(most, size - offset)) for offset in range(0, size, most))


def _cause(pe: messages.PeState) -> str:
    """Why a PE failed. Empty without failure, or if the PE only waited for other PEs."""
    if not pe.running:
        return f"PE {pe.pe} does not run it"
    if pe.fault_status != 0:
        return f"PE {pe.pe} stopped at instruction {pe.fault_pc:#010x}: {explain_fault(pe.fault_status)}"
    wrong = SELF_TEST_WRONG - pe.status
    if 0 <= wrong < len(REGIONS):
        return f"the {REGIONS[wrong]} of PE {pe.pe} are not what was loaded: its self-test says so"
    return "" if pe.status in (0, GIVEN_UP) else f"PE {pe.pe} stopped with {explain_status(pe.status)}"


def _few(numbers: Sequence[int]) -> str:
    return ", ".join(map(str, numbers[:_FEW])) + (" ..." if len(numbers) > _FEW else "")


def _tensor(tensors: tuple[messages.TensorInfo, ...], index: int, kind: str) -> messages.TensorInfo:
    if not 0 <= index < len(tensors):
        raise NpukitError(f"there is no {kind} {index}: the device has {len(tensors)}, counted from 0")
    return tensors[index]


def _check_addresses(address: int, size: int) -> None:
    if not 0 <= address <= address + size <= _ADDRESSES:
        raise NpukitError(f"{size} bytes from {address:#x} on do not lie in a PE's 32-bit addresses")
