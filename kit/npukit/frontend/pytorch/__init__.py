"""PyTorch programs of `torch.export`. PyTorch is an extra and is imported only when needed."""
