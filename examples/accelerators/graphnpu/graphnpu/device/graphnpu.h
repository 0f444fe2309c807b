/* The graph NPU's driver: graphnpu.c runs blobs on the hardware, graphnpu_on_core.c on the core. */
#ifndef GRAPHNPU_H
#define GRAPHNPU_H

#include <stdint.h>

/* Start a blob and return 0. Inputs that the subgraph lacks are ignored. */
int32_t graphnpu_start(const uint8_t *blob, void *scratch, void *output, void *first, void *second, void *third, void *fourth);

/* Wait for a started blob, at once if there is none. Return 0, or the NPU's error code. */
int32_t graphnpu_wait(void);

#endif
