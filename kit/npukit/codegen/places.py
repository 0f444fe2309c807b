"""References of the generated C to places in memory."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from npukit.accel.interface import Address
from npukit.codegen.constants import Absolute, Foreign, Number, Value
from npukit.codegen.names import foreign_arena

OWN = "net_own"
"""The C name of what is each PE's own."""


@dataclass(frozen=True)
class Places:
    """Symbols of the arena are offsets in it, all others members of the constants: `homes` says of which.

    `structs` are the members that are one struct. `words` are pointers that each PE has of its own. Members that are
    `near` lie in the other struct of constants.
    """

    homes: Mapping[str, str]
    structs: frozenset[str]
    words: frozenset[str] = frozenset()
    near: frozenset[str] = frozenset()

    def address(self, symbol: str, offset: int = 0) -> str:
        """A pointer to `offset` bytes behind the symbol, of its own type or void."""
        if symbol in self.words:
            return f"{OWN}.{symbol}"
        if symbol not in self.homes:
            return f"ARENA({symbol}{f' + {offset}' if offset else ''})"
        home = self.homes[symbol]
        member = f"{'net_near' if home in self.near else 'net_constants'}.{home}"
        if symbol in self.structs:
            return f"&{member}"
        return f"(const void *)((const uint8_t *){member} + {offset})" if offset else member

    def field(self, value: Value) -> str:
        """The value of a struct's member. Its type is the plug-in's affair, so constants go there as void."""
        match value:
            case Number(address):
                return f"(uint32_t){self.address(address.symbol, address.offset)}"
            case Foreign(pe, offset):
                return f"(uint32_t)&{foreign_arena(pe)}[{offset}]"
            case Absolute(address):
                return f"(const void *)0x{address:08X}U"
            case Address(symbol, offset):
                text = self.address(symbol, offset)
                return f"(const void *){text}" if text.startswith("net_constants.") else text
        return str(value)
