"""torch.export: a TinyNet of timm as a float program. npukit quantises it. Writes plants.pt2 and plants.npz.

The weights are random, because trained weights are a download.
"""

import numpy as np
import timm
import torch

torch.manual_seed(0)
model = timm.create_model("tinynet_e", num_classes=10).eval()
pictures = torch.randn(24, 1, 3, 64, 64)
torch.export.save(torch.export.export(model, (pictures[0],)), "plants.pt2")
np.savez("plants.npz", in0=pictures.numpy())
