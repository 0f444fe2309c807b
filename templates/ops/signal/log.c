/* The natural logarithm, from the binary logarithm, with its fraction interpolated in a table of 128 segments, p1. */
for (int32_t at = 0; at < p0_size; ++at) {
    const uint32_t value = p0[at] << input_correction_bits;
    uint32_t result = 0;
    if (value > 1) {
        int32_t whole = -1;
        for (uint32_t rest = value; rest > 0; rest >>= 1) {
            whole += 1;
        }
        const uint32_t beyond = value - ((uint32_t)1 << whole);
        const int32_t fraction = (int32_t)(whole < 16 ? beyond << (16 - whole) : beyond >> (whole - 16));
        const int32_t segment = fraction >> 9;
        const int32_t bend = ((p1[segment + 1] - p1[segment]) * (fraction - 512 * segment)) >> 16;
        const uint32_t binary = ((uint32_t)whole << 16) + (uint32_t)(fraction + p1[segment] + bend);
        const uint32_t natural = (uint32_t)(((uint64_t)45426 * binary + 32768) >> 16);
        result = ((uint32_t)output_scale * natural + 32768) >> 16;
    }
    output[at] = (int16_t)(result < 32767 ? result : 32767);
}
