"""Limits on what a model file may claim, checked before anything of that size is made.

A file of a few bytes can name shapes of gigabytes, so each claim is compared with its limit first. The defaults are
far beyond what a board of small cores holds; NPUKIT_LIMITS multiplies them all for a file that its user trusts.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod

from npukit.errors import NpukitError
from npukit.host.budget import TRUSTED, factor


@dataclass(frozen=True)
class Limit:
    """The most that a file may have of something."""

    what: str
    default: int

    @property
    def most(self) -> int:
        return int(self.default * factor())

    def check(self, count: int, thing: str) -> None:
        """An error that names the limit if `thing` is beyond it."""
        if count > self.most:
            raise NpukitError(
                f"{thing} has {count:,} {self.what}; npukit reads {self.most:,} at most",
                tries=[TRUSTED],
            )


FILE_BYTES = Limit("bytes", 1 << 29)
TABLES = Limit("fields", 1 << 20)
"""The most fields of a protobuf file; each may take some hundred bytes."""
TENSORS = Limit("tensors", 50_000)
OPS = Limit("ops", 10_000)
GRAPHS = Limit("subgraphs", 1 << 10)
OPERANDS = Limit("operands", 2_048)
"""Inputs or outputs of one op."""
AXES = Limit("axes", 16)
ELEMENTS = Limit("elements", 1 << 25)
"""The most elements of one tensor."""
TENSOR_BYTES = Limit("bytes in all its tensors", 1 << 29)
"""The most bytes of all tensors one by one, however many of them name the same bytes."""
NAME_BYTES = Limit("bytes in a name", 1 << 16)
NAMES_BYTES = Limit("bytes in all its names", 1 << 24)
STEPS = Limit("steps to unroll", 1 << 10)
EXTENT = Limit("places along an axis, padding included", 1 << 20)
"""The most places that a window moves over; also how far apart its places may be."""
WINDOW = Limit("places in a window", 1 << 18)
COLUMNS = Limit("numbers under the places of its window", 1 << 26)
"""Each place's numbers counted anew."""
MACS = Limit("multiply-accumulates", 1 << 36)
SCRATCH = Limit("bytes of scratch memory", 1 << 28)


def check_shape(shape: Sequence[int], thing: str) -> None:
    """An error unless a tensor of this shape may be made."""
    AXES.check(len(shape), thing)
    if any(size < 0 for size in shape):
        raise NpukitError(f"{thing} has the impossible shape {list(shape)}")
    ELEMENTS.check(prod(shape), f"{thing} of shape {'x'.join(map(str, shape))}")
