"""Perplexity of small language models in integers: trained here on pages of Python's own documentation.

    PYTHONPATH=kit:. python benchmarks/transformers/trained.py FOLDER --exporters PYTHON [--target-db 30]

PYTHON has torch, transformers and onnx; it trains the models in minutes and exports them to FOLDER, where they are
kept. Tokens are bytes; text for training, calibration and test are different pages. ONNX Runtime computes the float
model, npukit's integer reference the quantised networks: plain int8, and with the target.
"""

from __future__ import annotations

import argparse
import pydoc_data.topics
import subprocess
import sys
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np

WINDOW, CALIBRATED, TESTED = 64, 48, 48
WIDTH, HEADS, BLOCKS, STEPS, BATCH = 64, 4, 2, 1500, 16
KINDS = ("GPT2", "Llama")


def pages() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Bytes to train with, to calibrate with and to test with."""
    topics = sorted(pydoc_data.topics.topics.items())
    parts = ([text for at, (_, text) in enumerate(topics) if at % 8 in chosen] for chosen in (range(6), (6,), (7,)))
    train, calibrating, tested = (np.frombuffer("".join(part).encode(), np.uint8) for part in parts)
    return train, calibrating, tested


def windows(text: np.ndarray, count: int) -> np.ndarray:
    """Windows at equal distances, each with a byte more for the answers."""
    begins = np.linspace(0, len(text) - WINDOW - 1, count).astype(int)
    return np.stack([text[begin : begin + WINDOW + 1] for begin in begins]).astype(np.int64)


def train(kind: str, file: Path) -> None:
    """Trains a model with transformers, and exports it."""
    torch, library = import_module("torch"), import_module("transformers")
    torch.manual_seed(0)
    torch.set_num_threads(1)
    names = {"GPT2": ("n_embd", "n_layer", "n_head", "n_positions")}
    usual = ("hidden_size", "num_hidden_layers", "num_attention_heads", "max_position_embeddings")
    sizes = dict(zip(names.get(kind, usual), (WIDTH, BLOCKS, HEADS, WINDOW), strict=True))
    sizes |= {"vocab_size": 256, "use_cache": False, "attn_implementation": "eager"}
    sizes |= {"intermediate_size": 2 * WIDTH} if kind == "Llama" else {}
    model = getattr(library, f"{kind}LMHeadModel" if kind == "GPT2" else f"{kind}ForCausalLM")(
        getattr(library, f"{kind}Config")(**sizes)
    )
    learn(torch, model, pages()[0])
    given = torch.zeros(1, WINDOW, dtype=torch.int64)
    scores = _Scores.of(torch, model.eval())
    torch.onnx.export(scores, (given,), str(file), dynamo=True, external_data=False, input_names=["tokens"])


def learn(torch: Any, model: Any, text: np.ndarray) -> None:
    """Training by AdamW, with a rate that falls to zero."""
    random, steps = np.random.default_rng(0), torch.optim.AdamW(model.parameters(), 3e-3)
    falling = torch.optim.lr_scheduler.CosineAnnealingLR(steps, STEPS)
    for step in range(STEPS):
        begins = random.integers(0, len(text) - WINDOW - 1, BATCH)
        rows = torch.tensor(np.stack([text[begin : begin + WINDOW + 1] for begin in begins]).astype(np.int64))
        found = model(input_ids=rows[:, :-1]).logits
        loss = torch.nn.functional.cross_entropy(found.reshape(-1, 256), rows[:, 1:].reshape(-1))
        steps.zero_grad()
        loss.backward()
        steps.step()
        falling.step()
        if step % 100 == 0:
            print(f"step {step}: loss {loss.item():.3f}", file=sys.stderr, flush=True)


class _Scores:
    """The scores of a model, as a module."""

    @staticmethod
    def of(torch: Any, model: Any) -> Any:
        class Scores(torch.nn.Module):
            def __init__(self) -> None:
                super().__init__()
                self.model = model

            def forward(self, tokens: Any) -> Any:
                return self.model(input_ids=tokens).logits

        return Scores()


def perplexity(scores: Sequence[np.ndarray], rows: np.ndarray) -> float:
    """From the scores of each window's tokens."""
    each = np.stack([np.reshape(row, (WINDOW, 256)) for row in scores]).astype(np.float64)
    each -= each.max(axis=-1, keepdims=True)
    chances = each - np.log(np.exp(each).sum(axis=-1, keepdims=True))
    return float(np.exp(-np.take_along_axis(chances, rows[:, 1:, np.newaxis], 2).mean()))


def in_float(file: Path, rows: np.ndarray) -> float:
    runtime: Any = import_module("onnxruntime").InferenceSession(str(file))
    return perplexity([runtime.run(None, {"tokens": row[np.newaxis, :-1]})[0] for row in rows], rows)


def in_integers(file: Path, rows: np.ndarray, target: float) -> tuple[float, str]:
    """The perplexity of the quantised network, and the decibels reached."""
    from npukit.net.reference import run_reference
    from npukit.quantize.models import load_model

    loaded = load_model(file, calibration=file.with_suffix(".npz"), target_db=target)
    taken = loaded.net.tensor(loaded.net.inputs[0])
    scores, kind = list[np.ndarray](), loaded.net.tensor(loaded.net.outputs[0]).quantization
    for row in rows:
        (found,) = run_reference(loaded.net, [row[:-1].reshape(taken.shape).astype(taken.dtype)])
        scores.append(found if kind is None else (found.astype(np.float64) - kind.zero_point) * kind.scale)
    reached = loaded.report.reached if loaded.report else None
    return perplexity(scores, rows), f"{reached.db:.1f} dB: {'; '.join(reached.steps) or 'none'}" if reached else ""


def row(kind: str, folder: Path, exporters: str, target: float) -> str:
    """The row of a model: perplexity in float, in plain int8, and of the network with the target."""
    file, (_, calibrating, tested) = folder / f"{kind.lower()}.onnx", pages()
    if not file.exists():
        subprocess.run([exporters, __file__, str(folder), "--train", kind], check=True)
    np.savez(file.with_suffix(".npz"), in0=windows(calibrating, CALIBRATED)[:, np.newaxis, :-1])
    rows = windows(tested, TESTED)
    usual = in_float(file, rows)
    cells = [in_integers(file, rows, each) for each in (-1000, target)]
    told = " | ".join(f"{found:.3f} ({found / usual - 1:+.2%}), {steps}" for found, steps in cells)
    return f"| {kind} | {usual:.3f} | {told} |"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--exporters", default=sys.executable)
    parser.add_argument("--target-db", type=float, default=30)
    parser.add_argument("--only", choices=KINDS, nargs="+", default=KINDS)
    parser.add_argument("--train", choices=KINDS, help=argparse.SUPPRESS)
    given = parser.parse_args()
    given.folder.mkdir(parents=True, exist_ok=True)
    if given.train:
        train(given.train, given.folder / f"{given.train.lower()}.onnx")
        return
    for kind in given.only:
        print(row(kind, given.folder, given.exporters, given.target_db), flush=True)


if __name__ == "__main__":
    main()
