"""The memory layout of a program on a PE.

The plan alone fixes the addresses of activations and constants, so that PEs can send to the activations of other PEs.
The size of the stack, and the remaining room, are known after compilation.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from npukit.board.board import Board, Memory

SECTION_ALIGNMENT = 16
"""The alignment of constants and activations: the MAC array and the DMA move 16 bytes at a time."""

STACK_ALIGNMENT = 8
"""The alignment in the Arm procedure call standard."""


@dataclass(frozen=True)
class Section:
    """A section of the image. `address`: None for a section that follows the previous section of the memory."""

    memory: Memory
    size: int
    address: int | None = None

    @property
    def start(self) -> int:
        if self.address is None:
            raise ValueError("this section's address is known once the code is linked")
        return self.address


@dataclass(frozen=True)
class MemoryLayout:
    """The sections of one program on one board.

    In a single memory, code rises from the origin, followed by the firmware's variables. From the end downwards lie the
    activations, the PE's own data, the constants and the stack. If code has a separate memory, the constants follow the
    code there, and the firmware's variables begin the other memory.
    """

    code: Memory
    variables: Memory
    constants: Section
    activations: Section
    stack: Section
    own: Section
    """The own data, different on each PE of the program."""
    banks: tuple[Section, ...] = ()
    """Activations in banks behind the first."""

    @property
    def memories(self) -> tuple[Memory, ...]:
        banks = (bank.memory for bank in self.banks)
        places = (self.code, self.variables, self.constants.memory, self.stack.memory, *banks)
        return tuple({memory.name: memory for memory in places}.values())

    @property
    def hanging(self) -> tuple[Section, ...]:
        """The sections at the ends of memories."""
        places = (self.stack, self.own, self.activations, self.constants, *self.banks)
        return tuple(place for place in places if place.address is not None)

    @property
    def constants_apart(self) -> bool:
        """True if constants, and all other read-only data, have a memory apart from code and variables."""
        return self.constants.memory not in (self.code, self.variables)

    @property
    def variables_end(self) -> int:
        """The lowest address used above the firmware's variables."""
        return min(place.start for place in self.hanging if place.memory == self.variables)

    @property
    def runs_in_place(self) -> bool:
        """True if a single memory holds everything: the image then has variables at their final addresses."""
        return self.code == self.variables


def memory_layout(
    board: Board,
    constant_bytes: int,
    activation_bytes: int,
    stack_bytes: int,
    own_bytes: int = 0,
    bank_bytes: Sequence[int] = (),
) -> MemoryLayout:
    """The layout for sections of these sizes. `check_fits` checks the room once the size of the code is known."""
    code, data = board.memory_for("code"), board.memory_for("activations")
    stack_memory, constants_memory = board.memory_for("stack"), board.memory_for("constants")
    activations = Section(data, activation_bytes, activation_address(board, activation_bytes))
    own = Section(data, own_bytes, _down(activations.start, own_bytes, SECTION_ALIGNMENT))
    beside_activations = constants_memory == data
    address = _down(own.start, constant_bytes, SECTION_ALIGNMENT) if beside_activations else None
    filled = zip(board.banks[1:], bank_bytes, strict=False)
    banks = tuple(Section(bank, size, _down(bank.end, size, SECTION_ALIGNMENT)) for bank, size in filled)
    ceilings = {bank.memory.name: bank.start for bank in banks}
    ceilings[data.name] = address if address is not None else own.start
    ceiling = ceilings.get(stack_memory.name, stack_memory.end)
    stack = Section(stack_memory, stack_bytes, _down(ceiling, stack_bytes, STACK_ALIGNMENT))
    constants = Section(constants_memory, constant_bytes, address)
    return MemoryLayout(code, data, constants, activations, stack, own, banks)


def activation_address(board: Board, activation_bytes: int) -> int:
    """The start address of a PE's activations. They end at the end of their memory."""
    return _down(board.memory_for("activations").end, activation_bytes, SECTION_ALIGNMENT)


def _down(end: int, size: int, alignment: int) -> int:
    """The highest aligned address below `end` with `size` bytes of room."""
    return (end - size) // alignment * alignment
