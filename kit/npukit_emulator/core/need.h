/* SPDX-License-Identifier: GPL-2.0-only
 *
 * Exit of the worker on an unrecoverable error. The last line on standard error is the reason. The exit status is
 * GAVE_UP. */
#ifndef NEED_H
#define NEED_H

#include <stdio.h>
#include <stdlib.h>

enum { GAVE_UP = 75 };

static inline _Noreturn void give_up(const char *why)
{
    fprintf(stderr, "%s\n", why);
    fflush(stderr);
    _Exit(GAVE_UP);
}

/* Check an allocation: the worker exits if it failed. */
static inline void *needed(void *memory)
{
    if (memory == NULL) {
        give_up("out of memory");
    }
    return memory;
}

#endif
