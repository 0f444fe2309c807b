/* The last of what was kept, p0, and what comes behind it, p1. */
for (int32_t at = 0; at < output_size; ++at) {
    output[at] = at + p1_size < p0_size ? p0[at + p1_size] : p1[at + p1_size - p0_size];
}
