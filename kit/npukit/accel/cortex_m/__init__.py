"""int8 kernels for the Cortex-M4F, generated for one layer at a time: assembly, packed constants, exact counts."""
