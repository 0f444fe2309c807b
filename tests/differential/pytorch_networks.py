"""Random programs of torch.export: modules of PyTorch in float, and quantised as its quantiser (PT2E) leaves them."""

# pyright: reportMissingImports=false
from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from io import BytesIO
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import torch
from torch import nn

from differential.networks import (
    AS_IT_IS,
    CALIBRATED,
    CASES,
    IN_FLOAT,
    SOFTMAX_STEP,
    Arrays,
    Maker,
    Network,
    Within,
    of_int8,
)
from frontend.pytorch_models import both, quantised

functional: Any = nn.functional
Shape: TypeAlias = tuple[int, ...]
Step: TypeAlias = Callable[[torch.Tensor], torch.Tensor]
LARGEST = 2000
NOISES = 4
"""Most elements of a tensor between two layers."""


class Random(np.random.Generator):
    """Random numbers with the draws of the makers."""

    def pick(self, low: int, high: int) -> int:
        return int(self.integers(low, high + 1))

    def one_of(self, *choices: Any) -> Any:
        return choices[self.pick(0, len(choices) - 1)]


LayerMaker: TypeAlias = Callable[[Random, Shape], "nn.Module | Step | None"]
"""A layer for data of a shape; None if the layer does not take the shape."""


def conv(axes: int, *, depthwise: bool = False) -> LayerMaker:
    def made(random: Random, shape: Shape) -> nn.Module | None:
        if len(shape) != axes + 2 or min(shape[2:]) < 3:
            return None
        channels = shape[1]
        groups = channels if depthwise else random.one_of(1, channels)
        kind = {1: nn.Conv1d, 2: nn.Conv2d, 3: nn.Conv3d}[axes]
        options = {"stride": random.pick(1, 2), "padding": random.pick(0, 1), "groups": groups}
        return kind(channels, groups * random.pick(1, 3), random.pick(1, 3), bias=bool(random.pick(0, 1)), **options)

    return made


def conv_transpose(random: Random, shape: Shape) -> nn.Module | None:
    return nn.ConvTranspose2d(shape[1], random.pick(1, 4), random.pick(1, 3), stride=2) if len(shape) == 4 else None


def linear(random: Random, shape: Shape) -> nn.Module:
    return nn.Linear(shape[-1], random.pick(1, 8), bias=bool(random.pick(0, 1)))


def pool(kind: Any) -> LayerMaker:
    def made(random: Random, shape: Shape) -> nn.Module | None:
        fits = len(shape) == 4 and min(shape[2:]) >= 3
        return kind(random.pick(2, 3), stride=random.pick(1, 2), padding=random.pick(0, 1)) if fits else None

    return made


def adaptive(random: Random, shape: Shape) -> nn.Module | None:
    return nn.AdaptiveAvgPool2d(1) if len(shape) == 4 else None


def norm(random: Random, shape: Shape) -> nn.Module | None:
    if len(shape) != 4:
        return nn.LayerNorm(shape[-1])
    made = random.one_of(nn.BatchNorm2d(shape[1]), nn.GroupNorm(1, shape[1]), nn.InstanceNorm2d(shape[1], affine=True))
    for value in made.buffers():
        if value.dtype == torch.float32:
            value.data.uniform_(0.5, 1.5)
    return made


def plain(function: Callable[..., Any], *given: Any, **options: Any) -> LayerMaker:
    return lambda random, shape: partial(_called, function, given, options)


def _called(function: Any, given: Any, options: Any, data: torch.Tensor) -> torch.Tensor:
    return function(data, *given, **options)


def residual(random: Random, shape: Shape) -> Step:
    other = nn.Parameter(torch.randn(random.one_of(shape, shape[-1:])))
    return lambda data: random_free(data, other)


def random_free(data: torch.Tensor, other: torch.Tensor) -> torch.Tensor:
    return data * other + data


def attention(random: Random, shape: Shape) -> Step | None:
    if len(shape) != 3:
        return None
    return lambda data: functional.scaled_dot_product_attention(data, data * 0.5, data + 1)


def recurrent(kind: Any) -> LayerMaker:
    def made(random: Random, shape: Shape) -> Step | None:
        if len(shape) != 3:
            return None
        layer = kind(shape[-1], random.pick(1, 5), batch_first=True)
        return lambda data: layer(data)[0]

    return made


def shuffled(random: Random, shape: Shape) -> Step:
    axes = random.permutation(len(shape)).tolist()
    return lambda data: data.permute(axes).contiguous()


def joined(random: Random, shape: Shape) -> Step:
    axis = random.pick(0, len(shape) - 1)
    return lambda data: torch.cat([data, functional.relu(data)], axis)


def cut(random: Random, shape: Shape) -> Step:
    axis = random.pick(0, len(shape) - 1)
    length = random.pick(1, shape[axis])
    return lambda data: data.narrow(axis, shape[axis] - length, length)


def padded(random: Random, shape: Shape) -> Step:
    mode = random.one_of("constant", "reflect") if len(shape) == 4 and min(shape[2:]) > 1 else "constant"
    return lambda data: functional.pad(data, (1, 0, 0, 1) if len(shape) > 1 else (1, 0), mode=mode)


def resized(random: Random, shape: Shape) -> Step | None:
    mode = random.one_of("nearest", "bilinear")
    return partial(_called, functional.interpolate, (), {"scale_factor": 2, "mode": mode}) if len(shape) == 4 else None


def reduced(random: Random, shape: Shape) -> Step:
    axis, kept = random.pick(0, len(shape) - 1), len(shape) == 1 or bool(random.pick(0, 1))
    function = random.one_of(torch.mean, torch.sum, torch.amax, torch.amin)
    return partial(_called, function, (), {"dim": axis, "keepdim": kept})


MAKERS: dict[str, LayerMaker] = {
    **{
        name: plain(getattr(functional, name)) for name in ("relu", "relu6", "hardswish", "hardsigmoid", "silu", "mish")
    },
    **{
        name: plain(getattr(functional, name)) for name in ("elu", "selu", "leaky_relu", "gelu", "softplus", "hardtanh")
    },
    **{name: plain(getattr(torch, name)) for name in ("sigmoid", "tanh", "abs", "neg", "exp", "sin", "erf", "square")},
    **{name: plain(getattr(torch, name), -1) for name in ("softmax", "log_softmax", "cumprod", "cumsum")},
    "adaptive_pool": adaptive,
    "attention": attention,
    "avg_pool": pool(nn.AvgPool2d),
    "clamp": plain(torch.clamp, -0.5, 0.8),
    "conv1d": conv(1),
    "conv2d": conv(2),
    "conv3d": conv(3),
    "conv_transpose": conv_transpose,
    "cut": cut,
    "depthwise": conv(2, depthwise=True),
    "flatten": plain(torch.flatten, 1),
    "gru": recurrent(nn.GRU),
    "joined": joined,
    "linear": linear,
    "lstm": recurrent(nn.LSTM),
    "max_pool": pool(nn.MaxPool2d),
    "norm": norm,
    "padded": padded,
    "reduced": reduced,
    "residual": residual,
    "resized": resized,
    "shuffled": shuffled,
}
RANKS = {"conv1d": 3, "attention": 3, "gru": 3, "lstm": 3, "conv3d": 5, "linear": 2, "flatten": 4}
QUANTISED = ("conv1d", "conv2d", "depthwise", "linear", "relu", "relu6", "hardswish", "sigmoid", "tanh", "max_pool")
QUANTISED += ("avg_pool", "adaptive_pool", "residual", "softmax", "joined", "cut", "shuffled", "padded", "reduced")


class Chain(nn.Module):
    """Layers in order. `ranges`: with them each result is quantised and dequantised. `noise`: steps added before."""

    def __init__(self, steps: list[Any]) -> None:
        super().__init__()
        self.layers = nn.ModuleList(step for step in steps if isinstance(step, nn.Module))
        self.steps, self.ranges, self.noise = steps, list[tuple[float, int]](), 0

    def forward(self, data: torch.Tensor) -> torch.Tensor:
        for number, step in enumerate(self.steps):
            data = step(self._quantised(data, number))
        return self._quantised(data, len(self.steps))

    def _quantised(self, data: torch.Tensor, number: int) -> torch.Tensor:
        if not self.ranges:
            return data
        if self.noise and 0 < number < len(self.steps):
            data = data + torch.randint(-self.noise, self.noise + 1, data.shape) * self.ranges[number][0]
        return both(data, *self.ranges[number])

    def largest_change(self, data: torch.Tensor) -> int:
        """Largest change of the result in its steps by a step of noise after each earlier layer."""
        exact, self.noise = self(data), 1
        changes = [float((self(data) - exact).abs().max()) for _ in range(NOISES)]
        self.noise = 0
        return round(max(changes) / self.ranges[-1][0])

    def coarsest_step(self, kinds: list[str]) -> int:
        """Most steps of a result in a step, inside npukit, of a softmax or an average pool."""
        pairs = zip(kinds, self.ranges, self.ranges[1:], strict=False)
        inside = {"avg_pool": lambda before: before[0], "softmax": lambda before: SOFTMAX_STEP}
        return max(
            (round(inside[kind](before) / after[0]) for kind, before, after in pairs if kind in inside), default=0
        )

    def quantise(self, data: torch.Tensor, *, by_channel: bool) -> None:
        """Quantises weights to int8, and results by the ranges of this data."""
        found = [data]
        for step in self.steps:
            found.append(step(found[-1]))
        self.ranges = [_range(each) for each in found]
        self.steps = [_with_int8(step, by_channel) if isinstance(step, WEIGHTED) else step for step in self.steps]
        self.layers = nn.ModuleList(step for step in self.steps if isinstance(step, nn.Module))


WEIGHTED = (nn.Linear, nn.Conv1d, nn.Conv2d)


class Int8(nn.Module):
    """A layer with int8 weights and a float bias."""

    scales: torch.Tensor
    weight: torch.Tensor

    def __init__(self, layer: Any, by_channel: bool) -> None:
        super().__init__()
        real, self.by_channel = layer.weight.detach(), by_channel
        others = tuple(range(1, real.ndim)) if by_channel else tuple(range(real.ndim))
        scales = real.abs().amax(others, keepdim=True).clamp(min=1e-4) / 127
        self.register_buffer("weight", torch.round(real / scales).to(torch.int8))
        self.register_buffer("scales", scales.reshape(-1))
        self.register_buffer("zeros", torch.zeros(scales.numel(), dtype=torch.int64))
        self.layer, self.scale = [layer], float(scales.flatten()[0])
        self.bias = None if layer.bias is None else nn.Parameter(layer.bias.detach())

    def forward(self, data: torch.Tensor) -> torch.Tensor:
        (layer,) = self.layer
        if self.by_channel:
            weight = quantised.dequantize_per_channel(self.weight, self.scales, self.zeros, 0, -127, 127, torch.int8)
        else:
            weight = quantised.dequantize_per_tensor(self.weight, self.scale, 0, -127, 127, torch.int8)
        if isinstance(layer, nn.Linear):
            return functional.linear(data, weight, self.bias)
        return layer._conv_forward(data, weight, self.bias)


def _with_int8(layer: Any, by_channel: bool) -> nn.Module:
    return Int8(layer, by_channel)


def _range(data: torch.Tensor) -> tuple[float, int]:
    low, high = min(0.0, float(data.min())), max(0.0, float(data.max()))
    scale = max(high - low, 1e-3) / 255
    return scale, int(np.clip(round(-128 - low / scale), -128, 127))


def chain_of(random: Random, kind: str, kinds: tuple[str, ...]) -> tuple[Chain, torch.Tensor, list[str]]:
    """A layer of a kind in a chain of one to four layers, data, and the kinds of all."""
    axes = RANKS.get(kind, 4)
    shape = (random.pick(1, 2) if axes < 5 else 1, random.pick(1, 6), *(random.pick(4, 8) for _ in range(axes - 2)))
    data = torch.from_numpy(random.normal(0, 1.5, shape).astype(np.float32))
    steps, made, now = list[Any](), list[str](), data
    after = random.one_of(0, 0, 1, 2, 3)
    for name in (kind, *(str(each) for each in random.choice(kinds, after))):
        step = MAKERS[name](random, tuple(now.shape)) if now.numel() <= LARGEST else None
        if step is not None:
            module: Any = step
            steps.append(module.eval() if isinstance(step, nn.Module) else module)
            made.append(name)
            now = steps[-1](now)
    return Chain(steps).eval(), data, made


def program(chain: Chain, data: torch.Tensor) -> bytes:
    target = BytesIO()
    torch.export.save(torch.export.export(chain, (data,)), target)
    return target.getvalue()


def network(generator: np.random.Generator, name: str, kind: str, reads: str, within: Within) -> Network:
    random, kinds = Random(generator.bit_generator), tuple(MAKERS) if reads != AS_IT_IS else QUANTISED
    torch.manual_seed(random.pick(0, 1 << 30))
    with torch.no_grad():
        chain, data, made = chain_of(random, kind, kinds)
        if reads == AS_IT_IS:
            chain.quantise(data, by_channel=bool(random.pick(0, 1)))
            within = Within(steps=1 + chain.largest_change(data) + chain.coarsest_step(made))
        saved = program(chain, data)
    cases: list[Arrays] = [[data.numpy()]]
    if reads == CALIBRATED:
        within = of_int8(made)
        cases += [[random.permutation(data.numpy().ravel()).reshape(data.shape)] for _ in range(CASES - 1)]

    def pytorch(path: Path, inputs: Arrays) -> Arrays:
        with torch.no_grad():
            return [chain(torch.from_numpy(inputs[0])).numpy()]

    return Network(name, saved, cases, {"PyTorch": pytorch}, reads, within)


def cells() -> Iterator[tuple[str, Maker]]:
    torch.set_num_threads(1)
    for label, reads, within, kinds in (
        ("int8", AS_IT_IS, Within(), QUANTISED),
        ("float", IN_FLOAT, Within(relative=1e-4), tuple(MAKERS)),
        ("calibrated", CALIBRATED, Within(), tuple(MAKERS)),
    ):
        for kind in kinds:
            name = f"pytorch/{label}/{kind}"
            yield name, partial(network, name=name, kind=kind, reads=reads, within=within)
