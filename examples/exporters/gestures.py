"""Keras: a network of gestures, trained here, as int8 TFLite. Writes gestures.tflite and gestures.npz."""

import keras
import numpy as np
import tensorflow as tf

random = np.random.default_rng(0)
time = np.linspace(0, 2 * np.pi, 64)


def reading(gesture: int) -> np.ndarray:
    """64 samples of an accelerometer with three axes: rest, a wave, a circle, or a tap."""
    turns, start, tap = random.uniform(1, 4), random.uniform(0, 6), np.exp(-((time - random.uniform(1, 5)) ** 2) * 20)
    wave, quarter, rest = np.sin(turns * time + start), np.cos(turns * time + start), 0 * time
    clean = [(rest, rest, rest), (wave, rest, rest), (wave, quarter, rest), (rest, rest, 2 * tap)][gesture]
    return np.stack(clean, -1) + random.normal(0, 0.3, (64, 3))


def readings(count: int) -> tuple[np.ndarray, np.ndarray]:
    labels = random.integers(0, 4, count)
    return np.stack([reading(each) for each in labels]).astype(np.float32), labels


keras.utils.set_random_seed(0)
model = keras.Sequential(
    [
        keras.Input((64, 3)),
        keras.layers.Conv1D(16, 5, strides=2, activation="relu"),
        keras.layers.SeparableConv1D(32, 5, strides=2, activation="relu"),
        keras.layers.GlobalAveragePooling1D(),
        keras.layers.Dense(4, activation="softmax"),
    ]
)
model.compile("adam", "sparse_categorical_crossentropy")
data, labels = readings(2000)
model.fit(data, labels, epochs=8, verbose=2)

converter = tf.lite.TFLiteConverter.from_keras_model(model)
converter.optimizations = [tf.lite.Optimize.DEFAULT]
converter.representative_dataset = lambda: ([each[None]] for each in data[:100])
converter.target_spec.supported_ops = [tf.lite.OpsSet.TFLITE_BUILTINS_INT8]
with open("gestures.tflite", "wb") as file:
    file.write(converter.convert())

tests, wanted = readings(50)
np.savez("gestures.npz", in0=tests[:, None], labels=wanted)
