// SPDX-License-Identifier: Apache-2.0
// signature.h with the cryptography of zig's standard library. npukit compiles this file for the board
// (kit/npukit/project/zig.py) and links it into the loader, whichever compiler makes the rest.
const std = @import("std");
const Ed25519 = std.crypto.sign.Ed25519;
const Sha256 = std.crypto.hash.sha2.Sha256;

export fn digest_of(data: [*]const u8, bytes: u32, digest: *[Sha256.digest_length]u8) void {
    Sha256.hash(data[0..bytes], digest, .{});
}

// Refuses keys and signatures in non-canonical form or of small order: no signer makes either.
export fn signature_is_good(
    signature: *const [Ed25519.Signature.encoded_length]u8,
    key: *const [Ed25519.PublicKey.encoded_length]u8,
    message: [*]const u8,
    bytes: u32,
) bool {
    const public_key = Ed25519.PublicKey.fromBytes(key.*) catch return false;
    Ed25519.Signature.fromBytes(signature.*).verifyStrict(message[0..bytes], public_key) catch return false;
    return true;
}
