/* What a state begins as in each frame, of whose data p0 no number counts. */
for (int32_t at = 0; at < output_size; ++at) {
    output[at] = begin + 0 * p0[0];
}
