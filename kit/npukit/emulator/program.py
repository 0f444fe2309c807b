"""What an ELF file tells: the bytes that go into memory, and which function and line an address belongs to."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from elftools.common.exceptions import ELFError
from elftools.elf.elffile import ELFFile
from elftools.elf.sections import SymbolTableSection

from npukit.errors import NpukitError


def load_segments(elf: Path) -> list[tuple[int, bytes]]:
    """Load address and bytes of each segment that has any."""
    try:
        with elf.open("rb") as stream:
            segments = ELFFile(stream).iter_segments("PT_LOAD")
            return [(s["p_paddr"], s.data()) for s in segments if s["p_filesz"] > 0]
    except (OSError, ELFError) as error:
        raise NpukitError(f"image {elf} cannot be read: {error}") from error


def where(elf: Path, address: int) -> str:
    """`function+offset (file:line)` as far as the file tells, or nothing."""
    with elf.open("rb") as stream:
        file = ELFFile(stream)
        return " ".join(filter(None, (_function(file, address), _line(file, address))))


def _function(file: ELFFile, address: int) -> str:
    for section in file.iter_sections():
        if not isinstance(section, SymbolTableSection):
            continue
        for symbol in section.iter_symbols():
            start = symbol["st_value"] & ~1
            if symbol["st_info"]["type"] == "STT_FUNC" and start <= address < start + symbol["st_size"]:
                return f"{symbol.name}+{address - start:#x}"
    return ""


def _line(file: ELFFile, address: int) -> str:
    if not file.has_dwarf_info():
        return ""
    best: tuple[int, str] | None = None
    for start, end, place in _line_ranges(file):
        if start <= address < end and (best is None or start > best[0]):
            best = start, place
    return f"({best[1]})" if best else ""


def _line_ranges(file: ELFFile) -> Iterator[tuple[int, int, str]]:
    """Address ranges and the `file:line` they were compiled from."""
    dwarf = file.get_dwarf_info()
    for unit in dwarf.iter_CUs():
        program = dwarf.line_program_for_CU(unit)
        if program is None:
            continue
        first_file = 1 if program["version"] < 5 else 0
        names = [entry.name.decode(errors="replace") for entry in program["file_entry"]]
        before = None
        for entry in program.get_entries():
            state = entry.state
            if state is None:
                continue
            if before is not None and not before.end_sequence:
                index = before.file - first_file
                name = names[index] if 0 <= index < len(names) else "?"
                yield before.address, state.address, f"{name}:{before.line}"
            before = state
