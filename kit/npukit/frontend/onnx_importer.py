"""TVM's importer of ONNX graphs, which says of an error at which node it is."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, redirect_stdout
from io import StringIO
from types import SimpleNamespace
from typing import Any

import onnx
from tvm.ir import IRModule
from tvm.relax.frontend.onnx import onnx_frontend

from npukit.errors import NpukitError, first_line
from npukit.frontend.onnx_ops import readable_converters

TvmImporter: Any = onnx_frontend.ONNXGraphImporter


def relax_of(model: onnx.ModelProto, name: str, shapes: Mapping[str, Sequence[int]]) -> IRModule:
    """The model, whose inputs have these shapes, as a Relax module. `name` is what errors call it."""
    opset = next(entry.version for entry in model.opset_import if entry.domain in ("", "ai.onnx"))
    try:
        with readable_converters(), _quiet():
            return _Importer(name, shapes).from_onnx(model.graph, opset)
    except NpukitError:
        raise
    except Exception as fault:
        raise NpukitError(f"{name} cannot be imported: {first_line(fault)}") from fault


@contextmanager
def _quiet() -> Iterator[None]:
    """TVM prints what it is about to raise, and warns of attributes that it reads all the same."""
    with warnings.catch_warnings(action="ignore"), redirect_stdout(StringIO()):
        yield


class _Importer(TvmImporter):
    """One node after the other."""

    def __init__(self, name: str, shapes: Mapping[str, Sequence[int]]) -> None:
        super().__init__(dict(shapes), "float32", sanitize=True)
        self._name = name

    def from_onnx(self, graph: Any, opset: int) -> IRModule:
        try:
            return super().from_onnx(graph, opset)
        except NpukitError:
            self.bb._end_block()  # TVM warns on stderr of a builder that goes with a block open
            raise

    def _construct_nodes(self, graph: Any) -> None:
        for index, node in enumerate(graph.node):
            place = f"{self._name}: node {index} ({node.name or 'unnamed'}, {node.op_type})"
            try:
                super()._construct_nodes(SimpleNamespace(node=[node]))
            except NpukitError as error:
                raise NpukitError(f"{place}: {error.message}", tries=error.tries) from error
            except Exception as fault:
                raise NpukitError(f"{place} cannot be imported: {first_line(fault)}") from fault
