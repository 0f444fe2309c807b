"""How the generated C refers to what lies in memory."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from npukit.accel.interface import Address, Field


@dataclass(frozen=True)
class Places:
    """Symbols of the arena are offsets in it, all others members of the constants: `homes` says of which.

    `structs` are the members that are one struct.
    """

    homes: Mapping[str, str]
    structs: frozenset[str]

    def address(self, symbol: str, offset: int = 0) -> str:
        """A pointer to `offset` bytes behind the symbol, of its own type or void."""
        if symbol not in self.homes:
            return f"ARENA({symbol}{f' + {offset}' if offset else ''})"
        member = f"net_constants.{self.homes[symbol]}"
        if symbol in self.structs:
            return f"&{member}"
        return f"(const void *)((const uint8_t *){member} + {offset})" if offset else member

    def field(self, value: Field) -> str:
        """The value of a struct's member. Its type is the plug-in's affair, so constants go there as void."""
        if not isinstance(value, Address):
            return str(value)
        text = self.address(value.symbol, value.offset)
        plain = text.startswith("net_constants.")
        return f"(const void *){text}" if plain else text
