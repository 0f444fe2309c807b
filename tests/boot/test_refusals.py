"""What the loader does not take, and why; the running image stays."""

from __future__ import annotations

import ctypes
import hashlib
import os
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from boot.native import ERASE, WRITE, Device, small_board, tiny_mesh
from npukit.boot.signed_image import SignedImage, Version, sign_image

SLOT_IN_USE, NOT_ERASED, OTHER_IMAGE, OLDER, NOT_TRIED = 65, 66, 68, 69, 70
ABSENT, TRUNCATED, MALFORMED, ALTERED, UNSIGNED, FORGED, FOREIGN = range(1, 8)
REFUSED = 80
PAYLOAD = tiny_mesh(small_board(), bytes(range(200)))


@pytest.fixture
def running(device: Device, key: Ed25519PrivateKey) -> SignedImage:
    """Version 2 in slot 0, confirmed."""
    image = sign_image(PAYLOAD, Version(2), key)
    device.write(0, image.data)
    assert (device.put_on_trial(0, image.digest), device.start().slot, device.confirm(image.digest)) == (0, 0, 0)
    return image


def offer(device: Device, data: bytes, digest: bytes, may_be_older: bool = False) -> int:
    device.place(1, data)
    return device.put_on_trial(1, digest, may_be_older)


def checked(device: Device, running: SignedImage, image: SignedImage) -> int:
    """The status with which the image is refused; the running one is untouched."""
    status = offer(device, image.data, image.digest)
    assert device.start().digest == running.digest
    return status


def test_an_unsigned_image_is_refused(device: Device, running: SignedImage) -> None:
    assert checked(device, running, sign_image(PAYLOAD, Version(3), None)) == REFUSED + UNSIGNED


def test_an_image_signed_with_another_key_is_refused(device: Device, running: SignedImage) -> None:
    other = Ed25519PrivateKey.generate()
    assert checked(device, running, sign_image(PAYLOAD, Version(3), other)) == REFUSED + FORGED


def test_an_older_image_is_refused_unless_asked_for(
    device: Device, running: SignedImage, key: Ed25519PrivateKey
) -> None:
    older = sign_image(PAYLOAD, Version(1, 255, 65535, 4294967295), key)
    assert checked(device, running, older) == OLDER
    assert offer(device, older.data, older.digest, may_be_older=True) == 0
    assert device.start().digest == older.digest


def test_versions_are_compared_field_by_field(device: Device, running: SignedImage, key: Ed25519PrivateKey) -> None:
    for version in (Version(2, 0, 0, 1), Version(2, 0, 1, 0), Version(2, 1, 0, 0), Version(3), Version(2)):
        image = sign_image(PAYLOAD, version, key)
        assert offer(device, image.data, image.digest) == 0
        device.start()
        device.start()


def test_an_image_for_another_board_is_refused(device: Device, running: SignedImage, key: Ed25519PrivateKey) -> None:
    board = small_board().model_copy(update={"name": "pe-mesh-152"})
    image = sign_image(tiny_mesh(board, bytes(200)), Version(3), key)
    assert checked(device, running, image) == REFUSED + FOREIGN


def test_an_image_cut_at_any_length_is_refused(device: Device, running: SignedImage, key: Ed25519PrivateKey) -> None:
    image = sign_image(PAYLOAD, Version(3), key)
    for length in range(len(image.data)):
        assert offer(device, image.data[:length], image.digest) in range(REFUSED + ABSENT, REFUSED + FOREIGN + 1)
    assert device.start().digest == running.digest


def test_an_image_with_any_bit_changed_is_refused(device: Device, running: SignedImage, key: Ed25519PrivateKey) -> None:
    image = sign_image(PAYLOAD, Version(3), key)
    unchecked = range(len(image.data) - 4 - 64 - 36, len(image.data) - 4 - 64)  # the hash of the key, a help for people
    for at in range(len(image.data)):
        changed = image.data[:at] + bytes([image.data[at] ^ 1 << at % 8]) + image.data[at + 1 :]
        status = offer(device, changed, image.digest)
        assert status >= REFUSED or at in unchecked, at
        device.start()


def test_a_signed_image_whose_tables_lead_outside_is_refused(
    device: Device, running: SignedImage, key: Ed25519PrivateKey
) -> None:
    """A key is no excuse: whatever a word of the tables says, the loader must find it safe or refuse it."""
    tables = 84 + 2 * 8 + 3 * 12 + 3 * 8
    for at in range(0, tables, 4):
        for word in (0xFFFFFFFF, 0x7FFFFFFC, 0x20000):
            payload = PAYLOAD[:at] + word.to_bytes(4, "little") + PAYLOAD[at + 4 :]
            if payload == PAYLOAD or 68 <= at < 84:
                continue  # the build's id may be anything
            image = sign_image(payload, Version(3), key)
            assert offer(device, image.data, image.digest) in (REFUSED + MALFORMED, REFUSED + FOREIGN), (at, word)


def test_the_slot_that_runs_cannot_be_written(device: Device, running: SignedImage) -> None:
    for kind, arguments in ((ERASE, bytes(8)), (WRITE, bytes(8) + b"\0" * 16)):
        assert device.request(kind, arguments)[0] == SLOT_IN_USE
    assert device.put_on_trial(0, running.digest) == SLOT_IN_USE
    assert device.start().digest == running.digest


def test_what_is_on_trial_is_given_up_when_its_slot_is_written(
    device: Device, running: SignedImage, key: Ed25519PrivateKey
) -> None:
    image = sign_image(PAYLOAD, Version(3), key)
    assert offer(device, image.data, image.digest) == 0
    assert device.request(ERASE, (1).to_bytes(4, "little") + bytes(4))[0] == 0
    assert device.start().digest == running.digest


def test_an_image_is_confirmed_only_once_it_has_been_started(
    device: Device, running: SignedImage, key: Ed25519PrivateKey
) -> None:
    image = sign_image(PAYLOAD, Version(3), key)
    assert offer(device, image.data, image.digest) == 0
    assert device.confirm(image.digest) == NOT_TRIED
    assert device.confirm(bytes(32)) == OTHER_IMAGE
    device.start()
    assert (device.confirm(image.digest), device.confirm(image.digest)) == (0, 0)


def test_nothing_is_written_over_what_is_not_erased(device: Device, running: SignedImage) -> None:
    place = (1).to_bytes(4, "little") + bytes(4)
    assert device.request(WRITE, place + b"\x0f" * 8)[0] == 0
    assert device.request(WRITE, place + b"\x0f" * 8)[0] == 0
    assert device.request(WRITE, place + b"\xf0" * 8)[0] == NOT_ERASED


def test_a_board_without_a_key_takes_unsigned_images(library: Path) -> None:
    device = Device(library, small_board(), None)
    image = sign_image(PAYLOAD, Version(1), None)
    device.write(0, image.data)
    assert device.put_on_trial(0, image.digest) == 0
    assert device.start().digest == image.digest


def test_signatures_and_digests_are_those_of_openssl(device: Device) -> None:
    """`cryptography` signs, the loader checks: random messages, and each of them wrong in one bit."""
    library, private = device.library, Ed25519PrivateKey.generate()
    public = private.public_key().public_bytes_raw()
    check = library.signature_is_good
    check.restype = ctypes.c_bool
    for length in (*range(40), 127, 128, 129, 1000):
        message, digest = os.urandom(length), ctypes.create_string_buffer(32)
        library.digest_of(message, length, digest)
        assert digest.raw == hashlib.sha256(message).digest()
        signature = private.sign(message)
        assert check(signature, public, message, length)
        bit = os.urandom(1)[0]
        wrong = bytearray(signature)
        wrong[bit % 64] ^= 1 << bit % 8
        assert not check(bytes(wrong), public, message, length)
        assert not check(signature, public, message + b"\0", length + 1)
