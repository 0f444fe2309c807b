"""The contents of an ELF file: the bytes to load, and the function and line of an address."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import lru_cache
from pathlib import Path

from elftools.common.exceptions import ELFError
from elftools.dwarf.die import DIE
from elftools.elf.elffile import ELFFile
from elftools.elf.sections import Symbol, SymbolTableSection

from npukit.errors import NpukitError

STACK_BOTTOM = "__stack_bottom"
"""The linker script's symbol for the lowest address of the stack."""
_ACTIVATIONS = ".activations"
_POLLED = {"net_activations": 64, "network_mailbox": 16}
"""Words that PEs read and write remotely at any time, each without order with others: the control block, by which the
root queries and instructs a PE, and the head of a mailbox. By symbol, the bytes from there on."""
_EXECUTABLE, _WRITABLE = 1, 2
_NONSENSE = (ArithmeticError, AssertionError, AttributeError, LookupError, NpukitError, TypeError, ValueError)


@contextmanager
def _opened(elf: Path) -> Iterator[ELFFile]:
    try:
        with elf.open("rb") as stream:
            yield ELFFile(stream)
    except (OSError, ELFError) as error:
        raise NpukitError(f"image {elf} cannot be read: {error}") from error


def load_segments(elf: Path) -> list[tuple[int, bytes]]:
    """Load address and bytes of each segment that is not empty, kept like `stack_and_code`."""
    return _load_segments(elf, elf.stat().st_mtime_ns)


@lru_cache
def _load_segments(elf: Path, changed: int) -> list[tuple[int, bytes]]:
    with _opened(elf) as file:
        return [(s["p_paddr"], s.data()) for s in file.iter_segments("PT_LOAD") if s["p_filesz"] > 0]


def stack_and_code(elf: Path) -> dict[str, object]:
    """The facts of `_stack_and_code`, kept while the file does not change: a tenth of a second of each start."""
    return _stack_and_code(elf, elf.stat().st_mtime_ns)


@lru_cache
def _stack_and_code(elf: Path, changed: int) -> dict[str, object]:
    """The end of the stack, the places of code, activations and polled words, and the starts of functions, as far as
    known: `Program` of `npukit_emulator`."""
    with _opened(elf) as file:
        code = [s for s in file.iter_segments("PT_LOAD") if s["p_flags"] & _EXECUTABLE and not s["p_flags"] & _WRITABLE]
        ends = [(s["p_vaddr"], s["p_vaddr"] + s["p_memsz"]) for s in code]
        extent = (min(start for start, _ in ends), max(end for _, end in ends)) if ends else (0, 0)
        arena = file.get_section_by_name(_ACTIVATIONS)
        polled = ((_symbol(file, name), size) for name, size in _POLLED.items())
        functions = (each for each in _symbols(file, "STT_FUNC") if each["st_info"]["bind"] == "STB_GLOBAL")
        return {
            "stack_bottom": _symbol(file, STACK_BOTTOM),
            "code": extent,
            "arena": (arena["sh_addr"], arena["sh_addr"] + arena["sh_size"]) if arena else (0, 0),
            "polled": [(address, address + size) for address, size in polled if address],
            "functions": sorted({each["st_value"] & ~1 for each in functions if not each.name.startswith("__")}),
        }


def address_of(elf: Path, name: str) -> int:
    """The value of a symbol, or 0."""
    with _opened(elf) as file:
        return _symbol(file, name)


def _symbol(file: ELFFile, name: str) -> int:
    table = file.get_section_by_name(".symtab")
    found = table.get_symbol_by_name(name) if isinstance(table, SymbolTableSection) else None
    return found[0]["st_value"] if found else 0


def where(elf: Path, address: int) -> str:
    """`function+offset (file:line)` as far as the file tells, or nothing; also for a malformed file."""
    try:
        return _where(elf, elf.stat().st_mtime_ns, address)
    except OSError:
        return ""


@lru_cache
def _where(elf: Path, changed: int, address: int) -> str:
    try:
        with _opened(elf) as file:
            return " ".join(filter(None, (_function(file, address), _line(file, address))))
    except _NONSENSE:
        return ""


def _function(file: ELFFile, address: int) -> str:
    for symbol in _symbols(file, "STT_FUNC"):
        start = symbol["st_value"] & ~1
        if start <= address < start + symbol["st_size"]:
            return f"{symbol.name}+{address - start:#x}"
    return ""


def _symbols(file: ELFFile, kind: str) -> Iterator[Symbol]:
    for section in file.iter_sections():
        if isinstance(section, SymbolTableSection):
            yield from (symbol for symbol in section.iter_symbols() if symbol["st_info"]["type"] == kind)


def object_at(elf: Path, address: int) -> str:
    """`variable.member` at an address, as far as the file tells, or nothing."""
    try:
        with _opened(elf) as file:
            symbol = next(
                (s for s in _symbols(file, "STT_OBJECT") if 0 <= address - s["st_value"] < s["st_size"]), None
            )
            return _part(file, symbol.name, address - symbol["st_value"]) if symbol else ""
    except _NONSENSE:
        return ""


def _part(file: ELFFile, name: str, offset: int) -> str:
    """The variable's member at `offset`, or else the variable and the offset in bytes."""
    for unit in file.get_dwarf_info().iter_CUs() if file.has_dwarf_info() else ():
        for entry in unit.get_top_DIE().iter_children():
            if entry.tag == "DW_TAG_variable" and _name(entry) == name and "DW_AT_type" in entry.attributes:
                members = [m for m in _structure(entry).iter_children() if m.tag == "DW_TAG_member"]
                inside = [m for m in members if m.attributes["DW_AT_data_member_location"].value <= offset]
                if inside:
                    return f"{name}.{_name(inside[-1])}"
    return name + (f"+{offset:#x}" if offset else "")


def _name(entry: DIE) -> str:
    attribute = entry.attributes.get("DW_AT_name")
    return attribute.value.decode() if attribute else ""


def _structure(entry: DIE) -> DIE:
    """The type of an entry, without const and typedef."""
    kind = entry.get_DIE_from_attribute("DW_AT_type")
    return kind if kind.tag not in ("DW_TAG_const_type", "DW_TAG_typedef") else _structure(kind)


def _line(file: ELFFile, address: int) -> str:
    if not file.has_dwarf_info():
        return ""
    best: tuple[int, str] | None = None
    for start, end, place in _line_ranges(file):
        if start <= address < end and (best is None or start > best[0]):
            best = start, place
    return f"({best[1]})" if best else ""


def _line_ranges(file: ELFFile) -> Iterator[tuple[int, int, str]]:
    """Address ranges and their `file:line`."""
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
