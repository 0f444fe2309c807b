/* SPDX-License-Identifier: Apache-2.0 */
/* Loading of a mesh image from the flash to the PEs. */
#ifndef MESH_LOAD_H
#define MESH_LOAD_H

#include <stdint.h>

/* Load every PE of the checked mesh image, then start all of them. Returns only if a PE cannot be reached. */
void mesh_load(uint32_t offset);

#endif
