"""The compiler's layout of C structs and constants, for packing data without compiling it."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from elftools.elf.elffile import ELFFile

TABLE = "npukit_layouts"
_WORD = 4


@dataclass(frozen=True, order=True)
class Member:
    """A member of a struct."""

    struct: str
    name: str


@dataclass(frozen=True)
class MemberPlace:
    """The offset and size of a member in a struct, in bytes."""

    offset: int
    size: int


@dataclass(frozen=True)
class Questions:
    """Requests for the layout of members and the values of constants, with the headers that declare them."""

    members: tuple[Member, ...]
    constants: tuple[str, ...]
    headers: tuple[str, ...]

    def as_c(self) -> str:
        """A C file whose only object is the answers, word by word."""
        lines, words = [f'#include "{header}"' for header in ("stddef.h", *self.headers)], list[str]()
        for each in self.members:
            struct = f"struct {each.struct}"
            words += [f"offsetof({struct}, {each.name})", f"sizeof((({struct} *)0)->{each.name})"]
        words += [f"(uint32_t)({constant})" for constant in self.constants]
        return "\n".join([*lines, f"const uint32_t {TABLE}[] = {{", *(f"    {word}," for word in words), "};\n"])


@dataclass(frozen=True)
class Layouts:
    """The layouts of members, and the values of constants."""

    members: dict[Member, MemberPlace]
    constants: dict[str, int]


NOTHING = Layouts({}, {})


def answers(asked: Questions, object_file: Path) -> Layouts:
    """The answers in the compiled file."""
    with object_file.open("rb") as stream:
        file = ELFFile(stream)
        symbol = file.get_section_by_name(".symtab").get_symbol_by_name(TABLE)[0]  # pyright: ignore[reportOptionalMemberAccess, reportAttributeAccessIssue]
        section, start = file.get_section(symbol["st_shndx"]), symbol["st_value"]
        data = section.data()[start : start + symbol["st_size"]]
    words = [int.from_bytes(data[i : i + _WORD], "little") for i in range(0, len(data), _WORD)]
    places = [MemberPlace(*words[2 * index : 2 * index + 2]) for index in range(len(asked.members))]
    rest = words[2 * len(places) :]
    return Layouts(
        dict(zip(asked.members, places, strict=True)),
        dict(zip(asked.constants, rest[: len(asked.constants)], strict=True)),
    )
