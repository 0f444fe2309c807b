/* SPDX-License-Identifier: Apache-2.0 */
/* SHA-256 of an image, and the Ed25519 signature of the digest. */
#ifndef SIGNATURE_H
#define SIGNATURE_H

#include <stdbool.h>
#include <stdint.h>

enum { DIGEST_BYTES = 32, SIGNATURE_BYTES = 64, PUBLIC_KEY_BYTES = 32 };

void digest_of(const uint8_t *data, uint32_t bytes, uint8_t digest[DIGEST_BYTES]);

/* Verify a signature: RFC 8032, section 5.1.7. */
bool signature_is_good(const uint8_t signature[SIGNATURE_BYTES], const uint8_t key[PUBLIC_KEY_BYTES],
                       const uint8_t *message, uint32_t bytes);

#endif
