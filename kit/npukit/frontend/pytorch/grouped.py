"""torchao's `dequantize_affine` of constants: integers with a scale for each block, as real numbers."""

# pyright: reportMissingImports=false
from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from typing import Any

import numpy as np
import torch
from tvm import relax

from npukit.errors import NpukitError

GROUPED_OP = "dequantize_affine"
_SCHEMA = (
    f"{GROUPED_OP}(Tensor input, SymInt[] block_size, Tensor scale, Tensor? zero_point, ScalarType input_dtype,"
    " Scalar? quant_min=None, Scalar? quant_max=None, ScalarType output_dtype=6) -> Tensor"
)


@contextmanager
def defined() -> Iterator[None]:
    """Defines the operator for PyTorch within the context, unless torchao has: a program that calls the operator cannot
    be loaded before. A later import of torchao defines the operator itself."""
    library = torch.library.Library("torchao", "FRAGMENT")
    try:
        if not hasattr(torch.ops.torchao, GROUPED_OP):
            library.define(_SCHEMA)
            library.impl(GROUPED_OP, lambda integers, *_: torch.empty_like(integers, dtype=torch.float32), "Meta")
        yield
    finally:
        library._destroy()


def converters(known: Mapping[str, np.ndarray]) -> dict[str, Any]:
    return {f"{GROUPED_OP}.default": partial(_dequantize, known)}


def _dequantize(known: Mapping[str, np.ndarray], node: Any, importer: Any) -> relax.Var:
    integers, block, scales, zeros = (
        known.get(each.name) if isinstance(each, torch.fx.Node) else each for each in node.args[:4]
    )
    if integers is None or scales is None:
        raise NpukitError(f"{GROUPED_OP} of values that are computed at run time, which npukit does not read")
    real = (integers.astype(np.float32) - _spread(zeros, block, integers)) * _spread(scales, block, integers)
    return importer.block_builder.emit(relax.const(real.astype(np.float32)))


def _spread(values: np.ndarray | None, block: Any, integers: np.ndarray) -> np.ndarray:
    """A number for each integer. `values`: a number for each block."""
    spread = np.zeros(1) if values is None else values
    shape = [size // int(each) for size, each in zip(integers.shape, block, strict=True)]
    spread = np.broadcast_to(spread.reshape(shape) if spread.size > 1 else spread, shape)
    for axis, each in enumerate(block):
        spread = np.repeat(spread, int(each), axis)
    return spread.astype(np.float32)
