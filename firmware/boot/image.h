/* SPDX-License-Identifier: Apache-2.0 */
/* A slot's image, in MCUboot's format: a header, the mesh image (mesh_image.h), the security counter, digest and
 * signature behind it. */
#ifndef IMAGE_H
#define IMAGE_H

#include <stdbool.h>
#include <stdint.h>

#include "signature.h"

enum image_verdict {
    IMAGE_GOOD,
    IMAGE_ABSENT,
    IMAGE_TRUNCATED,
    IMAGE_MALFORMED,
    IMAGE_ALTERED,  /* not what its digest says */
    IMAGE_UNSIGNED, /* and this board has a key */
    IMAGE_FORGED,   /* not signed with this board's key */
    IMAGE_FOREIGN,  /* made for another board */
    IMAGE_UNASKED,  /* this board has not been told whose images it takes */
    IMAGE_REVOKED,  /* its security counter is below the board's */
    IMAGE_VERDICTS,
};

struct image {
    uint32_t payload; /* offset in the flash */
    uint32_t payload_bytes;
    uint32_t bytes;     /* of the whole image */
    uint32_t counter;   /* its security counter; 0 if it has none */
    uint8_t version[8]; /* major, minor, revision (16 bits), build (32 bits) */
    uint8_t digest[DIGEST_BYTES];
};

/* What to make of a slot. `image` is filled as far as the verdict got. */
enum image_verdict image_check(uint32_t slot, struct image *image);

/* Whether one version comes before the other. */
bool image_is_older(const struct image *image, const struct image *than);

#endif
