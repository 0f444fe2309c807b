"""A small language model in LLaMA's form: a token a frame, keys and values kept on the PEs of two chips."""

from __future__ import annotations

from pathlib import Path

from end_to_end.builds import build
from end_to_end.language_models import Sizes, save_model, save_samples
from npukit import api
from npukit.data import data_folder

SIZES = Sizes(width=32, heads=4, wide=128, blocks=1, tokens=16, shared=2)
PES = 4
"""PEs of each of two chips."""


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


def test_tokens_are_exact_and_predicted_on_two_chips(tmp_path: Path) -> None:
    """Nothing is float, and norms, gates and rotations are integer ops; the states' first frame is not predicted."""
    states = save_model(tmp_path / "llama.onnx", SIZES)
    save_samples(tmp_path / "samples.npz", SIZES)
    options = {"calibration": tmp_path / "samples.npz", "io": "int8", "states": tuple(states.items())}
    built = build(tmp_path / "llama.onnx", tmp_path / "out", str(two_small_chips(tmp_path)), pes=2 * PES, **options)
    kinds = " ".join(op["op"] for op in built.manifest.summary["ops"]).split()
    assert [kinds.count(kind) for kind in ("norm", "softmax", "matmul")] == [3, 1, 2]
    assert not any(kind.startswith("nn.") or kind == "divide" for kind in kinds)
    assert {pe.pe // PES for pe in built.plan().pes} == {0, 1}
    assert api.validate(tmp_path / "out").passed
    measured = api.bench(tmp_path / "out")
    assert measured.interval_cycles is not None
    assert abs(measured.predicted_latency_cycles / measured.interval_cycles - 1) < 0.05
