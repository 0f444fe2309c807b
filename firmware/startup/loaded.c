/* SPDX-License-Identifier: Apache-2.0 */
/* Loaded memory that never changes: program, constants, this PE's own data. */
#include "rpc.h"

/* Laid out by board/link.ld. */
extern const uint8_t __code_start[], __code_end[], __constants_start[], __constants_end[], __own_start[], __own_end[];

const struct rpc_stretch rpc_loaded[RPC_LOADED] = {
    {__code_start, __code_end},
    {__constants_start, __constants_end},
    {__own_start, __own_end},
};
