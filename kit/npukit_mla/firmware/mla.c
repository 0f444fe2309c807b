/* SPDX-License-Identifier: Apache-2.0 */
/* Tiles on the array in sequence. */
#include "mla_driver.h"

int32_t mla_run_one(const struct mla_command *tile)
{
    switch (tile->kind) {
    case MLA_LINES:
        return mla_lines(tile);
    case MLA_WINDOWS:
    case MLA_SHIFTED:
        return mla_windows(tile);
    default:
        return mla_planes(tile);
    }
}

int32_t mla_run(const struct mla_command *first)
{
    int32_t error = 0;
    for (const struct mla_command *tile = first; tile != 0 && error == 0; tile = tile->next) {
        error = mla_run_one(tile);
    }
    return error;
}
