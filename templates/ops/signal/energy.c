for (int32_t at = 0; at < output_size; ++at) {
    output[at] = 0;
}
for (int32_t at = start_index; at < end_index; ++at) {
    const int32_t real = p0[2 * at], imaginary = p0[2 * at + 1];
    output[at] = (uint32_t)(real * real) + (uint32_t)(imaginary * imaginary);
}
