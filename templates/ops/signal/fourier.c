/* Some steps of a Fourier transform. Each row holds steps that need no number of another row. */
HELD
for (int32_t row = 0; row < rows; ++row) {
STEPS
}
