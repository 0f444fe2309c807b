/* SPDX-License-Identifier: Apache-2.0 */
/* Image of a slot, in MCUboot's format: a header, the mesh image (mesh_image.h), then security counter, digest and
 * signature. */
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
    IMAGE_ALTERED,  /* differs from its digest */
    IMAGE_UNSIGNED, /* no signature, but the board has a key */
    IMAGE_FORGED,   /* not signed with this board's key */
    IMAGE_FOREIGN,  /* made for another board */
    IMAGE_UNASKED,  /* the board is not provisioned: no key, not open */
    IMAGE_REVOKED,  /* security counter below the board's */
    IMAGE_VERDICTS,
};

struct image {
    uint32_t payload; /* offset in the flash */
    uint32_t payload_bytes;
    uint32_t bytes;     /* of the whole image */
    uint32_t counter;   /* security counter of the image; 0 if none */
    uint8_t version[8]; /* major, minor, revision (16 bits), build (32 bits) */
    uint8_t digest[DIGEST_BYTES];
};

/* Check the image in a slot. `image` is filled as far as the check gets. */
enum image_verdict image_check(uint32_t slot, struct image *image);

/* True if the version of `image` comes before the version of `than`. */
bool image_is_older(const struct image *image, const struct image *than);

#endif
