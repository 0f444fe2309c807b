"""C identifiers, strings and numbers for names and values of the network."""

from __future__ import annotations

import re
from collections.abc import Sequence

LONGEST_C_NAME = 48
_SAFE = re.compile(r"[A-Za-z][A-Za-z0-9_]*_\d+\Z")


class Names:
    """Assigns a unique C identifier to every name."""

    def __init__(self) -> None:
        self._taken: set[str] = set()

    def identifier(self, name: str) -> str:
        """A unique identifier that resembles `name`. A repeated name gets another identifier."""
        wanted = c_identifier(name)
        found, number = wanted, 1
        while found in self._taken:
            number += 1
            found = f"{wanted}_{number}"
        self._taken.add(found)
        return found


def c_identifier(name: str) -> str:
    """The name as a valid C identifier. Names that end in `_` and a number clash with no keyword and no function of the
    C library or the firmware. Other names get the suffix `_0`."""
    letters = re.sub(r"[^A-Za-z0-9]+", "_", name).strip("_")[:LONGEST_C_NAME]
    return (
        letters if _SAFE.match(letters) else f"{letters or 'unnamed'}_0" if letters[:1].isalpha() else f"t_{letters}_0"
    )


def comment_text(text: str) -> str:
    """Text made safe for a C comment of one line."""
    printable = "".join(c if c.isprintable() else "?" for c in text)
    return printable.replace("*/", "* /").replace("/*", "/ *")


def macro(name: str) -> str:
    """The name as a part of a macro's name."""
    return re.sub(r"[^A-Z0-9]", "_", name.upper())


def c_string(text: str) -> str:
    """A C string literal with the UTF-8 bytes of `text`."""
    data = text.encode("utf-8", "replace")
    plain = {byte for byte in range(32, 127) if chr(byte) not in '"\\?'}
    return '"' + "".join(chr(byte) if byte in plain else f"\\{byte:03o}" for byte in data) + '"'


def foreign_arena(pe: int) -> str:
    """The C name of another PE's activations. The linker script defines the address."""
    return f"net_activations_of_pe_{pe}"


def ranges(numbers: Sequence[int]) -> str:
    """Numbers for readers, with ranges for successive ones: `0, 2 to 7`."""
    runs: list[list[int]] = []
    for number in sorted(numbers):
        if runs and number == runs[-1][-1] + 1:
            runs[-1].append(number)
        else:
            runs.append([number])
    return ", ".join(f"{run[0]} to {run[-1]}" if len(run) > 2 else ", ".join(map(str, run)) for run in runs)


def c_float(value: float) -> str:
    """A C float literal, exact to the last bit."""
    if value != value:
        return '__builtin_nanf("")'
    return f"{value.hex()}f" if abs(value) < float("inf") else f"{'-' if value < 0 else ''}__builtin_inff()"
