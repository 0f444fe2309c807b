/* Some steps of a Fourier transform: in each row those that need no number of other rows. */
HELD
for (int32_t row = 0; row < rows; ++row) {
STEPS
}
