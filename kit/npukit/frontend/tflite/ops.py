"""The converter of each TFLite builtin."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

import numpy as np

from npukit.frontend.tflite import elementwise, further, linear, movement, recurrent, wide, wide_linear
from npukit.frontend.tflite.custom import DETECTION
from npukit.frontend.tflite.elementwise import binary, clip, of_truth, place_of, pool, reduction, unary
from npukit.frontend.tflite.emit import Converter, operators
from npukit.frontend.tflite.model import custom_kind
from npukit.frontend.tflite.recurrent import svdf
from npukit.frontend.tflite.signal import SIGNAL
from npukit.frontend.tflite.wide import by_width, moving

FUNCTIONS = (
    *("ABS", "CEIL", "COS", "EXP", "FLOOR", "LOG", "ROUND", "RSQRT", "SIGN", "SIN", "SQRT", "SQUARE", "ZEROS_LIKE"),
)
"""Functions of a single number, named as in Relax."""
TRUTHS = (
    *("EQUAL", "GREATER", "GREATER_EQUAL", "LESS", "LESS_EQUAL"),
    *("LOGICAL_AND", "LOGICAL_NOT", "LOGICAL_OR", "NOT_EQUAL"),
)
"""Comparisons and logical functions, named as in Relax."""

CONVERTERS: Mapping[str, Converter] = {
    **{name: unary(getattr(operators, name.lower())) for name in FUNCTIONS},
    **{name: of_truth(name.lower()) for name in TRUTHS},
    **{f"REDUCE_{name.upper()}": reduction(name) for name in ("max", "min", "prod")},
    "ADD": by_width(wide.sum_of(1), binary("add")),
    "ADD_N": elementwise.add_n,
    "ARG_MAX": place_of("argmax"),
    "ARG_MIN": place_of("argmin"),
    "ATAN2": elementwise.atan2,
    "AVERAGE_POOL_2D": by_width(wide_linear.average_pool, pool("avg_pool2d")),
    "BATCH_MATMUL": linear.batch_matmul,
    "BATCH_TO_SPACE_ND": further.batch_to_space,
    "BIDIRECTIONAL_SEQUENCE_LSTM": recurrent.bidirectional_lstm,
    "BIDIRECTIONAL_SEQUENCE_RNN": recurrent.bidirectional_rnn,
    "BROADCAST_TO": further.broadcast_to,
    "CAST": further.cast,
    "CONCATENATION": moving(movement.concatenation),
    "CONV_3D": further.conv_3d,
    "CONV_3D_TRANSPOSE": further.conv_3d_transpose,
    "CONV_2D": by_width(wide_linear.conv_2d, linear.conv_2d),
    "CUMSUM": further.cumulative_sum,
    "DENSIFY": movement.densify,
    "DEPTHWISE_CONV_2D": by_width(wide_linear.depthwise_conv_2d, linear.depthwise_conv_2d),
    "DEPTH_TO_SPACE": further.depth_to_space,
    "DEQUANTIZE": elementwise.dequantize_in_float,
    "DIV": binary("divide"),
    "ELU": unary(elementwise.elu),
    "EMBEDDING_LOOKUP": further.embedding_lookup,
    "EXPAND_DIMS": moving(movement.expand_dims),
    "FILL": movement.fill,
    "FLOOR_DIV": binary("floor_divide"),
    "FLOOR_MOD": binary("floor_mod"),
    "FULLY_CONNECTED": by_width(wide_linear.fully_connected, linear.fully_connected),
    "GATHER": further.gather,
    "GATHER_ND": further.gather_nd,
    "GELU": elementwise.gelu,
    "HARD_SWISH": unary(elementwise.hard_swish),
    "L2_NORMALIZATION": further.l2_normalization,
    "LEAKY_RELU": by_width(wide.leaky_relu, elementwise.leaky_relu),
    "LOCAL_RESPONSE_NORMALIZATION": elementwise.local_response_normalization,
    "LOGISTIC": by_width(wide.by_sigmoid(wide.logistic_of), unary(operators.sigmoid)),
    "LOG_SOFTMAX": unary(operators.nn.log_softmax),
    "MAXIMUM": binary("maximum"),
    "MAX_POOL_2D": by_width(wide_linear.max_pool, pool("max_pool2d")),
    "MEAN": reduction("mean"),
    "MINIMUM": binary("minimum"),
    "MIRROR_PAD": further.mirror_pad,
    "MUL": by_width(wide.product, binary("multiply")),
    "NEG": unary(operators.negative),
    "NON_MAX_SUPPRESSION_V4": further.suppressed,
    "NON_MAX_SUPPRESSION_V5": further.suppressed,
    "ONE_HOT": further.one_hot,
    "PACK": movement.pack,
    "PAD": movement.pad,
    "PADV2": movement.pad,
    "POW": binary("power"),
    "PRELU": elementwise.prelu,
    "QUANTIZE": elementwise.requantize,
    "RANGE": movement.range_,
    "RANK": movement.rank,
    "REDUCE_ALL": partial(further.truth_of_any, name="min"),
    "REDUCE_ANY": partial(further.truth_of_any, name="max"),
    "RELU": by_width(wide.relu(0, np.inf), clip(0, np.inf)),
    "RELU6": by_width(wide.relu(0, 6), clip(0, 6)),
    "RELU_0_TO_1": clip(0, 1),
    "RELU_N1_TO_1": clip(-1, 1),
    "RESHAPE": moving(movement.reshape),
    "RESIZE_BILINEAR": moving(movement.resize_bilinear),
    "RESIZE_NEAREST_NEIGHBOR": moving(movement.resize_nearest),
    "REVERSE_V2": further.reverse,
    "SCATTER_ND": further.scatter,
    "SEGMENT_SUM": further.segment_sum,
    "SELECT": elementwise.select,
    "SELECT_V2": elementwise.select,
    "SHAPE": movement.shape,
    "SLICE": moving(movement.slice_),
    "SOFTMAX": by_width(wide.softmax, elementwise.softmax),
    "SPACE_TO_BATCH_ND": further.space_to_batch,
    "SPACE_TO_DEPTH": further.space_to_depth,
    "SPLIT": moving(movement.split),
    "SPLIT_V": moving(movement.split_v),
    "SQUARED_DIFFERENCE": elementwise.squared_difference,
    "SQUEEZE": moving(movement.squeeze),
    "STRIDED_SLICE": moving(movement.strided_slice),
    "SUB": by_width(wide.sum_of(-1), binary("subtract")),
    "SUM": reduction("sum"),
    "SVDF": svdf,
    "TANH": by_width(wide.by_sigmoid(wide.tanh_of), unary(operators.tanh)),
    "TILE": further.tile,
    "TOPK_V2": further.top_k,
    "TRANSPOSE": moving(movement.transpose),
    "TRANSPOSE_CONV": linear.transpose_conv,
    "UNIDIRECTIONAL_SEQUENCE_LSTM": recurrent.lstm_layer,
    "UNIDIRECTIONAL_SEQUENCE_RNN": recurrent.rnn_layer,
    "UNPACK": further.unpack,
    custom_kind("Convolution2DTransposeBias"): linear.mediapipe_transpose_conv,
    **DETECTION,
    **SIGNAL,
}
