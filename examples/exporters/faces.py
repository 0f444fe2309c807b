"""LiteRT Torch and AI Edge Quantizer: R-Net of facenet-pytorch, with trained weights, as int8 TFLite.

Writes faces.tflite and faces.npz, in int8 as the file's input. The pictures are scikit-image's: 100 faces, 100 others.
"""

import ai_edge_quantizer
import litert_torch
import numpy as np
import torch
from ai_edge_litert.interpreter import Interpreter
from facenet_pytorch.models.mtcnn import RNet
from skimage.data import lfw_subset


class Face(RNet):
    """The probabilities of no face and of a face, without the box."""

    def forward(self, picture: torch.Tensor) -> torch.Tensor:
        return super().forward(picture)[1]


grey = np.asarray(lfw_subset()[:, :24, :24], np.float32)
pictures = np.repeat((grey[:, None, None] - 0.5) * 2, 3, axis=2)
labels = np.repeat([1, 0], 100)

litert_torch.convert(Face().eval(), (torch.from_numpy(pictures[0]),)).export("float.tflite")
quantizer = ai_edge_quantizer.Quantizer("float.tflite", ai_edge_quantizer.recipe.static_wi8_ai8())
seen = quantizer.calibrate({"serving_default": [{"args_0": each} for each in pictures[::4]]})
quantizer.quantize(seen).export_model("faces.tflite", overwrite=True)

scale, zero = Interpreter("faces.tflite").get_input_details()[0]["quantization"]
integers = np.clip(np.rint(pictures / scale + zero), -128, 127).astype(np.int8)
np.savez("faces.npz", in0=integers[1::4], labels=labels[1::4])
