for (int32_t at = 0; at < p0_size; ++at) {
    const uint32_t signal = p0[at] << smoothing_bits;
    const uint32_t least = (uint32_t)(((uint64_t)p0[at] * min_signal_remaining) >> spectral_subtraction_bits);
    const uint32_t rest = (signal - (p1[at] > signal ? signal : p1[at])) >> smoothing_bits;
    output[at] = rest > least ? rest : least;
}
