"""A network like MobileViT (arXiv 2110.02178) as PyTorch exports it to ONNX: inverted bottlenecks, and transformer
blocks between convolutions; seeded weights.

A token is one pixel instead of a patch of 2 x 2, and attention begins at a sixteenth of the image's side. Tokens of
patches would need tensors of four axes, which this project's kernels do not divide.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import onnx
from onnx import TensorProto, helper

from end_to_end.transformers import Network, Sizes


@dataclass(frozen=True)
class MobileSizes(Sizes):
    """The image's sizes, and the width and number of transformer blocks of each stage."""

    stages: tuple[tuple[int, int], ...] = ((144, 2), (192, 4))


class MobileViT(Network):
    """The network layer by layer."""

    def conv(self, x: str, channels: tuple[int, int], kernel: int = 1, stride: int = 1, groups: int = 1) -> str:
        read, made = channels
        products = read // groups * kernel * kernel
        drawn = self.random.normal(size=(made, read // groups, kernel, kernel)) * np.sqrt(2 / products)
        bias = self.constant(self.random.normal(size=made) / 8)
        places = {"kernel_shape": [kernel] * 2, "strides": [stride] * 2, "pads": [kernel // 2] * 4, "group": groups}
        return self.node("Conv", x, self.constant(drawn), bias, **places)

    def silu(self, x: str) -> str:
        return self.node("Mul", x, self.node("Sigmoid", x))

    def bottleneck(self, x: str, read: int, made: int, stride: int = 1) -> str:
        wide = 2 * read
        y = self.silu(self.conv(x, (read, wide)))
        y = self.silu(self.conv(y, (wide, wide), 3, stride, wide))
        y = self.conv(y, (wide, made))
        return self.node("Add", x, y) if read == made and stride == 1 else y

    def mixed(self, x: str, channels: int, sizes: Sizes) -> str:
        """A convolution, transformer blocks over all pixels, and a convolution of both the input and their output."""
        self.sizes, side, width = sizes, sizes.side, sizes.width
        y = self.conv(self.silu(self.conv(x, (channels, channels), 3)), (channels, width))
        flat = self.node("Reshape", y, self.constant([1, width, side * side], "int64"))
        y = self.node("Transpose", flat, perm=[0, 2, 1])
        for _ in range(sizes.blocks):
            y = self.block(y)
        y = self.node("Transpose", self.norm(y), perm=[0, 2, 1])
        y = self.node("Reshape", y, self.constant([1, width, side, side], "int64"))
        y = self.silu(self.conv(y, (width, channels)))
        return self.silu(self.conv(self.node("Concat", x, y, axis=1), (2 * channels, channels), 3))

    def scores(self, image: str, given: MobileSizes) -> str:
        x = self.silu(self.conv(image, (given.channels, 16), 3, 2))
        for read, made, stride in ((16, 32, 1), (32, 48, 2), (48, 48, 1), (48, 48, 1), (48, 64, 2)):
            x = self.bottleneck(x, read, made, stride)
        for (read, made), times, (width, blocks) in zip(((64, 96), (96, 128)), (16, 32), given.stages, strict=True):
            x = self.bottleneck(x, read, made, 2)
            x = self.mixed(x, made, Sizes(given.side // times, width, given.heads, blocks, patch=1))
        x = self.silu(self.conv(x, (128, 320)))
        return self.dense(self.node("Flatten", self.node("GlobalAveragePool", x)), 320, given.classes)


def save_mobile_model(path: Path, sizes: MobileSizes) -> None:
    net = MobileViT(np.random.default_rng(11), sizes)
    scores = net.scores("image", sizes)
    ends = [helper.make_tensor_value_info("image", TensorProto.FLOAT, sizes.image)]
    results = [helper.make_tensor_value_info(scores, TensorProto.FLOAT, (1, sizes.classes))]
    graph = helper.make_graph(net.nodes, "mobile_vit", ends, results, net.constants)
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), path)
