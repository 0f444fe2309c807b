/* Features of sound, window by window: for each the logarithms of the energies of a filter bank, or a cosine transform of
these. STEPS is the C of other files, one behind the other; what they make lies in RESULTS. */
RESULTS
for (int32_t number_of_window = 0; number_of_window < windows; ++number_of_window) {
    int16_t *const features = &output[number_of_window * count];
STEPS
}
