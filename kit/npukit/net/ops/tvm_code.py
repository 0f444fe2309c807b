"""Ops as C code, whose attributes are in `net/attributes.py`."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from npukit.net.attributes import Pair, TvmCode
from npukit.net.box import Box
from npukit.net.c_code.rows import rows_of
from npukit.net.net import Net, Op
from npukit.net.ops.fields import AxisRule, InputRule
from npukit.net.ops.kind import MANY, Example, OpSpec, Scales, names


def _field_of_code(net: Net, op: Op) -> list[InputRule]:
    """Rules of C code: matching rows of inputs that the code reads row by row, the whole of other inputs."""
    rows = rows_of(net, op)
    return [
        tuple(_rule_of(rows.along(f"p{place}", axis) if rows else None) for axis in range(len(net.tensor(name).shape)))
        for place, name in enumerate(op.inputs)
        if name not in net.constants
    ]


def _rule_of(along: tuple[int, tuple[Pair, ...]] | None) -> AxisRule:
    return AxisRule(along[0], places=along[1]) if along else AxisRule()


def _all_but_rows(net: Net, op: Op) -> tuple[int, ...]:
    rows = rows_of(net, op)
    cut = rows.cut if rows else ()
    return tuple(axis for axis in range(len(net.tensor(op.output).shape)) if axis not in cut)


def _part_of_code(net: Net, op: Op, name: str, output: Box) -> Box:
    shape, rows = net.tensor(name).shape, rows_of(net, op)
    return rows.box(f"p{op.inputs.index(name)}", output) if rows else Box.whole(shape)


def _reference(net: Net, op: Op, operands: Sequence[np.ndarray]) -> np.ndarray:
    from npukit.net.reference.tvm_code import tvm_code

    return tvm_code(net, op, operands)


OPS = (
    OpSpec(
        TvmCode,
        lambda net, op: net.tensor(op.output).shape,
        _reference,
        Example(
            'tvm_code(x) what="float" code="for (int i = 0; i < 16; ++i) { output[i] = (float)p0[i]; }" cycles=160',
            "float32[1,2,2,4]",
        ),
        operands=(1, MANY),
        scales=Scales.FREE,
        field=_field_of_code,
        uncut=_all_but_rows,
        products=lambda net, op: op.of(TvmCode).macs,
        names=names(
            "ADD_N ARG_MIN ATAN2 BROADCAST_TO CAST CONV_3D CONV_3D_TRANSPOSE CUMSUM EMBEDDING_LOOKUP EQUAL "
            "FLOOR_DIV FLOOR_MOD GATHER GATHER_ND GREATER GREATER_EQUAL LESS LESS_EQUAL "
            "LOCAL_RESPONSE_NORMALIZATION LOGICAL_AND LOGICAL_NOT LOGICAL_OR LOG_SOFTMAX MIRROR_PAD "
            "NON_MAX_SUPPRESSION_V4 NON_MAX_SUPPRESSION_V5 NOT_EQUAL ONE_HOT REDUCE_ALL REDUCE_ANY "
            "REDUCE_PROD SCATTER_ND SEGMENT_SUM SELECT SELECT_V2 SIGN TOPK_V2",
            "AffineGrid And ArgMin BitShift BitwiseAnd BitwiseNot BitwiseOr BitwiseXor Cast CastLike Compress "
            "ConvInteger CumSum DeformConv DynamicQuantizeLinear Equal Expand Gather GatherElements GatherND "
            "GlobalLpPool Greater GreaterOrEqual GridSample Hardmax InstanceNormalization LRN LayerNormalization "
            "Less LessOrEqual LogSoftmax LpNormalization LpPool MatMulInteger MaxRoiPool MaxUnpool Mod "
            "NegativeLogLikelihoodLoss NonMaxSuppression NonZero Not OneHot Or Pow QLinearWhere RMSNormalization "
            "ReduceL1 ReduceL2 ReduceLogSum ReduceLogSumExp ReduceProd ReduceSumSquare RoiAlign Scatter "
            "ScatterElements ScatterND SoftmaxCrossEntropyLoss TopK Trilu Unique Where Xor",
        ),
        operand=_part_of_code,
    ),
)
