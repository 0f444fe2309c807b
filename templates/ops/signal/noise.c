/* The noise estimate, smoothed over frames. p0: the signal; p1: the previous estimate. */
for (int32_t at = 0; at < p0_size; ++at) {
    const uint32_t signal = p0[at] << smoothing_bits;
    const uint32_t taken = at & 1 ? alternate_smoothing : smoothing;
    const uint32_t kept = at & 1 ? alternate_one_minus_smoothing : one_minus_smoothing;
    const uint64_t sum = (uint64_t)signal * taken + (uint64_t)p1[at] * kept;
    const uint32_t estimate = (uint32_t)(sum >> spectral_subtraction_bits);
    output[at] = clamping && estimate > signal ? signal : estimate;
}
