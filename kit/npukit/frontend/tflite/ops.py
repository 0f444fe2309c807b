"""Which converter each TFLite builtin has."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from npukit.frontend.tflite import elementwise, linear, movement
from npukit.frontend.tflite.elementwise import Converter, binary, clip, pool, unary
from npukit.frontend.tflite.emit import operators

CONVERTERS: Mapping[str, Converter] = {
    "ABS": unary(operators.abs),
    "ADD": binary("add"),
    "ARG_MAX": elementwise.arg_max,
    "AVERAGE_POOL_2D": pool("avg_pool2d"),
    "BATCH_MATMUL": linear.batch_matmul,
    "CONCATENATION": movement.concatenation,
    "CONV_2D": linear.conv_2d,
    "DEPTHWISE_CONV_2D": linear.depthwise_conv_2d,
    "DEQUANTIZE": elementwise.requantize,
    "DIV": binary("divide"),
    "ELU": unary(elementwise.elu),
    "EXP": unary(operators.exp),
    "EXPAND_DIMS": movement.as_output,
    "FULLY_CONNECTED": linear.fully_connected,
    "GELU": elementwise.gelu,
    "HARD_SWISH": unary(elementwise.hard_swish),
    "LEAKY_RELU": elementwise.leaky_relu,
    "LOG": unary(operators.log),
    "LOGISTIC": unary(operators.sigmoid),
    "MAXIMUM": binary("maximum"),
    "MAX_POOL_2D": pool("max_pool2d"),
    "MEAN": elementwise.mean,
    "MINIMUM": binary("minimum"),
    "MUL": binary("multiply"),
    "NEG": unary(operators.negative),
    "PACK": movement.pack,
    "PAD": movement.pad,
    "PADV2": movement.pad,
    "PRELU": elementwise.prelu,
    "QUANTIZE": elementwise.requantize,
    "RELU": clip(0, np.inf),
    "RELU6": clip(0, 6),
    "RELU_0_TO_1": clip(0, 1),
    "RELU_N1_TO_1": clip(-1, 1),
    "RESHAPE": movement.reshape,
    "RESIZE_BILINEAR": movement.resize_bilinear,
    "RESIZE_NEAREST_NEIGHBOR": movement.resize_nearest,
    "RSQRT": unary(operators.rsqrt),
    "SHAPE": movement.shape,
    "SLICE": movement.slice_,
    "SOFTMAX": elementwise.softmax,
    "SPLIT": movement.split,
    "SPLIT_V": movement.split_v,
    "SQRT": unary(operators.sqrt),
    "SQUARE": unary(operators.square),
    "SQUEEZE": movement.as_output,
    "STRIDED_SLICE": movement.strided_slice,
    "SUB": binary("subtract"),
    "TANH": unary(operators.tanh),
    "TRANSPOSE": movement.transpose,
    "TRANSPOSE_CONV": linear.transpose_conv,
}
