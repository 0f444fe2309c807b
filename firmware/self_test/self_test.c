/* SPDX-License-Identifier: Apache-2.0 */
#include "self_test.h"

#include <stdbool.h>

#include "digest.h"
#include "rpc.h"

/* Bytes digested between two frames: 318 cycles by `npukit bench`. */
enum { BYTES_A_FRAME = 64 };

/* Expected digests of rpc_loaded, loaded with the image. A tool that loads the image alone brings none: then the
 * digests before the first frame count. 0: the stretch is not tested. */
struct expected {
    uint64_t of[RPC_LOADED];
    uint64_t of_these;
};
extern struct expected self_test_expected;
__attribute__((section(".noinit"))) struct expected self_test_expected;

static struct {
    uint32_t stretch;
    uint32_t done; /* bytes of the stretch */
    uint64_t digest;
} pass = {.digest = DIGEST_START};

static uint32_t bytes_of(uint32_t stretch)
{
    return (uint32_t)(rpc_loaded[stretch].end - rpc_loaded[stretch].start);
}

static uint64_t digest_of_expected(void)
{
    return digest_update(DIGEST_START, (const uint8_t *)self_test_expected.of, sizeof self_test_expected.of);
}

/* Digest the next bytes of the stretch, at most `most`, and compare at the stretch's end. */
static int32_t add(uint32_t most)
{
    const uint32_t stretch = pass.stretch, left = bytes_of(stretch) - pass.done, bytes = left < most ? left : most;
    pass.digest = digest_update(pass.digest, rpc_loaded[stretch].start + pass.done, bytes);
    pass.done += bytes;
    if (bytes < left) {
        return 0;
    }
    const uint64_t expected = self_test_expected.of[stretch];
    const bool wrong = expected != 0 && expected != pass.digest;
    pass.stretch = (stretch + 1) % RPC_LOADED;
    pass.done = 0;
    pass.digest = DIGEST_START;
    return wrong ? SELF_TEST_WRONG - (int32_t)stretch : 0;
}

static void expect_what_is_there(void)
{
    for (uint32_t i = 0; i < RPC_LOADED; i++) {
        self_test_expected.of[i] = digest_update(DIGEST_START, rpc_loaded[i].start, bytes_of(i));
    }
    self_test_expected.of_these = digest_of_expected();
}

int32_t self_test_all(void)
{
    int32_t wrong = 0;
    if (self_test_expected.of_these != digest_of_expected()) {
        expect_what_is_there();
        return 0;
    }
    for (uint32_t i = 0; i < RPC_LOADED && wrong == 0; i++) {
        wrong = add(UINT32_MAX);
    }
    return wrong;
}

int32_t self_test_some(void)
{
    return add(BYTES_A_FRAME);
}
