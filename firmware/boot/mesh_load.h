/* SPDX-License-Identifier: Apache-2.0 */
/* From the mesh image in the flash to the PEs. */
#ifndef MESH_LOAD_H
#define MESH_LOAD_H

#include <stdint.h>

/* Load every PE of the checked mesh image and start them all. Does not return, unless a PE cannot be reached. */
void mesh_load(uint32_t offset);

#endif
