"""Small PyTorch programs, saved. Importing this module requires PyTorch."""

# pyright: reportMissingImports=false
from __future__ import annotations

from pathlib import Path
from typing import Any

import torch
import torch.ao.quantization.fx._decomposed
from torch import nn

from npukit.frontend.pytorch import grouped

quantised: Any = torch.ops.quantized_decomposed
SIDE, CLASSES = 8, 5


class Convolutional(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.first, self.norm = nn.Conv2d(3, 8, 3, padding=1), nn.BatchNorm2d(8)
        self.deep, self.swish = nn.Conv2d(8, 8, 3, stride=2, padding=1, groups=8), nn.Hardswish()
        self.last = nn.Linear(8, CLASSES)

    def forward(self, image: torch.Tensor) -> torch.Tensor:
        image = torch.relu(self.norm(self.first(image)))
        image = self.swish(self.deep(image)) + nn.functional.max_pool2d(image, 2)
        return torch.softmax(self.last(image.mean((2, 3))), -1)


class Remembering(nn.Module):
    """A cell that keeps the result in a buffer."""

    held: torch.Tensor

    def __init__(self) -> None:
        super().__init__()
        self.mix = nn.Linear(6, CLASSES)
        self.register_buffer("held", torch.full((1, CLASSES), 0.25))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        held = torch.relu(self.mix(x)) + 0.5 * self.held
        self.held.copy_(held)
        return torch.tanh(held)


class Masked(nn.Module):
    """Attention of each position to itself and to earlier positions. The mask is computed from numbers alone."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        places = torch.arange(x.shape[1])
        seen = places[:, None] >= places[None] + 0
        return torch.softmax(torch.where(seen, x @ x.transpose(1, 2), -1e9), -1) @ x


class Grouped(nn.Module):
    """A layer as left by torchao's `IntxWeightOnlyConfig` and `unwrap_tensor_subclass`: 4 bits, a scale a group."""

    weight: torch.Tensor
    scales: torch.Tensor
    zeros: torch.Tensor

    def __init__(self) -> None:
        super().__init__()
        self.bias = nn.Parameter(torch.randn(6))
        self.register_buffer("weight", torch.randint(-8, 8, (6, 32), dtype=torch.int8))
        self.register_buffer("scales", torch.rand(6, 4) + 0.1)
        self.register_buffer("zeros", torch.randint(-2, 2, (6, 4), dtype=torch.int8))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        operator: Any = torch.ops.torchao.dequantize_affine
        return nn.functional.linear(
            x, operator(self.weight, [1, 8], self.scales, self.zeros, torch.int8, -8, 7), self.bias
        )


class Quantised(nn.Module):
    """A layer as left by PyTorch's quantiser (PT2E): int8 weights and activations, float bias."""

    scales: torch.Tensor

    def __init__(self) -> None:
        super().__init__()
        weight, self.bias = torch.randn(6, 3, 3, 3), nn.Parameter(torch.randn(6))
        self.register_buffer("scales", weight.abs().amax((1, 2, 3)) / 127)
        self.register_buffer("zeros", torch.zeros(6, dtype=torch.int64))
        self.register_buffer("weight", torch.round(weight / self.scales.reshape(-1, 1, 1, 1)).to(torch.int8))
        self.register_buffer("matrix", torch.randint(-127, 128, (4, 6), dtype=torch.int8))

    def forward(self, image: torch.Tensor) -> torch.Tensor:
        image = both(image, 0.03, 5)
        weight = quantised.dequantize_per_channel(self.weight, self.scales, self.zeros, 0, -127, 127, torch.int8)
        image = both(torch.relu(nn.functional.conv2d(image, weight, self.bias, stride=2)), 0.05, -128)
        matrix = quantised.dequantize_per_tensor(self.matrix, 0.01, 0, -127, 127, torch.int8)
        return both(nn.functional.linear(both(image.mean((2, 3)), 0.02, -128), matrix), 0.04, 3)


class MaxPooled(nn.Module):
    def forward(self, image: torch.Tensor) -> torch.Tensor:
        return both(nn.functional.max_pool2d(both(image, 0.03, 1), 3, 2), 0.015, -128)


class Function(nn.Module):
    """A function of `torch.nn.functional`."""

    def __init__(self, name: str, *given: Any, **options: Any) -> None:
        super().__init__()
        self.function, self.given, self.options = getattr(nn.functional, name), given, options

    def forward(self, data: torch.Tensor) -> torch.Tensor:
        return self.function(data, *self.given, **self.options)


class Padded(nn.Module):
    """Padding of quantised data by the data's own values."""

    def __init__(self, mode: str, widths: tuple[int, ...]) -> None:
        super().__init__()
        self.mode, self.widths = mode, widths

    def forward(self, data: torch.Tensor) -> torch.Tensor:
        return both(nn.functional.pad(both(data, 0.05, 3), self.widths, self.mode), 0.05, 3)


class Pooled(nn.Module):
    """Pools and extremes over three axes, which PyTorch exports as parts of tuples and as special operators."""

    def forward(self, sound: torch.Tensor) -> torch.Tensor:
        pooled = nn.functional.max_pool1d(both(sound, 0.03, 5), 2)
        return pooled.amax(2) - pooled.amin((2,)) + pooled.amax()


class Extremes(nn.Module):
    """Extreme values and their indices, which PyTorch exports as parts of tuples."""

    def forward(self, sound: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        least, _ = sound.min(1, keepdim=True)
        values, places = (sound - least).topk(2, -1)
        return values + sound.max(2)[0].unsqueeze(2), places


class Plain(nn.Module):
    """A network without quantisation."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = nn.Conv2d(3, 8, 3, padding=1), nn.Conv2d(8, 8, 3)
        self.last = nn.Linear(8, CLASSES)

    def forward(self, image: torch.Tensor) -> torch.Tensor:
        image = torch.relu(self.second(torch.relu(self.first(image))))
        return self.last(nn.functional.max_pool2d(image, 6).flatten(1))


def by_torchao(module: nn.Module, *shape: int) -> nn.Module:
    """The module quantised by torchao's PT2E for x86: uint8 activations, weights by channel, floats at the ends."""
    from torchao.quantization.pt2e.quantize_pt2e import convert_pt2e, prepare_pt2e
    from torchao.quantization.pt2e.quantizer import x86_inductor_quantizer as x86

    quantizer = x86.X86InductorQuantizer().set_global(x86.get_default_x86_inductor_quantization_config())
    prepared = prepare_pt2e(exported(module, *shape).module(), quantizer)
    for _ in range(16):
        prepared(torch.randn(shape))
    return convert_pt2e(prepared)


def both(real: torch.Tensor, scale: float, zero: int) -> torch.Tensor:
    """Quantised and dequantised."""
    ends = (scale, zero, -128, 127, torch.int8)
    return quantised.dequantize_per_tensor(quantised.quantize_per_tensor(real, *ends), *ends)


def exported(module: nn.Module, *shape: int, **options: Any) -> torch.export.ExportedProgram:
    return torch.export.export(module.eval(), (torch.randn(shape),), **options)


def saved(module: nn.Module, folder: Path, *shape: int, **options: Any) -> Path:
    path = folder / "model.pt2"
    with grouped.defined():
        torch.export.save(exported(module, *shape, **options), path)
    return path
