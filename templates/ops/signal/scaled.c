for (int32_t at = 0; at < p0_size; ++at) {
    output[at] = (int16_t)(p0[at] * (1 << p1[0]));
}
