#include "image.h"

#include <stdbool.h>
#include <stddef.h>

#include "bytes.h"
#include "flash.h"
#include "mesh_image.h"
#include "slots.h"
#include "string.h"

/* MCUboot, docs/design.md: struct image_header, struct image_tlv_info, struct image_tlv. */
enum {
    HEADER_BYTES = 32,
    HEADER_BYTES_AT = 8,
    PROTECTED_BYTES_AT = 10,
    PAYLOAD_BYTES_AT = 12,
    VERSION_AT = 20,
    TLV_INFO_BYTES = 4,
    TLV_INFO_MAGIC = 0x6907,
    TLV_HEADER_BYTES = 4,
    TLV_KEY_HASH = 0x01,
    TLV_SHA256 = 0x10,
    TLV_ED25519 = 0x24,
    KEY_MAGIC = 0x4B50504E,
    KEY_AT = 4,
};
#define HEADER_MAGIC 0x96F3B83DU

struct trailer {
    const uint8_t *digest;
    const uint8_t *signature;
};

const uint8_t *image_key(void)
{
    const uint8_t *place = flash_at(KEY_OFFSET);
    return get32(place) == KEY_MAGIC ? place + KEY_AT : 0;
}

static enum image_verdict read_header(uint32_t slot, struct image *image)
{
    const uint8_t *header = flash_at(slot_offset(slot));
    if (get32(header) != HEADER_MAGIC) {
        return IMAGE_ABSENT;
    }
    const uint32_t header_bytes = get16(header + HEADER_BYTES_AT);
    const bool fits = header_bytes >= HEADER_BYTES && header_bytes <= SLOT_BYTES - TLV_INFO_BYTES;
    if (!fits || header_bytes % 4 != 0 || get16(header + PROTECTED_BYTES_AT) != 0) {
        return IMAGE_MALFORMED;
    }
    image->payload = slot_offset(slot) + header_bytes;
    image->payload_bytes = get32(header + PAYLOAD_BYTES_AT);
    memcpy(image->version, header + VERSION_AT, sizeof image->version);
    const uint32_t room = SLOT_BYTES - TLV_INFO_BYTES - header_bytes;
    return image->payload_bytes <= room ? IMAGE_GOOD : IMAGE_TRUNCATED;
}

/* Of each kind one; others are not known here, and what is not known is not trusted. */
static bool take_tlv(struct trailer *trailer, const uint8_t *tlv, uint32_t length)
{
    const uint8_t *value = tlv + TLV_HEADER_BYTES;
    switch (get16(tlv)) {
    case TLV_KEY_HASH:
        return true;
    case TLV_SHA256:
        trailer->digest = value;
        return length == DIGEST_BYTES;
    case TLV_ED25519:
        trailer->signature = value;
        return length == SIGNATURE_BYTES;
    default:
        return false;
    }
}

static enum image_verdict read_trailer(uint32_t slot, struct image *image, struct trailer *trailer)
{
    const uint32_t slot_end = slot_offset(slot) + SLOT_BYTES;
    const uint32_t start = image->payload + image->payload_bytes;
    const uint32_t bytes = get16(flash_at(start + 2));
    if (get16(flash_at(start)) != TLV_INFO_MAGIC || bytes > slot_end - start) {
        return IMAGE_TRUNCATED;
    }
    uint32_t at = start + TLV_INFO_BYTES;
    while (at + TLV_HEADER_BYTES <= start + bytes) {
        const uint32_t length = get16(flash_at(at + 2));
        if (length > start + bytes - at - TLV_HEADER_BYTES || !take_tlv(trailer, flash_at(at), length)) {
            return IMAGE_MALFORMED;
        }
        at += TLV_HEADER_BYTES + length;
    }
    image->bytes = start + bytes - slot_offset(slot);
    return trailer->digest != 0 ? IMAGE_GOOD : IMAGE_TRUNCATED;
}

static enum image_verdict check_signature(const struct image *image, const uint8_t *signature)
{
    const uint8_t *key = image_key();
    if (key == 0) {
        return IMAGE_GOOD;
    }
    if (signature == 0) {
        return IMAGE_UNSIGNED;
    }
    return signature_is_good(signature, key, image->digest, DIGEST_BYTES) ? IMAGE_GOOD : IMAGE_FORGED;
}

static enum image_verdict check_content(uint32_t slot, struct image *image, const struct trailer *trailer)
{
    const uint32_t start = slot_offset(slot);
    digest_of(flash_at(start), image->payload - start + image->payload_bytes, image->digest);
    if (memcmp(image->digest, trailer->digest, DIGEST_BYTES) != 0) {
        return IMAGE_ALTERED;
    }
    const enum image_verdict verdict = check_signature(image, trailer->signature);
    return verdict == IMAGE_GOOD ? mesh_image_check(image->payload, image->payload_bytes) : verdict;
}

enum image_verdict image_check(uint32_t slot, struct image *image)
{
    struct trailer trailer = {0, 0};
    *image = (struct image){0};
    enum image_verdict verdict = read_header(slot, image);
    if (verdict == IMAGE_GOOD) {
        verdict = read_trailer(slot, image, &trailer);
    }
    return verdict == IMAGE_GOOD ? check_content(slot, image, &trailer) : verdict;
}

/* Major, minor, revision as one number; the build number counts where they are equal. */
static uint64_t version_number(const uint8_t *version)
{
    const uint64_t name = (uint64_t)version[0] << 24 | (uint64_t)version[1] << 16 | get16(version + 2);
    return name << 32 | get32(version + 4);
}

bool image_is_older(const struct image *image, const struct image *than)
{
    return version_number(image->version) < version_number(than->version);
}
