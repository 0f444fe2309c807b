/* SPDX-License-Identifier: GPL-2.0-only
 *
 * The last messages on the network-on-chip, to explain why a run failed. */
#include "api.h"

void notes_add(struct mesh *mesh, struct note note)
{
    note.time = mesh->now;
    mesh->notes[mesh->note_count++ % NOTES] = note;
}

/* Copy up to `room` messages, the latest first. Returns their number. */
size_t mesh_notes(const struct mesh *mesh, struct note *notes, size_t room)
{
    const size_t kept = mesh->note_count < NOTES ? (size_t)mesh->note_count : NOTES;
    const size_t count = kept < room ? kept : room;
    for (size_t i = 0; i < count; i++) {
        notes[i] = mesh->notes[(mesh->note_count - 1 - i) % NOTES];
    }
    return count;
}
