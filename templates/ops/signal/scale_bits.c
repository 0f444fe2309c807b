/* The bits to the left by which the largest number still fits. As in TFLite Micro, -32768 becomes itself. */
int16_t most = 0;
for (int32_t at = 0; at < p0_size; ++at) {
    if (p0[at] > most) {
        most = p0[at];
    } else if (-p0[at] > most) {
        most = (int16_t)-p0[at];
    }
}
int32_t bits = 15;
for (uint32_t rest = (uint32_t)most; rest > 0; rest >>= 1) {
    bits -= 1;
}
output[0] = bits < 0 || most == 0 ? 0 : bits;
