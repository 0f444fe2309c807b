"""ONNX's normalisation layers."""

from __future__ import annotations

from typing import Any

from tvm import relax
from tvm.relax.frontend.onnx import onnx_frontend

from npukit.errors import NpukitError

operators: Any = relax.op


class LayerNormalization(onnx_frontend.LayerNormalization):
    """Layer norm, if needed with mean and inverse standard deviation, for which TVM's converter returns zeros."""

    @classmethod
    def _impl_v17(cls, bb: Any, inputs: Any, attr: Any, params: Any) -> Any:
        data, rank = inputs[0], len(inputs[0].ty.shape)
        norm, *_ = super()._impl_v17(bb, inputs, attr, params)
        if attr["tvm_custom"]["num_outputs"] == 1:
            return norm
        axes = list(range(int(attr.get("axis", -1)) % rank, rank))
        mean = bb.emit(operators.mean(data, axes, keepdims=True))
        variance = bb.emit(operators.mean(operators.square(operators.subtract(data, mean)), axes, keepdims=True))
        epsilon = relax.const(float(attr.get("epsilon", 1e-5)), "float32")
        return relax.Tuple([norm, mean, bb.emit(operators.rsqrt(operators.add(variance, epsilon)))])


class BatchNormalization(onnx_frontend.BatchNormalization):
    """Batch norm for inference. Raises an error in training mode."""

    @classmethod
    def _impl_v15(cls, bb: Any, inputs: Any, attr: Any, params: Any) -> Any:
        if attr.get("training_mode", 0):
            raise NpukitError("it is in training mode", tries=["export the model for inference: model.eval()"])
        return super()._impl_v15(bb, inputs, attr, params)


NORMS = {"BatchNormalization": BatchNormalization, "LayerNormalization": LayerNormalization}
