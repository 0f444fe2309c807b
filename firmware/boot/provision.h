/* SPDX-License-Identifier: Apache-2.0 */
/* What the board has been told for good: whose images it takes. Told at the factory, or by the first host; kept where the
 * flash is never erased (docs/flash.md, section 3). */
#ifndef PROVISION_H
#define PROVISION_H

#include <stdbool.h>
#include <stdint.h>

enum { PROVISION_RECORD_BYTES = 64, PROVISION_COPIES = 2 };

enum provision {
    PROVISION_NONE,    /* nothing: it starts no image */
    PROVISION_KEY,     /* images signed with this key */
    PROVISION_OPEN,    /* any image */
    PROVISION_DAMAGED, /* something that cannot be read: it starts no image */
};

/* What the board has been told. `key`: whose images it takes, if those of one key. */
enum provision provision_read(const uint8_t **key);

/* Whether these bytes are a whole record. */
bool provision_is_record(const uint8_t *record);

/* Tell the board. False if it has been told something else. */
bool provision_write(const uint8_t *record);

#endif
