"""PyTorch and ONNX Runtime: O-Net of facenet-pytorch, with trained weights, as a QDQ file.

Writes landmarks.onnx and landmarks.npz. Its outputs are a box, ten coordinates of landmarks, and two probabilities.
"""

import numpy as np
import torch
from facenet_pytorch.models.mtcnn import ONet
from onnxruntime.quantization import CalibrationDataReader, quantize_static
from skimage.data import lfw_subset
from skimage.transform import resize

grey = resize(lfw_subset()[:100], (100, 48, 48))
pictures = np.repeat((grey[:, None, None] - 0.5) * 2, 3, axis=2).astype(np.float32)


class Pictures(CalibrationDataReader):
    """The pictures of calibration in order."""

    rest = iter([{"picture": each} for each in pictures[::2]])

    def get_next(self) -> dict | None:
        return next(self.rest, None)


example = (torch.from_numpy(pictures[0]),)
torch.onnx.export(ONet().eval(), example, "float.onnx", input_names=["picture"], dynamo=True)
quantize_static("float.onnx", "landmarks.onnx", Pictures(), per_channel=True)
np.savez("landmarks.npz", in0=pictures[1:20:2])
