#include "signature.h"

#include <sha2.h>

#include "monocypher.h"

void digest_of(const uint8_t *data, uint32_t bytes, uint8_t digest[DIGEST_BYTES])
{
    SHA2_CTX context;
    SHA256Init(&context);
    SHA256Update(&context, data, bytes);
    SHA256Final(digest, &context);
}

/* Monocypher leaves the hash to its caller: Ed25519's is the SHA-512 of R, the key and the message. */
bool signature_is_good(const uint8_t signature[SIGNATURE_BYTES], const uint8_t key[PUBLIC_KEY_BYTES],
                       const uint8_t *message, uint32_t bytes)
{
    SHA2_CTX context;
    uint8_t hash[SHA512_DIGEST_LENGTH];
    uint8_t reduced[32];
    SHA512Init(&context);
    SHA512Update(&context, signature, SIGNATURE_BYTES / 2);
    SHA512Update(&context, key, PUBLIC_KEY_BYTES);
    SHA512Update(&context, message, bytes);
    SHA512Final(hash, &context);
    crypto_eddsa_reduce(reduced, hash);
    return crypto_eddsa_check_equation(signature, key, reduced) == 0;
}
