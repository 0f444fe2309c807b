"""SmolLM2 in float32 by numpy, all tokens of a text at once: the reference for the integer network."""

from __future__ import annotations

import numpy as np
from benchmarks.transformers.network import Shape
from benchmarks.transformers.package import Model


def scores_of(model: Model, shape: Shape, tokens: list[int]) -> np.ndarray:
    """The scores of the next token after each token. Each token attends to itself and all tokens before it."""
    x, turns = model.weights["token_embd.weight"][tokens], rotation(shape, len(tokens))
    for number in range(shape.blocks):
        block = f"blk.{number}"
        x = x + attention(model, shape, normed(model, shape, x, f"{block}.attn_norm"), block, turns)
        seen = normed(model, shape, x, f"{block}.ffn_norm")
        gate, up = (dense(model, seen, f"{block}.ffn_{end}") for end in ("gate", "up"))
        x = x + dense(model, gate / (1 + np.exp(-gate)) * up, f"{block}.ffn_down")
    return dense(model, normed(model, shape, x, "output_norm"), "token_embd")


def dense(model: Model, x: np.ndarray, name: str) -> np.ndarray:
    return x @ model.weights[f"{name}.weight"].T


def normed(model: Model, shape: Shape, x: np.ndarray, name: str) -> np.ndarray:
    root = np.sqrt(np.mean(x * x, axis=-1, keepdims=True) + np.float32(shape.epsilon))
    return x / root * model.weights[f"{name}.weight"]


def rotation(shape: Shape, count: int) -> tuple[np.ndarray, np.ndarray]:
    half = np.arange(count)[:, None] / shape.base ** (np.arange(0, shape.head, 2) / shape.head)
    angles = np.concatenate([half, half], axis=1).astype(np.float32)
    return np.cos(angles), np.sin(angles)


def rotated(x: np.ndarray, turns: tuple[np.ndarray, np.ndarray]) -> np.ndarray:
    first, second = np.split(x, 2, axis=-1)
    return x * turns[0] + np.concatenate([-second, first], axis=-1) * turns[1]


def attention(
    model: Model, shape: Shape, x: np.ndarray, block: str, turns: tuple[np.ndarray, np.ndarray]
) -> np.ndarray:
    """The attention layer's output. Axes of queries, keys and values: [group, head of the group, token, number]."""
    count, shared = len(x), shape.heads // shape.groups
    query, key, value = (
        dense(model, x, f"{block}.attn_{end}").reshape(count, shape.groups, heads, shape.head).transpose(1, 2, 0, 3)
        for end, heads in zip("qkv", (shared, 1, 1), strict=True)
    )
    scores = rotated(query, turns) @ rotated(key, turns).swapaxes(-1, -2) * np.float32(shape.head**-0.5)
    scores = np.where(np.tri(count, dtype=bool), scores, -np.inf)
    powers = np.exp(scores - scores.max(axis=-1, keepdims=True))
    mixed = powers / powers.sum(axis=-1, keepdims=True) @ value
    return dense(model, mixed.transpose(2, 0, 1, 3).reshape(count, shape.width), f"{block}.attn_output")


def losses(scores: np.ndarray, tokens: list[int]) -> np.ndarray:
    """The negative logarithm of the probability of each token but the first."""
    largest = scores.max(axis=-1, keepdims=True)
    whole = np.log(np.exp(scores - largest).sum(axis=-1)) + largest[:, 0]
    return (whole - scores[np.arange(len(scores)), [*tokens[1:], 0]])[: len(tokens) - 1]
