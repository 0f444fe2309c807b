"""Checks of the linked image against the plan."""

from __future__ import annotations

from npukit.errors import DoesNotFit, NpukitError
from npukit.project.images.elf import Elf
from npukit.project.layout import SECTION_ALIGNMENT, MemoryLayout

HEAP = ("malloc", "calloc", "realloc", "free", "sbrk", "_sbrk", "_malloc_r", "_free_r")

PROGRAM_SECTIONS = (".boot", ".vectors", ".text")
READ_SECTIONS = (".rodata",)
"""Strings and tables: behind the program, or with the constants if these have a memory of their own."""
VARIABLE_SECTIONS = (".data", ".bss")

ALIGNMENT_LOSS = SECTION_ALIGNMENT - 1
"""Limit on the bytes lost by alignment between the rising and the hanging sections."""


def program_bytes(layout: MemoryLayout, elf: Elf) -> int:
    """Bytes from the start of the vector table to the end of the code, or of strings and tables behind the code."""
    return _extent(elf, PROGRAM_SECTIONS if layout.constants_apart else PROGRAM_SECTIONS + READ_SECTIONS)


def constant_bytes(layout: MemoryLayout, elf: Elf) -> int:
    """Bytes of constants, of strings and tables stored beside constants, and of initial values of variables."""
    copied = 0 if layout.runs_in_place else _extent(elf, (".data",))
    return layout.constants.size + copied + (_extent(elf, READ_SECTIONS) if layout.constants_apart else 0)


def variable_bytes(elf: Elf) -> int:
    """Bytes of the firmware's variables."""
    return _extent(elf, VARIABLE_SECTIONS)


class LinkedTooLarge(DoesNotFit):
    """The linked image is larger than in the plan: `missing` bytes of a memory."""

    def __init__(self, message: str, memory: str, missing: int) -> None:
        super().__init__(message, tries=["a smaller model", "more PEs: --pes N", "a board with more memory"])
        self.memory, self.missing = memory, missing


def check_fits(layout: MemoryLayout, elf: Elf, image: str) -> None:
    """Raise an error if program and variables leave too little room for constants, activations and stack."""
    rising = ["code", "variables", *(["constants"] if layout.constants.address is None else [])]
    for memory in layout.memories:
        used = _use(layout, elf)[memory.name]
        hanging = [place.start for place in layout.hanging if place.memory.name == memory.name]
        top = memory.origin + sum(used.get(name, 0) for name in rising) + ALIGNMENT_LOSS
        missing = top - min([memory.end, *hanging])
        if missing > 0:
            parts = ", ".join(f"{name} {count}" for name, count in used.items())
            message = f"{image} is {missing} bytes too large for memory {memory.name} of {memory.size}: {parts}"
            raise LinkedTooLarge(message, memory.name, missing)


def check_image(layout: MemoryLayout, elf: Elf, image: str) -> None:
    """Check the planned places and sizes of sections, and the absence of a heap."""
    for name, place in (
        (".constants", layout.constants),
        (".activations", layout.activations),
        (".stack", layout.stack),
        (".own", layout.own),
        *((f".bank_{number}", bank) for number, bank in enumerate(layout.banks, start=1)),
    ):
        section = elf.sections.get(name)
        size = section.size if section else 0
        if size != place.size or (section and place.address not in (None, section.address)):
            raise NpukitError(f"{image}: section {name} has {size} bytes and not the planned {place.size}")
    for name in HEAP:
        if name in elf.symbols:
            raise NpukitError(f"{image} contains {name}: there is no heap on a PE")


def free_bytes(layout: MemoryLayout, elf: Elf) -> int:
    """Unused bytes in the memory of the activations."""
    memory = layout.activations.memory
    return memory.size - sum(_use(layout, elf)[memory.name].values())


def _use(layout: MemoryLayout, elf: Elf) -> dict[str, dict[str, int]]:
    """Bytes by memory and purpose, including padding for alignment."""
    placed = (
        ("code", layout.code.name, program_bytes(layout, elf)),
        ("variables", layout.variables.name, variable_bytes(elf)),
        ("constants", layout.constants.memory.name, constant_bytes(layout, elf)),
        ("activations", layout.activations.memory.name, layout.activations.size),
        ("each PE's own", layout.own.memory.name, layout.own.size),
        ("stack", layout.stack.memory.name, layout.stack.size),
        *(("activations", bank.memory.name, bank.size) for bank in layout.banks),
    )
    use: dict[str, dict[str, int]] = {memory.name: {} for memory in layout.memories}
    for purpose, memory, size in placed:
        if size or purpose != "each PE's own":
            use[memory][purpose] = size
    return use


def _extent(elf: Elf, names: tuple[str, ...]) -> int:
    sections = [elf.sections[name] for name in names if name in elf.sections]
    return max(s.end for s in sections) - min(s.address for s in sections) if sections else 0
