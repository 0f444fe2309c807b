"""A smallest example of each kind of op, as text: what `npukit ops` asks the engines about."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from npukit.net.check import check_net
from npukit.net.net import Net
from npukit.net.ops import KINDS
from npukit.net.parse import parse_net

_IMAGE = "int8[1,2,2,4] scale 0.5 zero 0"
_ROWS = "int8[1,2,4] scale 0.5 zero 0"
_KERNEL = "constant w: int8[4,1,1,4] scale 1.0 zero 0 = [1, 0, 0, 0, 0, 1, 0, 0, 0, 0, 1, 0, 0, 0, 0, 1]"
_DEPTHWISE = "constant w: int8[1,1,1,4] scale 1.0 zero 0 = [1, 1, 1, 1]"
_MATRIX = "constant w: int8[4,4] scale 1.0 zero 0 = [1, 0, 0, 0, 0, 1, 0, 0, 0, 0, 1, 0, 0, 0, 0, 1]"
_SLOPES = "constant w: int8[1,1,1,4] scale 0.5 zero 0 = [1, 1, 1, 1]"

_TOTAL = (("b", 3), ("m", 1 << 30), ("s", 0))

_CODE = 'tvm_code(x) what="dequantize" code="for (int i = 0; i < 16; ++i) { output[i] = (float)p0[i]; }"'

_RESULTS: Mapping[str, tuple[str, str]] = {
    "add": (_IMAGE, "add(x, x)"),
    "argmax": ("int32[1,2,2]", "argmax(x) axis=3"),
    "average_pool": ("int8[1,1,1,4] scale 0.5 zero 0", "average_pool(x) window=[2, 2]"),
    "concat": ("int8[1,2,2,8] scale 0.5 zero 0", "concat(x, x) axis=3"),
    "conv2d": (_IMAGE, "conv2d(x, w)"),
    "dense": (_ROWS, "dense(x, w)"),
    "depthwise_conv2d": (_IMAGE, "depthwise_conv2d(x, w)"),
    "lookup": (_IMAGE, "lookup(x, w)"),
    "matmul": ("int8[1,2,2] scale 0.5 zero 0", "matmul(x, t)"),
    "max_pool": ("int8[1,1,1,4] scale 0.5 zero 0", "max_pool(x) window=[2, 2]"),
    "maximum": (_IMAGE, "maximum(x, x)"),
    "mean": ("int8[1,1,1,4] scale 0.5 zero 0", "mean(x) axes=[1, 2]"),
    "minimum": (_IMAGE, "minimum(x, x)"),
    "multiply": (_IMAGE, "multiply(x, x)"),
    "pad": ("int8[1,3,2,4] scale 0.5 zero 0", "pad(x) before=[0, 1, 0, 0] after=[0, 0, 0, 0]"),
    "prelu": (_IMAGE, "prelu(x, w)"),
    "quantize": (_IMAGE, "quantize(x, o, s)"),
    "requantize": ("int8[1,2,2,4] scale 0.25 zero 0", "requantize(x)"),
    "reshape": ("int8[4,4] scale 0.5 zero 0", "reshape(x)"),
    "resize_bilinear": (_IMAGE, "resize_bilinear(x) rows=[[0, 1, 0], [1, 1, 0]] columns=[[0, 1, 0], [1, 1, 0]]"),
    "resize_nearest": (_IMAGE, "resize_nearest(x) rows=[0, 1] columns=[0, 1]"),
    "slice": ("int8[1,1,2,4] scale 0.5 zero 0", "slice(x) begin=[0, 0, 0, 0] end=[1, 1, 2, 4] strides=[1, 1, 1, 1]"),
    "softmax": ("int8[1,2,2,4] scale 0.00390625 zero -128", "softmax(x)"),
    "subtract": (_IMAGE, "subtract(x, x)"),
    "sums": ("int32[1,2,2,4]", "sums(x, w)"),
    "top_k": ("int32[1,2,2,2]", "top_k(x) count=2"),
    "total": ("int8[1,2,2,4] scale 0.5 zero 0", "total(x, x, b, m, s)"),
    "transpose": (_IMAGE, "transpose(x) axes=[0, 2, 1, 3]"),
    "transpose_conv2d": (_IMAGE, "transpose_conv2d(x, w)"),
    "tvm_code": ("float32[1,2,2,4]", _CODE),
}
_SOURCES: Mapping[str, str] = {
    "dense": _ROWS,
    "matmul": _ROWS,
    "quantize": "float32[1,2,2,4]",
    "total": "int32[1,2,2,4]",
}
_CONSTANTS: Mapping[str, str] = {
    "conv2d": _KERNEL,
    "dense": _MATRIX,
    "depthwise_conv2d": _DEPTHWISE,
    "prelu": _SLOPES,
    "quantize": "constant o: float32[1] = [0.5]\nconstant s: float32[4] = [1.0, 2.0, 3.0, 4.0]",
    "sums": _KERNEL,
    "total": "\n".join(f"constant {name}: int32[4] = [{value}, {value}, {value}, {value}]" for name, value in _TOTAL),
    "transpose_conv2d": _KERNEL,
}


def examples() -> Iterator[Net]:
    """A net for each kind; the op in question is its last."""
    return (example(kind) for kind in sorted(KINDS))


def example(kind: str) -> Net:
    result, call = _RESULTS[kind]
    lines = [f"net {kind}", f"input x: {_SOURCES.get(kind, _IMAGE)}"]
    if kind == "matmul":
        lines.append("op t: int8[1,4,2] scale 0.5 zero 0 = transpose(x) axes=[0, 2, 1]")
    lines += [f"op y: {result} = {call}", "output y"]
    if kind == "lookup":
        lines.append(f"constant w: int8[256] = {list(range(-128, 128))}")
    lines += [_CONSTANTS[kind]] if kind in _CONSTANTS else []
    return check_net(parse_net("\n".join(lines) + "\n", {}))
