"""Models of the zoo quantised by ONNX Runtime in each of its forms, from the exports of `zoo_torch.py`.

    python benchmarks/zoo/zoo_onnx.py FOLDER

FOLDER must lie beside the folder `torch`.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnxruntime.quantization import CalibrationDataReader, QuantFormat, QuantType, quantize_dynamic, quantize_static

SAMPLES = 16
NETWORKS = ("residual", "padded", "attention", "resized", "dense", "audio", "looked")


class Samples(CalibrationDataReader):
    """Calibration noise for the model's inputs."""

    def __init__(self, model: Path) -> None:
        random, graph = np.random.default_rng(1), onnx.load(model).graph
        values = {each.name: [size.dim_value for size in each.type.tensor_type.shape.dim] for each in graph.input}
        whole = {each.name for each in graph.input if each.type.tensor_type.elem_type == onnx.TensorProto.INT64}
        self._cases = iter(
            {
                name: random.integers(0, 2, shape) if name in whole else random.normal(0, 1, shape).astype(np.float32)
                for name, shape in values.items()
            }
            for _ in range(SAMPLES)
        )

    def get_next(self) -> Any:
        return next(self._cases, None)


def main(folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for name in NETWORKS:
        for kind in ("", "_traced"):
            source = folder.parent / "torch" / f"{name}{kind}.onnx"
            if source.is_file():
                _write(folder, f"{name}{kind}", source)


def _write(folder: Path, name: str, source: Path) -> None:
    int8, uint8 = QuantType.QInt8, QuantType.QUInt8
    ways: dict[str, Callable[[Path], None]] = {
        "qdq_int8": lambda path: quantize_static(
            source, path, Samples(source), QuantFormat.QDQ, per_channel=True, activation_type=int8, weight_type=int8
        ),
        "qdq_uint8": lambda path: quantize_static(
            source, path, Samples(source), QuantFormat.QDQ, activation_type=uint8, weight_type=int8
        ),
        "qoperator_uint8": lambda path: quantize_static(
            source, path, Samples(source), QuantFormat.QOperator, activation_type=uint8, weight_type=uint8
        ),
        "dynamic": lambda path: quantize_dynamic(source, path),
    }
    for kind, way in ways.items():
        try:
            way(folder / f"{name}_{kind}.onnx")
        except Exception as fault:
            print(f"{name} as {kind}: ONNX Runtime does not quantise it: {str(fault)[:150]}")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
