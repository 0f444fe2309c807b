"""Attacks on the loader, a given number of each kind: PYTHONPATH=kit:tests python -m fuzz.boot [--each 10000]

The loader's own C and Zig code runs on this machine, with emulated flash. Outcomes are counted by kind of attack. The
run aborts if a forbidden image starts, a board is lost, or an update cannot be repeated.
"""

from __future__ import annotations

import argparse
import random
import tempfile
from collections import Counter
from collections.abc import Callable, Mapping
from contextlib import closing
from pathlib import Path

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from boot.native import NO_SLOT, Device, PowerCut, compile_device, compile_loader, small_board, tiny_mesh
from boot.test_bad_line import DAMAGES, FaultyBoard, put
from link.device_process import Pipes
from npukit.boot.keys import public_bytes
from npukit.boot.provision import takes_of
from npukit.boot.signed_image import SignedImage, Version, sign_image
from npukit.errors import NpukitError

BOARD = small_board()
REFUSED = 80
TAMPERED, FORGED, FLASH, CUTS, LINE = "images tampered with", "images forged", "flash", "power cuts", "noisy lines"
_BYTES = 200
_FRAMES = 40
"""Number of a session's first frames among which some are damaged."""


class Attacks:
    """A board that runs version 2, and attackers without its key. Equal seeds give equal attacks."""

    def __init__(self, seed: int, scratch: Path) -> None:
        self._chance = random.Random(seed)
        self._key, self._other = (Ed25519PrivateKey.from_private_bytes(self._chance.randbytes(32)) for _ in range(2))
        self._device = Device(compile_device(BOARD, scratch), BOARD, takes_of(public_bytes(self._key)).record())
        self._old = self._signed(2, self._key)
        self._new = self._signed(3, self._key)
        _update(self._device, 0, self._old)
        self._running = self._device.flash
        self._device.cut_power(0)
        _update(self._device, 1, self._new)
        self._operations = self._device.operations
        self._scratch = scratch
        self.outcomes: dict[str, Counter[str]] = {}

    def run(self, each: int) -> None:
        kinds: Mapping[str, Callable[[], str]] = {
            TAMPERED: self._tampered,
            FORGED: self._forged,
            FLASH: self._damaged_flash,
            CUTS: self._cut,
        }
        for kind, attack in kinds.items():
            self.outcomes[kind] = Counter(attack() for _ in range(each))

    def run_on_noisy_lines(self, sessions: int) -> None:
        """Whole sessions with a loader in a separate process. Time-outs make them slow."""
        with closing(Pipes(compile_loader(BOARD, self._scratch))) as line:
            images = [sign_image(tiny_mesh(BOARD, bytes([n]) * _BYTES, n), Version(1), None) for n in (1, 2)]
            for image in images:
                put(FaultyBoard(line, {}), image)
            wanted = [put(FaultyBoard(line, {}), image) for image in images]
            sent = (self._noisy(line, images[n % 2], wanted[n % 2]) for n in range(sessions))
            self.outcomes[LINE] = Counter(sent)

    def _tampered(self) -> str:
        """A valid image with some bits or bytes changed."""
        data = bytearray(self._new.data)
        for _ in range(self._chance.choice((1, 1, 1, 2, 3, 8))):
            at = self._chance.randrange(len(data))
            data[at] ^= self._chance.choice((1 << self._chance.randrange(8), self._chance.randrange(1, 256)))
        return "undone by chance" if bytes(data) == self._new.data else self._refused(bytes(data), self._new.digest)

    def _forged(self) -> str:
        """An image in the correct format, signed with another key or unsigned."""
        content, version = self._chance.randbytes(_BYTES), Version(self._chance.randrange(256))
        mesh = bytearray(tiny_mesh(BOARD, content, self._chance.randrange(256)))
        for _ in range(self._chance.randrange(3)):
            at = 4 * self._chance.randrange(len(mesh) // 4)
            mesh[at : at + 4] = self._chance.choice((bytes(4), b"\xff" * 4, self._chance.randbytes(4)))
        image = sign_image(bytes(mesh), version, self._chance.choice((None, self._other)), self._chance.randrange(9))
        good = self._chance.choice((self._old, self._new))
        data = self._chance.choice(
            (
                image.data,
                image.data[: self._chance.randrange(len(image.data))],
                image.data + self._chance.randbytes(8),
                image.data[:-_SIGNED] + good.data[-_SIGNED:],
                good.data[:-_SIGNED] + image.data[-_SIGNED:],
            )
        )
        return self._refused(data, self._chance.choice((image.digest, good.digest)))

    def _refused(self, data: bytes, digest: bytes) -> str:
        """The loader's verdict. The running image stays in place."""
        self._device.flash = self._running
        self._device.place(1, data)
        status = self._device.put_on_trial(1, digest, may_be_older=True)
        _require(status != 0, "an image that nobody signed is on trial")
        _require(self._device.start().digest == self._old.digest, "another image than the running one has started")
        return f"verdict {status - REFUSED}" if status >= REFUSED else f"status {status}"

    def _damaged_flash(self) -> str:
        """Flip bits in the loader's stored state, beside an image with a foreign signature."""
        forged = self._signed(9, self._other)
        self._device.flash = self._running
        self._device.place(1, forged.data)
        flash = bytearray(self._device.flash)
        for _ in range(self._chance.choice((1, 2, 4, 64))):
            at = self._chance.randrange(self._device.figures.once_offset, self._device.figures.slot_offset(1))
            flash[at] ^= 1 << self._chance.randrange(8)
        self._device.flash = bytes(flash)
        tried = self._device.put_on_trial(1, forged.digest, may_be_older=True)
        started = self._device.start()
        _require(tried != 0 and started.digest != forged.digest, "a flipped bit has let in what nobody signed")
        _require(started.slot == NO_SLOT or started.digest == self._old.digest, "an image that is none has started")
        return "waits in its loader" if started.slot == NO_SLOT else "started what ran"

    def _cut(self) -> str:
        """Cut the power once during an update, and perhaps again during repetitions. The last repetition succeeds."""
        self._device.flash = self._running
        for _ in range(self._chance.choice((0, 0, 1, 4))):
            self._cut_once()
        outcome = self._cut_once()
        _finish(self._device, self._new)
        _require(self._device.start().digest == self._new.digest, "the update cannot be repeated")
        return outcome

    def _cut_once(self) -> str:
        self._device.cut_power(self._chance.randint(1, self._operations), self._chance.randrange(6))
        try:
            _finish(self._device, self._new)
            outcome = "went through first"
        except PowerCut:
            outcome = "cut"
        self._device.cut_power(0)
        digest = self._device.start().digest
        _require(digest in (self._old.digest, self._new.digest), "neither the old nor the new image has started")
        return f"{outcome}, {'new' if digest == self._new.digest else 'old'} image"

    def _noisy(self, line: Pipes, image: SignedImage, wanted: list[object]) -> str:
        """An update over a line that damages some frames in both directions."""
        damages = {
            (self._chance.choice(("out", "in")), self._chance.randrange(_FRAMES)): self._chance.choice(DAMAGES)
            for _ in range(self._chance.randrange(1, 8))
        }
        try:
            found = put(FaultyBoard(line, damages), image)
        except NpukitError:
            _require(put(FaultyBoard(line, {}), image) == wanted, "the next session finds another board")
            return "given up with an error"
        _require(found == wanted, "an update came out as another")
        return "went through"

    def _signed(self, version: int, key: Ed25519PrivateKey) -> SignedImage:
        return sign_image(tiny_mesh(BOARD, self._chance.randbytes(_BYTES), version), Version(version), key)


_SIGNED = 4 + 64
"""Bytes of the last TLV, the signature."""


def _update(device: Device, slot: int, image: SignedImage) -> None:
    _require(device.write(slot, image.data) == 0, "the image cannot be written")
    _require(device.put_on_trial(slot, image.digest) == 0, "the image is refused")
    device.start()
    device.confirm()
    device.start()


def _finish(device: Device, new: SignedImage) -> None:
    """Complete the update from any intermediate state; do nothing after a complete update."""
    _, told = device.request(_IDENTIFY, b"")
    if told[_ACTIVE_AT] != 1:
        _update(device, 1, new)


_IDENTIFY, _ACTIVE_AT = 0x20, 16


def _require(holds: bool, otherwise: str) -> None:
    if not holds:
        raise AssertionError(otherwise)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--each", type=int, default=1000, help="attacks of each kind")
    parser.add_argument("--sessions", type=int, default=20, help="sessions over noisy lines")
    parser.add_argument("--seed", type=int, default=random.getrandbits(32))
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        attacks = Attacks(given.seed, Path(scratch))
        attacks.run(given.each)
        attacks.run_on_noisy_lines(given.sessions)
    for kind, outcomes in attacks.outcomes.items():
        told = ", ".join(f"{what}: {count:,}" for what, count in outcomes.most_common())
        print(f"{kind}: {outcomes.total():,} attacks, none got through ({told})")
    print(f"seed {given.seed}")


if __name__ == "__main__":
    main()
