"""External weights of an ONNX model. Their files must lie in the model's folder."""

from __future__ import annotations

from pathlib import Path
from warnings import catch_warnings

import onnx
from onnx.external_data_helper import ExternalDataInfo, load_external_data_for_model, uses_external_data

from npukit.errors import NpukitError, first_line
from npukit.frontend.onnx.claims import constants_of
from npukit.net.limits import TENSOR_BYTES


def load_external_data(model: onnx.ModelProto, path: Path) -> None:
    """Loads external weights into the model. `path`: the model file."""
    external = [tensor for tensor in constants_of(model.graph) if uses_external_data(tensor)]
    try:
        with catch_warnings(action="ignore"):
            folder = path.resolve().parent
            TENSOR_BYTES.check(sum(_bytes(tensor, folder, path.name) for tensor in external), path.name)
            if external:
                load_external_data_for_model(model, str(folder))
    except NpukitError:
        raise
    except Exception as fault:
        reason = getattr(fault, "strerror", None) or first_line(fault)
        raise NpukitError(f"{path.name}: its external data cannot be read: {reason}") from fault


def _bytes(tensor: onnx.TensorProto, folder: Path, model: str) -> int:
    """The number of bytes to read for a tensor."""
    info = ExternalDataInfo(tensor)
    location = info.location or ""
    if not location or "\0" in location or not (folder / location).resolve().is_relative_to(folder):
        raise NpukitError(f"{model}: tensor {tensor.name!r} keeps its data outside the model's folder")
    if not (folder / location).is_file():
        raise NpukitError(f"{model}: the file {location!r} with the data of {tensor.name!r} is missing")
    begin, rest = info.offset or 0, (folder / location).stat().st_size - (info.offset or 0)
    length = rest if info.length is None else info.length
    if begin < 0 or not 0 <= length <= rest:
        raise NpukitError(f"{model}: the data of {tensor.name!r} are not all in the file {location!r}")
    return length
