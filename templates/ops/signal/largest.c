/* The largest magnitude in each part. */
for (int32_t part = 0; part < output_size; ++part) {
    int32_t most = 0;
    for (int32_t at = 0; at < part_size; ++at) {
        const int32_t value = p0[part * part_size + at];
        const int32_t size = value < 0 ? -value : value;
        most = size > most ? size : most;
    }
    output[part] = most;
}
