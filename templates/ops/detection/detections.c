/* Boxes of detected objects by descending score: corners, class, score, and 1 for a detection.
 *
 * p0: boxes, converted to corners by CORNERS, the C of another file; p1: a score for each box and class. There is one
 * pass for all classes, or one for each class. A pass repeatedly takes the remaining box with the highest score, and
 * drops the boxes that overlap it too much. */
float *corners = (float *)((void *)work);
float *scores = corners + 4 * boxes;
for (int32_t at = 0; at < output_size; ++at) {
    output[at] = 0.0f;
}
for (int32_t box = 0; box < boxes; ++box) {
    float most = p1[box * columns + first];
    for (int32_t column = first + 1; column < columns; ++column) {
        const float score = p1[box * columns + column];
        most = score > most ? score : most;
    }
    scores[box] = most;
    if (most >= nms_score_threshold) {
        for (int32_t axis = 0; axis < 2; ++axis) {
CORNERS
        }
    }
}
int32_t found = 0;
for (int32_t pass = 0; pass < passes; ++pass) {
    for (int32_t box = 0; box < boxes && passes > 1; ++box) {
        scores[box] = p1[box * columns + first + pass];
    }
    for (int32_t taken = 0; taken < most_of_a_pass; ++taken) {
        int32_t best = -1;
        for (int32_t box = 0; box < boxes; ++box) {
            best = scores[box] >= nms_score_threshold && (best < 0 || scores[box] > scores[best]) ? box : best;
        }
        if (best < 0) {
            break;
        }
        const float score = scores[best];
        int32_t class = pass;
        while (passes == 1 && p1[best * columns + first + class] < score) {
            class += 1;
        }
        int32_t rank = found < max_detections ? found : max_detections;
        found = found < max_detections ? found + 1 : found;
        for (; rank > 0 && output[7 * (rank - 1) + 5] < score; --rank) {
            for (int32_t at = 0; at < 7 && rank < max_detections; ++at) {
                output[7 * rank + at] = output[7 * (rank - 1) + at];
            }
        }
        const float *mine = &corners[4 * best];
        if (rank < max_detections) {
            for (int32_t at = 0; at < 4; ++at) {
                output[7 * rank + at] = mine[at];
            }
            output[7 * rank + 4] = (float)class;
            output[7 * rank + 5] = score;
            output[7 * rank + 6] = 1.0f;
        }
        const float area = (mine[2] - mine[0]) * (mine[3] - mine[1]);
        for (int32_t box = 0; box < boxes; ++box) {
            if (scores[box] >= nms_score_threshold) {
                const float *other = &corners[4 * box];
                const float low = mine[0] > other[0] ? mine[0] : other[0];
                const float left = mine[1] > other[1] ? mine[1] : other[1];
                const float high = mine[2] < other[2] ? mine[2] : other[2];
                const float right = mine[3] < other[3] ? mine[3] : other[3];
                const float width = right > left ? right - left : 0.0f;
                const float common = high > low ? (high - low) * width : 0.0f;
                const float size = (other[2] - other[0]) * (other[3] - other[1]);
                const bool same = area > 0.0f && size > 0.0f && common / (area + size - common) > nms_iou_threshold;
                scores[box] = same || box == best ? least : scores[box];
            }
        }
    }
}
