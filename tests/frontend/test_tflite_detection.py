"""TFLite's custom op for a detector's last step: equal to the kernels of LiteRT and of TFLite Micro."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from flatbuffers import flexbuffers

from frontend.tflite_models import Model, run_micro
from npukit import Options, api
from npukit.errors import NpukitError
from npukit.net.reference import run_reference
from npukit.quantize.models import load_model

Interpreter = pytest.importorskip("ai_edge_litert.interpreter", reason="there is no LiteRT here").Interpreter
BOXES, CLASSES, MOST = 60, 4, 12
OPTIONS = {"max_detections": MOST, "max_classes_per_detection": 1, "num_classes": CLASSES}
OPTIONS |= {"nms_score_threshold": 0.3, "nms_iou_threshold": 0.5}
OPTIONS |= {"x_scale": 10.0, "y_scale": 10.0, "h_scale": 5.0, "w_scale": 5.0}


def anchors() -> np.ndarray:
    """Boxes on a grid, each as centre, height and width."""
    random = np.random.default_rng(5)
    return random.uniform((0, 0, 0.1, 0.1), (1, 1, 0.4, 0.4), (BOXES, 4)).astype(np.float32)


def detector(*, quantised: bool = False, **options: Any) -> bytes:
    """The op alone. Quantised inputs are dequantised inside the op."""
    model, dtype = Model(), "uint8" if quantised else "float32"
    scales = ((0.05, 128), (1 / 256, 0)) if quantised else (((), 0), ((), 0))
    for name, columns, (scale, zero) in zip(("boxes", "scores"), (4, CLASSES + 1), scales, strict=True):
        model.inputs.append(model.tensor(name, (1, BOXES, columns), scale, zero, dtype=dtype))
    rounded = np.rint(anchors() * 255).astype(np.uint8)
    model.constant("anchors", rounded if quantised else anchors(), 1 / 255 if quantised else ())
    shapes = {"corners": (1, MOST, 4), "classes": (1, MOST), "sure": (1, MOST), "count": (1,)}
    for name, shape in shapes.items():
        model.tensor(name, shape, dtype="float32")
    options = OPTIONS | options
    model.custom(
        "TFLite_Detection_PostProcess", ["boxes", "scores", "anchors"], list(shapes), bytes(flexbuffers.Dumps(options))
    )
    return model.bytes(list(shapes))


def seen(seed: int) -> list[np.ndarray]:
    """Boxes and scores. Some scores are equal."""
    random = np.random.default_rng(seed)
    scores = random.integers(0, 60, (1, BOXES, CLASSES + 1)) / 64
    return [random.normal(0, 2, (1, BOXES, 4)).astype(np.float32), scores.astype(np.float32)]


def by_litert(data: bytes, inputs: list[np.ndarray]) -> list[np.ndarray]:
    interpreter = Interpreter(model_content=data)
    interpreter.allocate_tensors()
    for place, value in zip(interpreter.get_input_details(), inputs, strict=True):
        interpreter.set_tensor(place["index"], value)
    interpreter.invoke()
    return [interpreter.get_tensor(place["index"]) for place in interpreter.get_output_details()]


def assert_alike(got: list[np.ndarray], want: list[np.ndarray]) -> None:
    """Checks that the number of detections and all detections are equal."""
    (count,) = want[3]
    assert 0 < count < MOST or count == MOST
    assert np.array_equal(got[3], want[3])
    for mine, theirs in zip(got[:3], want[:3], strict=True):
        assert np.array_equal(mine[0, : int(count)], theirs[0, : int(count)])


@pytest.mark.parametrize("each_class", [False, True])
@pytest.mark.parametrize("threshold", [0.3, 0.85])
def test_equal_to_others(threshold: float, tmp_path: Path, *, each_class: bool) -> None:
    data = detector(use_regular_nms=each_class, nms_score_threshold=threshold)
    (tmp_path / "model.tflite").write_bytes(data)
    net = load_model(tmp_path / "model.tflite", in_float=True).net
    for seed in range(6):
        inputs = seen(seed)
        got = run_reference(net, inputs)
        assert_alike(got, by_litert(data, inputs))
        assert_alike(got, run_micro(data, [inputs])[0])


def test_quantised_ends_equal_to_litert(tmp_path: Path) -> None:
    data, random = detector(quantised=True), np.random.default_rng(3)
    (tmp_path / "model.tflite").write_bytes(data)
    net = load_model(tmp_path / "model.tflite").net
    inputs = [random.integers(0, 256, (1, BOXES, columns)).astype(np.uint8) for columns in (4, CLASSES + 1)]
    assert_alike(run_reference(net, inputs), by_litert(data, inputs))


@pytest.mark.exhaustive
def test_on_the_device(tmp_path: Path) -> None:
    (tmp_path / "model.tflite").write_bytes(detector())
    boxes, scores = seen(1)
    np.savez(tmp_path / "seen.npz", in0=boxes[None], in1=scores[None])
    built = api.build(tmp_path / "model.tflite", output=tmp_path / "out", options=Options(pes=1, in_float=True))
    assert not api.validate(built.folder, inputs=tmp_path / "seen.npz").mismatches


def test_several_classes_for_a_box_are_refused(tmp_path: Path) -> None:
    (tmp_path / "model.tflite").write_bytes(detector(max_classes_per_detection=2))
    with pytest.raises(NpukitError, match="it gives a box several classes"):
        load_model(tmp_path / "model.tflite", in_float=True)
