/* A box relative to its anchor: centre, then height and width as powers of e. In double precision. */
const double place = p0[box * numbers + axis], size = p0[box * numbers + 2 + axis];
const double scale = axis ? x_scale : y_scale, grown = size / (axis ? w_scale : h_scale);
const double exponent = grown > 700.0 ? 700.0 : grown < -700.0 ? -700.0 : grown;
int32_t powers = (int32_t)(exponent * 1.4426950408889634 + (exponent < 0.0 ? -0.5 : 0.5));
const double rest = exponent - powers * 0.693147180369123816490 - powers * 1.90821492927058770002e-10;
double power = 1.0;
for (int32_t step = 18; step > 0; --step) {
    power = 1.0 + power * rest / step;
}
for (; powers > 0; --powers) {
    power *= 2.0;
}
for (; powers < 0; ++powers) {
    power *= 0.5;
}
const float centre = (float)(place / scale * p2[4 * box + 2 + axis] + p2[4 * box + axis]);
const float half = (float)(0.5 * power * p2[4 * box + 2 + axis]);
corners[4 * box + axis] = centre - half;
corners[4 * box + 2 + axis] = centre + half;
