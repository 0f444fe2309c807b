"""Float ONNX ops and groups of ops, quantised: close to ONNX Runtime's floats, without superfluous ops."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest
from float_models import calibrated, node, saved, weights

from npukit.quantize.observe import ObservedRange, extremes, percentiles

IMAGE = (1, 4, 8, 6)
ROWS = (1, 5, 8)
GOOD = 28
"""Signal-to-error ratio in decibels that a correct int8 network reaches on noise."""

CONV = node("Conv", "x w b", "c", pads=[1, 1, 1, 1])
KERNEL = {"w": weights(6, 4, 3, 3), "b": weights(6)}
ONE, THREE, SIX = (np.array(value, np.float32) for value in (1, 3, 6))


def check(folder: Path, shape: tuple[int, ...], nodes: list[onnx.NodeProto], kinds: list[str], **constants: np.ndarray):
    got = calibrated(saved(folder, shape, nodes, **constants), shape)
    assert got.kinds == kinds
    assert got.sqnr_db > GOOD
    return got


def test_a_batch_norm_is_part_of_the_convolution(tmp_path: Path) -> None:
    statistics = {"mean": weights(6), "variance": np.abs(weights(6)) + 1, "scale": weights(6), "shift": weights(6)}
    norm = node("BatchNormalization", "c scale shift mean variance", "y")
    check(tmp_path, IMAGE, [CONV, norm], ["conv2d"], **KERNEL, **statistics)


def test_scales_and_shifts_are_part_of_the_convolution(tmp_path: Path) -> None:
    nodes = [CONV, node("Mul", "s c", "m"), node("Sub", "m t", "d"), node("Relu", "d", "y")]
    channels = {"s": weights(6, 1, 1), "t": weights(1, 6, 1, 1)}
    check(tmp_path, IMAGE, nodes, ["conv2d"], **KERNEL, **channels)


@pytest.mark.parametrize("kind", ["Relu", "Sigmoid", "Tanh", "LeakyRelu", "HardSwish", "Elu"])
def test_activations(kind: str, tmp_path: Path) -> None:
    kinds = ["conv2d"] if kind == "Relu" else ["conv2d", "lookup"]
    check(tmp_path, IMAGE, [CONV, node(kind, "c", "y")], kinds, **KERNEL)


def test_a_function_spelled_out_is_one_table(tmp_path: Path) -> None:
    """x * sigmoid(x), followed by a sum."""
    nodes = [CONV, node("Sigmoid", "c", "s"), node("Mul", "c s", "g"), node("Add", "g one", "y")]
    check(tmp_path, IMAGE, nodes, ["conv2d", "lookup"], **KERNEL, one=ONE)


def test_a_part_of_a_table_may_be_wanted_by_itself(tmp_path: Path) -> None:
    nodes = [
        CONV,
        node("Sigmoid", "c", "s"),
        node("Mul", "c s", "g"),
        node("Conv", "s v", "d"),
        node("Add", "g d", "y"),
    ]
    check(tmp_path, IMAGE, nodes, ["conv2d", "lookup", "lookup", "conv2d", "add"], **KERNEL, v=weights(6, 6, 1, 1))


def test_a_sum_of_branches(tmp_path: Path) -> None:
    nodes = [CONV, node("Relu", "c", "r"), node("Conv", "r v", "d", pads=[1, 1, 1, 1]), node("Add", "d r", "a")]
    nodes.append(node("Relu", "a", "y"))
    check(tmp_path, IMAGE, nodes, ["conv2d", "conv2d", "add"], **KERNEL, v=weights(6, 6, 3, 3))


def test_an_activation_beside_its_convolution(tmp_path: Path) -> None:
    """Another op reads the convolution's own result."""
    nodes = [CONV, node("Relu", "c", "r"), node("Mul", "r c", "m"), node("Conv", "m v", "y")]
    got = calibrated(saved(tmp_path, IMAGE, nodes, **KERNEL, v=weights(2, 6, 1, 1)), IMAGE)
    assert got.kinds == ["conv2d", "lookup", "conv2d"]
    assert got.sqnr_db > GOOD


def test_pools_keep_the_scale(tmp_path: Path) -> None:
    nodes = [CONV, node("MaxPool", "c", "p", kernel_shape=[2, 2], strides=[2, 2])]
    nodes.append(node("AveragePool", "p", "y", kernel_shape=[2, 1]))
    net = check(tmp_path, IMAGE, nodes, ["conv2d", "max_pool", "average_pool"], **KERNEL).loaded.net
    assert len({net.tensor(op.output).quantization for op in net.ops if "pool" in op.kind or op.kind == "conv2d"}) == 1


@pytest.mark.parametrize("lowest", [-np.inf, np.finfo(np.float32).min])
def test_the_border_of_a_largest_value_is_less_than_all_data(lowest: float, tmp_path: Path) -> None:
    """LiteRT's converter for PyTorch writes MaxPool2d(padding=1) as these two ops."""
    nodes = [CONV, node("Pad", "c widths lowest", "p"), node("MaxPool", "p", "y", kernel_shape=[3, 3], strides=[2, 2])]
    widths = np.array([0, 0, 1, 1, 0, 0, 1, 1])
    got = check(
        tmp_path, IMAGE, nodes, ["conv2d", "max_pool"], **KERNEL, widths=widths, lowest=np.array(lowest, np.float32)
    )
    assert len({got.loaded.net.tensor(op.output).quantization for op in got.loaded.net.ops[-2:]}) == 1


def test_joined_parts_need_no_rescaling(tmp_path: Path) -> None:
    nodes = [CONV, node("Conv", "x v", "d", pads=[1, 1, 1, 1]), node("Relu", "d", "e")]
    nodes.append(node("Concat", "c e", "y", axis=1))
    check(tmp_path, IMAGE, nodes, ["conv2d", "conv2d", "concat"], **KERNEL, v=weights(3, 4, 3, 3) * 4)


def test_a_part_that_others_read_is_rescaled(tmp_path: Path) -> None:
    nodes = [CONV, node("Conv", "c v", "d"), node("Concat", "c d", "y", axis=1)]
    kinds = ["conv2d", "conv2d", "lookup", "concat"]
    check(tmp_path, IMAGE, nodes, kinds, **KERNEL, v=weights(3, 6, 1, 1) * 4)


def test_splits_and_moves_are_not_quantised_again(tmp_path: Path) -> None:
    nodes = [CONV, node("Split", "c", "p q", axis=1), node("Add", "p q", "a")]
    nodes += [node("Transpose", "a", "t", perm=[0, 2, 3, 1]), node("Relu", "t", "y")]
    check(tmp_path, IMAGE, nodes, ["conv2d", "slice", "slice", "add"], **KERNEL)


def test_attention(tmp_path: Path) -> None:
    """The softmax absorbs the scaling."""
    nodes = [node("MatMul", "x wq", "q"), node("MatMul", "x wk", "k"), node("MatMul", "x wv", "v")]
    nodes += [node("Transpose", "k", "kt", perm=[0, 2, 1]), node("MatMul", "q kt", "s"), node("Mul", "s c", "u")]
    nodes += [node("Softmax", "u", "p", axis=-1), node("MatMul", "p v", "y")]
    matrices = {name: weights(8, 8, seed=seed) for seed, name in enumerate(("wq", "wk", "wv"))}
    kinds = ["dense", "dense", "dense", "matmul", "softmax", "matmul"]
    got = calibrated(saved(tmp_path, ROWS, nodes, **matrices, c=np.array(0.35, np.float32)), ROWS)
    assert sorted(got.kinds) == sorted(kinds)
    assert got.sqnr_db > GOOD - 3


def test_dense_with_bias_and_constant_operands(tmp_path: Path) -> None:
    nodes = [node("MatMul", "x w", "m"), node("Add", "b m", "d"), node("Mul", "d s", "e"), node("Relu", "e", "f")]
    nodes += [node("Add", "f position", "y")]
    constants = {"w": weights(8, 7), "b": weights(7), "s": weights(7), "position": weights(5, 7)}
    check(tmp_path, ROWS, nodes, ["dense", "add"], **constants)


def test_transposed_convolution(tmp_path: Path) -> None:
    nodes = [node("ConvTranspose", "x w b", "y", strides=[2, 2], pads=[1, 1, 0, 0])]
    check(tmp_path, IMAGE, nodes, ["transpose_conv2d"], w=weights(4, 3, 3, 3), b=weights(3))


def test_a_depthwise_channel_with_tiny_weights_and_a_large_bias(tmp_path: Path) -> None:
    """The bias in units of the weights would overflow the accumulator."""
    kernel, bias = weights(4, 1, 3, 3), weights(4)
    kernel[1] *= 1e-9
    bias[1] = 2
    nodes = [node("Conv", "x w b", "y", group=4)]
    net = check(tmp_path, IMAGE, nodes, ["depthwise_conv2d"], w=kernel, b=bias).loaded.net
    assert np.abs(net.constants["depthwise_conv2d_0_bias"]).max() < 1 << 28


def test_dead_weights(tmp_path: Path) -> None:
    kernel = weights(6, 4, 3, 3)
    kernel[2] = 0
    check(tmp_path, IMAGE, [node("Conv", "x w", "y")], ["conv2d"], w=kernel)


def test_ranges_are_the_same_where_the_last_bits_differ() -> None:
    ends = np.random.default_rng(4).lognormal(0, 3, (2, 20_000)).astype(np.float32)
    moved = np.nextafter(ends, np.float32(np.inf)), np.nextafter(ends, np.float32(0))
    ranges, *others = (
        [ObservedRange(-float(a), float(b)).steady for a, b in zip(*each, strict=True)] for each in (ends, *moved)
    )
    for other in others:
        assert sum(a != b for a, b in zip(ranges, other, strict=True)) < len(ranges) / 2_000
    for low, high, steady in zip(*ends.tolist(), ranges, strict=True):
        assert 1 - 2**-17 <= -steady.low / low <= 1 + 2**-7
        assert 1 - 2**-17 <= steady.high / high <= 1 + 2**-7


@pytest.mark.parametrize("end", [0.0, 1.0, 6.0, -2.5, 127.0])
def test_round_ends_of_ranges_stay(end: float) -> None:
    for near in (end, float(np.nextafter(np.float32(end), np.float32(0))), end + 1e-7 * abs(end)):
        assert ObservedRange(near, near).steady == ObservedRange(end, end)


def test_percentiles_leave_out_what_is_rare() -> None:
    values = [[np.append(np.linspace(-1, 2, 20000), 100)], [np.linspace(-1, 2, 20000)]]
    whole = extremes(iter(values), ["x"])
    (cut,) = percentiles(iter(values), whole, 1e-4)
    assert whole == [ObservedRange(-1, 100)]
    assert cut.low == -1
    assert 2 <= cut.high < 2.1


MEAN = node("ReduceMean", "x", "m", axes=[2])
DEVIATION = [node("ReduceMean", "q", "v", axes=[2]), node("Add", "v e", "w"), node("Sqrt", "w", "r")]
NORMS = {
    "PyTorch's": [MEAN, node("Sub", "x m", "d"), node("Pow", "d two", "q"), *DEVIATION, node("Div", "d r", "n")],
    "a product": [MEAN, node("Sub", "x m", "d"), node("Mul", "d d", "q"), *DEVIATION, node("Div", "d r", "n")],
    "centred twice": [
        MEAN,
        *(node("Sub", "x m", "d"), node("Sub", "x m", "c"), node("Mul", "c c", "q"), *DEVIATION),
        node("Div", "d r", "n"),
    ],
}


@pytest.mark.parametrize("spelling", NORMS)
@pytest.mark.parametrize("ends", ["n s", "s n"])
def test_a_layer_norm_in_small_ops_is_one(spelling: str, ends: str, tmp_path: Path) -> None:
    nodes = [*NORMS[spelling], node("Mul", ends, "p"), node("Add", "p t", "y")]
    constants = {
        "e": np.array(1e-5, np.float32),
        "two": np.array(2, np.float32),
        "s": weights(8),
        "t": weights(1, 1, 8),
    }
    kept = {name: value for name, value in constants.items() if any(name in each.input for each in nodes)}
    check(tmp_path, ROWS, nodes, ["norm"], **kept)


SQUARES = [node("Pow", "x two", "q"), *DEVIATION]
RMS_NORMS = {
    "a quotient": [*SQUARES, node("Div", "x r", "n")],
    "LLaMA's": [*SQUARES, node("Reciprocal", "r", "i"), node("Mul", "x i", "n")],
}


@pytest.mark.parametrize("spelling", RMS_NORMS)
def test_an_rms_norm_in_small_ops_is_one(spelling: str, tmp_path: Path) -> None:
    nodes = [*RMS_NORMS[spelling], node("Mul", "n s", "p"), node("Add", "p x", "y")]
    constants = {"e": np.array(1e-5, np.float32), "two": np.array(2, np.float32), "s": weights(8)}
    kept = {name: value for name, value in constants.items() if any(name in each.input for each in nodes)}
    check(tmp_path, ROWS, nodes, ["norm", "add"], **kept)


def test_a_norm_over_other_axes_stays_as_it_is(tmp_path: Path) -> None:
    """The norm is not over the last axes."""
    nodes = [
        node("ReduceMean", "x", "m", axes=[1]),
        *(node("Sub", "x m", "d"), node("Mul", "d d", "q"), node("ReduceMean", "q", "v", axes=[1])),
        *(node("Add", "v e", "w"), node("Sqrt", "w", "r"), node("Div", "d r", "y")),
    ]
    got = calibrated(saved(tmp_path, ROWS, nodes, e=np.array(1e-5, np.float32)), ROWS)
    assert "mean" in got.kinds
    assert got.sqnr_db > 20


def test_a_softmax_takes_its_divisor_in(tmp_path: Path) -> None:
    nodes = [CONV, node("Div", "c k", "d"), node("Softmax", "d", "y", axis=1)]
    kinds = ["conv2d", "softmax"]
    check(tmp_path, IMAGE, nodes, kinds, **KERNEL, k=np.array(1.7, np.float32))
