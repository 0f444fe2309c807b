/* The initial value of a state in each frame. The data p0 has no effect on it. */
for (int32_t at = 0; at < output_size; ++at) {
    output[at] = begin + 0 * p0[0];
}
