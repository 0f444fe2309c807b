"""TFLite weights with a scale for each block along the last axis, as AI Edge Quantizer writes them for float data."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from flatbuffers.number_types import Int32Flags

from npukit.errors import NpukitError
from npukit.frontend.tflite.model import TfliteTensor

BLOCKWISE = 2
"""Number of the table in the schema's union of details."""
SCALES, ZERO_POINTS, SIZE = 4, 6, 8
"""Places of the table's fields in its slots."""


@dataclass(frozen=True)
class Blockwise:
    """`scales`: number of the tensor with a row of scales for each row of weights; `size`: weights of a block."""

    scales: int
    size: int

    @classmethod
    def of(cls, parameters: Any, name: str) -> Blockwise | None:
        """The blocks of tensor `name`, if its quantisation has any."""
        if parameters is None or parameters.DetailsType() != BLOCKWISE:
            return None
        table = parameters.Details()
        if _number(table, ZERO_POINTS, 0) > 0:
            raise NpukitError(f"tensor {name!r} has zero points by block, which npukit does not read")
        return cls(_number(table, SCALES, 0), _number(table, SIZE, 0))

    def real(self, weights: TfliteTensor, tensors: Sequence[TfliteTensor]) -> TfliteTensor:
        """The weights in float."""
        scales, values = tensors[self.scales].value, weights.value
        shape = (*weights.shape[:-1], -(-weights.shape[-1] // max(self.size, 1)))
        if scales is None or values is None or self.size < 1 or scales.shape != shape:
            raise ValueError(f"tensor {weights.name!r} has scales by block that do not match it")
        spread = np.repeat(scales.astype(np.float32), self.size, -1)[..., : weights.shape[-1]]
        return replace(weights, dtype="float32", value=values * spread, quantization=None)


def _number(table: Any, place: int, usual: int) -> int:
    slot = table.Offset(place)
    return int(table.Get(Int32Flags, table.Pos + slot)) if slot else usual
