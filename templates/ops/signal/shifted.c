/* The last rows of p0, the kept rows, followed by p1, the new rows. */
for (int32_t row = 0; row < rows; ++row) {
    for (int32_t at = 0; at < width; ++at) {
        const int32_t kept = (row + fresh) * width + at;
        output[row * width + at] = row + fresh < rows ? p0[kept] : p1[kept - rows * width];
    }
}
