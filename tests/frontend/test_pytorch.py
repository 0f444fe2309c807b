"""Programs of torch.export: their import, and protection from hostile files."""

# pyright: reportMissingImports=false
from __future__ import annotations

import json
import pickle
import sys
import zipfile
from collections.abc import Callable
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import npukit
from npukit.errors import NpukitError
from npukit.frontend.models import import_model, load_net_from_model
from npukit.net.reference import evaluate, run_reference
from npukit.quantize.models import load_model
from npukit.quantize.scales import quantised

torch = pytest.importorskip("torch", reason="PyTorch is not here: pip install 'npukit[torch]'")
models = pytest.importorskip("pytorch_models")
IMAGE = (1, 3, 8, 8)
GOOD = 28
"""Least signal-to-error ratio in decibels."""


def noise(*shape: int) -> np.ndarray:
    return np.random.default_rng(5).standard_normal(shape).astype(np.float32)


@pytest.fixture(autouse=True)
def _same_weights() -> None:
    torch.manual_seed(1)


def reals(net: Any, inputs: np.ndarray) -> np.ndarray:
    """The real outputs for real inputs."""
    (integers,) = run_reference(net, [quantised(inputs, net.tensor(net.inputs[0]).quantization)])
    given = net.tensor(net.outputs[0]).quantization
    return (integers.astype(np.float64) - given.zero_point) * given.scale


def test_a_buffer_that_the_program_changes_is_a_state(tmp_path: Path) -> None:
    """The state begins with the buffer's saved value."""
    module, frames = models.Remembering().eval(), noise(8, 1, 6)
    net, values = load_model(models.saved(module, tmp_path, 1, 6), in_float=True).net, None
    (state,) = net.states
    assert state.begins == 0.25
    assert (len(net.inputs), len(net.outputs)) == (1, 1)
    module.held.fill_(0.25)
    for frame in frames:
        values = evaluate(net, [frame], values)
        wanted = module(torch.from_numpy(frame)).detach().numpy()
        np.testing.assert_allclose(values[net.outputs[0]], wanted, rtol=1e-5, atol=1e-6)


def test_a_mask_of_numbers_is_a_constant(tmp_path: Path) -> None:
    module, data = models.Masked().eval(), noise(1, 6, 4)
    net = load_model(models.saved(module, tmp_path, 1, 6, 4), in_float=True).net
    (got,) = run_reference(net, [data])
    np.testing.assert_allclose(got, module(torch.from_numpy(data)).numpy(), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("name", ["elu", "selu", "celu"])
def test_exponential_units(name: str, tmp_path: Path) -> None:
    module, data = models.Function(name).eval(), noise(2, 30)
    net = load_model(models.saved(module, tmp_path, 2, 30), in_float=True).net
    (got,) = run_reference(net, [data])
    np.testing.assert_allclose(got, module(torch.from_numpy(data)).numpy(), rtol=1e-5, atol=1e-6)


def test_the_values_of_a_pool_with_indices_leave_the_program(tmp_path: Path) -> None:
    """After an input that is quantised at once."""
    net = load_net_from_model(models.saved(models.MaxPooled(), tmp_path, *IMAGE))
    assert "max_pool" in [op.kind for op in net.ops]


def test_a_float_program_is_quantised(tmp_path: Path) -> None:
    module, images = models.Convolutional().eval(), noise(60, *IMAGE)
    path = models.saved(module, tmp_path, *IMAGE)
    np.savez(tmp_path / "data.npz", in0=images[:40])
    net = load_model(path, calibration=tmp_path / "data.npz").net
    kinds = [op.kind for op in net.ops if op.kind != "reshape"]
    assert kinds == [
        *("transpose", "conv2d", "depthwise_conv2d", "lookup", "max_pool", "add", "mean", "dense", "softmax")
    ], "one transposition of the input, none between layers"
    expected = np.stack([module(torch.from_numpy(image)).detach().numpy() for image in images[40:]])
    error = expected - reals(net, images[40:])
    assert 10 * np.log10(np.sum(expected**2) / np.sum(error**2)) > GOOD


def test_a_quantised_program_is_taken_as_it_is(tmp_path: Path) -> None:
    module, images = models.Quantised().eval(), noise(40, *IMAGE)
    net = load_net_from_model(models.saved(module, tmp_path, *IMAGE))
    assert [op.kind for op in net.ops if op.kind != "reshape"] == ["transpose", "conv2d", "mean", "dense"]
    weights = net.tensor("conv2d_0_weights").quantization
    assert weights is not None
    assert len(weights.scales) == 6
    expected = np.stack([module(torch.from_numpy(image)).detach().numpy() for image in images])
    assert np.abs(expected - reals(net, images)).max() <= 0.04 * 1.01, "one step of the output's scale"


def test_what_torchao_quantises_is_taken_as_it_is(tmp_path: Path) -> None:
    """A layer from integers to integers is computed in integers. A layer with float results has integer sums."""
    pytest.importorskip("torchao", reason="torchao is not here")
    module, images = models.by_torchao(models.Plain(), *IMAGE), noise(8, *IMAGE)
    path = tmp_path / "model.pt2"
    torch.export.save(torch.export.export(module, (torch.from_numpy(images[0]),)), path)
    net = load_model(path, in_file_types=True).net
    kinds = [op.kind for op in net.ops]
    assert kinds.count("conv2d") == 1
    assert kinds.count("sums") == 2
    for image in images:
        (got,) = run_reference(net, [image])
        wanted = module(torch.from_numpy(image)).detach().numpy()
        assert np.abs(got - wanted).max() <= 0.02 * np.abs(wanted).max()


def test_weights_in_groups_are_read_in_float(tmp_path: Path) -> None:
    module, data = models.Grouped().eval(), noise(1, 32)
    before = hasattr(torch.ops.torchao, "dequantize_affine")
    path = models.saved(module, tmp_path, 1, 32)
    (got,) = run_reference(load_model(path, in_float=True).net, [data])
    weight, scales, zeros = (each.numpy().astype(np.float32) for each in (module.weight, module.scales, module.zeros))
    real = (weight - np.repeat(zeros, 8, 1)) * np.repeat(scales, 8, 1)
    assert np.allclose(got, data @ real.T + module.bias.detach().numpy(), rtol=1e-4, atol=1e-4)
    assert hasattr(torch.ops.torchao, "dequantize_affine") == before, "torchao, imported later, defines it"


@pytest.mark.parametrize("mode", ["reflect", "replicate", "circular"])
@pytest.mark.parametrize("shape", [(1, 3, 6, 5), (2, 3, 7)])
def test_padding_by_the_data_itself(mode: str, shape: tuple[int, ...], tmp_path: Path) -> None:
    """Quantised data are moved as integers."""
    module, data = models.Padded(mode, (2, 1, 0, 3)[: 2 * len(shape) - 4]).eval(), noise(*shape)
    net = load_model(models.saved(module, tmp_path, *shape), in_file_types=True).net
    assert "resize_nearest" in [op.kind for op in net.ops]
    assert "tvm_code" not in [op.kind for op in net.ops]
    (got,) = run_reference(net, [data])
    np.testing.assert_array_equal(got, module(torch.from_numpy(data)).numpy())


def test_negative_amounts_crop(tmp_path: Path) -> None:
    module, data = models.Function("pad", (2, -1, -2, 1), value=0.5).eval(), noise(1, 2, 6, 5)
    (got,) = run_reference(load_model(models.saved(module, tmp_path, 1, 2, 6, 5), in_float=True).net, [data])
    np.testing.assert_array_equal(got, module(torch.from_numpy(data)).numpy())


def test_the_largest_and_their_places(tmp_path: Path) -> None:
    module, sound = models.Extremes(), noise(2, 3, 8)
    path = models.saved(module, tmp_path, 2, 3, 8)
    values, places = run_reference(load_model(path, in_float=True).net, [sound])
    wanted = module(torch.from_numpy(sound))
    np.testing.assert_allclose(values, wanted[0].numpy(), rtol=1e-5, atol=1e-6)
    np.testing.assert_array_equal(places, wanted[1].numpy())
    np.savez(tmp_path / "calibration.npz", in0=noise(16, 2, 3, 8))
    assert load_model(path, calibration=tmp_path / "calibration.npz").report


def test_pools_and_extremes_along_axes(tmp_path: Path) -> None:
    module, sound = models.Pooled(), noise(2, 3, 8)
    net = load_net_from_model(models.saved(module, tmp_path, 2, 3, 8))
    steps = net.tensor(net.inputs[0]).quantization
    assert steps is not None
    (got,) = run_reference(net, [quantised(sound, steps)])
    assert np.allclose(got, module(torch.from_numpy(sound)).numpy(), atol=1e-5)


def test_an_open_batch_is_one_unless_it_is_given(tmp_path: Path) -> None:
    batch = {"dynamic_shapes": {"image": {0: torch.export.Dim("batch", min=1, max=8)}}}
    path = models.saved(models.Quantised(), tmp_path, 2, *IMAGE[1:], **batch)
    alone = load_net_from_model(path)
    assert alone.tensor(alone.outputs[0]).shape == (1, 4)
    net = load_net_from_model(path, input_shapes={"image": (3, 3, 8, 8)})
    assert net.tensor(net.outputs[0]).shape == (3, 4)


def test_a_program_is_built_from_python_and_exact(tmp_path: Path) -> None:
    program = models.exported(models.Quantised(), *IMAGE)
    build = npukit.build(program, output=tmp_path / "out")
    assert build.manifest.model == "model"
    assert npukit.validate(tmp_path / "out").passed


def test_a_module_must_be_exported_first(tmp_path: Path) -> None:
    with pytest.raises(NpukitError, match=r"a Quantised is neither a model file nor") as caught:
        npukit.build(models.Quantised(), output=tmp_path / "out")
    assert "torch.export.export" in caught.value.tries[0]


def test_without_pytorch_the_extra_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = models.saved(models.Quantised(), tmp_path, *IMAGE)
    monkeypatch.setitem(sys.modules, "torch", None)
    monkeypatch.delitem(sys.modules, "npukit.frontend.pytorch.translate", raising=False)
    with pytest.raises(NpukitError, match="needs torch, which is not installed") as caught:
        import_model(path)
    assert caught.value.tries == ("pip install 'npukit[torch]'",)


class Boom:
    """Writes a file when unpickled."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> tuple[Callable[..., Any], tuple[Any, ...]]:
        return Path.touch, (self.path,)


def rewritten(path: Path, name: str, change: Callable[[bytes], bytes]) -> Path:
    """The archive with a changed file."""
    with zipfile.ZipFile(path) as file:
        parts = {entry: file.read(entry) for entry in file.namelist()}
    (found,) = [entry for entry in parts if entry.endswith(name)]
    parts[found] = change(parts[found])
    with zipfile.ZipFile(path, "w") as file:
        for entry, data in parts.items():
            file.writestr(entry, data)
    return path


def in_json(find: str, replace: str) -> Callable[[bytes], bytes]:
    return lambda data: data.decode().replace(find, replace).encode()


def test_a_pickle_among_the_samples_is_never_opened(tmp_path: Path) -> None:
    path = models.saved(models.Quantised(), tmp_path, *IMAGE)
    rewritten(path, "sample_inputs/model.pt", lambda _: pickle.dumps(Boom(tmp_path / "boom")))
    load_net_from_model(path)
    assert not (tmp_path / "boom").exists()


@pytest.mark.parametrize(
    ("file", "change", "message"),
    [
        ("model_weights_config.json", in_json('"use_pickle": false', '"use_pickle": true'), "could run code"),
        ("models/model.json", in_json("torch.ops.aten.relu.default", "torch.hub.load"), r"calls 'torch\.hub\.load'"),
        ("models/model.json", in_json("torch.ops.aten.relu.default", "torch.ops.aten.from_file.default"), "from_file"),
        ("models/model.json", in_json('"as_int": 3', '"as_expr": {"expr_str": "exit()"}'), "a size that is computed"),
        ("models/model.json", in_json("builtins.dict", "collections.defaultdict"), "gives a collections.defaultdict"),
        ("models/model.json", lambda data: data[:-9], "is damaged"),
        ("models/model.json", lambda _: b"[" * 100_000, "is damaged"),
        ("models/model.json", lambda _: b"[]", "is damaged"),
        ("model_weights_config.json", in_json('"as_int": 27', '"as_int": 270000000'), "is damaged|cannot be imported"),
        ("model_weights_config.json", in_json('"path_name": "weight_0"', '"path_name": "../../x"'), "could run code"),
        ("weights/weight_0", lambda _: b"", "is damaged"),
    ],
)
def test_hostile_archives(file: str, change: Callable[[bytes], bytes], message: str, tmp_path: Path) -> None:
    path = rewritten(models.saved(models.Quantised(), tmp_path, *IMAGE), file, change)
    with pytest.raises(NpukitError, match=message) as caught:
        load_net_from_model(path)
    assert "\n" not in caught.value.message


def test_guards_are_not_run(tmp_path: Path) -> None:
    path = models.saved(models.Quantised(), tmp_path, *IMAGE)
    boom = f"__import__('pathlib').Path({str(tmp_path / 'boom')!r}).touch()"
    rewritten(path, "models/model.json", lambda data: json.dumps(json.loads(data) | {"guards_code": [boom]}).encode())
    load_net_from_model(path)
    assert not (tmp_path / "boom").exists()


@pytest.mark.parametrize("data", [b"", b"PK\x03\x04", b"hello" * 100])
def test_no_archive(data: bytes, tmp_path: Path) -> None:
    (tmp_path / "model.pt2").write_bytes(data)
    with pytest.raises(NpukitError, match=r"model.pt2 is damaged, or no program of torch.export"):
        load_net_from_model(tmp_path / "model.pt2")


def test_a_compressed_bomb_is_not_unpacked(tmp_path: Path) -> None:
    target = BytesIO()
    with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as file:
        file.writestr("model/models/model.json", b" " * 50_000_000)
    (tmp_path / "model.pt2").write_bytes(target.getvalue())
    with pytest.raises(NpukitError, match="more bytes than it has"):
        load_net_from_model(tmp_path / "model.pt2")


def test_an_encrypted_entry_is_refused(tmp_path: Path) -> None:
    path = models.saved(models.Quantised(), tmp_path, *IMAGE)
    data = bytearray(path.read_bytes())
    flags = data.rindex(b"PK\x01\x02") + 8
    data[flags] |= 1
    path.write_bytes(data)
    with pytest.raises(NpukitError, match="it is compressed or encrypted"):
        load_net_from_model(path)
