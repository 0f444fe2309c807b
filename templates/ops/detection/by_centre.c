/* A box given by its centre, then height and width. */
const float half = p0[box * numbers + 2 + axis] / 2.0f;
corners[4 * box + axis] = p0[box * numbers + axis] - half;
corners[4 * box + 2 + axis] = p0[box * numbers + axis] + half;
