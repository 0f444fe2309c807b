"""PyTorch programs of `torch.export`. Nothing here is imported before a model needs it: PyTorch is an extra."""
