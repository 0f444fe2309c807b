/* A box given by two opposite corners. */
const float one = p0[box * numbers + axis], two = p0[box * numbers + 2 + axis];
corners[4 * box + axis] = one < two ? one : two;
corners[4 * box + 2 + axis] = one < two ? two : one;
