for (int32_t at = 0; at < output_size; ++at) {
    uint32_t sum = 0;
    if (at >= start_index && at < end_index) {
        const int32_t real = p0[2 * at], imaginary = p0[2 * at + 1];
        sum = (uint32_t)(real * real) + (uint32_t)(imaginary * imaginary);
    }
    output[at] = sum;
}
