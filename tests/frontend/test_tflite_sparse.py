"""Sparse constants of TFLite, and built-in support for custom ops."""

from __future__ import annotations

import struct
from pathlib import Path
from typing import Any

import flatbuffers
import numpy as np
import pytest
import tflite
from tflite_models import Model

from npukit.errors import NpukitError
from npukit.frontend.tflite.file import densified
from npukit.net.reference import run_reference
from npukit.quantize.models import load_model


def numbers(builder: Any, values: np.ndarray) -> int:
    """A vector of indices, in the smallest type as in the converter."""
    vector = builder.CreateNumpyVector(values.astype(np.uint8))
    tflite.Uint8VectorStart(builder)
    tflite.Uint8VectorAddValues(builder, vector)
    return tflite.Uint8VectorEnd(builder)


def axis(builder: Any, size: int, listed: tuple[np.ndarray, np.ndarray] | None) -> int:
    """A dense axis, or a sparse axis with the listed ends and indices."""
    ends, places = (numbers(builder, each) for each in listed) if listed else (0, 0)
    tflite.DimensionMetadataStart(builder)
    tflite.DimensionMetadataAddDenseSize(builder, size)
    if listed:
        tflite.DimensionMetadataAddFormat(builder, tflite.DimensionType.SPARSE_CSR)
        tflite.DimensionMetadataAddArraySegmentsType(builder, tflite.SparseIndexVector.Uint8Vector)
        tflite.DimensionMetadataAddArraySegments(builder, ends)
        tflite.DimensionMetadataAddArrayIndicesType(builder, tflite.SparseIndexVector.Uint8Vector)
        tflite.DimensionMetadataAddArrayIndices(builder, places)
    return tflite.DimensionMetadataEnd(builder)


def sparsity(kept: np.ndarray, block: int, *, dense: int = 0) -> Any:
    """The sparsity of a matrix in rows of blocks. `kept`: the stored blocks."""
    builder, (rows, columns) = flatbuffers.Builder(256), kept.shape
    ends = np.concatenate([[0], np.cumsum(kept.sum(1))])
    axes = [axis(builder, dense or rows, None), axis(builder, columns, (ends, np.nonzero(kept)[1]))]
    axes += [axis(builder, block, None)] if block > 1 else []
    order = builder.CreateNumpyVector(np.arange(len(axes), dtype=np.int32))
    blocks = builder.CreateNumpyVector(np.array([1], np.int32)) if block > 1 else 0
    tflite.SparsityParametersStartDimMetadataVector(builder, len(axes))
    for each in reversed(axes):
        builder.PrependUOffsetTRelative(each)
    metadata = builder.EndVector()
    tflite.SparsityParametersStart(builder)
    tflite.SparsityParametersAddTraversalOrder(builder, order)
    if block > 1:
        tflite.SparsityParametersAddBlockMap(builder, blocks)
    tflite.SparsityParametersAddDimMetadata(builder, metadata)
    builder.Finish(tflite.SparsityParametersEnd(builder))
    return tflite.SparsityParameters.GetRootAs(builder.Output())


@pytest.mark.parametrize("block", [1, 2])
def test_sparse_constants_are_read_as_dense_ones(block: int) -> None:
    random = np.random.default_rng(3)
    kept = random.random((5, 6)) < 0.4
    matrix = np.repeat(kept, block, axis=1) * random.integers(1, 100, (5, 6 * block)).astype(np.int8)
    stored = matrix.reshape(5, 6, block)[kept].ravel()
    assert np.array_equal(densified(stored, sparsity(kept, block), matrix.shape), matrix)


def test_a_sparse_constant_that_claims_too_much_is_damaged() -> None:
    kept = np.ones((2, 3), bool)
    with pytest.raises(ValueError, match="more numbers than its shape"):
        densified(np.ones(6, np.int8), sparsity(kept, 1, dense=1 << 30), (2, 3))


def upsampling(*, custom: bytes = b"") -> bytes:
    """A transposed convolution of TFLite or of MediaPipe."""
    model, random = Model(), np.random.default_rng(4)
    model.inputs.append(model.tensor("x", (1, 4, 5, 3), dtype="float32"))
    model.constant("w", random.normal(0, 1, (2, 3, 3, 3)).astype(np.float32))
    model.constant("b", random.normal(0, 1, 2).astype(np.float32))
    model.constant("size", np.array([1, 8, 5, 2], np.int32))
    model.tensor("y", (1, 8, 5, 2), dtype="float32")
    if custom:
        model.custom("Convolution2DTransposeBias", ["x", "w", "b"], ["y"], custom)
    else:
        options = {"Padding": tflite.Padding.SAME, "StrideH": 2, "StrideW": 1}
        model.op("TRANSPOSE_CONV", ["size", "w", "x", "b"], ["y"], "TransposeConv", **options)
    return model.bytes(["y"])


def test_mediapipe_s_transposed_convolution_is_tflite_s_own(tmp_path: Path) -> None:
    given, results = np.random.default_rng(5).normal(0, 1, (1, 4, 5, 3)).astype(np.float32), []
    for data in (upsampling(), upsampling(custom=struct.pack("<3i", 1, 1, 2))):
        (tmp_path / "model.tflite").write_bytes(data)
        results += run_reference(load_model(tmp_path / "model.tflite", in_float=True).net, [given])
    assert np.array_equal(*results)


def test_options_of_a_custom_op_are_checked(tmp_path: Path) -> None:
    (tmp_path / "model.tflite").write_bytes(upsampling(custom=struct.pack("<3i", 1, 0, 2)))
    with pytest.raises(NpukitError, match="its options are the padding 1 and the strides 2 and 0"):
        load_model(tmp_path / "model.tflite", in_float=True)
