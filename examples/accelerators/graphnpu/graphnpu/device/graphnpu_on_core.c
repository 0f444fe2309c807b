/* The graph NPU's blobs, computed by the core on boards without the NPU: equal bytes, but slower. */
#include "graphnpu.h"

#include "graphnpu_blob.h"

enum { ERROR_BLOB = 3 };

static int32_t error;

int32_t graphnpu_start(const uint8_t *blob, void *scratch, void *output, void *first, void *second, void *third, void *fourth)
{
    /* The blob is read only. */
    const struct graphnpu_bases bases = {{(int8_t *)(uintptr_t)blob, scratch, output, first, second, third, fourth}};
    const struct graphnpu_blob *graph = (const struct graphnpu_blob *)(const void *)blob;
    error = graph->magic == GRAPHNPU_MAGIC ? 0 : ERROR_BLOB;
    for (uint32_t i = 0; error == 0 && i < graph->layers; i++) {
        graphnpu_run_layer(&graph->layer[i], &bases);
    }
    return 0;
}

int32_t graphnpu_wait(void)
{
    const int32_t result = error;
    error = 0;
    return result;
}
