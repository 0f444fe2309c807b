/* SPDX-License-Identifier: Apache-2.0 */
/* Inside the loader's server: requests and how they are answered. */
#ifndef REQUESTS_H
#define REQUESTS_H

#include <stdbool.h>
#include <stdint.h>

#include "update.h"

/* The first statuses are those of docs/protocol.md; enum update_status goes on. */
enum { REQUEST_DONE = 0, REQUEST_OTHER_PROTOCOL = 1, REQUEST_UNKNOWN = 4, REQUEST_BAD_ARGUMENTS = 5 };

struct answer {
    uint32_t status;
    uint32_t address;
    uint32_t size; /* of the payload */
};

/* Carry out a request. `payload` may overlap the arguments: read them all before writing there. */
typedef struct answer request_handler(const uint8_t *arguments, uint32_t size, uint8_t *payload);

struct request_kind {
    request_handler *handler;
    uint8_t argument_bytes;
    bool takes_data; /* any number of whole words after the arguments */
};

enum {
    REQUEST_FIRST_KIND = 0x20,
    REQUEST_BOOT = 0x28,
    REQUEST_KINDS = REQUEST_BOOT - REQUEST_FIRST_KIND + 1,
    REQUEST_LONGEST_NAME = 31,
};

extern const struct request_kind request_kinds[REQUEST_KINDS];

#endif
