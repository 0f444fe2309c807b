"""A detector without a final step gets a final step, equal to TensorFlow Lite's op and to NumPy."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from frontend.test_tflite_detection import BOXES, CLASSES, MOST, anchors, detector, seen
from npukit.application.apply import applied
from npukit.application.declared import Declared, declared_for, parsed_output
from npukit.errors import NpukitError
from npukit.net.net import Net
from npukit.net.parse import parse_net
from npukit.net.reference import run_reference
from npukit.quantize.models import load_model


def model(*shapes: str) -> Net:
    """An identity net with float outputs."""
    lines = [f"input x{place}: int8[{shape}] scale 0.0625 zero 0" for place, shape in enumerate(shapes)]
    lines += [f"op y{place}: float32[{shape}] = dequantize(x{place})" for place, shape in enumerate(shapes)]
    return parse_net("\n".join(["net n", *lines, *(f"output y{place}" for place in range(len(shapes)))]) + "\n", {})


def found(words: str, *given: np.ndarray, folder: Path = Path()) -> np.ndarray:
    """The detections in float inputs of steps of 1/16."""
    net = model(*(",".join(map(str, each.shape)) for each in given))
    declared = declared_for(folder / "model.onnx", outputs=[words])
    (got,) = run_reference(applied(net, declared, "NCHW"), [(each[None] * 16).astype(np.int8) for each in given])
    return got[0, 0]


@pytest.mark.parametrize("more", ["", " each_class"])
def test_equal_to_tensorflow_lites_op(more: str, tmp_path: Path) -> None:
    boxes, scores = (np.rint(each * 16) / 16 for each in seen(2))
    options = {"nms_score_threshold": 0.25, "use_regular_nms": bool(more)}
    (tmp_path / "op.tflite").write_bytes(detector(**options))
    np.save(tmp_path / "anchors.npy", anchors())
    op = load_model(tmp_path / "op.tflite", in_float=True).net
    corners, classes, sure, count = (each[0] for each in run_reference(op, [boxes[None], scores[None]]))
    words = f"detections={MOST} boxes=anchors anchors=anchors.npy scores=1 background=1 score=0.25{more}"
    got = found(words, boxes, scores, folder=tmp_path)
    there = int(count[0])
    assert there > 3
    assert got[:, 6].tolist() == [1.0] * there + [0.0] * (MOST - there)
    np.testing.assert_array_equal(got[:there, :4], corners[0, :there])
    np.testing.assert_array_equal(got[:there, 4:6], np.stack([classes[0, :there], sure[0, :there]], axis=1))


def by_numpy(corners: np.ndarray, scores: np.ndarray, score: float, iou: float) -> list[int]:
    """Indices of the boxes kept."""
    left, kept = np.argsort(-scores.max(axis=1), kind="stable"), list[int]()
    for box in left[scores.max(axis=1)[left] >= score]:
        common = np.minimum(corners[kept, 2:], corners[box, 2:]) - np.maximum(corners[kept, :2], corners[box, :2])
        both = np.prod(np.maximum(common, 0), axis=1)
        sizes = np.prod(corners[:, 2:] - corners[:, :2], axis=1)
        if np.all(both <= iou * (sizes[kept] + sizes[box] - both)):
            kept.append(int(box))
    return kept


def centred() -> np.ndarray:
    random = np.random.default_rng(4)
    places, sizes = random.integers(16, 64, (BOXES, 2)), random.integers(4, 24, (BOXES, 2)) * 2
    return np.concatenate([places, sizes], axis=1).astype(np.float32) / 16


@pytest.mark.parametrize("transposed", [False, True])
@pytest.mark.parametrize("kind", ["centre", "corners"])
def test_boxes_with_their_scores_behind_them(kind: str, *, transposed: bool) -> None:
    boxes, scores = centred(), np.random.default_rng(5).permutation(BOXES * CLASSES).reshape(BOXES, CLASSES) % 97 / 16
    corners = np.concatenate([boxes[:, :2] - boxes[:, 2:] / 2, boxes[:, :2] + boxes[:, 2:] / 2], axis=1)
    given = np.concatenate([boxes if kind == "centre" else corners, scores], axis=1).astype(np.float32)[None]
    words = f"detections=20 boxes={kind} score=2 iou=0.3{' transposed' if transposed else ''}"
    got = found(words, given.transpose(0, 2, 1) if transposed else given)
    want = by_numpy(corners, scores.astype(np.float32), 2, 0.3)[:20]
    np.testing.assert_array_equal(got[: len(want), :4], corners[want])
    np.testing.assert_array_equal(got[: len(want), 5], scores.max(axis=1)[want])
    assert 3 < len(want) < BOXES
    assert not got[len(want) :].any()


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("iou=0.5", "iou is of detections=N"),
        ("detections=3 softmax", "detections are of scores as they are"),
        ("detections=3 boxes=anchors", "boxes=anchors has anchors=FILE.npy"),
        ("detections=3 boxes=anchors anchors=../a.npy", "anchors: String should match"),
        ("detections=3 boxes=anchors anchors=a.npy", "a.npy cannot be read"),
        ("detections=3 scores=0", "an output is declared twice"),
        ("detections=3 background=9", "are no detections"),
    ],
)
def test_what_is_no_detector(words: str, message: str) -> None:
    with pytest.raises(NpukitError, match=message):
        found(words, np.zeros((1, 5, 6), np.float32))


def test_an_image_is_no_boxes() -> None:
    with pytest.raises(NpukitError, match=r"is not \(1, boxes, numbers\)"):
        applied(model("1,2,3,6"), Declared(output=(parsed_output("detections=3"),)), "NHWC")
