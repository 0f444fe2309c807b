"""Loss of power at every step of an update: the board always starts either the old image or the new image."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from boot.native import ABANDON, NO_SLOT, Device, PowerCut, small_board, tiny_mesh
from npukit.boot.keys import public_bytes
from npukit.boot.provision import Policy, Takes, takes_of
from npukit.boot.signed_image import SignedImage, Version, sign_image

CHANCES = range(6)


@pytest.fixture
def old(key: Ed25519PrivateKey) -> SignedImage:
    return sign_image(tiny_mesh(small_board(), bytes(range(200))), Version(1), key, security_counter=2)


@pytest.fixture
def new(key: Ed25519PrivateKey) -> SignedImage:
    return sign_image(
        tiny_mesh(small_board(), bytes(range(255, 15, -1)), build=2), Version(1, 1), key, security_counter=7
    )


def update(device: Device, slot: int, image: SignedImage) -> None:
    """All requests of the host, and the starts between."""
    assert device.write(slot, image.data) == 0
    assert device.put_on_trial(slot, image.digest) == 0
    assert device.start().digest == image.digest
    assert device.confirm()
    assert device.start().digest == image.digest


def cut_everywhere(device: Device, job: Callable[[], object]) -> int:
    """Do the whole job once and restore the flash. Returns the number of operations."""
    before = device.flash
    device.cut_power(0)
    job()
    device.flash = before
    return device.operations


def test_an_update_cut_at_every_step_starts_the_old_or_the_new_image_and_can_be_repeated(
    device: Device, old: SignedImage, new: SignedImage
) -> None:
    update(device, 0, old)
    running = device.flash
    steps = cut_everywhere(device, lambda: update(device, 1, new))
    assert steps > len(new.data) // 4
    started = []
    for step in range(1, steps + 1):
        for chance in CHANCES:
            device.flash = running
            device.cut_power(step, chance)
            with pytest.raises(PowerCut):
                update(device, 1, new)
            device.cut_power(0)
            assert device.security_counter in (2, 7)
            digest = device.start().digest
            assert device.security_counter == (7 if new_is_active(device) else 2)
            started.append((step, digest))
            assert device.start().digest == (new.digest if new_is_active(device) else old.digest)
            finish_update(device, new)
    assert {digest for _, digest in started} == {old.digest, new.digest}
    assert {digest for step, digest in started if step <= len(new.data) // 4} == {old.digest}


def new_is_active(device: Device) -> bool:
    _, payload = device.request(0x20, b"")
    return payload[16] == 1


def finish_update(device: Device, new: SignedImage) -> None:
    """Repeat the update after the cut: it succeeds from whatever state was left."""
    if not new_is_active(device):
        update(device, 1, new)
    assert device.start().digest == new.digest
    assert device.security_counter == 7


def test_a_first_image_cut_at_every_step_starts_or_waits_for_the_host(device: Device, old: SignedImage) -> None:
    empty = device.flash
    for step in range(1, cut_everywhere(device, lambda: update(device, 0, old)) + 1):
        for chance in CHANCES:
            device.flash = empty
            device.cut_power(step, chance)
            with pytest.raises(PowerCut):
                update(device, 0, old)
            device.cut_power(0)
            started = device.start()
            assert started.slot == NO_SLOT or started.digest == old.digest
            if started.slot == NO_SLOT:
                update(device, 0, old)


def test_the_journal_cut_at_every_step_through_its_pages_and_around_keeps_the_active_image(
    device: Device, old: SignedImage, new: SignedImage
) -> None:
    update(device, 0, old)
    device.write(1, new.data)
    before = device.flash

    def many_trials() -> None:
        for _ in range(24):
            assert device.put_on_trial(1, new.digest) == 0
            assert device.request(ABANDON, b"")[0] == 0

    steps = cut_everywhere(device, many_trials)
    assert device.flash == before
    for step in range(1, steps + 1):
        device.flash = before
        device.cut_power(step, step)
        with pytest.raises(PowerCut):
            many_trials()
        device.cut_power(0)
        assert device.start().digest in (old.digest, new.digest)
        assert device.start().digest == old.digest


def test_an_image_that_does_not_confirm_itself_gives_way_to_the_old_one(
    device: Device, old: SignedImage, new: SignedImage
) -> None:
    update(device, 0, old)
    device.write(1, new.data)
    assert device.put_on_trial(1, new.digest) == 0
    assert device.start().digest == new.digest
    assert device.start().digest == old.digest
    assert device.start().digest == old.digest


def test_a_board_told_whose_images_it_takes_with_power_cut_anywhere_is_told_or_asks_again(
    library: Path, key: Ed25519PrivateKey
) -> None:
    device = Device(library, small_board(), b"")
    factory, takes = device.flash, takes_of(public_bytes(key))
    steps = cut_everywhere(device, lambda: device.provision(takes.record()))
    for step in range(1, steps + 1):
        for chance in CHANCES:
            device.flash = factory
            device.cut_power(step, chance)
            with pytest.raises(PowerCut):
                device.provision(takes.record())
            device.cut_power(0)
            assert device.takes() in (takes, Takes(Policy.NONE), Takes(Policy.DAMAGED))
            assert device.provision(takes.record()) == 0
            assert device.takes() == takes
