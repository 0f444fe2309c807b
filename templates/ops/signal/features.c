/* Features of sound, window by window: logarithms of a filter bank's energies, or a cosine transform of these. STEPS
 * stands for the C of other files, in sequence; RESULTS declares the arrays of intermediate results. */
RESULTS
for (int32_t number_of_window = 0; number_of_window < windows; ++number_of_window) {
    int16_t *const features = &output[number_of_window * count];
STEPS
}
