"""Images that the loader refuses, and the reasons. The running image stays."""

from __future__ import annotations

import ctypes
import hashlib
import os
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from boot.native import ERASE, NO_SLOT, WRITE, Device, small_board, tiny_mesh
from npukit.boot.keys import public_bytes
from npukit.boot.provision import COPIES, RECORD_BYTES, Policy, Takes, takes_of
from npukit.boot.signed_image import SignedImage, Version, sign_image

SLOT_IN_USE, NOT_ERASED, OLDER, OTHERWISE, NO_RECORD, COUNTER_FULL = 65, 66, 69, 70, 71, 72
ABSENT, TRUNCATED, MALFORMED, ALTERED, UNSIGNED, FORGED, FOREIGN, UNASKED, REVOKED = range(1, 10)
REFUSED = 80
PAYLOAD = tiny_mesh(small_board(), bytes(range(200)))


@pytest.fixture
def running(device: Device, key: Ed25519PrivateKey) -> SignedImage:
    """Version 2 in slot 0, confirmed."""
    image = sign_image(PAYLOAD, Version(2), key)
    device.write(0, image.data)
    assert (device.put_on_trial(0, image.digest), device.start().slot, device.confirm()) == (0, 0, True)
    assert device.start().digest == image.digest
    return image


def offer(device: Device, data: bytes, digest: bytes, may_be_older: bool = False) -> int:
    device.place(1, data)
    return device.put_on_trial(1, digest, may_be_older)


def checked(device: Device, running: SignedImage, image: SignedImage) -> int:
    """The status with which the image is refused. The running image stays untouched."""
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
    for at in range(len(image.data)):
        changed = image.data[:at] + bytes([image.data[at] ^ 1 << at % 8]) + image.data[at + 1 :]
        status = offer(device, changed, image.digest)
        assert status >= REFUSED, at
        device.start()


def test_a_signed_image_whose_tables_lead_outside_is_refused(
    device: Device, running: SignedImage, key: Ed25519PrivateKey
) -> None:
    """A valid signature is not enough: the loader must accept each word of the tables as safe, or refuse the image."""
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


def test_an_image_that_has_not_confirmed_itself_is_not_started_again(
    device: Device, running: SignedImage, key: Ed25519PrivateKey
) -> None:
    image = sign_image(PAYLOAD, Version(3), key)
    assert offer(device, image.data, image.digest) == 0
    assert not device.confirm()
    assert device.start().digest == image.digest
    assert device.start().digest == running.digest
    assert device.start().digest == running.digest


def test_nothing_is_written_over_what_is_not_erased(device: Device, running: SignedImage) -> None:
    place = (1).to_bytes(4, "little") + bytes(4)
    assert device.request(WRITE, place + b"\x0f" * 8)[0] == 0
    assert device.request(WRITE, place + b"\x0f" * 8)[0] == 0
    assert device.request(WRITE, place + b"\xf0" * 8)[0] == NOT_ERASED


def test_an_open_board_takes_unsigned_images(library: Path) -> None:
    device = Device(library, small_board(), takes_of(None).record())
    image = sign_image(PAYLOAD, Version(1), None)
    device.write(0, image.data)
    assert device.put_on_trial(0, image.digest) == 0
    assert device.start().digest == image.digest


def test_a_board_that_was_told_nothing_starts_nothing_and_is_told_once(library: Path, key: Ed25519PrivateKey) -> None:
    device = Device(library, small_board(), b"")
    image, takes = sign_image(PAYLOAD, Version(1), key), takes_of(public_bytes(key))
    device.write(0, image.data)
    assert device.takes() == Takes(Policy.NONE)
    assert device.put_on_trial(0, image.digest) == REFUSED + UNASKED
    assert device.provision(bytes(RECORD_BYTES)) == NO_RECORD
    assert (device.provision(takes.record()), device.provision(takes.record())) == (0, 0)
    assert device.provision(takes_of(None).record()) == OTHERWISE
    assert device.takes() == takes
    assert device.put_on_trial(0, image.digest) == 0


def told(device: Device) -> int:
    """Offset of the provision record in the flash."""
    return device.figures.once_offset


def flipped(content: bytes, bit: int) -> bytes:
    return content[: bit // 8] + bytes([content[bit // 8] ^ 1 << bit % 8]) + content[bit // 8 + 1 :]


def test_no_flipped_bit_of_what_the_board_was_told_makes_it_take_other_images(
    device: Device, key: Ed25519PrivateKey
) -> None:
    """With the flip in one copy or both, an unsigned image and an image with another key are refused."""
    unsigned, other = (sign_image(PAYLOAD, Version(1), who) for who in (None, Ed25519PrivateKey.generate()))
    record = device.flash[told(device) :][:RECORD_BYTES]
    for bit in range(8 * RECORD_BYTES):
        copies = flipped(record, bit)
        for each in (copies + record, record + copies, copies + copies):
            device.flash = device.flash[: told(device)] + each + device.flash[told(device) + len(each) :]
            for image in (unsigned, other):
                assert offer(device, image.data, image.digest) >= REFUSED, bit
            assert device.start().slot == NO_SLOT
            assert device.takes().policy is (Policy.DAMAGED if each == copies * COPIES else Policy.KEY)


def test_no_flipped_bit_of_a_board_that_was_told_nothing_makes_it_open(library: Path) -> None:
    device = Device(library, small_board(), b"")
    image = sign_image(PAYLOAD, Version(1), None)
    for bit in range(8 * RECORD_BYTES * COPIES):
        device.flash = flipped(device.flash, 8 * told(device) + bit)
        assert offer(device, image.data, image.digest) == REFUSED + UNASKED
        device.flash = flipped(device.flash, 8 * told(device) + bit)


def test_what_ran_raises_the_security_counter_and_nothing_below_it_starts_again(
    device: Device, running: SignedImage, key: Ed25519PrivateKey
) -> None:
    third, fourth, back = (sign_image(PAYLOAD, Version(n), key, c) for n, c in ((3, 5), (4, 0xFFFF_FFFF), (5, 4)))
    assert offer(device, third.data, third.digest) == 0
    assert (device.start().digest, device.security_counter) == (third.digest, 0)
    assert device.confirm()
    assert (device.start().digest, device.security_counter) == (third.digest, 5)
    for image in (running, back):
        device.place(0, image.data)
        assert device.put_on_trial(0, image.digest, may_be_older=True) == REFUSED + REVOKED
    device.place(0, fourth.data)
    assert (device.put_on_trial(0, fourth.digest), device.start().digest) == (0, fourth.digest)
    assert device.start().digest == third.digest
    assert device.security_counter == 5


def test_a_security_counter_survives_any_flipped_bit(
    device: Device, running: SignedImage, key: Ed25519PrivateKey
) -> None:
    image = sign_image(PAYLOAD, Version(3), key, 5)
    assert offer(device, image.data, image.digest) == 0
    assert device.start().digest == image.digest
    assert device.confirm()
    device.start()
    before, at = device.flash, told(device) + COPIES * RECORD_BYTES
    assert before[at : at + 4] == (5).to_bytes(4, "little")
    for bit in range(8 * at, 8 * device.figures.loader_bytes):
        device.flash = flipped(before, bit)
        assert device.security_counter == 5


def test_a_security_counter_that_cannot_be_raised_any_more_is_noticed_before_the_image_is_tried(
    device: Device, key: Ed25519PrivateKey
) -> None:
    entries = (device.figures.once_bytes - COPIES * RECORD_BYTES) // 16
    for value in range(1, entries + 1):
        image = sign_image(PAYLOAD, Version(1), key, value)
        slot = value % 2
        device.place(slot, image.data)
        assert (device.put_on_trial(slot, image.digest), device.start().digest) == (0, image.digest)
        assert device.confirm()
        device.start()
    more = sign_image(PAYLOAD, Version(1), key, entries + 1)
    device.place(1 - entries % 2, more.data)
    assert device.security_counter == entries
    assert device.put_on_trial(1 - entries % 2, more.digest) == COUNTER_FULL


def tlvs_of(image: SignedImage) -> tuple[bytes, list[bytes]]:
    """An image without its trailer, and the TLVs of the trailer."""
    data = image.data
    body = 32 + int.from_bytes(data[12:16], "little") + int.from_bytes(data[10:12], "little")
    at, found = body + 4, []
    while at < len(data):
        size = 4 + int.from_bytes(data[at + 2 : at + 4], "little")
        found.append(data[at : at + size])
        at += size
    return data[:body], found


def test_nothing_in_the_trailer_is_left_unread(device: Device, running: SignedImage, key: Ed25519PrivateKey) -> None:
    """TLVs repeated, truncated, unknown, or with an unprotected security counter; the hash of another key."""
    image = sign_image(PAYLOAD, Version(3), key, 1)
    body, tlvs = tlvs_of(image)
    _, foreign = tlvs_of(sign_image(PAYLOAD, Version(3), Ed25519PrivateKey.generate(), 1))
    counter = b"\x50\0\x04\0\x09\0\0\0"
    trailers = [[*tlvs, each] for each in (*tlvs, counter, b"\x99\0\0\0", b"\0", b"\0\0\0")]
    trailers.append([foreign[1] if each[0] == 1 else each for each in tlvs])
    for trailer in trailers:
        joined = b"".join(trailer)
        data = body + b"\x07\x69" + (4 + len(joined)).to_bytes(2, "little") + joined
        assert offer(device, data, image.digest) in (REFUSED + MALFORMED, REFUSED + FORGED), trailer
    assert offer(device, image.data, image.digest) == 0


def test_signatures_and_digests_are_those_of_openssl(device: Device) -> None:
    """`cryptography` signs and the loader checks random messages, and the same messages with one bit wrong."""
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
