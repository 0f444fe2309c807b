"""Reader of linked images: sections, functions, bytes."""

from __future__ import annotations

import bisect
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property, lru_cache
from io import BytesIO
from pathlib import Path
from struct import iter_unpack
from typing import NamedTuple

from elftools.elf.elffile import ELFFile
from elftools.elf.relocation import RelocationSection
from elftools.elf.sections import SymbolTableSection

from npukit.board.cores import architecture_of

THUMB = 1
"""Bit in the address of every function of an M-profile core."""
LARGEST_GAP = 1 << 20
"""Largest gap in bytes between two parts of an image in the same memory."""


@dataclass(frozen=True)
class Section:
    name: str
    address: int
    size: int
    data: bytes | None
    """None for memory that the image only reserves."""

    @property
    def end(self) -> int:
        return self.address + self.size

    def holds(self, address: int) -> bool:
        return self.address <= address < self.end


@dataclass(frozen=True)
class ElfFunction:
    """A function under the first of its names."""

    name: str
    address: int
    end: int


class Symbol(NamedTuple):
    """A symbol. `is_function`: False for functions outside this file. `section`: the number of the section."""

    name: str
    value: int
    size: int
    is_function: bool
    section: int


class Elf:
    """A linked image."""

    def __init__(self, path: Path) -> None:
        self._file = ELFFile(BytesIO(path.read_bytes()))

    @property
    def machine(self) -> str:
        """The architecture's name in the ELF standard."""
        return self._file["e_machine"]

    @cached_property
    def sections(self) -> dict[str, Section]:
        """The sections that occupy memory on the PE, by name."""
        allocated = (s for s in self._file.iter_sections() if s["sh_flags"] & _SHF_ALLOC)
        loaded = ((s, None if s["sh_type"] == "SHT_NOBITS" else s.data()) for s in allocated)
        return {s.name: Section(s.name, s["sh_addr"], s["sh_size"], data) for s, data in loaded}

    @cached_property
    def symbols(self) -> dict[str, int]:
        """The value of every symbol by name. Functions carry the Thumb bit."""
        return {symbol.name: symbol.value for symbol in self._symbols if symbol.name}

    @cached_property
    def functions(self) -> dict[int, ElfFunction]:
        """The functions by address. Assembly functions without sizes extend to the next function."""
        named = sorted((s.value & ~THUMB, -s.size, s.name) for s in self._symbols if s.is_function)
        starts = sorted({address for address, _, _ in named})
        found: dict[int, ElfFunction] = {}
        for address, negative_size, name in named:
            following = bisect.bisect_right(starts, address)
            next_start = starts[following] if following < len(starts) else self.sections[".text"].end
            end = address - negative_size if negative_size else next_start
            found.setdefault(address, ElfFunction(name, address, end))
        return found

    @cached_property
    def function_names(self) -> set[str]:
        """The names of all functions, including those of an object file, which have no addresses yet."""
        return {symbol.name for symbol in self._symbols if symbol.is_function}

    @cached_property
    def data_in_code(self) -> list[tuple[int, int]]:
        """Ranges of literals and tables between the instructions, in order: the `$d` marks of the Arm ELF ABI."""
        text, index = self.sections[".text"], self._file.get_section_index(".text")
        named = (s for s in self._symbols if s.name[:2] in ("$d", "$t", "$x") and s.section == index)
        marks = sorted((s.value & ~THUMB, s.name[:2]) for s in named)
        ends = [*(address for address, _ in marks[1:]), text.end]
        pairs = zip(marks, ends, strict=False)
        return [(address, end) for (address, kind), end in pairs if kind == "$d" and text.holds(address)]

    def data_from(self, address: int) -> int:
        """The end of the data in code at `address`, or `address` itself if there is none."""
        index = bisect.bisect_right(self.data_in_code, (address, 1 << 32)) - 1
        return max(address, self.data_in_code[index][1]) if index >= 0 else address

    def addresses_of(self, name: str) -> list[int]:
        """The addresses of all functions with this name, which static functions of several files may share."""
        return sorted(self._addresses.get(name, ()))

    def read(self, address: int, size: int) -> bytes:
        """Bytes of the image."""
        for section in self.sections.values():
            if section.data is not None and section.holds(address):
                return section.data[address - section.address :][:size]
        raise ValueError(f"no section of the image has bytes at {address:#x}")

    def source_of(self, address: int) -> str | None:
        """The C file of the code at an address, as named to the compiler."""
        if not self._file.has_dwarf_info():
            return None
        offset = self._ranges.cu_offset_at_addr(address) if self._ranges else None
        if offset is None:
            return None
        name = self._dwarf.get_CU_at(offset).get_top_DIE().attributes.get("DW_AT_name")
        return name.value.decode(errors="replace") if name else None

    def segments(self) -> list[tuple[int, bytes]]:
        """The address and bytes of each loaded segment."""
        loaded = [s for s in self._file.iter_segments() if s["p_type"] == "PT_LOAD" and s["p_filesz"]]
        return [(segment["p_paddr"], segment.data()) for segment in loaded]

    def binary(self) -> tuple[int, bytes]:
        """The load address and bytes of the first stretch."""
        return self.stretches()[0]

    def stretches(self) -> list[tuple[int, bytes]]:
        """The load address and bytes of the image in each memory, with small gaps filled with zeros."""
        stretches = list[tuple[int, bytes]]()
        for address, data in sorted(self.segments()):
            start, before = stretches[-1] if stretches else (address, b"")
            if address - start - len(before) > LARGEST_GAP:
                stretches.append((address, data))
                continue
            stretches[-1:] = [(start, before.ljust(address - start, b"\0") + data)]
        return stretches

    @cached_property
    def _addresses(self) -> dict[str, set[int]]:
        """The addresses of every function, by name."""
        found: dict[str, set[int]] = {}
        for symbol in self._symbols:
            if symbol.is_function:
                found.setdefault(symbol.name, set()).add(symbol.value & ~THUMB)
        return found

    @cached_property
    def _dwarf(self):
        return self._file.get_dwarf_info(relocate_dwarf_sections=False)

    @cached_property
    def _ranges(self):
        return self._dwarf.get_aranges()

    @cached_property
    def _symbols(self) -> list[Symbol]:
        table = self._file.get_section_by_name(".symtab")
        return _symbols_in(table) if isinstance(table, SymbolTableSection) else []


def functions_pointed_at(objects: Iterable[Path]) -> set[str]:
    """Functions whose address is stored or loaded, except in the vector table: possible targets of pointers."""
    return {name for path in objects for name in _pointed_at(path.read_bytes())}


@lru_cache(maxsize=256)
def _pointed_at(object_file: bytes) -> frozenset[str]:
    """Cached, because images share most of their object files."""
    file, found = ELFFile(BytesIO(object_file)), set[str]()
    kinds = architecture_of(file["e_machine"]).address_relocations
    for table in file.iter_sections():
        if not isinstance(table, RelocationSection):
            continue
        target = file.get_section(table["sh_info"])
        if not target["sh_flags"] & _SHF_ALLOC or target.name == ".vectors":
            continue
        symbols = file.get_section(table["sh_link"])
        assert isinstance(symbols, SymbolTableSection)
        names = [symbol.name for symbol in _symbols_in(symbols)]
        entries = iter_unpack("<IIi" if table.is_RELA() else "<II", table.data())
        found |= {names[info >> 8] for _, info, *_ in entries if info & 0xFF in kinds}
    return frozenset(found)


_SHF_ALLOC, _STT_FUNC = 2, 2


def _symbols_in(table: SymbolTableSection) -> list[Symbol]:
    """The symbols of a 32-bit file, decoded in bulk: images have thousands."""
    names, found = table.stringtable.data(), list[Symbol]()
    for at, value, size, info, _, section in iter_unpack("<IIIBBH", table.data()):
        name = names[at : names.index(b"\0", at)].decode()
        found.append(Symbol(name, value, size, info & 0xF == _STT_FUNC and section != 0, section))
    return found
