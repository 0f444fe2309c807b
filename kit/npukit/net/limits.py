"""Limits on model files, checked before memory of a stated size is allocated.

A file of a few bytes can state shapes of gigabytes. The defaults are far beyond the capacity of a board of small cores.
NPUKIT_LIMITS multiplies all limits for a trusted file.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod

from npukit.errors import NpukitError
from npukit.host.budget import TRUSTED, factor


@dataclass(frozen=True)
class Limit:
    """Maximum number of `what` in a model file."""

    what: str
    default: int

    @property
    def most(self) -> int:
        return int(self.default * factor())

    def check(self, count: int, thing: str) -> None:
        """Raise an error with the limit if `thing` exceeds the limit."""
        if count > self.most:
            raise NpukitError(f"{thing} has {count:,} {self.what}; npukit reads {self.most:,} at most", tries=[TRUSTED])


FILE_BYTES = Limit("bytes", 1 << 29)
TABLES = Limit("fields", 1 << 20)
"""Maximum number of fields in a protobuf file. Each may take some hundred bytes."""
TENSORS = Limit("tensors", 50_000)
OPS = Limit("ops", 10_000)
GRAPHS = Limit("subgraphs", 1 << 10)
OPERANDS = Limit("operands", 2_048)
"""Maximum number of inputs or of outputs of an op."""
AXES = Limit("axes", 16)
ELEMENTS = Limit("elements", 1 << 25)
"""Maximum number of elements of a tensor."""
TENSOR_BYTES = Limit("bytes in all its tensors", 1 << 29)
"""Maximum total bytes of all tensors. Tensors that share bytes count separately."""
NAME_BYTES = Limit("bytes in a name", 1 << 16)
NAMES_BYTES = Limit("bytes in all its names", 1 << 24)
STEPS = Limit("steps to unroll", 1 << 10)
EXTENT = Limit("places along an axis, padding included", 1 << 20)
"""Maximum number of positions that a window moves over. Also the maximum dilated window size and stride."""
WINDOW = Limit("places in a window", 1 << 18)
COLUMNS = Limit("numbers under the places of its window", 1 << 26)
"""Maximum number of elements of all windows together. Elements in several windows count several times."""
MACS = Limit("multiply-accumulates", 1 << 36)
SCRATCH = Limit("bytes of scratch memory", 1 << 28)


def check_shape(shape: Sequence[int], thing: str) -> None:
    """Raise an error if a tensor of this shape exceeds a limit."""
    AXES.check(len(shape), thing)
    if any(size < 0 for size in shape):
        tries = ["state larger inputs, if the model leaves their sizes open: --input NAME:1x96x96x3"]
        raise NpukitError(f"{thing} has the impossible shape {list(shape)}", tries=tries)
    ELEMENTS.check(prod(shape), f"{thing} of shape {'x'.join(map(str, shape))}")
