"""int8 kernels for the Cortex-M4F, generated per layer: assembly, packed constants, exact counts."""
