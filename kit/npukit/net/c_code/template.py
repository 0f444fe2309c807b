"""The C of `templates/ops`, or a user's: the body of a function, numbers and other words put in."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache

from npukit.data import data_folder

Words = Mapping[str, int | float | str]
"""The numbers, or other words, that stand for words in C that is given."""

_PASSED = re.compile(r"/\*.*?\*/|//[^\n]*|(?<![\w.])[A-Za-z_]\w*", re.S)


@cache
def text_of(file: str) -> str:
    """The C of one of `templates/ops`."""
    return (data_folder("templates") / "ops" / file).read_text(encoding="utf-8")


def body_of(text: str, words: Words) -> str:
    """C without its comments, and with numbers for words."""
    plain = _PASSED.sub(lambda found: _spelled(found[0], words), text)
    return "".join(f"{line.rstrip()}\n" for line in plain.splitlines() if line.strip())


def _spelled(found: str, words: Words) -> str:
    if found.startswith("/"):
        return " "
    value = words.get(found, found)
    if isinstance(value, str):
        return value
    spelled = f"{value!r}f" if isinstance(value, float) else str(int(value))
    return f"({spelled})" if value < 0 else spelled
