"""The formats' names of the ops that npukit reads, by the kind of op they become.

A function of one number becomes a lookup, however it is spelled; a clip becomes part of the op before it. A recurrent
layer becomes dense layers, tables, sums and products for each step.

Whatever else TVM's importer reads becomes `tvm_code`, of which the commonest are named here.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True)
class Names:
    tflite: tuple[str, ...] = ()
    onnx: tuple[str, ...] = ()


def _names(tflite: str, onnx: str) -> Names:
    return Names(tuple(tflite.split()), tuple(onnx.split()))


NAMES: Mapping[str, Names] = {
    "add": _names("ADD", "Add QLinearAdd"),
    "argmax": _names("ARG_MAX", "ArgMax"),
    "average_pool": _names(
        "AVERAGE_POOL_2D", "AveragePool GlobalAveragePool QLinearAveragePool QLinearGlobalAveragePool"
    ),
    "concat": _names("CONCATENATION PACK TILE", "Concat QLinearConcat"),
    "conv2d": _names("CONV_2D", "Conv QLinearConv"),
    "dense": _names("FULLY_CONNECTED UNIDIRECTIONAL_SEQUENCE_LSTM", "Gemm GRU LSTM MatMul QGemm QLinearMatMul RNN"),
    "depthwise_conv2d": _names("DEPTHWISE_CONV_2D", "Conv QLinearConv"),
    "lookup": _names(
        "ABS CEIL COS DIV ELU EXP FLOOR GELU HARD_SWISH LEAKY_RELU LOG LOGISTIC NEG POW RELU"
        " RELU6 RELU_0_TO_1 RELU_N1_TO_1 ROUND RSQRT SIN SQRT"
        " SQUARE TANH",
        "Abs Ceil Clip Div Elu Erf Exp Floor Gelu HardSwish LeakyRelu Log Neg QLinearLeakyRelu QLinearSigmoid Relu"
        " Round Sigmoid Softplus Sqrt Tanh",
    ),
    "matmul": _names("BATCH_MATMUL", "MatMul QLinearMatMul"),
    "max_pool": _names("MAX_POOL_2D", "GlobalMaxPool MaxPool"),
    "maximum": _names("MAXIMUM", "Max"),
    "mean": _names("MEAN", "ReduceMean"),
    "minimum": _names("MINIMUM", "Min"),
    "multiply": _names("MUL", "Mul QLinearMul"),
    "pad": _names("PAD PADV2", "Pad"),
    "prelu": _names("PRELU", "PRelu"),
    "quantize": Names(),
    "requantize": _names("QUANTIZE DEQUANTIZE", "QuantizeLinear DequantizeLinear"),
    "reshape": _names("RESHAPE SQUEEZE EXPAND_DIMS SHAPE", "Flatten Reshape Squeeze Unsqueeze"),
    "resize_bilinear": _names("RESIZE_BILINEAR", "Resize"),
    "resize_nearest": _names("RESIZE_NEAREST_NEIGHBOR REVERSE_V2", "Resize"),
    "slice": _names("SLICE SPLIT SPLIT_V STRIDED_SLICE UNPACK", "Slice Split"),
    "softmax": _names("SOFTMAX", "QLinearSoftmax Softmax"),
    "subtract": _names("SUB", "Sub"),
    "sums": Names(),
    "top_k": Names(),
    "total": Names(),
    "transpose": _names("BATCH_TO_SPACE_ND DEPTH_TO_SPACE SPACE_TO_BATCH_ND SPACE_TO_DEPTH TRANSPOSE", "Transpose"),
    "transpose_conv2d": _names("TRANSPOSE_CONV", "ConvTranspose"),
    "tvm_code": _names(
        "ADD_N ARG_MIN BROADCAST_TO CAST CUMSUM EMBEDDING_LOOKUP EQUAL GATHER GATHER_ND GREATER GREATER_EQUAL"
        " L2_NORMALIZATION LESS LESS_EQUAL LOGICAL_AND LOGICAL_NOT LOGICAL_OR LOG_SOFTMAX MIRROR_PAD NOT_EQUAL"
        " REDUCE_MAX REDUCE_MIN SELECT SELECT_V2 SIGN SQUARED_DIFFERENCE SUM TOPK_V2",
        "ConvInteger Cos CumSum DynamicQuantizeLinear Equal Gather Greater InstanceNormalization LayerNormalization"
        " Less MatMulInteger Pow ReduceMax ReduceMin ReduceSum ReduceSumSquare Sin Tan Where",
    ),
}
