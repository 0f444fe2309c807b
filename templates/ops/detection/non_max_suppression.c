/* The boxes with the highest scores of each image and class, without boxes that overlap a better box too much. A result
 * is the numbers of image, class and box; unused results are -1. p0: boxes, given by two corners or by their centre;
 * p1: scores. */
float *corners = (float *)((void *)work);
float *scores = corners + 4 * boxes;
for (int32_t at = 0; at < output_size; ++at) {
    output[at] = -1;
}
int32_t row = 0;
for (int32_t image = 0; image < images; ++image) {
    for (int32_t at = 0; at < 2 * boxes; ++at) {
        const int32_t box = at / 2, axis = at % 2;
        const float one = p0[4 * (image * boxes + box) + axis], two = p0[4 * (image * boxes + box) + 2 + axis];
        const float low = by_centre ? one - two / 2.0f : one, high = by_centre ? one + two / 2.0f : two;
        corners[4 * box + axis] = low < high ? low : high;
        corners[4 * box + 2 + axis] = low < high ? high : low;
    }
    for (int32_t class = 0; class < classes; ++class) {
        for (int32_t box = 0; box < boxes; ++box) {
            const float score = p1[(image * classes + class) * boxes + box];
            scores[box] = score > threshold ? score : least;
        }
        for (int32_t taken = 0; taken < most_of_a_class; ++taken) {
            int32_t best = -1;
            for (int32_t box = 0; box < boxes; ++box) {
                best = scores[box] > least && (best < 0 || scores[box] > scores[best]) ? box : best;
            }
            if (best < 0) {
                break;
            }
            output[3 * row] = image;
            output[3 * row + 1] = class;
            output[3 * row + 2] = best;
            row += 1;
            const float *mine = &corners[4 * best];
            const float area = (mine[2] - mine[0]) * (mine[3] - mine[1]);
            for (int32_t box = 0; box < boxes; ++box) {
                const float *other = &corners[4 * box];
                const float low = mine[0] > other[0] ? mine[0] : other[0];
                const float left = mine[1] > other[1] ? mine[1] : other[1];
                const float high = mine[2] < other[2] ? mine[2] : other[2];
                const float right = mine[3] < other[3] ? mine[3] : other[3];
                const float common = high > low && right > left ? (high - low) * (right - left) : 0.0f;
                const float size = (other[2] - other[0]) * (other[3] - other[1]);
                const float both = area + size - common;
                const bool same = common > 0.0f && both > 0.0f && common / both > most_in_common;
                scores[box] = same || box == best ? least : scores[box];
            }
        }
    }
}
