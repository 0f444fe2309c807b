"""Models of public packages with random weights, and example inputs. Needs the packages; npukit is not used."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from importlib import import_module
from typing import Any

TOKENS = 16
"""Length of a text."""
VOCABULARY = 256
SIZE = 64
"""Rows and columns of an image."""
SETTLING = 16
"""Random inputs for the statistics of batch norms."""
SAMPLES = 1600
"""Length of a sound, a tenth of a second."""


@dataclass(frozen=True)
class Made:
    """A model of a package: its name, its formats, and a function that returns the module and its inputs."""

    package: str
    name: str
    formats: tuple[str, ...]
    build: Callable[[], tuple[Any, tuple[Any, ...]]]


def listed(groups: list[dict[str, Any]]) -> Iterator[Made]:
    """All models of the groups."""
    for group in groups:
        package, formats, common = group["package"], tuple(group["formats"]), group.get("settings", {})
        for kind, build in PACKAGES[package].items():
            for name, settings in group.get(kind, {}).items():
                yield Made(package, name, formats, partial(build, name, {**common, **settings}))


def torchvision(name: str, settings: Mapping[str, Any]) -> tuple[Any, tuple[Any, ...]]:
    """A class or a function of torchvision."""
    return getattr(import_module("torchvision").models, name)(**settings), image(SIZE)


def timm(name: str, settings: Mapping[str, Any]) -> tuple[Any, tuple[Any, ...]]:
    return import_module("timm").create_model(name, pretrained=False, **settings), image(SIZE)


def settle(module: Any, inputs: tuple[Any, ...]) -> None:
    """Give batch norms the statistics of random inputs. With the usual ones a deep network of random weights loses its
    signal."""
    torch = import_module("torch")
    norms = [each for each in module.modules() if isinstance(each, torch.nn.BatchNorm2d)]
    for norm in norms:
        norm.momentum = None
    if norms:
        with torch.no_grad():
            module.train()(*(torch.randn(SETTLING, *each.shape[1:]) for each in inputs))
    module.eval()


def settle_keras(model: Any) -> None:
    norms = [each for each in model.layers if type(each).__name__ == "BatchNormalization"]
    for norm in norms:
        norm.momentum = 0
    if norms:
        shapes = [tuple(size or SETTLING for size in each.shape) for each in model.inputs]
        model([import_module("keras").random.normal(shape) for shape in shapes], training=True)


def image(size: int) -> tuple[Any, ...]:
    torch = import_module("torch")
    return (torch.randn(1, 3, size, size),)


def transformer(kind: str, name: str, settings: Mapping[str, Any]) -> tuple[Any, tuple[Any, ...]]:
    """A class of transformers with the settings that its configuration knows."""
    library, torch = import_module("transformers"), import_module("torch")
    made = _class(library, name)
    always = {"vocab_size": VOCABULARY, "use_cache": False, "image_size": SIZE, "patch_size": 16}
    usual = made.config_class()
    known = {key: value for key, value in {**always, **settings}.items() if key in settings or hasattr(usual, key)}
    model = made(made.config_class(**{key: value for key, value in known.items() if hasattr(usual, key)}))
    if kind == "tokens":
        text = _module(lambda ids, mask: model(input_ids=ids, attention_mask=mask)[0], model)
        return text, (torch.arange(TOKENS)[None] % VOCABULARY, torch.ones(1, TOKENS, dtype=torch.int64))
    if kind == "images":
        return _module(lambda value: model(value).to_tuple(), model), image(SIZE)
    return _module(lambda value: model(value).to_tuple(), model), (_sound(torch, name, model.config),)


def _sound(torch: Any, name: str, config: Any) -> Any:
    """A spectrogram if the model takes one, else samples."""
    if not hasattr(config, "num_mel_bins"):
        return torch.randn(1, SAMPLES)
    shape = (64, config.num_mel_bins)
    return torch.randn(1, *(shape if "AST" in name else reversed(shape)))


def _module(run: Callable[..., Any], model: Any) -> Any:
    """A module of tensors in and out: `run` calls the model with named inputs and takes its outputs apart."""

    class Module(import_module("torch").nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.model = model

        def forward(self, *values: Any) -> Any:
            return run(*values)

    return Module()


def _class(library: Any, name: str) -> Any:
    if name == "WhisperEncoder":
        return import_module("transformers.models.whisper.modeling_whisper").WhisperEncoder
    return getattr(library, name if name.endswith("Model") else f"{name}Model")


def keras(name: str, settings: Mapping[str, Any]) -> tuple[Any, tuple[Any, ...]]:
    library = import_module("keras")
    if name in KERAS:
        shape, layers = KERAS[name]
        return library.Sequential([library.Input(shape, batch_size=1), *layers(library.layers)]), ()
    if name in BRANCHED:
        shape, outputs = BRANCHED[name]
        given = library.Input(shape, batch_size=1)
        return library.Model(given, outputs(library.layers, given)), ()
    made = getattr(library.applications, name)
    return made(weights=None, input_shape=(SIZE, SIZE, 3), classes=10, **settings), ()


KERAS: Mapping[str, tuple[tuple[int, ...], Callable[[Any], list[Any]]]] = {
    "bidirectional": ((12, 8), lambda of: [of.Bidirectional(of.LSTM(8, unroll=True)), of.Dense(4)]),
    "causal": (
        (32, 8),
        lambda of: [
            of.Conv1D(16, 3, dilation_rate=2, padding="causal", activation="relu"),
            of.Conv1D(16, 3, dilation_rate=4, padding="causal", activation="relu"),
            of.GlobalAveragePooling1D(),
            of.Dense(4),
        ],
    ),
    "conv_lstm": ((4, 8, 8, 2), lambda of: [of.ConvLSTM2D(4, 3, padding="same", unroll=True), of.Flatten()]),
    "gru": ((12, 8), lambda of: [of.GRU(16, unroll=True), of.Dense(4, activation="softmax")]),
    "lstm": ((12, 8), lambda of: [of.LSTM(16), of.Dense(4, activation="softmax")]),
    "separable": (
        (32, 32, 3),
        lambda of: [
            of.Rescaling(1 / 127.5, offset=-1),
            of.SeparableConv2D(16, 3, strides=2, activation="swish"),
            of.BatchNormalization(),
            of.SpatialDropout2D(0.1),
            of.SeparableConv2D(32, 3, padding="same", activation="hard_swish"),
            of.GlobalMaxPooling2D(),
            of.Dense(10, activation="softmax"),
        ],
    ),
    "transposed": (
        (8, 8, 8),
        lambda of: [of.Conv2DTranspose(8, 4, strides=2, padding="same"), of.ReLU(6), of.UpSampling2D(2)],
    ),
}


def _unet(of: Any, given: Any) -> Any:
    left = of.Conv2D(8, 3, padding="same", activation="relu")(given)
    down = of.Conv2D(16, 3, padding="same", activation="relu")(of.MaxPooling2D()(left))
    up = of.UpSampling2D(interpolation="bilinear")(down)
    joined = of.Concatenate()([left, up])
    return of.Conv2D(2, 1, activation="sigmoid")(of.Conv2D(8, 3, padding="same")(joined))


def _excited(of: Any, given: Any) -> Any:
    """A residual block with squeeze and excitation."""
    left = of.BatchNormalization()(of.Conv2D(16, 3, padding="same")(given))
    squeezed = of.Dense(4, activation="relu")(of.GlobalAveragePooling2D(keepdims=True)(left))
    right = of.Multiply()([left, of.Dense(16, activation="sigmoid")(squeezed)])
    return of.Dense(10)(of.GlobalAveragePooling2D()(of.ReLU()(of.Add()([of.Conv2D(16, 1)(given), right]))))


def _attention(of: Any, given: Any) -> Any:
    """An encoder's block of a transformer."""
    left = of.LayerNormalization()(of.Add()([given, of.MultiHeadAttention(2, 16)(given, given)]))
    right = of.Dense(32)(of.Dense(64, activation="gelu")(left))
    return of.Dense(4, activation="softmax")(of.GlobalAveragePooling1D()(of.Add()([left, right])))


BRANCHED: Mapping[str, tuple[tuple[int, ...], Callable[[Any, Any], Any]]] = {
    "attention": ((12, 32), _attention),
    "excited": ((32, 32, 3), _excited),
    "unet": ((32, 32, 3), _unet),
}

Build = Callable[[str, Mapping[str, Any]], tuple[Any, tuple[Any, ...]]]

PACKAGES: Mapping[str, Mapping[str, Build]] = {
    "torchvision": {"models": torchvision},
    "timm": {"models": timm},
    "keras": {"models": keras},
    "transformers": {kind: partial(transformer, kind) for kind in ("tokens", "images", "sounds")},
}
"""The functions that make the models of a package, by the kind of models."""
