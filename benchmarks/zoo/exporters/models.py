"""Models of public packages with random weights, and example inputs. Needs the packages; npukit is not used."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from importlib import import_module
from typing import Any

TOKENS = 16
"""Length of a text."""
VOCABULARY = 256
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
        package, formats = group["package"], tuple(group["formats"])
        for name in group.get("models", ()):
            yield Made(package, name, formats, lambda name=name, group=group: PACKAGES[group["package"]](name, group))
        for kind in ("tokens", "images", "sounds"):
            for name, settings in group.get(kind, {}).items():
                known = {**group["settings"], **settings}
                yield Made(
                    package, name, formats, lambda name=name, kind=kind, known=known: transformer(name, kind, known)
                )


def torchvision(name: str, group: Mapping[str, Any]) -> tuple[Any, tuple[Any, ...]]:
    return import_module("torchvision").models.get_model(name, weights=None, **_backbone(name)), image(group["size"])


def _backbone(name: str) -> dict[str, Any]:
    """Models for segmentation would fetch the weights of their backbone."""
    return {"weights_backbone": None} if "raspp" in name else {}


def timm(name: str, group: Mapping[str, Any]) -> tuple[Any, tuple[Any, ...]]:
    made, size = import_module("timm").create_model(name, pretrained=False), group["size"]
    fixed = made.default_cfg.get("fixed_input_size", False)
    return made, image(made.default_cfg["input_size"][-1] if fixed else size)


def image(size: int) -> tuple[Any, ...]:
    torch = import_module("torch")
    return (torch.randn(1, 3, size, size),)


def transformer(name: str, kind: str, settings: Mapping[str, Any]) -> tuple[Any, tuple[Any, ...]]:
    """A class of transformers with the settings that its configuration knows."""
    library, torch = import_module("transformers"), import_module("torch")
    made = _class(library, name)
    always = {"vocab_size": VOCABULARY, "use_cache": False, "return_dict": False, "image_size": 64, "patch_size": 16}
    usual = made.config_class()
    known = {key: value for key, value in {**always, **settings}.items() if key in settings or hasattr(usual, key)}
    model = made(made.config_class(**{key: value for key, value in known.items() if hasattr(usual, key)}))
    if kind == "tokens":
        return model, (torch.arange(TOKENS)[None] % VOCABULARY, torch.ones(1, TOKENS, dtype=torch.int64))
    if kind == "images":
        return model, image(64)
    if hasattr(model.config, "num_mel_bins"):
        bins, length = model.config.num_mel_bins, 64
        return model, (torch.randn(1, length, bins) if "AST" in name else torch.randn(1, bins, length),)
    return model, (torch.randn(1, SAMPLES),)


def _class(library: Any, name: str) -> Any:
    if name == "WhisperEncoder":
        return import_module("transformers.models.whisper.modeling_whisper").WhisperEncoder
    return getattr(library, name if name.endswith("Model") else f"{name}Model")


def keras(name: str, group: Mapping[str, Any]) -> tuple[Any, tuple[Any, ...]]:
    library, size = import_module("keras"), group["size"]
    if name in KERAS:
        made = library.Sequential([library.Input(KERAS[name][0]), *KERAS[name][1](library.layers)])
    elif name == "unet":
        made = _unet(library)
    else:
        made = getattr(library.applications, name)(weights=None, input_shape=(size, size, 3), classes=10)
    return made, ()


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


def _unet(library: Any) -> Any:
    of = library.layers
    given = library.Input((32, 32, 3))
    left = of.Conv2D(8, 3, padding="same", activation="relu")(given)
    down = of.Conv2D(16, 3, padding="same", activation="relu")(of.MaxPooling2D()(left))
    up = of.UpSampling2D(interpolation="bilinear")(down)
    joined = of.Concatenate()([left, up])
    return library.Model(given, of.Conv2D(2, 1, activation="sigmoid")(of.Conv2D(8, 3, padding="same")(joined)))


PACKAGES = {"torchvision": torchvision, "timm": timm, "keras": keras}
