/* The loader under libFuzzer: its server, and what it makes of images in the flash. */
#include <stdlib.h>
#include <string.h>

#include "flash.h"
#include "fuzz.h"
#include "hal.h"
#include "mesh_image.h"
#include "provision.h"
#include "server.h"
#include "signature.h"
#include "slots.h"

enum { AN_IMAGE = 2, LAST_SLOT = SLOTS - 1 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
uint8_t *device_flash(void); /* of tests/boot/device/flash_device.c */

static volatile uint8_t seen;

uint32_t hal_pe(void)
{
    return 0;
}

void hal_count(struct hal_counters *counters)
{
    static uint64_t cycles;
    cycles += UINT64_C(1) << 32; /* no pause is long */
    *counters = (struct hal_counters){.cycles = cycles};
}

_Noreturn void flash_restart(void)
{
    longjmp(all_read, 1);
}

/* A board that takes any image. */
static void provision(void)
{
    uint8_t record[PROVISION_RECORD_BYTES + DIGEST_BYTES] = "NPPR\xA5\x69\x5A\xC3takes images without a signature";
    digest_of(record, PROVISION_RECORD_BYTES - 24, record + PROVISION_RECORD_BYTES - 24);
    memset(device_flash() + ONCE_OFFSET, 0xFF, BOARD_FLASH_ONCE_BYTES);
    if (!provision_write(record)) {
        abort();
    }
}

static void read_all(uint32_t mesh, const struct mesh_segment *segment)
{
    if (segment->bytes > BOARD_SRAM_BYTES || segment->address > BOARD_SRAM_BYTES - segment->bytes) {
        abort();
    }
    for (uint32_t i = 0; i < segment->bytes; i++) {
        seen ^= *flash_at(mesh + segment->offset + i);
    }
}

/* What loading an image that has been found good would touch. */
static void load(uint32_t mesh)
{
    const struct mesh_tables tables = mesh_image_tables(mesh);
    for (uint32_t i = 0; i < tables.header->pes; i++) {
        if (tables.pes[i].pe >= BOARD_PES) {
            abort();
        }
        const struct mesh_program *program = &tables.programs[tables.pes[i].program];
        for (uint32_t j = 0; j < program->count; j++) {
            read_all(mesh, &tables.segments[program->first + j]);
        }
    }
    for (uint32_t i = 0; i < tables.header->overlays; i++) {
        read_all(mesh, &tables.overlays[i].segment);
    }
}

/* The input as the end of the flash, so that whoever reads beyond it is caught. */
static void check_image(const uint8_t *data, size_t size)
{
    const uint32_t bytes = (uint32_t)(size < SLOT_BYTES ? size : SLOT_BYTES) & ~3U;
    const uint32_t at = slot_offset(LAST_SLOT) + SLOT_BYTES - bytes;
    struct image image;
    memcpy(device_flash() + at, data, bytes);
    if (mesh_image_check(at, bytes) == IMAGE_GOOD) {
        load(at);
    }
    memcpy(device_flash() + slot_offset(LAST_SLOT), data, bytes);
    if (image_check(LAST_SLOT, &image) == IMAGE_GOOD) {
        load(image.payload);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    memset(device_flash() + STATE_OFFSET, 0xFF, STATE_PAGES * PAGE_BYTES + SLOTS * SLOT_BYTES);
    provision();
    if (size > 0 && (data[0] & AN_IMAGE) != 0) {
        check_image(data + 1, size - 1);
        return 0;
    }
    fuzz_begin(data, size);
    if (setjmp(all_read) == 0) {
        server_run();
    }
    return 0;
}
