"""A table row selected by an input index, like a token's embedding: PEs share the table, and each computes its part."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from end_to_end.builds import build
from npukit import api
from npukit.project.build_folder import Build

ROWS, WIDTH, PES = 500, 64, 2
TABLE = np.random.default_rng(0).normal(size=(ROWS, WIDTH)).astype(np.float32)


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Build:
    folder = tmp_path_factory.mktemp("table")
    nodes = [helper.make_node("Gather", ["table", "token"], ["row"]), helper.make_node("Relu", ["row"], ["y"])]
    token = helper.make_tensor_value_info("token", TensorProto.INT32, [1, 1])
    y = helper.make_tensor_value_info("y", TensorProto.FLOAT, [1, 1, WIDTH])
    graph = helper.make_graph(nodes, "table", [token], [y], [numpy_helper.from_array(TABLE, "table")])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    onnx.save(model, folder / "table.onnx")
    np.savez(folder / "samples.npz", in0=np.arange(ROWS, dtype=np.int32).reshape(-1, 1, 1))
    return build(
        folder / "table.onnx", folder / "out", "pe-mesh", pes=PES, calibration=folder / "samples.npz", target_db=0
    )


@pytest.mark.exhaustive
def test_each_pe_has_its_part_of_the_table(built: Build) -> None:
    constants = [memory["constants"] for memory in built.manifest.summary["memory"]]
    assert len(constants) == PES
    assert max(constants) < 0.6 * TABLE.size


@pytest.mark.exhaustive
def test_rows_from_both_ends(built: Build) -> None:
    """Negative indices count from the last row, as in ONNX."""
    assert api.validate(built.folder).passed
    tokens = np.array([0, 1, 250, ROWS - 1, -1, -ROWS], np.int32).reshape(-1, 1, 1)
    (found,) = api.run(built.folder, inputs=tokens)
    wanted = np.maximum(TABLE[tokens.ravel()], 0)
    assert np.abs(found.reshape(wanted.shape) - wanted).max() < 0.06
