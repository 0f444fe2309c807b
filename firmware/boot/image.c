/* SPDX-License-Identifier: Apache-2.0 */
#include "image.h"

#include <stdbool.h>
#include <stddef.h>

#include "bytes.h"
#include "counter.h"
#include "flash.h"
#include "mesh_image.h"
#include "provision.h"
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
    PROTECTED_INFO_MAGIC = 0x6908,
    TLV_HEADER_BYTES = 4,
    TLV_KEY_HASH = 0x01,
    TLV_SHA256 = 0x10,
    TLV_ED25519 = 0x24,
    TLV_COUNTER = 0x50,
    COUNTER_SIZE = 4,
};
#define HEADER_MAGIC 0x96F3B83DU

/* DER prefix of an Ed25519 key (RFC 8410). The trailer has the SHA-256 of prefix and key. */
static const uint8_t key_prefix[] = {0x30, 0x2A, 0x30, 0x05, 0x06, 0x03, 0x2B, 0x65, 0x70, 0x03, 0x21, 0x00};

/* Addresses of the TLVs behind the mesh image; 0 if absent. */
struct trailer {
    const uint8_t *counter; /* protected: covered by the digest */
    const uint8_t *digest;
    const uint8_t *key_hash;
    const uint8_t *signature;
};

static enum image_verdict read_header(uint32_t slot, struct image *image)
{
    const uint8_t *header = flash_at(slot_offset(slot));
    if (get32(header) != HEADER_MAGIC) {
        return IMAGE_ABSENT;
    }
    const uint32_t header_bytes = get16(header + HEADER_BYTES_AT);
    const uint32_t trailers = TLV_INFO_BYTES + get16(header + PROTECTED_BYTES_AT);
    if (header_bytes < HEADER_BYTES || header_bytes % 4 != 0 || header_bytes + trailers > SLOT_BYTES) {
        return IMAGE_MALFORMED;
    }
    image->payload = slot_offset(slot) + header_bytes;
    image->payload_bytes = get32(header + PAYLOAD_BYTES_AT);
    memcpy(image->version, header + VERSION_AT, sizeof image->version);
    return image->payload_bytes <= SLOT_BYTES - trailers - header_bytes ? IMAGE_GOOD : IMAGE_TRUNCATED;
}

static bool take(const uint8_t **place, const uint8_t *tlv, uint32_t bytes)
{
    const bool first = *place == 0;
    *place = tlv + TLV_HEADER_BYTES;
    return first && get16(tlv + 2) == bytes;
}

/* Take a TLV of a known kind, at most one of each, protected or not as its kind requires. False for unknown
 * TLVs. */
static bool take_tlv(struct trailer *trailer, const uint8_t *tlv, bool is_protected)
{
    switch (get16(tlv)) {
    case TLV_COUNTER:
        return is_protected && take(&trailer->counter, tlv, COUNTER_SIZE);
    case TLV_KEY_HASH:
        return !is_protected && take(&trailer->key_hash, tlv, DIGEST_BYTES);
    case TLV_SHA256:
        return !is_protected && take(&trailer->digest, tlv, DIGEST_BYTES);
    case TLV_ED25519:
        return !is_protected && take(&trailer->signature, tlv, SIGNATURE_BYTES);
    default:
        return false;
    }
}

/* Take TLVs that fill the bytes from `at` to `end` exactly. */
static bool take_tlvs(struct trailer *trailer, uint32_t at, uint32_t end, bool is_protected)
{
    while (end - at >= TLV_HEADER_BYTES) {
        const uint8_t *tlv = flash_at(at);
        const uint32_t bytes = TLV_HEADER_BYTES + get16(tlv + 2);
        if (bytes > end - at || !take_tlv(trailer, tlv, is_protected)) {
            return false;
        }
        at += bytes;
    }
    return at == end;
}

/* Read a run of TLVs behind its magic and length. */
static enum image_verdict read_tlvs(struct trailer *trailer, uint32_t start, uint32_t room, bool is_protected)
{
    const uint32_t bytes = get16(flash_at(start + 2));
    if (get16(flash_at(start)) != (is_protected ? PROTECTED_INFO_MAGIC : TLV_INFO_MAGIC) || bytes > room) {
        return IMAGE_TRUNCATED;
    }
    const bool taken = bytes >= TLV_INFO_BYTES && take_tlvs(trailer, start + TLV_INFO_BYTES, start + bytes, is_protected);
    return taken ? IMAGE_GOOD : IMAGE_MALFORMED;
}

static enum image_verdict read_protected(uint32_t start, uint32_t bytes, struct trailer *trailer)
{
    if (bytes == 0) {
        return IMAGE_GOOD;
    }
    const bool is_whole = bytes >= TLV_INFO_BYTES && get16(flash_at(start + 2)) == bytes;
    return is_whole ? read_tlvs(trailer, start, bytes, true) : IMAGE_MALFORMED;
}

static enum image_verdict read_trailer(uint32_t slot, struct image *image, struct trailer *trailer)
{
    const uint32_t slot_end = slot_offset(slot) + SLOT_BYTES;
    const uint32_t covered = get16(flash_at(slot_offset(slot) + PROTECTED_BYTES_AT));
    const uint32_t start = image->payload + image->payload_bytes + covered;
    enum image_verdict verdict = read_protected(start - covered, covered, trailer);
    if (verdict == IMAGE_GOOD) {
        verdict = read_tlvs(trailer, start, slot_end - start, false);
    }
    if (verdict != IMAGE_GOOD) {
        return verdict;
    }
    image->bytes = start + get16(flash_at(start + 2)) - slot_offset(slot);
    image->counter = trailer->counter != 0 ? get32(trailer->counter) : 0;
    return trailer->digest != 0 ? IMAGE_GOOD : IMAGE_TRUNCATED;
}

static bool is_hash_of(const uint8_t *hash, const uint8_t *key)
{
    uint8_t der[sizeof key_prefix + PUBLIC_KEY_BYTES];
    uint8_t digest[DIGEST_BYTES];
    memcpy(der, key_prefix, sizeof key_prefix);
    memcpy(der + sizeof key_prefix, key, PUBLIC_KEY_BYTES);
    digest_of(der, sizeof der, digest);
    return memcmp(digest, hash, DIGEST_BYTES) == 0;
}

static enum image_verdict check_signature(const struct image *image, const struct trailer *trailer)
{
    const uint8_t *key;
    const enum provision takes = provision_read(&key);
    if (takes == PROVISION_OPEN) {
        return IMAGE_GOOD;
    }
    if (takes != PROVISION_KEY) {
        return IMAGE_UNASKED;
    }
    if (trailer->signature == 0) {
        return IMAGE_UNSIGNED;
    }
    const bool names_key = trailer->key_hash == 0 || is_hash_of(trailer->key_hash, key);
    return names_key && signature_is_good(trailer->signature, key, image->digest, DIGEST_BYTES) ? IMAGE_GOOD : IMAGE_FORGED;
}

static enum image_verdict check_content(uint32_t slot, struct image *image, const struct trailer *trailer)
{
    const uint32_t start = slot_offset(slot);
    const uint32_t covered = get16(flash_at(start + PROTECTED_BYTES_AT));
    digest_of(flash_at(start), image->payload - start + image->payload_bytes + covered, image->digest);
    if (memcmp(image->digest, trailer->digest, DIGEST_BYTES) != 0) {
        return IMAGE_ALTERED;
    }
    const enum image_verdict verdict = check_signature(image, trailer);
    if (verdict != IMAGE_GOOD) {
        return verdict;
    }
    return image->counter < counter_read() ? IMAGE_REVOKED : mesh_image_check(image->payload, image->payload_bytes);
}

enum image_verdict image_check(uint32_t slot, struct image *image)
{
    struct trailer trailer = {0, 0, 0, 0};
    *image = (struct image){0};
    enum image_verdict verdict = read_header(slot, image);
    if (verdict == IMAGE_GOOD) {
        verdict = read_trailer(slot, image, &trailer);
    }
    return verdict == IMAGE_GOOD ? check_content(slot, image, &trailer) : verdict;
}

/* Version as one number: major, minor, revision, then build. */
static uint64_t version_number(const uint8_t *version)
{
    const uint64_t name = (uint64_t)version[0] << 24 | (uint64_t)version[1] << 16 | get16(version + 2);
    return name << 32 | get32(version + 4);
}

bool image_is_older(const struct image *image, const struct image *than)
{
    return version_number(image->version) < version_number(than->version);
}
