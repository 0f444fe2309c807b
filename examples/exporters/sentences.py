"""Transformers and ONNX Runtime: a small SqueezeBERT, quantised at run time. Writes sentences.onnx and sentences.npz.

The weights are random, because trained weights are a download.
"""

import numpy as np
import torch
from onnxruntime.quantization import quantize_dynamic
from transformers import SqueezeBertConfig, SqueezeBertModel

torch.manual_seed(0)
sizes = {"vocab_size": 500, "hidden_size": 64, "embedding_size": 64, "intermediate_size": 128}
config = SqueezeBertConfig(**sizes, num_hidden_layers=2, num_attention_heads=4, max_position_embeddings=32)
model = SqueezeBertModel(config).eval()


class Sentence(torch.nn.Module):
    """The mean of a sentence's vectors."""

    def forward(self, words: torch.Tensor) -> torch.Tensor:
        return model(words).last_hidden_state.mean(1)


words = np.random.default_rng(0).integers(0, 500, (10, 1, 16))
example = (torch.from_numpy(words[0]),)
torch.onnx.export(Sentence(), example, "float.onnx", input_names=["words"], dynamo=True)
quantize_dynamic("float.onnx", "sentences.onnx")
np.savez("sentences.npz", in0=words)
