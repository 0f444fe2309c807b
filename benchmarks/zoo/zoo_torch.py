"""Models of the zoo exported by PyTorch, with seeded weights: programs of `torch.export`, ONNX, and PT2E by torchao.

    python benchmarks/zoo/zoo_torch.py FOLDER

Needs an environment with PyTorch, onnxscript and torchao.
"""

from __future__ import annotations

import copy
import sys
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch  # pyright: ignore[reportMissingImports]
from torch import nn  # pyright: ignore[reportMissingImports]

SAMPLES = 16


class Residual(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Sequential(nn.Conv2d(3, 16, 3, 2, 1, bias=False), nn.BatchNorm2d(16), nn.ReLU())
        self.second = nn.Sequential(nn.Conv2d(16, 16, 3, padding=1), nn.BatchNorm2d(16))
        self.last = nn.Linear(16, 10)

    def forward(self, x: Any) -> Any:
        x = self.first(x)
        x = torch.relu(x + self.second(x))
        return self.last(x.mean((2, 3)))


class Padded(nn.Module):
    """Padding by the input's size, as in ports from TensorFlow, and channel shuffles."""

    def __init__(self) -> None:
        super().__init__()
        self.conv, self.depthwise = nn.Conv2d(3, 8, 3, 2), nn.Conv2d(8, 8, 3, groups=8)
        self.last = nn.Linear(8, 4)

    def forward(self, x: Any) -> Any:
        height, width = x.shape[-2:]
        x = self.conv(nn.functional.pad(x, (0, 1 + width % 2, 0, 1 + height % 2)))
        batch, channels, height, width = x.shape
        x = x.reshape(batch, 2, channels // 2, height, width).transpose(1, 2).reshape(batch, channels, height, width)
        x = nn.functional.hardswish(self.depthwise(x))
        first, second = torch.chunk(x, 2, 1)
        x = torch.cat((second, first * torch.sigmoid(second)), 1)
        return self.last(nn.functional.adaptive_avg_pool2d(x, 1).flatten(1))


class Attention(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.TransformerEncoderLayer(16, 2, 32, dropout=0.0, batch_first=True)
        self.last = nn.Linear(16, 3)

    def forward(self, x: Any) -> Any:
        return self.last(self.layer(x)[:, 0])


class Recurrent(nn.Module):
    def __init__(self, kind: str) -> None:
        super().__init__()
        self.cells, self.last = getattr(nn, kind)(8, 10, batch_first=True), nn.Linear(10, 4)

    def forward(self, x: Any) -> Any:
        return self.last(self.cells(x)[0][:, -1])


class Resized(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.down, self.up = nn.Conv2d(1, 8, 3, 2, 1), nn.ConvTranspose2d(8, 8, 2, 2)
        self.last = nn.Conv2d(16, 1, 1)

    def forward(self, x: Any) -> Any:
        y = torch.nn.functional.gelu(self.down(x))
        enlarged = nn.functional.interpolate(y, scale_factor=2, mode="bilinear", align_corners=False)
        return torch.sigmoid(self.last(torch.cat((enlarged, self.up(y)), 1)))


class Looked(nn.Module):
    """An embedding and the further layers of a text classifier."""

    def __init__(self) -> None:
        super().__init__()
        self.table, self.conv, self.last = nn.Embedding(50, 12), nn.Conv1d(12, 16, 3), nn.Linear(16, 2)

    def forward(self, x: Any) -> Any:
        return self.last(torch.relu(self.conv(self.table(x).transpose(1, 2))).amax(2))


def _dense() -> Any:
    return nn.Sequential(nn.Linear(20, 32), nn.ReLU(), nn.LayerNorm(32), nn.Linear(32, 5), nn.Softmax(-1))


def _audio() -> Any:
    return nn.Sequential(
        nn.Conv1d(4, 12, 5, dilation=2), nn.PReLU(), nn.MaxPool1d(2), nn.Conv1d(12, 12, 3, groups=4), nn.ELU(),
        nn.AdaptiveAvgPool1d(1), nn.Flatten(), nn.Linear(12, 3),
    )  # fmt: skip


NETWORKS: dict[str, tuple[Callable[[], Any], tuple[int, ...]]] = {
    "residual": (Residual, (1, 3, 16, 16)),
    "padded": (Padded, (1, 3, 15, 15)),
    "attention": (Attention, (1, 6, 16)),
    "lstm": (lambda: Recurrent("LSTM"), (1, 5, 8)),
    "gru": (lambda: Recurrent("GRU"), (1, 5, 8)),
    "resized": (Resized, (1, 1, 16, 16)),
    "dense": (_dense, (1, 20)),
    "audio": (_audio, (1, 4, 64)),
}


def quantised(model: Any, example: Any) -> Any:
    """The model quantised by PT2E, int8 by channel."""
    from torchao.quantization.pt2e.quantize_pt2e import convert_pt2e, prepare_pt2e  # pyright: ignore
    from torchao.quantization.pt2e.quantizer import x86_inductor_quantizer as x86  # pyright: ignore

    quantizer = x86.X86InductorQuantizer().set_global(x86.get_default_x86_inductor_quantization_config())
    prepared = prepare_pt2e(torch.export.export(model, (example,)).module(), quantizer)
    for _ in range(SAMPLES):
        prepared(torch.randn(example.shape))
    return convert_pt2e(prepared)


def main(folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    warnings.simplefilter("ignore")
    for name, (make, shape) in NETWORKS.items():
        torch.manual_seed(5)
        model, example = make().eval(), torch.randn(shape)
        _write(folder, name, model, example)
    torch.manual_seed(5)
    _write(folder, "looked", Looked().eval(), torch.randint(0, 2, (1, 9)))


def _write(folder: Path, name: str, model: Any, example: Any) -> None:
    ways: dict[str, Callable[[Path], Any]] = {
        f"{name}.pt2": lambda path: torch.export.save(torch.export.export(model, (example,)), path),
        f"{name}_pt2e.pt2": lambda path: torch.export.save(
            torch.export.export(quantised(copy.deepcopy(model), example), (example,)), path
        ),
        f"{name}.onnx": lambda path: torch.onnx.export(
            model, (example,), path, dynamo=True, verbose=False, external_data=False
        ),
        f"{name}_external.onnx": lambda path: torch.onnx.export(model, (example,), path, dynamo=True, verbose=False),
        f"{name}_traced.onnx": lambda path: torch.onnx.export(model, (example,), path, dynamo=False),
    }
    for file, way in ways.items():
        try:
            way(folder / file)
        except Exception as fault:
            print(f"{file}: PyTorch does not export it: {str(fault)[:150]}")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
