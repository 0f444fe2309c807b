"""Makes the example's files: trains on scikit-learn's digits, quantises with ONNX Runtime, writes TFLite.

python examples/digits/train.py            # trains, then writes every file
python examples/digits/train.py --keep     # takes the weights from digits_float.onnx, and writes the others
"""

from __future__ import annotations

import argparse
import logging
from pathlib import Path
from typing import cast

import network
import numpy as np
import onnx
import onnx_files
import onnxruntime
import tflite_file
from onnx import numpy_helper
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split

HERE = Path(__file__).resolve().parent


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("--keep", action="store_true", help="keep the weights of digits_float.onnx")
    arguments.add_argument("-o", "--output", type=Path, default=HERE, help="the folder to write to")
    given = arguments.parse_args()
    logging.disable(logging.WARNING)  # ONNX Runtime advises pre-processing that this network does not need
    weights = kept_weights() if given.keep else trained_weights()
    write_files(weights, given.output)
    for name in ("digits_float.onnx", "digits_qdq.onnx"):
        print(f"{name}: {accuracy(given.output / name):.2%} of the test split")


def images() -> tuple[network.Array, network.Array, network.Array, network.Array]:
    """Training images, test images, training labels, test labels; images NHWC, from 0 to 1."""
    pixels, labels = load_digits(return_X_y=True)
    x = (np.reshape(pixels, (-1, 8, 8, 1)) / 16).astype(np.float32)
    parts = train_test_split(x, labels, test_size=0.2, random_state=0, stratify=labels)
    training, test, training_labels, test_labels = map(np.asarray, parts)
    return training, test, training_labels, test_labels


def trained_weights() -> network.Parameters:
    x, _, labels, _ = images()
    return network.train(x, labels)


def kept_weights() -> network.Parameters:
    return onnx_files.parameters_of(onnx.load(HERE / "digits_float.onnx"))


def write_files(weights: network.Parameters, folder: Path) -> None:
    training, _, _, _ = images()
    folder.mkdir(parents=True, exist_ok=True)
    onnx.save(onnx_files.float_model(weights), folder / "digits_float.onnx")
    onnx_files.write_quantised(folder / "digits_float.onnx", folder / "digits_qdq.onnx", nchw(training))
    quantised = onnx.load(folder / "digits_qdq.onnx")
    (folder / "digits_int8.tflite").write_bytes(tflite_file.convert(quantised))
    np.savez_compressed(folder / "digits.npz", allow_pickle=False, **test_split(quantised))


def test_split(quantised: onnx.ModelProto) -> dict[str, network.Array]:
    """`in0` for the TFLite model, `float0` for the ONNX models, and `labels`, each with a leading axis of cases."""
    _, x, _, labels = images()
    scale, zero_point = _input_quantization(quantised)
    integers = np.clip(np.round(x / scale) + zero_point, -128, 127).astype(np.int8)
    return {"in0": integers[:, None], "float0": nchw(x), "labels": labels.astype(np.uint8)}


def _input_quantization(quantised: onnx.ModelProto) -> tuple[np.float32, int]:
    arrays = {i.name: numpy_helper.to_array(i) for i in quantised.graph.initializer}
    return np.float32(arrays["image_scale"]), int(arrays["image_zero_point"])


def nchw(x: network.Array) -> network.Array:
    """A batch of one image for each case."""
    return x.transpose(0, 3, 1, 2)[:, None]


def accuracy(model: Path) -> float:
    _, x, _, labels = images()
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL  # equal on all processors
    session = onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])
    answers = [cast(network.Array, session.run(None, {onnx_files.INPUT: image})[0]).argmax() for image in nchw(x)]
    return float(np.mean(answers == labels))


if __name__ == "__main__":
    main()
