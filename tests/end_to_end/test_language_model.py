"""A small language model in LLaMA's form: one token per frame, keys and values kept on the PEs of two chips."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import pytest

from end_to_end.builds import build
from end_to_end.language_models import Sizes, position, save_model, save_samples
from npukit import api
from npukit.data import data_folder
from npukit.errors import NpukitError
from npukit.net.net import Net
from npukit.net.reference import evaluate
from npukit.project.build_folder import Build
from npukit.quantize.scales import quantised

SIZES = Sizes(width=64, heads=4, wide=384, blocks=1, tokens=16, shared=2)
PES = 4
"""PEs per chip."""


def two_small_chips(folder: Path) -> Path:
    text = (data_folder("boards") / "pe-mesh.toml").read_text()
    for grid, smaller in (
        ("columns = 1, rows = 1", "columns = 2, rows = 1"),
        ("columns = 4, rows = 4", "columns = 2, rows = 2"),
    ):
        assert grid in text
        text = text.replace(grid, smaller)
    (folder / "two.toml").write_text(text)
    return folder / "two.toml"


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Build:
    folder = tmp_path_factory.mktemp("llama")
    states = save_model(folder / "llama.onnx", SIZES)
    save_samples(folder / "samples.npz", SIZES)
    options = {"calibration": folder / "samples.npz", "io": "int8", "target_db": 0, "states": tuple(states.items())}
    return build(folder / "llama.onnx", folder / "out", str(two_small_chips(folder)), pes=2 * PES, **options)


@pytest.mark.exhaustive
def test_tokens_are_exact_and_predicted_on_two_chips(built: Build) -> None:
    """Nothing is float; norms, gates and rotations are integer ops. The prediction omits the states' first frame."""
    kinds = " ".join(op["op"] for op in built.manifest.summary["ops"]).split()
    norms = kinds.count("norm") + kinds.count("norm_by_squares")
    assert [norms, kinds.count("softmax"), kinds.count("matmul")] == [3, 1, 2]
    assert not any(kind.startswith("nn.") or kind == "divide" for kind in kinds)
    assert {pe.pe // PES for pe in built.plan().pes} == {0, 1}
    assert api.validate(built.folder).passed
    measured = api.bench(built.folder)
    assert measured.interval_cycles is not None
    assert abs(measured.predicted_latency_cycles / measured.interval_cycles - 1) < 0.05


@pytest.mark.exhaustive
def test_generated_tokens_are_those_of_the_reference(built: Build) -> None:
    """More tokens than attention reaches, none twice. Without the kept keys and values the tokens differ."""
    said = list[int]()
    api.generate(built, speaker(built.net(), said))
    assert len(said) == SIZES.tokens + 8
    assert said == by_reference(built.net(), keeps=True)
    assert said != by_reference(built.net(), keeps=False)


def by_reference(net: Net, *, keeps: bool) -> list[int]:
    said, values = list[int](), None
    following = speaker(net, said)
    while inputs := following(() if values is None else (values[net.outputs[0]],)):
        values = evaluate(net, inputs, values if keeps else None)
    return said


@pytest.mark.exhaustive
def test_generate_names_an_input_of_another_type(built: Build) -> None:
    frame = [np.zeros(built.net().tensor(name).shape, np.float32) for name in built.net().inputs]
    with pytest.raises(NpukitError, match=r"is int8 of .* not float32"):
        api.generate(built, lambda _: frame)


def speaker(net: Net, said: list[int]) -> Callable[[tuple[np.ndarray, ...]], Sequence[np.ndarray] | None]:
    """A function that picks the next token from a frame's outputs, appends the token to `said` and returns its frame.
    The next token is the unsaid token of the highest score.

    Embeddings and scores come from a seed.
    """
    words, scores = np.random.default_rng(5).normal(size=(2, 64, SIZES.width)).astype(np.float32)

    def following(outputs: tuple[np.ndarray, ...]) -> Sequence[np.ndarray] | None:
        if outputs:
            score = scores @ outputs[0].ravel().astype(np.float32)
            score[said] = -np.inf
            said.append(int(score.argmax()))
        if len(said) == SIZES.tokens + 8:
            return None
        frame = (words[said[-1] if said else 0], *position(len(said), SIZES))
        tensors = [net.tensor(name) for name in net.inputs]
        taken = (
            (array.reshape(tensor.shape), tensor.quantization) for array, tensor in zip(frame, tensors, strict=True)
        )
        return [quantised(array, kind) if kind else array for array, kind in taken]

    return following
