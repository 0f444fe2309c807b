"""Models of the zoo made with Keras and TensorFlow Lite's converter, with seeded weights, for each way of quantisation.

    python benchmarks/zoo/zoo_keras.py FOLDER

Needs an environment with TensorFlow.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import tensorflow as tf  # pyright: ignore[reportMissingImports]

keras: Any = tf.keras
layers: Any = keras.layers
Network = Callable[[], Any]

SAMPLES = 16
WAYS = ("float", "float16", "dynamic", "ends_float", "int8", "int16")


def image_cnn() -> Any:
    """The usual first network of tutorials."""
    return keras.Sequential(
        [
            layers.Input((28, 28, 1), batch_size=1),
            layers.Conv2D(8, 3, activation="relu"),
            layers.MaxPooling2D(),
            layers.Conv2D(16, 3, activation="relu"),
            layers.MaxPooling2D(),
            layers.Flatten(),
            layers.Dropout(0.25),
            layers.Dense(10, activation="softmax"),
        ]
    )


def ds_cnn() -> Any:
    """Keyword spotting, with batch norms."""
    x = inputs = layers.Input((49, 10, 1), batch_size=1)
    x = _normed(layers.Conv2D(24, (10, 4), strides=2, padding="same", use_bias=False)(x))
    for _ in range(2):
        x = _normed(layers.DepthwiseConv2D(3, padding="same", use_bias=False)(x))
        x = _normed(layers.Conv2D(24, 1, use_bias=False)(x))
    x = layers.GlobalAveragePooling2D()(x)
    return keras.Model(inputs, layers.Dense(12, activation="softmax")(x))


def _normed(x: Any) -> Any:
    return layers.ReLU(6.0)(layers.BatchNormalization()(x))


def residual() -> Any:
    x = inputs = layers.Input((16, 16, 3), batch_size=1)
    x = layers.Conv2D(16, 3, padding="same", activation="relu")(x)
    for _ in range(2):
        y = layers.Conv2D(16, 3, padding="same", activation="relu")(x)
        x = layers.ReLU()(layers.Add()([x, layers.Conv2D(16, 3, padding="same")(y)]))
    x = layers.Flatten()(layers.AveragePooling2D(4)(x))
    return keras.Model(inputs, layers.Dense(10)(x))


def autoencoder() -> Any:
    sizes = (32, 8, 32)
    return keras.Sequential(
        [
            layers.Input((64,), batch_size=1),
            *(layers.Dense(size, activation="relu") for size in sizes),
            layers.Dense(64),
        ]
    )


def squeeze_excite() -> Any:
    """Hard swish and gates, as in MobileNetV3."""
    x = inputs = layers.Input((24, 24, 3), batch_size=1)
    x = layers.Activation("hard_swish")(layers.Conv2D(16, 3, strides=2, padding="same")(x))
    gate = layers.GlobalAveragePooling2D(keepdims=True)(x)
    gate = layers.Conv2D(4, 1, activation="relu")(gate)
    x = layers.Multiply()([x, layers.Conv2D(16, 1, activation="hard_sigmoid")(gate)])
    x = layers.Activation("swish")(layers.DepthwiseConv2D(5, padding="same")(x))
    return keras.Model(inputs, layers.Dense(5)(layers.GlobalAveragePooling2D()(x)))


def elu_net() -> Any:
    """ELU, SELU and GELU. The converter leaves some of these in float."""
    x = inputs = layers.Input((16, 16, 2), batch_size=1)
    x = layers.Conv2D(8, 3, activation="elu")(x)
    x = layers.Conv2D(8, 3, strides=2, activation="selu")(x)
    x = layers.Conv2D(8, 3, activation="gelu")(x)
    return keras.Model(inputs, layers.Dense(4, activation="tanh")(layers.Flatten()(x)))


def unet() -> Any:
    x = inputs = layers.Input((16, 16, 1), batch_size=1)
    x = kept = layers.Conv2D(8, 3, padding="same", activation="relu")(x)
    x = layers.Conv2D(16, 3, padding="same", activation="relu")(layers.MaxPooling2D()(x))
    x = layers.Conv2DTranspose(8, 2, strides=2)(x)
    x = layers.Conv2D(8, 3, padding="same", activation="leaky_relu")(layers.Concatenate()([x, kept]))
    x = layers.UpSampling2D(interpolation="bilinear")(x)
    return keras.Model(inputs, layers.Conv2D(1, 1, activation="sigmoid")(x))


def audio_1d() -> Any:
    return keras.Sequential(
        [
            layers.Input((64, 6), batch_size=1),
            layers.Conv1D(12, 5, activation="relu"),
            layers.MaxPooling1D(),
            layers.Conv1D(12, 5, dilation_rate=2, padding="causal", activation="relu"),
            layers.GlobalMaxPooling1D(),
            layers.Dense(6, activation="softmax"),
        ]
    )


def lstm() -> Any:
    return keras.Sequential([layers.Input((12, 8), batch_size=1), layers.LSTM(10), layers.Dense(4)])


def lstm_unrolled() -> Any:
    return keras.Sequential([layers.Input((5, 8), batch_size=1), layers.LSTM(6, unroll=True), layers.Dense(4)])


def gru() -> Any:
    return keras.Sequential([layers.Input((6, 8), batch_size=1), layers.GRU(6, unroll=True), layers.Dense(4)])


def transformer() -> Any:
    x = inputs = layers.Input((12, 16), batch_size=1)
    x = layers.LayerNormalization()(x + layers.MultiHeadAttention(2, 8)(x, x))
    x = layers.LayerNormalization()(x + layers.Dense(16)(layers.Dense(32, activation="gelu")(x)))
    return keras.Model(inputs, layers.Dense(3)(layers.GlobalAveragePooling1D()(x)))


def two_inputs() -> Any:
    first, second = layers.Input((8,), batch_size=1), layers.Input((4,), batch_size=1)
    x = layers.Concatenate()([layers.Dense(6, activation="relu")(first), layers.Dense(6, activation="tanh")(second)])
    return keras.Model([first, second], [layers.Dense(3)(x), layers.Dense(1, activation="sigmoid")(x)])


def mobilenet_v1() -> Any:
    return keras.applications.MobileNet((96, 96, 3), alpha=0.25, weights=None, classes=10)


def mobilenet_v2() -> Any:
    return keras.applications.MobileNetV2((96, 96, 3), alpha=0.35, weights=None, classes=10)


def mobilenet_v3() -> Any:
    return keras.applications.MobileNetV3Small((96, 96, 3), alpha=0.75, weights=None, classes=10)


NETWORKS: tuple[Network, ...] = (
    *(image_cnn, ds_cnn, residual, autoencoder, squeeze_excite, elu_net, unet, audio_1d),
    *(lstm, lstm_unrolled, gru, transformer, two_inputs),
)
LARGE: tuple[Network, ...] = (mobilenet_v1, mobilenet_v2, mobilenet_v3)


def converted(model: Any, way: str) -> bytes:
    """The model as converted by TensorFlow Lite: in float, or quantised in one of `WAYS`."""
    converter = tf.lite.TFLiteConverter.from_keras_model(model)
    if way != "float":
        converter.optimizations = [tf.lite.Optimize.DEFAULT]
    if way == "float16":
        converter.target_spec.supported_types = [tf.float16]
    if way not in ("float", "float16", "dynamic"):
        converter.representative_dataset = lambda: samples(model)
        kinds = tf.lite.OpsSet
        converter.target_spec.supported_ops = {
            "int16": [kinds.EXPERIMENTAL_TFLITE_BUILTINS_ACTIVATIONS_INT16_WEIGHTS_INT8, kinds.TFLITE_BUILTINS],
            "int8": [kinds.TFLITE_BUILTINS_INT8],
        }.get(way, [kinds.TFLITE_BUILTINS])
    if way in ("int8", "int16"):
        converter.inference_input_type = converter.inference_output_type = getattr(tf, way)
    return converter.convert()


def samples(model: Any) -> Iterator[list[np.ndarray]]:
    random = np.random.default_rng(1)
    for _ in range(SAMPLES):
        yield [random.normal(0, 1, (1, *each.shape[1:])).astype(np.float32) for each in model.inputs]


def write(folder: Path, name: str) -> None:
    """Write one network in each of `WAYS`, or a large one in int8 alone."""
    network = next(each for each in (*NETWORKS, *LARGE) if each.__name__ == name)
    for way in WAYS if network in NETWORKS else ("int8",):
        keras.utils.set_random_seed(3)
        try:
            data = converted(network(), way)
        except Exception as fault:
            print(f"{name} in {way}: the converter does not take it: {str(fault)[:120]}")
            continue
        (folder / f"{name}_{way}.tflite").write_bytes(data)


def main(folder: Path) -> None:
    """Write each network in a process of its own, because the converter crashes on some."""
    folder.mkdir(parents=True, exist_ok=True)
    for network in (*NETWORKS, *LARGE):
        if not (folder / f"{network.__name__}_int8.tflite").is_file():
            subprocess.run([sys.executable, __file__, str(folder), network.__name__], check=False)


if __name__ == "__main__":
    if len(sys.argv) > 2:
        write(Path(sys.argv[1]), sys.argv[2])
    else:
        main(Path(sys.argv[1]))
