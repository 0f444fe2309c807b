/* SPDX-License-Identifier: Apache-2.0 */
/* Internals of the loader's server: requests, statuses, replies. */
#ifndef REQUESTS_H
#define REQUESTS_H

#include <stdbool.h>
#include <stdint.h>

#include "update.h"

/* Statuses shared with docs/protocol.md. enum update_status has the others. */
enum { REQUEST_DONE = 0, REQUEST_OTHER_PROTOCOL = 1, REQUEST_UNKNOWN = 4, REQUEST_BAD_ARGUMENTS = 5 };

struct answer {
    uint32_t status;
    uint32_t address;
    uint32_t size; /* of the payload */
};

/* Handler of a request. `payload` may overlap `arguments`: read all arguments before writing the payload. */
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
