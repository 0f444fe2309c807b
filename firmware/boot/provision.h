/* SPDX-License-Identifier: Apache-2.0 */
/* Provisioning of the board, once and for good: whose images the board accepts. Written at the factory or by the first
 * host, where the flash is never erased (docs/protocol.md, section 7). */
#ifndef PROVISION_H
#define PROVISION_H

#include <stdbool.h>
#include <stdint.h>

enum { PROVISION_RECORD_BYTES = 64, PROVISION_COPIES = 2 };

enum provision {
    PROVISION_NONE,    /* no record: starts no image */
    PROVISION_KEY,     /* accepts images signed with the record's key */
    PROVISION_OPEN,    /* accepts any image */
    PROVISION_DAMAGED, /* unreadable record: starts no image */
};

/* Read the board's provisioning. `key`: the accepted key with PROVISION_KEY, else 0. */
enum provision provision_read(const uint8_t **key);

/* True if these bytes are a complete record. */
bool provision_is_record(const uint8_t *record);

/* Provision the board. False if the board has another record, or none could be written. */
bool provision_write(const uint8_t *record);

#endif
