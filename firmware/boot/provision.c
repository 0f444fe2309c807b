/* SPDX-License-Identifier: Apache-2.0 */
#include "provision.h"

#include "bytes.h"
#include "flash.h"
#include "signature.h"
#include "slots.h"
#include "string.h"

/* Record: magic, policy, key, first bytes of the SHA-256 of all three. The two policies differ in every bit, and the
 * digest covers them: flipped bits turn neither an empty record into a policy, nor one policy into the other. */
enum { MAGIC = 0x5250504E, POLICY_AT = 4, KEY_AT = 8, DIGEST_AT = KEY_AT + PUBLIC_KEY_BYTES };
enum { ERASED = 0xFF };
#define POLICY_KEY 0x3CA5965AU
#define POLICY_OPEN (~POLICY_KEY)

/* Content of an open board's record in place of a key. */
static const char no_key[PUBLIC_KEY_BYTES + 1] = "takes images without a signature";

static const uint8_t *record_at(uint32_t copy)
{
    return flash_at(ONCE_OFFSET + copy * PROVISION_RECORD_BYTES);
}

static enum provision policy_of(const uint8_t *record)
{
    uint8_t digest[DIGEST_BYTES];
    digest_of(record, DIGEST_AT, digest);
    if (get32(record) != MAGIC || memcmp(digest, record + DIGEST_AT, PROVISION_RECORD_BYTES - DIGEST_AT) != 0) {
        return PROVISION_DAMAGED;
    }
    if (get32(record + POLICY_AT) == POLICY_KEY) {
        return PROVISION_KEY;
    }
    const bool open = get32(record + POLICY_AT) == POLICY_OPEN && memcmp(record + KEY_AT, no_key, PUBLIC_KEY_BYTES) == 0;
    return open ? PROVISION_OPEN : PROVISION_DAMAGED;
}

static bool is_erased(const uint8_t *record)
{
    for (uint32_t i = 0; i < PROVISION_RECORD_BYTES; i++) {
        if (record[i] != ERASED) {
            return false;
        }
    }
    return true;
}

enum provision provision_read(const uint8_t **key)
{
    enum provision found = PROVISION_NONE;
    *key = 0;
    for (uint32_t copy = 0; copy < PROVISION_COPIES; copy++) {
        const enum provision policy = policy_of(record_at(copy));
        if (policy != PROVISION_DAMAGED) {
            *key = policy == PROVISION_KEY ? record_at(copy) + KEY_AT : 0;
            return policy;
        }
        found = is_erased(record_at(copy)) ? found : PROVISION_DAMAGED;
    }
    return found;
}

bool provision_is_record(const uint8_t *record)
{
    return policy_of(record) != PROVISION_DAMAGED;
}

static bool is_told(const uint8_t *record)
{
    for (uint32_t copy = 0; copy < PROVISION_COPIES; copy++) {
        if (policy_of(record_at(copy)) != PROVISION_DAMAGED) {
            return memcmp(record_at(copy), record, PROVISION_RECORD_BYTES) == 0;
        }
    }
    return false;
}

/* Completes a truncated copy if possible. If not, the other copy is sufficient. */
bool provision_write(const uint8_t *record)
{
    const uint8_t *key;
    const enum provision before = provision_read(&key);
    if ((before == PROVISION_KEY || before == PROVISION_OPEN) && !is_told(record)) {
        return false;
    }
    for (uint32_t copy = 0; copy < PROVISION_COPIES; copy++) {
        (void)flash_program(ONCE_OFFSET + copy * PROVISION_RECORD_BYTES, record, PROVISION_RECORD_BYTES);
    }
    return is_told(record);
}
