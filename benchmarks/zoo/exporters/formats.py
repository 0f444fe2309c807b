"""Exporters of public packages with their default options: a model becomes a file."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np

CASES = 8
"""Calibration cases of a quantiser."""


def onnx_dynamo(model: Any, inputs: tuple[Any, ...], file: Path) -> None:
    import_module("torch").onnx.export(model, inputs, str(file), dynamo=True, external_data=False, verbose=False)


def onnx_script(model: Any, inputs: tuple[Any, ...], file: Path) -> None:
    import_module("torch").onnx.export(model, inputs, str(file), dynamo=False)


def pt2(model: Any, inputs: tuple[Any, ...], file: Path) -> None:
    torch = import_module("torch")
    torch.export.save(torch.export.export(model, inputs), str(file))


def pt2e(model: Any, inputs: tuple[Any, ...], file: Path) -> None:
    """torchao's quantisation of an exported program for x86."""
    torch, flow = import_module("torch"), import_module("torchao.quantization.pt2e.quantize_pt2e")
    x86 = import_module("torchao.quantization.pt2e.quantizer.x86_inductor_quantizer")
    quantizer = x86.X86InductorQuantizer().set_global(x86.get_default_x86_inductor_quantization_config())
    prepared = flow.prepare_pt2e(torch.export.export(model, inputs).module(), quantizer)
    for case in cases(inputs):
        prepared(*case)
    pt2(flow.convert_pt2e(prepared), inputs, file)


def int8_weights(model: Any, inputs: tuple[Any, ...], file: Path) -> None:
    """torchao's int8 weights for float activations."""
    quantization = import_module("torchao.quantization")
    quantization.quantize_(model, quantization.Int8WeightOnlyConfig())
    pt2(import_module("torchao.utils").unwrap_tensor_subclass(model), inputs, file)


def litert(model: Any, inputs: tuple[Any, ...], file: Path) -> None:
    import_module("litert_torch").convert(model, inputs).export(str(file))


def cases(inputs: tuple[Any, ...]) -> Iterator[tuple[Any, ...]]:
    """Random inputs of the same shapes; integers stay as they are."""
    torch = import_module("torch")
    for _ in range(CASES):
        yield tuple(torch.randn_like(each) if each.is_floating_point() else each for each in inputs)


# ---- quantisers of files: the float file is written before ----


def onnx_static(float_file: Path, file: Path, inputs: tuple[Any, ...], **options: Any) -> None:
    quantization = import_module("onnxruntime.quantization")
    names = [each.name for each in import_module("onnx").load(str(float_file)).graph.input]

    class Reader(quantization.CalibrationDataReader):
        def __init__(self) -> None:
            self._left = (dict(zip(names, map(np.asarray, case), strict=True)) for case in cases(inputs))

        def get_next(self) -> Any:
            return next(self._left, None)

    quantization.quantize_static(str(float_file), str(file), Reader(), **options)


def onnx_operators(float_file: Path, file: Path, inputs: tuple[Any, ...]) -> None:
    onnx_static(float_file, file, inputs, quant_format=import_module("onnxruntime.quantization").QuantFormat.QOperator)


def onnx_int16(float_file: Path, file: Path, inputs: tuple[Any, ...]) -> None:
    kinds = import_module("onnxruntime.quantization").QuantType
    onnx_static(float_file, file, inputs, activation_type=kinds.QInt16, weight_type=kinds.QInt8)


def onnx_dynamic(float_file: Path, file: Path, inputs: tuple[Any, ...]) -> None:
    del inputs
    import_module("onnxruntime.quantization").quantize_dynamic(str(float_file), str(file))


def edge_static(float_file: Path, file: Path, inputs: tuple[Any, ...]) -> None:
    """AI Edge Quantizer: 8 bits for activations and weights."""
    library = import_module("ai_edge_quantizer")
    quantizer = library.Quantizer(str(float_file), library.recipe.static_wi8_ai8())
    (signature,) = import_module("ai_edge_litert.interpreter").Interpreter(str(float_file)).get_signature_list()
    data = [{f"args_{at}": np.asarray(each) for at, each in enumerate(case)} for case in cases(inputs)]
    quantizer.quantize(quantizer.calibrate({signature: data})).export_model(str(file), overwrite=True)


OF_MODULES: Mapping[str, Callable[[Any, tuple[Any, ...], Path], None]] = {
    "dynamo.onnx": onnx_dynamo,
    "script.onnx": onnx_script,
    "pt2": pt2,
    "pt2e.pt2": pt2e,
    "int8wo.pt2": int8_weights,
    "tflite": litert,
}
OF_FILES: Mapping[str, tuple[str, Callable[[Path, Path, tuple[Any, ...]], None]]] = {
    "dynamo.static.onnx": ("dynamo.onnx", onnx_static),
    "dynamo.operators.onnx": ("dynamo.onnx", onnx_operators),
    "dynamo.int16.onnx": ("dynamo.onnx", onnx_int16),
    "dynamo.dynamic.onnx": ("dynamo.onnx", onnx_dynamic),
    "static.tflite": ("tflite", edge_static),
}
"""Quantisers, each with the format of its float file."""


def of_keras(model: Any, form: str, file: Path) -> None:
    """TensorFlow's converter with a form of quantisation."""
    lite = import_module("tensorflow").lite
    converter = lite.TFLiteConverter.from_keras_model(model)
    if form != "float.tflite":
        converter.optimizations = [lite.Optimize.DEFAULT]
    if form == "half.tflite":
        converter.target_spec.supported_types = [import_module("tensorflow").float16]
    if form in ("int8.tflite", "int16.tflite"):
        shapes = [tuple(size or 1 for size in each.shape) for each in model.inputs]
        random = np.random.default_rng(0)
        drawn = [[random.normal(0, 1, shape).astype(np.float32) for shape in shapes] for _ in range(CASES)]
        converter.representative_dataset = lambda: iter(drawn)
        wide = "EXPERIMENTAL_TFLITE_BUILTINS_ACTIVATIONS_INT16_WEIGHTS_INT8"
        chosen = wide if form == "int16.tflite" else "TFLITE_BUILTINS_INT8"
        converter.target_spec.supported_ops = [lite.OpsSet[chosen]]
    file.write_bytes(converter.convert())
