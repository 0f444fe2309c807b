"""The op kinds of a Net: what each of them is, checks, reads and computes.

Semantics: TensorFlow Lite's int8 specification as computed by TFLite Micro's reference kernels. Layouts: activations
NHWC; conv2d weights OHWI; depthwise weights 1HWO; dense weights [out, in].
"""

# ruff: noqa: F401
from npukit.net.attributes import Attributes, Padding, Pair, RowReads, Run, TvmCode
from npukit.net.ops.conversion import Dequantize, Quantize, Requantize
from npukit.net.ops.convolution import Conv2d, DepthwiseConv2d, TransposeConv2d
from npukit.net.ops.dense import Dense, Matmul
from npukit.net.ops.elementwise import (
    Add,
    Divide,
    Lookup,
    Maximum,
    Minimum,
    Multiply,
    Prelu,
    Select,
    SquaredDifference,
    Subtract,
)
from npukit.net.ops.movement import Concat, Pad, Reshape, Slice, Transpose
from npukit.net.ops.norm import Norm, NormBySquares, Squares
from npukit.net.ops.pools import AveragePool, MaxPool, Mean
from npukit.net.ops.resize import ResizeBilinear, ResizeNearest
from npukit.net.ops.search import ArgMax, TopK
from npukit.net.ops.softmax import Softmax
from npukit.net.ops.sums import Sums, Total
